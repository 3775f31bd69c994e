"""Types of all values of a function with loops, as they follow from those of its arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlir import ir

from ...errors import ProfuseError
from ...ir.attrs import DYNAMIC
from ...ir.dtypes import I64
from ...ir.op import Attrs, Fusion, Op
from ...ir.size_algebra import bounds, inside_loop, substitute
from ...ir.symbolic import LOOP, Sym, symbol, terms_of
from ...ir.types import ListType, ScalarType, TensorType, Type
from ...mlir.facts import is_constant_op
from ...mlir.rewrite import (
    attrs_of,
    body_of,
    create,
    defining_op,
    op_class,
    ops_in,
    refresh_signature,
    set_type,
    terminator_of,
    type_of,
    walk,
)
from ...mlir.typed_values import Types, constant_type
from ...ops.control_flow.control import ControlFlow, For, If, IfThenElse, While
from ...ops.control_flow.induction import induction
from ...ops.control_flow.native import TO_PYTHON, raises_for_infinities
from ...ops.elementwise.binary import Add, FloorDiv, Maximum, Minimum, Mul, Sub
from ...ops.indexing.additions import Adding, AtIndices
from ...ops.indexing.scatter import PickScatter, Scatter
from ...ops.queries import Count
from ...ops.sizes import complete_shape, is_positive, product, prove_equal, tensor_type
from ...ops.structural import unproven_sizes
from ...reasons import Kind, Reason
from ..partition.outline import GroupRefused
from .fusion_types import number_refusal


class _Uncounted(Exception):
    """These numbers have to be known as sizes (see `Count`).

    ``low``: how far below 0 expressions may be that have to be sizes, where all numbers are.
    """

    def __init__(self, numbers: Sequence[ir.Value], low: Sequence[Sym] = ()) -> None:
        self.numbers, self.low = numbers, low
        super().__init__()


class LoopTypes:
    """Infers the types of a block and of all blocks in it, and writes those of tensors.

    Sizes that follow from the index of a loop are known here, but no types have them.
    """

    def __init__(self) -> None:
        self.types = Types()
        self.loops = 0

    def run(self, block: ir.Block) -> list[Type]:
        """The types of what a block yields; raises GroupRefused."""
        for op in ops_in(block):
            if is_constant_op(op):
                value = op.results[0]
                self.types[value] = constant_type(value) or type_of(value)
                continue
            cls = op_class(op)
            if cls is None:
                continue
            if issubclass(cls, ControlFlow):
                {For: self._for, While: self._while, If: self._if}[cls](op)
            else:
                self._op(op, cls)
        return [self.types[v] for v in terminator_of(block).operands]

    def _give(self, values: Sequence[ir.Value], types: Sequence[Type]) -> None:
        for value, type_ in zip(values, types, strict=True):
            self.types[value] = type_
            if isinstance(type_, TensorType):
                shape = type_.shape and tuple(
                    None if isinstance(d, Sym) and any(map(_is_of_loop, d.symbols)) else d for d in type_.shape
                )
                # Of values that a loop ties together, none has a layout that another lacks.
                set_type(value, TensorType(type_.dtype, shape))

    def _op(self, op: ir.Operation, cls: type[Op]) -> None:
        types, attrs = self.types.of(op), attrs_of(op)
        if cls is Count:
            self.types[op.results[0]] = Count.taken_for(types[0], attrs)
            return
        try:
            result_types = cls.infer(types, attrs)
            reason = refusal(cls, types, attrs)
        except ProfuseError as error:
            raise GroupRefused(Reason(Kind.TYPES, detail=error.what), op, error.sizes) from None
        is_open = any(isinstance(t, TensorType) and not t.is_complete for t in result_types)
        if is_open or (reason is not None and reason.kind is Kind.RUN_TIME_SIZES):
            numbers = [n for v in op.operands for n in self._open_numbers(v)]
            low = [
                t.value
                for t in types
                if isinstance(t, ScalarType) and isinstance(t.value, Sym) and -_FEW <= bounds(t.value)[0] < 0
            ]
            if numbers or low:
                raise _Uncounted(list(dict.fromkeys(numbers)), low)
        if reason is not None:
            raise GroupRefused(reason, op, unproven_sizes(cls, types, attrs))
        for type_ in result_types:
            if isinstance(type_, ListType):
                raise GroupRefused(Reason(Kind.LISTS), op)
            if isinstance(type_, TensorType) and not type_.is_complete:
                raise GroupRefused(Reason(Kind.RUN_TIME_SIZES), op)
        self._give(op.results, result_types)

    def _open_numbers(self, value: ir.Value) -> list[ir.Value]:
        """The ints, known at run time only, that another one is computed of."""
        type_, source = self.types[value], defining_op(value)
        if not isinstance(type_, ScalarType) or type_.dtype is not I64 or type_.value is not None:
            return []
        if source is None or op_class(source) not in _ARITHMETIC:
            return [value]
        return [n for v in source.operands for n in self._open_numbers(v)] or [value]

    # --- control flow -------------------------------------------------------------------------

    def _for(self, op: ir.Operation) -> None:
        body = op.regions[0].blocks[0]
        index, *args = body.arguments
        types = self.types.of(op)
        name = f"{LOOP}{self.loops}"
        self.loops += 1
        variable = induction(types[:3], name)
        self.types[index] = variable.type
        carried = [_carried(t) for t in types[3:]]
        self._give(args, carried)
        with inside_loop(variable.symbol, variable.span):
            next_types = self.run(body)
        self._agree(op, carried, next_types)
        self._give(op.results, carried)

    def _while(self, op: ir.Operation) -> None:
        before, after = (region.blocks[0] for region in op.regions)
        carried = [_carried(t) for t in self.types.of(op)]
        self._give(list(before.arguments), carried)
        _, *types = [_carried(t) for t in self.run(before)]
        if not {n for t in types for n in _names(t)} <= {n for t in carried for n in _names(t)}:
            raise GroupRefused(Reason(Kind.RUN_TIME_SIZES), op)
        self._give(list(after.arguments), types)
        self._agree(op, carried, self.run(after))
        self._give(op.results, types)

    def _if(self, op: ir.Operation) -> None:
        first, second = ([_carried(t) for t in self.run(region.blocks[0])] for region in op.regions)
        self._agree(op, first, second)
        self._give(op.results, first)

    def _agree(self, op: ir.Operation, carried: Sequence[Type], next_types: Sequence[Type]) -> None:
        for one, two in zip(carried, next_types, strict=True):
            if one != _carried(two):
                detail = f"a value is {one} here and {_carried(two)} there"
                raise GroupRefused(Reason(Kind.TYPES, detail=detail), op)


def infer_function(func: ir.Operation) -> list[Type]:
    """Infer all types of a fusion function with loops from those of its arguments.

    Returns those of its results; raises GroupRefused.
    """
    drop_counts(func)
    body, counted = body_of(func), 0
    while True:
        try:
            types = LoopTypes().run(body)
            break
        except _Uncounted as missing:
            for value in missing.numbers:
                _count(value, f"n{counted}")
                counted += 1
            if not missing.numbers and not _raise(body, missing.low):
                raise GroupRefused(Reason(Kind.RUN_TIME_SIZES), terminator_of(body)) from None
        except GroupRefused as error:
            if not (_equate(body, error.sizes) or _fill(body, error.sizes)):
                raise
    if any(_is_of_loop(name) for type_ in types for name in _names(type_)):
        raise GroupRefused(Reason(Kind.RUN_TIME_SIZES), terminator_of(body))
    refresh_signature(func)
    return types


def drop_counts(func: ir.Operation) -> None:
    """Have what reads a number as a size read it as it is."""
    for op in [op for op in walk(func) if op_class(op) is Count]:
        op.results[0].replace_all_uses_with(op.operands[0])
        op.erase()


def _count(value: ir.Value, name: str) -> None:
    """Have all that reads a number read it as one that sizes depend on."""
    source = defining_op(value)
    block = value.owner if source is None else source.block
    after = [op for op in block.operations if source is None or source.is_before_in_block(op.operation)]
    count = create(Count, [value], {"symbol": name}, [ScalarType(I64)], after[0].operation)
    value.replace_all_uses_with(count.results[0])
    count.operands[0] = value


def _equate(body: ir.Block, sizes: Sequence) -> bool:
    """Take a number for the size that would make two sizes the same; False if none does."""
    if len(sizes) != 2 or not all(isinstance(d, (int, Sym)) for d in sizes):
        return False
    difference = sizes[0] - sizes[1]
    names = difference.symbols if isinstance(difference, Sym) else ()
    argument_sizes = dict.fromkeys(d for a in body.arguments for d in getattr(type_of(a), "shape", None) or ())
    for op, name in _open_counts(body):
        if name not in names:
            continue
        least = attrs_of(op)["least"] - 1
        factor = dict(terms_of(difference)).get((name,), 0)
        solved = [symbol(name) - difference * factor + least] if factor in (1, -1) else []
        # What lies within a minimum may be as large as an array is.
        for size in (*solved, *argument_sizes):
            if isinstance(size, Sym) and any(map(_is_of_loop, size.symbols)):
                continue
            if substitute(difference, {name: size - least}) == 0:
                op.attributes["equals"] = ir.StringAttr.get(str(size))
                return True
    return False


def _raise(body: ir.Block, low: Sequence[Sym]) -> bool:
    """Have numbers so large that none of these expressions is negative; False if none can be."""
    for op, name in _open_counts(body):
        for dim in low:
            if dict(terms_of(dim)).get((name,)) == 1:
                least = attrs_of(op)["least"] - int(bounds(dim)[0])
                _set_least(op, least)
                return True
    return False


def _fill(body: ir.Block, sizes: Sequence) -> bool:
    """Have a number so large that a size is not 0; False if none can be."""
    if len(sizes) != 1:
        return False
    for op, name in _open_counts(body):
        for more in range(1, _FEW):
            if is_positive(substitute(sizes[0], {name: symbol(name) + more})):
                _set_least(op, attrs_of(op)["least"] + more)
                return True
    return False


def _set_least(op: ir.Operation, least: int) -> None:
    op.attributes["least"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), least)


def _open_counts(body: ir.Block) -> Iterator[tuple[ir.Operation, str]]:
    """The counts that are taken for no other size, and the names of their symbols."""
    for op in walk(body.owner.operation):
        if op_class(op) is Count and not attrs_of(op)["equals"]:
            yield op, Count.name_of(attrs_of(op))


def _names(type_: Type) -> set[object]:
    shape = type_.shape if isinstance(type_, TensorType) else None
    return {name for d in shape or () if isinstance(d, Sym) for name in d.symbols}


def refusal(cls: type[Op], types: Sequence[Type], attrs: Attrs) -> Reason | None:
    """The reason why an op in a loop has no place in a kernel, for complete types that fit."""
    if cls in TO_PYTHON:
        size = product(tensor_type(types[0]).shape or ())
        return None if size == 1 else Reason(Kind.RUN_TIME_SIZES)
    if cls is IfThenElse and types[1] == types[2]:
        return None
    if cls.fusion is Fusion.NONE:
        return Reason(Kind.NEVER_FUSED)
    if issubclass(cls, Adding) and not issubclass(cls, AtIndices):
        return Reason(Kind.NEVER_FUSED)
    if not cls.can_lower():
        return Reason(Kind.NO_LOWERING)
    if any(isinstance(t, TensorType) and not t.is_complete for t in types):
        return Reason(Kind.UNKNOWN_TYPE)
    if issubclass(cls, Scatter):
        return _scatter_refusal(cls, types, attrs)
    reason = number_refusal(cls.operand_dtypes(types, attrs), types)
    if reason is not None and reason.kind is not Kind.UNSURE_INTEGER:  # which the kernel looks at
        return reason
    reason = cls.can_lower_types(types, attrs)
    if reason is not None and raises_for_infinities(reason, cls.infer(types, attrs)[0]):
        return None
    return reason


def _scatter_refusal(cls: type[Scatter], types: Sequence[Type], attrs: Attrs) -> Reason | None:
    """In a loop, places may be known at run time only, and parts may be empty."""
    x, value = tensor_type(types[0]), tensor_type(types[1])
    part_shape = cls.view.result_shape((x, *types[2:]), attrs) or ()
    if None in part_shape:
        return Reason(Kind.RUN_TIME_SIZES)
    for size, part in zip(complete_shape(value), part_shape, strict=True):
        prove_equal(size, part, "the new elements fit those that they replace")
    if issubclass(cls, PickScatter) and attrs["index"] != DYNAMIC:
        return cls.can_lower_types(types, attrs)
    return None


_FEW = 8  # a number may have to be that much larger than 0
_ARITHMETIC = (Add, Sub, Mul, FloorDiv, Minimum, Maximum)


def _is_of_loop(name: object) -> bool:
    return isinstance(name, str) and name.startswith(LOOP)


def _carried(type_: Type) -> Type:
    """The type that a value has in any round."""
    if isinstance(type_, TensorType):
        return TensorType(type_.dtype, type_.shape)
    return ScalarType(type_.dtype) if isinstance(type_, ScalarType) else type_
