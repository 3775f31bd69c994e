"""`Builder`, with which the `lower` methods of op classes emit linalg on tensors.

The inference of each op gives its result types, so nothing here checks that shapes fit.
Operations that only move elements become copies with affine input maps, which the scheduler folds
into their consumers.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

from mlir import ir

from ...dialect.errors import LoweringError
from ...dialect.ir.dtypes import BOOL, F32, F64, U8, DType
from ...dialect.ir.size_algebra import fits_64_bits
from ...dialect.ir.symbolic import Dim, Sym, symbol
from ...dialect.ir.types import MaybeDim, ScalarType, TensorType, Type
from ...dialect.ops.sizes import is_nonnegative
from .element import PART, Number, emit
from .generic import Emitter, Expr, TensorValue, Value, dims, known, literal, loop_index, mlir_type
from .maps import broadcast_map, slice_map
from .ordered_folds import index_of_extremum, limit, scan
from .place_updates import update_at
from .products import matmul
from .scalar import Scalar, constant

__all__ = ["Builder", "Scalar", "TensorValue"]


class Builder(Emitter):
    """Emits one fusion function, at the current insertion point and location."""

    def __init__(self, symbols: Mapping[str, ir.Value], anchor: ir.Operation) -> None:
        super().__init__(symbols, anchor)
        self._violations: list[TensorValue] = []
        self._not_negative: set[Dim] = set()  # sizes for which a negative value is forbidden
        self._not_wrapped: set[Dim] = set()

    # --- elementwise -------------------------------------------------------------------------

    @overload
    def pointwise(self, fn: Callable[..., Scalar], inputs: Sequence[Value], type_: TensorType) -> TensorValue: ...
    @overload
    def pointwise(self, fn: Callable[..., Scalar], inputs: Sequence[Value], type_: Type) -> Any: ...
    def pointwise(self, fn: Callable[..., Scalar], inputs: Sequence[Value], type_: Type) -> Any:
        """``fn`` on the elements of broadcast operands.

        Operands are tensors, scalars, or numbers (which ``fn`` sees as constants of dtype bool,
        i64 or f64). Where every operand is a scalar and the result is 0-d, ``fn`` is emitted at
        function level. Returns a Tensor, or a Scalar for a scalar ``type_``.
        """
        # A scalar operand is emitted once, outside the body that uses it.
        values = [v if isinstance(v, TensorValue) and v.scalar is None else self.scalar(v) for v in inputs]
        tensors = [v for v in values if isinstance(v, TensorValue)]
        if isinstance(type_, ScalarType):
            return fn(*map(self.scalar, values))
        assert isinstance(type_, TensorType)
        _, shape = known(type_)
        if not tensors and not shape:
            return TensorValue(None, type_, fn(*values))

        def body(*args: Scalar) -> Scalar:
            elements = iter(args)
            return fn(*(next(elements) if isinstance(v, TensorValue) else v for v in values))

        loops = dims(len(shape))
        reads = [(t, broadcast_map(t.shape, loops)) for t in tensors]
        return self._parallel_generic(reads, body, type_)

    def _parallel_generic(
        self, reads: Sequence[tuple[TensorValue, Sequence[Expr]]], fn: Callable, type_: TensorType
    ) -> TensorValue:
        """``fn`` of the read elements, for each index of the result."""
        dtype, shape = known(type_)
        rank, count = len(shape), len(reads)
        outputs = [(self.empty(type_), dtype, dims(rank))]
        out = self.generic(reads, outputs, [False] * rank, lambda *xs: fn(*xs[:count]))
        return TensorValue(out[0], type_)

    def compute(
        self,
        type_: TensorType,
        fn: Callable[..., Scalar],
        reads: Sequence[tuple[TensorValue, Sequence[int]]] = (),
        part: Sequence[tuple[int, Dim, Dim]] = (),
    ) -> TensorValue:
        """``fn`` of each index (i64 scalars) of the result; ``fn`` reads tensors by `TensorValue.at`.

        ``reads``: tensors of which ``fn`` gets an element, before the index, and the axes of the
        result by which that is chosen. Such a tensor may be computed in the same loop.
        ``part``: (axis, first index, size): elsewhere ``fn`` gives the element of the first read.
        """
        loops = dims(len(known(type_)[1]))

        def body(*elements: Scalar) -> Scalar:
            return fn(*elements, *(loop_index(k) for k in range(len(loops))))

        chosen = [(t, [loops[k] for k in axes]) for t, axes in reads]
        result = self._parallel_generic(chosen, body, type_)
        numbers = [n for bound in part for n in bound if isinstance(n, int)]
        if part and len(numbers) == 3 * len(part):
            result.value.owner.attributes[PART] = ir.DenseI64ArrayAttr.get(numbers)
        return result

    def cast(self, x: Value, dtype: DType) -> TensorValue:
        """``x.astype(dtype)``; ``x`` itself if it has that dtype."""
        if isinstance(x, TensorValue):
            if x.dtype is dtype:
                return x
            return self.pointwise(lambda v: v.cast(dtype), [x], TensorType(dtype, x.type.shape))
        return self.pointwise(lambda v: v.cast(dtype), [x], TensorType(dtype, ()))

    # --- forbidden cases -----------------------------------------------------------------------

    def forbid(self, fn: Callable[[Scalar], Scalar], x: TensorValue | Scalar) -> None:
        """Void a run of the kernel in which ``fn`` holds of an element of ``x``.

        A kernel cannot raise. It reports instead; its caller drops the results and evaluates the
        operations one by one, which raises what NumPy raises.
        """
        shape = x.shape if isinstance(x, TensorValue) else ()
        violation = self.pointwise(fn, [x], TensorType(BOOL, shape))
        if shape:
            axes = range(len(shape))
            violation = self.reduce(lambda a, e: a | e, 0, violation, axes, TensorType(BOOL, ()))
        self._violations.append(violation)

    def check_size(self, size: MaybeDim) -> None:
        """Void a run of the kernel in which a size is negative, for which NumPy raises.

        Raises LoweringError for a size that may overflow while it is computed: loops would have
        another extent than the array that the caller allocates.
        """
        if not isinstance(size, Sym) or size in self._not_negative or is_nonnegative(size):
            # Where a sum of products of sizes overflows, NumPy cannot make the array either.
            plain = not isinstance(size, Sym) or all(isinstance(a, str) for mono, _ in size.terms for a in mono)
            if plain or fits_64_bits(size):  # type: ignore[arg-type]
                return
        elif fits_64_bits(size):
            self._not_negative.add(size)
            self.forbid(lambda n: n < 0, self.size(size))
            return
        raise LoweringError(f"the size {size} may need more than 64 bits on the way")

    def scalar(self, value: Value) -> Scalar:
        if isinstance(value, Sym) and not fits_64_bits(value):
            self._forbid_overflow(value)
        return super().scalar(value)

    def _forbid_overflow(self, size: Sym) -> None:
        """Void a run in which some step of evaluating a size as an i64 overflows."""
        if size in self._not_wrapped:
            return
        if not all(-(2**63) <= coefficient < 2**63 for _, coefficient in size.terms):
            raise LoweringError(f"the size {size} needs more than 64 bits")
        self._not_wrapped.add(size)
        large: list[Scalar] = []

        def binary(op: str, a: Scalar, b: Scalar) -> Scalar:
            # Floats do not wrap. The divisor stands for the remainder, as a bound of its magnitude.
            magnitude = b if op == "%" else _IN_FLOATS[op](a, b)
            large.append(abs(magnitude) >= 2.0**62)
            return magnitude

        size.fold(lambda name: self.size(symbol(name)).cast(F64), lambda n: constant(float(n), F64), binary)
        self.forbid(lambda is_large: is_large, functools.reduce(operator.or_, large))

    def violation(self) -> TensorValue | None:
        """A 0-d bool: whether a forbidden case has occurred; None = nothing is forbidden."""
        if not self._violations:
            return None
        if len(self._violations) == 1:
            return self._violations[0]
        any_of = functools.partial(functools.reduce, operator.or_)
        return self.pointwise(lambda *xs: any_of(xs), self._violations, TensorType(BOOL, ()))

    # --- reductions --------------------------------------------------------------------------

    def reduce(
        self,
        fn: Callable[[Scalar, Scalar], Scalar],
        init: Number | str,
        x: TensorValue,
        axes: Sequence[int],
        type_: TensorType,
        keepdims: bool = False,
    ) -> TensorValue:
        """Fold ``fn(accumulator, element)`` over ``axes``, starting from ``init``.

        ``init`` is a number, or ``"min"``/``"max"`` for the least/greatest value of the result's
        dtype, which is the accumulator's. Sums of f32 and f64 may be reassociated; products of
        floats keep their order. The scheduler may reorder extrema and folds of integers and bools.
        """
        dtype, _ = known(type_)
        gone = {a % x.rank for a in axes}
        start = constant(limit(dtype, init) if isinstance(init, str) else init, dtype)
        reassoc = dtype.part in (F32, F64)

        # Truths are folded as memory has them, bytes of 0 or 1: of that LLVM makes vectors, in loops, too.
        held = U8 if dtype is BOOL else dtype.part

        def body(element: Scalar, *parts: Scalar) -> Sequence[Scalar]:
            element = element.cast(held) if dtype is BOOL else element
            # Of complex numbers each part has an accumulator, which sums of floats may share.
            accs = [Scalar(acc.value, acc.dtype, reassoc=reassoc) for acc in parts]
            value = fn(accs[0] if len(accs) == 1 else Scalar.joined(*accs), element)
            return [value] if value.parts is None else value.parts

        if not gone:
            return self.pointwise(lambda e: fn(start, e), [x], type_)
        kept = [k for k in range(x.rank) if k not in gone]
        shape = tuple(x.shape[k] for k in kept)
        inside = TensorType(dtype.part, shape)
        loops = dims(x.rank)
        starts = [start] if start.parts is None else start.parts
        into = [(self.fill(s, inside).value, held, [loops[k] for k in kept]) for s in starts]
        out = self.generic([(x, loops)], into, [k in gone for k in range(x.rank)], body)
        parts = [TensorValue(part, inside) for part in out]
        result = parts[0]
        if dtype.is_complex:
            result = self._joined(parts[0], parts[1], TensorType(dtype, shape))
        return self.expand_dims(result, sorted(gone)) if keepdims else result

    def index_of_extremum(self, x: TensorValue, axis: int, which: str, type_: TensorType) -> TensorValue:
        """Index along ``axis`` of the first ``"max"`` or ``"min"``, or of the first NaN; see `ordered_folds`."""
        return index_of_extremum(self, x, axis, which, type_)

    def scan(self, fn: Callable[[Scalar, Scalar], Scalar], x: TensorValue, axis: int, type_: TensorType) -> TensorValue:
        """Running ``fn(accumulator, element)`` along ``axis``, the first element unchanged; see `ordered_folds`."""
        return scan(self, fn, x, axis, type_)

    def update_at(
        self,
        combine: Callable[[Scalar, Scalar], Scalar],
        x: TensorValue,
        value: TensorValue,
        places: Mapping[int, TensorValue],
        start: int,
    ) -> TensorValue:
        """``x`` updated at places that arrays name; see `place_updates`."""
        return update_at(self, combine, x, value, places, start)

    # --- moving elements ---------------------------------------------------------------------

    def _copy(self, x: TensorValue, exprs: Sequence[Expr], shape: Sequence[Dim]) -> TensorValue:
        """The elements of ``x`` at affine functions of the result's index."""
        type_ = TensorType(x.dtype, tuple(shape))
        if x.scalar is not None:
            return self.fill(x.scalar, type_)
        if 0 in shape:
            # linalg refuses maps that leave the operand, even in a loop that never runs.
            return self.fill(constant(0, x.dtype), type_)
        return self._parallel_generic([(x, exprs)], lambda e: e, type_)

    def transpose(self, x: TensorValue, perm: Sequence[int] | None = None) -> TensorValue:
        """Axis k of the result is axis ``perm[k]`` of ``x``; None reverses the axes."""
        order = [p % x.rank for p in perm] if perm is not None else range(x.rank)[::-1]
        if list(order) == list(range(x.rank)):
            return x
        loops = dims(x.rank)
        exprs = [loops[list(order).index(k)] for k in range(x.rank)]
        return self._copy(x, exprs, [x.shape[p] for p in order])

    def broadcast(self, x: Value, type_: TensorType) -> TensorValue:
        """``x`` broadcast to the shape of ``type_``."""
        _, shape = known(type_)
        if not isinstance(x, TensorValue):
            return self.fill(x, type_)
        if x.shape == shape:
            return x
        return self._copy(x, broadcast_map(x.shape, dims(len(shape))), shape)

    def expand_dims(self, x: TensorValue, axes: Sequence[int]) -> TensorValue:
        """``x`` with axes of size 1 inserted, counted in the result."""
        rank = x.rank + len(axes)
        new = {a % rank for a in axes}
        kept = [k for k in range(rank) if k not in new]
        loops = dims(rank)
        sizes: dict[int, Dim] = dict(zip(kept, x.shape, strict=True))
        return self._copy(x, [loops[k] for k in kept], [sizes.get(k, 1) for k in range(rank)])

    def squeeze(self, x: TensorValue, axes: Sequence[int]) -> TensorValue:
        """``x`` without these axes, which have size 1."""
        gone = {a % x.rank for a in axes}
        loops = iter(dims(x.rank - len(gone)))
        exprs = [literal(0) if k in gone else next(loops) for k in range(x.rank)]
        return self._copy(x, exprs, [d for k, d in enumerate(x.shape) if k not in gone])

    def flip(self, x: TensorValue, axes: Sequence[int]) -> TensorValue:
        """``x`` with the order of elements along ``axes`` reversed."""
        flipped = {a % x.rank for a in axes}
        starts = [d - 1 if k in flipped else 0 for k, d in enumerate(x.shape)]
        steps = [-1 if k in flipped else 1 for k in range(x.rank)]
        return self.slice(x, starts, steps, TensorType(x.dtype, x.shape))

    def slice(
        self, x: TensorValue, starts: Sequence[int | Sym | Scalar], steps: Sequence[int], type_: TensorType
    ) -> TensorValue:
        """The elements of ``x`` at ``starts + index * steps``, all in bounds; of the same rank."""
        _, shape = known(type_)
        exprs = slice_map(x.shape, starts, steps, shape)
        if exprs is not None:
            return self._copy(x, exprs, shape)
        begins = [s if isinstance(s, Scalar) else self.size(s) for s in starts]

        def element(*index: Scalar) -> Scalar:
            return x.at(*(b + i * s for b, i, s in zip(begins, index, steps, strict=True)))

        return self.compute(TensorType(x.dtype, shape), element)

    def windows(self, x: TensorValue, axes: Sequence[int], type_: TensorType) -> TensorValue:
        """The windows along different axes of ``x``; the last axes of the result are theirs."""
        _, shape = known(type_)
        loops = dims(len(shape))
        inside = dict(zip(axes, loops[x.rank :], strict=True))
        exprs = [e + inside[k] if k in inside else e for k, e in enumerate(loops[: x.rank])]
        return self._copy(x, exprs, shape)

    def reshape(self, x: TensorValue, type_: TensorType) -> TensorValue:
        """The elements of ``x`` in row-major order, in the shape of ``type_``."""
        _, shape = known(type_)
        if shape == x.shape:
            return x
        if [d for d in shape if d != 1] == [d for d in x.shape if d != 1]:
            loops = iter([e for e, d in zip(dims(len(shape)), shape, strict=True) if d != 1])
            return self._copy(x, [literal(0) if d == 1 else next(loops) for d in x.shape], shape)
        sizes = [self.index(d) for d in shape]
        index = ir.IndexType.get()
        listed = emit("tensor.from_elements", ir.RankedTensorType.get([len(sizes)], index), *sizes)
        out = TensorType(x.dtype, shape)
        return TensorValue(emit("tensor.reshape", mlir_type(out), x.value, listed), out)

    # --- products ----------------------------------------------------------------------------

    def matmul(self, x: TensorValue, y: TensorValue, type_: TensorType) -> TensorValue:
        """NumPy's ``matmul`` of tensors of one dtype, for every combination of ranks >= 1."""
        return matmul(self, x, y, type_)


_IN_FLOATS: dict[str, Callable[[Scalar, Scalar], Scalar]] = {
    "+": operator.add,
    "*": operator.mul,
    "//": lambda a, b: (a / b).math("floor"),
    "max": lambda a, b: a.maximum(b),
    "min": lambda a, b: a.minimum(b),
}
