"""The few operations to which all ops are lowered: sizes, destinations, fills, `linalg.generic`.

`Emitter` is the base class of `builder.Builder`; it knows MLIR types and maps, not NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

import numpy as np
from mlir import ir

from ...dialect.errors import InternalError
from ...dialect.ir.dtypes import BF16, BOOL, C128, F16, F64, I64, DType, dtype_of
from ...dialect.ir.symbolic import Dim, Sym
from ...dialect.ir.types import TensorType
from .element import WINDOW, Number, emit, storage_type
from .scalar import Scalar, constant
from .stored_element import load, store

Expr = Any  # ir.AffineExpr
Value = Union["TensorValue", Scalar, Number, Sym, np.generic]
Body = Callable[..., Union[Scalar, Sequence[Scalar]]]


class TensorValue:
    """A tensor inside the function being built.

    Attributes:
        type: dtype and complete shape.
        scalar: for a 0-d tensor computed at function level, its element; bodies use it directly.
    """

    __slots__ = ("_made", "_value", "scalar", "type")

    def __init__(self, value: ir.Value | None, type_: TensorType, scalar: Scalar | None = None) -> None:
        self._value, self.type, self.scalar = value, type_, scalar
        self._made: tuple[ir.Block, ir.Value] | None = None

    @property
    def value(self) -> ir.Value:
        """The SSA value (of a tensor type)."""
        if self._value is None:
            assert self.scalar is not None
            block = ir.InsertionPoint.current.block
            if self._made is None or self._made[0] != block:  # it is not defined outside of that
                self._made = block, fill(self.scalar, mlir_type(self.type), [])
            return self._made[1]
        return self._value

    @property
    def dtype(self) -> DType:
        return known(self.type)[0]

    @property
    def shape(self) -> tuple[Dim, ...]:
        return known(self.type)[1]

    @property
    def rank(self) -> int:
        return len(self.shape)

    def __repr__(self) -> str:
        return f"Tensor({self.type})"

    def at(self, *indices: Scalar | int, window: bool = False) -> Scalar:
        """The element at these indices (in bounds), by ``tensor.extract`` inside a body.

        ``window``: each index is the same as without the clamps that made it, wherever the element
        is used at all.
        """
        if self.scalar is not None:
            return self.scalar
        where = [_index(i) for i in indices]
        marks = {WINDOW: ir.UnitAttr.get()} if window else {}
        return load(emit("tensor.extract", storage_type(self.dtype), self.value, *where, **marks), self.dtype)


def _index(value: Scalar | int) -> ir.Value:
    index = ir.IndexType.get()
    if isinstance(value, Scalar):
        return emit("arith.index_cast", index, value.cast(I64).value)
    return emit("arith.constant", index, value=ir.IntegerAttr.get(index, value))


def known(type_: TensorType) -> tuple[DType, tuple[Dim, ...]]:
    """Dtype and sizes of a complete type."""
    assert type_.dtype is not None and type_.shape is not None
    return type_.dtype, type_.shape  # type: ignore[return-value]


def mlir_type(type_: TensorType) -> ir.Type:
    """The builtin tensor type in storage form; symbolic sizes are ``?``."""
    dtype, shape = known(type_)
    dynamic = ir.ShapedType.get_dynamic_size()
    sizes = [d if isinstance(d, int) else dynamic for d in shape]
    return ir.RankedTensorType.get(sizes, storage_type(dtype))


def fill(scalar: Scalar, type_: ir.Type, dynamic: Sequence[ir.Value]) -> ir.Value:
    """A tensor all of whose elements are ``scalar``."""
    value = store(scalar)
    empty = emit("tensor.empty", type_, *dynamic)
    op = ir.Operation.create(
        "linalg.fill",
        results=[type_],
        operands=[value, empty],
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1])},
        regions=1,
    )
    fill_region(op)
    return op.result


def fill_region(op: ir.Operation) -> None:
    """Give a named linalg operation the body that its definition implies."""
    from mlir._mlir_libs import _mlirDialectsLinalg

    _mlirDialectsLinalg.fill_builtin_region(op)


class SizePlace:
    """The place where sizes are computed, and those that have been: at the start of a block."""

    __slots__ = ("index", "point", "size")

    def __init__(self, anchor: ir.Operation) -> None:
        self.point = ir.InsertionPoint(anchor)
        self.index: dict[Dim, ir.Value] = {}
        self.size: dict[Dim, Scalar] = {}


class Emitter:
    """Emits operations into one function.

    Args:
        symbols: the ``index`` argument of every size symbol.
        anchor: an operation at the start of the function, before which sizes are computed, so
            that each distinct size is one SSA value that dominates every use.
    """

    def __init__(self, symbols: Mapping[str, ir.Value], anchor: ir.Operation) -> None:
        self.symbols = symbols
        self.entry = SizePlace(anchor)
        self._parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
        self._reduction = ir.Attribute.parse("#linalg.iterator_type<reduction>")

    # --- sizes -------------------------------------------------------------------------------

    def size(self, dim: Dim) -> Scalar:
        """A size as an i64 scalar; equal sizes are one SSA value."""
        if not isinstance(dim, Sym):
            return constant(int(dim), I64)
        place = self.place_of(dim)
        size = place.size.get(dim)
        if size is None:
            index = self.index(dim)
            with place.point:
                size = Scalar(emit("arith.index_cast", storage_type(I64), index), I64)
            place.size[dim] = size
        return size

    def index(self, dim: Dim) -> ir.Value:
        """A size as an ``index`` value; equal sizes are one SSA value."""
        place = self.place_of(dim)
        value = place.index.get(dim)
        if value is None:
            with place.point:
                if isinstance(dim, Sym):
                    value = dim.fold(self._symbol, self.index, _index_binary)
                else:
                    value = _index(dim)
            place.index[dim] = value
        return value

    def place_of(self, dim: Dim) -> SizePlace:
        """The place where a size is computed, so that it dominates every use."""
        return self.entry

    def _symbol(self, name: str) -> ir.Value:
        try:
            return self.symbols[name]
        except KeyError:
            raise InternalError(f"size symbol {name!r} is no argument's") from None

    # --- values ------------------------------------------------------------------------------

    def scalar(self, value: Value) -> Scalar:
        """A number, size, 0-d tensor or scalar as a `Scalar`."""
        if isinstance(value, Scalar):
            return value
        if isinstance(value, TensorValue):
            return value.at()
        if isinstance(value, Sym):
            return self.size(value)
        if isinstance(value, bool):
            return constant(value, BOOL)
        if isinstance(value, int):
            return constant(value, I64)
        if isinstance(value, float):
            return constant(value, F64)
        if isinstance(value, complex):
            return constant(value, C128)
        return constant(value.item(), dtype_of(value.dtype))

    def dynamic_sizes(self, shape: Sequence[Dim]) -> list[ir.Value]:
        """Index values of the symbolic sizes of a shape."""
        return [self.index(d) for d in shape if isinstance(d, Sym)]

    def empty(self, type_: TensorType) -> ir.Value:
        """A destination of this type."""
        return emit("tensor.empty", mlir_type(type_), *self.dynamic_sizes(known(type_)[1]))

    def fill(self, value: Value, type_: TensorType) -> TensorValue:
        """A tensor all of whose elements are ``value``."""
        dtype, shape = known(type_)
        scalar = self.scalar(value).cast(dtype)
        if not shape:
            return TensorValue(None, type_, scalar)
        return TensorValue(fill(scalar, mlir_type(type_), self.dynamic_sizes(shape)), type_)

    def constant(self, array: np.ndarray | np.generic | Number, type_: TensorType) -> TensorValue:
        """A literal tensor; ``array`` is converted to the dtype of ``type_``."""
        dtype, _ = known(type_)
        array = np.asarray(array).astype(dtype.numpy, copy=False)
        if array.ndim == 0:
            return TensorValue(None, type_, constant(array.item(), dtype))
        shape, element, full = list(array.shape), storage_type(dtype), mlir_type(type_)
        if array.size == 0:
            return TensorValue(emit("tensor.empty", full), type_)
        if dtype.is_complex:
            part = TensorType(dtype.part, type_.shape)
            real, imag = (self.constant(x, part) for x in (array.real, array.imag))
            return self._joined(real, imag, type_)
        array = np.ascontiguousarray(array)
        if dtype is BOOL:
            array = array.view(np.int8)
        elif dtype.kind == "u" or dtype is BF16:
            array = array.view(f"i{dtype.itemsize}")
        elif dtype is F16:
            array = array.view(np.int16)
        attr = ir.DenseElementsAttr.get(array, type=element, shape=shape)
        return TensorValue(emit("arith.constant", full, value=attr), type_)

    def _joined(self, real: TensorValue, imag: TensorValue, type_: TensorType) -> TensorValue:
        """The complex tensor of two tensors of floats."""
        dtype, shape = known(type_)
        loops = dims(len(shape))
        out = self.generic(
            [(real, loops), (imag, loops)],
            [(self.empty(type_), dtype, loops)],
            [False] * len(shape),
            lambda re, im, *_: Scalar.joined(re, im),
        )
        return TensorValue(out[0], type_)

    # --- linalg.generic ----------------------------------------------------------------------

    def generic(
        self,
        inputs: Sequence[tuple[TensorValue, Sequence[Expr]]],
        outputs: Sequence[tuple[ir.Value, DType, Sequence[Expr]]],
        reductions: Sequence[bool],
        body: Body,
        attributes: Mapping[str, ir.Attribute] | None = None,
    ) -> list[ir.Value]:
        """One ``linalg.generic``.

        Args:
            inputs: tensors with the affine index expressions they are read at.
            outputs: destinations likewise, with their dtypes.
            reductions: for each loop, outermost first, whether it is a reduction.
            body: takes the input elements, then the elements of the destinations, and returns the
                new element(s); it is called once and emits into the region.
        """
        values = [t.value for t, _ in inputs] + [v for v, _, _ in outputs]
        exprs = [e for _, e in inputs] + [e for _, _, e in outputs]
        dtypes = [t.dtype for t, _ in inputs] + [d for _, d, _ in outputs]
        loops = len(reductions)
        maps = [ir.AffineMapAttr.get(ir.AffineMap.get(loops, 0, list(e))) for e in exprs]
        iterators = [self._reduction if r else self._parallel for r in reductions]
        op = ir.Operation.create(
            "linalg.generic",
            results=[v.type for v, _, _ in outputs],
            operands=values,
            attributes={
                "indexing_maps": ir.ArrayAttr.get(maps),
                "iterator_types": ir.ArrayAttr.get(iterators),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(inputs), len(outputs)]),
                **(attributes or {}),
            },
            regions=1,
        )
        block = op.regions[0].blocks.append(*[storage_type(d) for d in dtypes])
        with ir.InsertionPoint(block):
            args = [load(a, d) for a, d in zip(block.arguments, dtypes, strict=True)]
            elements = body(*args)
            results = [elements] if isinstance(elements, Scalar) else list(elements)
            for result, (_, dtype, _) in zip(results, outputs, strict=True):
                if result.dtype is not dtype:
                    raise InternalError(f"a body yields {result.dtype} for {dtype}")
            ir.Operation.create("linalg.yield", operands=[store(r) for r in results])
        return list(op.results)


def dims(count: int) -> list[Expr]:
    """The loop indices ``d0 … dn`` as affine expressions."""
    return [ir.AffineDimExpr.get(k) for k in range(count)]


def literal(value: int) -> Expr:
    """A constant affine expression."""
    return ir.AffineConstantExpr.get(value)


def loop_index(axis: int) -> Scalar:
    """Inside a body: the index of a loop, as an i64 scalar."""
    dim = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), axis)
    index = emit("linalg.index", ir.IndexType.get(), dim=dim)
    return Scalar(emit("arith.index_cast", storage_type(I64), index), I64)


def _index_binary(op: str, a: ir.Value, b: ir.Value) -> ir.Value:
    if op == "%":
        rounded = _index_binary("*", _index_binary("//", a, b), b)
        return emit("arith.subi", a.type, a, rounded)
    return emit(f"arith.{_INDEX_OPS[op]}", a.type, a, b)


_INDEX_OPS = {"+": "addi", "*": "muli", "//": "floordivsi", "max": "maxsi", "min": "minsi"}
