"""In which order the axes of results lie in memory, which depends on those of the arguments.

NumPy stores what an op gives with its axes in the order of its operands in memory, in most ops.
Which order that is, is asked of NumPy: the graph runs on samples of one or two elements per axis
that lie in memory as the inputs of a call do. Kernels give C order, and views of it where they are
made for other inputs; what lies otherwise than NumPy's result is copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np

from ...dialect.analysis.alias import uses
from ...dialect.importers.numpy.tracing.layouts import Laid
from ...dialect.ir.dtypes import dtype_of
from ...dialect.ir.op import Fusion, unbared
from ...dialect.ir.program import Block, Instr, Program
from ...dialect.ir.types import ScalarType, TensorType, Type
from ...dialect.ops.control_flow.control import For, If, While
from ...dialect.ops.create import Constant, Full, Iota
from ...dialect.ops.elementwise.families import Elementwise
from ...dialect.ops.gradient_ops import SumTo
from ...dialect.ops.indexing.additions import Adding
from ...dialect.ops.indexing.index import Take
from ...dialect.ops.indexing.inplace import Borrow
from ...dialect.ops.indexing.scatter import Copy, SliceScatter
from ...dialect.ops.indexing.slicing import Pick, Slice
from ...dialect.ops.indexing.windows import Windows
from ...dialect.ops.manipulation.join import Concatenate, Stack
from ...dialect.ops.manipulation.permute import Permutation
from ...dialect.ops.manipulation.shape import BroadcastTo, ExpandDims, Flip, Reshape, Squeeze
from ...dialect.ops.reductions.reduce import Reduction
from ...dialect.ops.reductions.scan import Scan

# What NumPy makes of samples tells what it makes of all arrays that lie like them.
_EVALUATED = (Elementwise, Permutation, ExpandDims, Squeeze, Flip, Reduction, Scan, Concatenate, Stack, SumTo)
_IN_C_ORDER = (Full, Iota, Constant, Copy, Borrow, Take)
# Of operands in C order, all others give results in C order.
_TURNING = (BroadcastTo, Permutation, Windows)
Order = tuple[int, ...]  # the axes of an array, from the outermost in memory to the innermost
_REPEATED: Order = ()  # of arrays some of whose elements stand for several: NumPy has many rules


def layout_of(array: Any) -> Order | None:
    """The order of the axes of several elements in memory; None = the usual one."""
    if type(array) is not np.ndarray or array.ndim < 2 or array.flags.c_contiguous:
        return None
    steps = [abs(s) for s in array.strides]
    wide = [k for k, size in enumerate(array.shape) if size > 1]
    if not all(steps[k] for k in wide):
        return _REPEATED
    order = sorted(wide, key=lambda k: -steps[k])
    return None if order == wide else tuple(order)


class ValueOrders:
    """The orders of some values of a program, by the layouts of its inputs.

    Args:
        program: the program.
        hints: what is known of its values.
        laid: how values lie that NumPy lays out otherwise than the ops that compute them.
        values: whose orders are asked for.
        plain: others, which have to lie in C order.
    """

    def __init__(
        self,
        program: Program,
        hints: Mapping[int, Type],
        laid: Mapping[int, Laid],
        values: Sequence[int],
        plain: Iterable[int] = (),
    ) -> None:
        self._program, self._hints, self._laid = program, hints, laid
        self._values, self._in_c_order = values, tuple(plain)
        self._known: dict[Any, list[Order | None] | None] = {}

    def of(self, inputs: Sequence[Any]) -> list[Order | None] | None:
        """The orders for these inputs, None for the usual one; None where it is not known."""
        layouts = tuple(map(layout_of, inputs))
        if not self._may_turn and layouts.count(None) == len(layouts):
            return self._in_order
        key = layouts, tuple(map(_singles, inputs)), self._entered(inputs)
        if key not in self._known:
            self._known[key] = None if _REPEATED in layouts else self._orders(inputs)
        return self._known[key]

    @cached_property
    def _loops(self) -> dict[int, tuple[Any, ...]]:
        """By the identity of a loop over a range its bounds: numbers, or functions of the inputs that are."""
        constants: dict[int, int] = {}
        loops: dict[int, tuple[Any, ...]] = {}
        numbers = {v: itemgetter(k) for k, v in enumerate(self._program.inputs)}
        for instr in self._program.body.walk():
            if instr.op is Constant and type(instr.attrs["value"]) is int:
                constants[instr.results[0]] = instr.attrs["value"]
            elif instr.op is For:
                bounds = [constants.get(v, numbers.get(v)) for v in instr.operands[:3]]
                if None not in bounds:
                    loops[id(instr)] = tuple(bounds)
        return loops

    def _entered(self, inputs: Sequence[Any]) -> frozenset[int]:
        """The loops that are known to have a round at least."""
        entered = set()
        for loop, bounds in self._loops.items():
            numbers: list[Any] = [x if type(x) is int else x(inputs) if inputs else None for x in bounds]
            if all(type(x) is int for x in numbers) and numbers[2] and len(range(*numbers)):
                entered.add(loop)
        return frozenset(entered)

    def _hints_for(self, inputs: Sequence[Any]) -> Mapping[int, Type]:
        """The known types of values if inputs have these sizes: axes of one element count alone."""
        same = all(type(x) is not np.ndarray or _singles(x) == self.singles(k) for k, x in enumerate(inputs))
        if same:
            return self._hints
        hints = dict(self._hints)
        for value, array in zip(self._program.inputs, inputs, strict=False):
            if type(array) is np.ndarray:
                hints[value] = TensorType(dtype_of(array.dtype), array.shape)
        for instr in self._program.body.instrs:
            types = [hints.get(v) for v in instr.operands]
            try:
                if instr.blocks or None in types:
                    raise ValueError("the sizes of results are not known")
                result_types = instr.op.infer(types, instr.op.full_attrs(instr.attrs))  # type: ignore[arg-type]
            except Exception:  # a sample of it will not be known either
                result_types = [_without_sizes(hints.get(v)) for v in instr.results]  # type: ignore[assignment]
            hints |= {v: t for v, t in zip(instr.results, result_types, strict=False) if t is not None}
        return hints

    @cached_property
    def usual(self) -> list[Order | None] | None:
        """The orders for inputs whose axes lie in their order, of one element where they had one.

        Others have these orders, too, if `is_usual`.
        """
        return self._orders(())

    @cached_property
    def is_usual(self) -> bool:
        """True if the usual orders are those for any number of elements of each axis."""
        several: list[Any] = []
        for value in self._program.inputs:
            hint = self._hints.get(value)
            is_array = isinstance(hint, TensorType) and hint.dtype is not None
            shape = (2,) * (hint.rank or 0) if isinstance(hint, TensorType) else ()
            several.append(np.ones(shape, hint.dtype.numpy) if is_array else None)  # type: ignore[union-attr]
        return self._orders(several) == self.usual

    def singles(self, number: int) -> tuple[bool, ...]:
        """Of each axis of an input, whether it had one element."""
        hint = self._hints.get(self._program.inputs[number])
        shape = hint.shape if isinstance(hint, TensorType) else None
        return tuple([d == 1 for d in shape or ()])

    @cached_property
    def _may_turn(self) -> bool:
        """False if the values lie in C order wherever the inputs do."""
        instrs = self._program.body.instrs
        if self._laid or any(instr.blocks or issubclass(instr.op, _TURNING) for instr in instrs):
            return True
        return not all(_has_rank(self._hints.get(v)) for instr in instrs for v in instr.results)

    @cached_property
    def _in_order(self) -> list[Order | None]:
        return [None] * len(self._values)

    def _orders(self, inputs: Sequence[Any]) -> list[Order | None] | None:
        if not self._may_turn and all(layout_of(x) is None for x in inputs):
            return self._in_order
        samples = _Samples(self._hints_for(inputs), self._laid, self._entered(inputs))
        samples.of |= {v: samples.plain(v) for v in self._program.inputs}
        for value, array in zip(self._program.inputs, inputs, strict=False):
            if type(array) is np.ndarray:
                samples.of[value] = _sample_of(array)
        samples.run(_needed(self._program.body, (*self._values, *self._in_c_order)))
        others = [samples.of.get(v) for v in self._in_c_order]
        if any(x is None or not _is_plain(x) for x in others):
            return None
        orders: list[Order | None] = []
        for value in self._values:
            sample = samples.of.get(value)
            rank = samples.rank(value)
            if sample is None and rank != 0 and rank != 1:
                return None
            is_turned = isinstance(sample, np.ndarray) and not sample.flags.c_contiguous
            orders.append(_order(sample) if is_turned else None)  # type: ignore[arg-type]
        return orders


def _has_rank(hint: Type | None) -> bool:
    """True of the type of a number, or of arrays of known rank."""
    return isinstance(hint, ScalarType) or (isinstance(hint, TensorType) and hint.shape is not None)


def _needed(body: Block, values: Sequence[int]) -> list[Instr]:
    """The instructions from which values follow, in order."""
    live, instrs = set(values), []
    for instr in reversed(body.instrs):
        if not live.isdisjoint(instr.results):
            instrs.append(instr)
            live |= uses(instr)
    return instrs[::-1]


class _Samples:
    """Small arrays that lie in memory as values of a program do."""

    def __init__(self, hints: Mapping[int, Type], laid: Mapping[int, Laid], entered: frozenset[int]) -> None:
        self._hints, self._laid, self._entered = hints, laid, entered
        self.of: dict[int, Any] = {}  # None = not known

    def rank(self, value: int) -> int | None:
        hint = self._hints.get(value)
        return hint.rank if isinstance(hint, TensorType) else None

    def run(self, instrs: Sequence[Instr]) -> None:
        """Make samples of what instructions give."""
        for instr in instrs:
            if instr.blocks:
                self._flow(instr)
                continue
            try:
                samples = self._results(instr)
            except Exception:  # sizes are others than those that the trace has seen
                samples = [None] * len(instr.results)
            for result, sample in zip(instr.results, samples, strict=True):
                self.of[result] = sample
            for result in instr.results:
                if (laid := self._laid.get(result)) is not None:
                    self.of[result] = self._made(laid.make, [self.of.get(v) for v in laid.sources])

    def _results(self, instr: Instr) -> Sequence[Any]:
        op, results = instr.op, instr.results
        operands: list[Any] = [self.of.get(v) for v in instr.operands]
        if issubclass(op, _IN_C_ORDER) or op.fusion in (Fusion.CONTRACTION, Fusion.QUERY):
            return [self.plain(v) for v in results]
        if op.writes:
            return [operands[op.writes[0]]] * len(results)
        if issubclass(op, (Adding, SliceScatter)) and operands[0] is not None:
            return [np.array(operands[0])]
        if any(x is None for x in operands):
            return [self.plain(v) if (self.rank(v) or 9) <= 1 else None for v in results]
        in_order = all(_is_plain(x) for x in operands)
        if issubclass(op, BroadcastTo):
            return [np.broadcast_to(operands[0], self._sizes(results[0]))]
        if issubclass(op, Windows):
            return [_windows(operands[0], instr.attrs["axes"])]
        if in_order and not issubclass(op, Permutation):
            return [self.plain(v) for v in results]
        if issubclass(op, Slice):
            return [_like(operands[0], range(operands[0].ndim), self._sizes(results[0]))]
        if issubclass(op, Pick):
            axis = instr.attrs.get("axis", 0) % operands[0].ndim
            rest = [k for k in range(operands[0].ndim) if k != axis]
            return [_like(operands[0], rest, self._sizes(results[0]))]
        if issubclass(op, Reshape):
            return [self._reshaped(instr, operands[0])]
        if issubclass(op, _EVALUATED):
            outputs = self._made(op.evaluate, [instr.op.full_attrs(instr.attrs), *operands])
            outputs = unbared(outputs, len(results))
            if len(outputs) == len(results):
                return outputs
        return [self.plain(v) if self.rank(v) in (0, 1) else None for v in results]

    def _reshaped(self, instr: Instr, sample: np.ndarray) -> Any:
        """A sample of a reshape of what is not in C order: it is a copy, if it has to be one."""
        (result,) = instr.results
        operand_type, result_type = (self._hints.get(v) for v in (instr.operands[0], result))
        shapes = [x.shape if isinstance(x, TensorType) else None for x in (operand_type, result_type)]
        if any(shape is None or None in shape for shape in shapes):
            return None
        before, after = ([int(d) for d in shape or ()] for shape in shapes)  # type: ignore[arg-type]
        order, steps, step = _order(sample), [0] * len(before), 1
        for axis in reversed(order):
            steps[axis] = step
            step *= before[axis]
        # The array has one element: nothing reads others, as no copy is made.
        strided = np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), before, steps)
        try:
            np.reshape(strided, after, copy=False)
        except ValueError:
            return self.plain(result)
        return self.plain(result) if len(after) < 2 else None

    def _made(self, make: Any, arguments: Sequence[Any]) -> Any:
        if any(x is None for x in arguments):
            return None
        try:
            with np.errstate(all="ignore"):
                return make(*arguments)
        except Exception:  # a sample may be too small for what it is asked
            return None

    def _flow(self, instr: Instr) -> None:
        """Samples of what branches and loops give: as far as all ways to it give the same."""
        if instr.op is If:
            for block in instr.blocks:
                self.run(block.instrs)
            ends = [[self.of.get(v) for v in block.outputs] for block in instr.blocks]
            for result, *sides in zip(instr.results, *ends, strict=True):
                self.of[result] = _common(sides)
            return
        carried = [self.of.get(v) for v in instr.operands[3 if instr.op is For else 0 :]]
        if id(instr) in self._entered:  # what it begins with is none of its results
            carried = self._round(instr, carried)
        for _ in range(2):
            ends = self._round(instr, carried)
            carried = [_common(pair) for pair in zip(carried, ends, strict=True)]
        self.of |= dict(zip(instr.results, carried, strict=True))

    def _round(self, instr: Instr, carried: Sequence[Any]) -> list[Any]:
        """Samples of the values that one round carries on to the next."""
        if instr.op is For:
            (body,) = instr.blocks
            self.of |= dict(zip(body.args, (1, *carried), strict=True))
            self.run(body.instrs)
            return [self.of.get(v) for v in body.outputs]
        assert instr.op is While
        before, after = instr.blocks
        self.of |= dict(zip(before.args, carried, strict=True))
        self.run(before.instrs)
        samples = [self.of.get(v) for v in before.outputs[1:]]
        self.of |= dict(zip(after.args, samples, strict=True))
        self.run(after.instrs)
        return [self.of.get(v) for v in after.outputs]

    def _sizes(self, value: int) -> tuple[int, ...]:
        hint = self._hints.get(value)
        if not isinstance(hint, TensorType) or hint.shape is None:
            return ()
        return tuple([1 if d == 1 else 2 for d in hint.shape])

    def plain(self, value: int) -> Any:
        """A sample in C order, or a number; None of what is not known to be an array."""
        hint = self._hints.get(value)
        if isinstance(hint, ScalarType):
            return type(hint.dtype.numpy.type(0).item())(1)
        if not isinstance(hint, TensorType) or hint.shape is None or hint.dtype is None:
            return None
        return np.ones(self._sizes(value), hint.dtype.numpy)


def _without_sizes(type_: Type | None) -> Type | None:
    """A type without what is known of sizes, but for a rank that no layout depends on."""
    if not isinstance(type_, TensorType) or (type_.rank or 0) < 2:
        return type_
    return TensorType(type_.dtype, None)


def _singles(array: Any) -> tuple[bool, ...]:
    """Of each axis of an array, whether it has one element."""
    if type(array) is not np.ndarray:
        return ()
    return tuple([size == 1 for size in array.shape])


def _is_plain(sample: Any) -> bool:
    return not isinstance(sample, np.ndarray) or sample.flags.c_contiguous


def _common(samples: Sequence[Any]) -> Any:
    """A sample of what may be any of these; None where they differ."""
    first = samples[0]
    if any(x is None for x in samples):
        return None
    if not isinstance(first, np.ndarray):
        return first
    same = all(isinstance(x, np.ndarray) and x.ndim == first.ndim for x in samples)
    return first if same and len({_order(x) for x in samples}) == 1 else None


def _sample_of(array: np.ndarray) -> np.ndarray:
    """A small array that lies in memory as another one does, in another order than its axes."""
    sizes = tuple([1 if d == 1 else 2 for d in array.shape])
    dtype = array.dtype.newbyteorder("=")
    order = layout_of(array) or ()
    axes = (*(k for k in range(array.ndim) if k not in order), *order)
    sample = np.ones([sizes[k] for k in axes], dtype)
    return sample.transpose([axes.index(k) for k in range(array.ndim)])


def _like(sample: Any, axes: Sequence[int], sizes: Sequence[int]) -> Any:
    """A sample whose axes lie as these of another one do."""
    if len(sizes) != len(axes) or layout_of(sample) == _REPEATED:
        return None
    order = [axes.index(k) for k in _order(sample) if k in axes]
    array = np.ones([sizes[k] for k in order], sample.dtype)
    return array.transpose([order.index(k) for k in range(len(order))])


def _windows(sample: np.ndarray, axes: Sequence[int]) -> Any:
    """Windows of two elements in a larger array that lies as a sample does."""
    larger = _like(sample, range(sample.ndim), (3,) * sample.ndim)
    return np.lib.stride_tricks.sliding_window_view(larger, (2,) * len(axes), tuple(axes))


def _order(sample: np.ndarray) -> Order:
    """The axes of an array from the largest stride to the smallest."""
    return tuple(sorted(range(sample.ndim), key=lambda axis: -abs(sample.strides[axis])))


def in_order(array: Any, order: Order | None) -> Any:
    """An array with its axes in this order in memory, None = in theirs: itself, or a copy."""
    if type(array) is not np.ndarray or array.ndim < 2:
        return array
    if order is None:
        return array if array.flags.c_contiguous else array.copy()
    turned = array.transpose(order)
    if turned.flags.c_contiguous:
        return array
    return np.ascontiguousarray(turned).transpose([order.index(k) for k in range(len(order))])
