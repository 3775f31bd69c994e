"""Parts of parts of arrays, as parts of the arrays, which bufferisation can compare.

A write to ``a[i][j]`` is a row that is taken out of an array, changed, and put back. Here it
becomes one insertion into the array, and what reads the changed row reads it from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Union

from mlir import ir

from ...dialect.errors import InternalError
from ...dialect.mlir.rewrite import walk
from ..linalg.element import emit, sliced
from .positions import LISTS, enclosing, is_part, order_in, same_part

Number = Union[int, ir.Value]
_OPEN = ir.ShapedType.get_dynamic_size()
_EXTRACT, _INSERT = "tensor.extract_slice", "tensor.insert_slice"


class ArrayPart(NamedTuple):
    """A part of an array: where it begins on each axis, its sizes, its steps; the axes it has."""

    offsets: list[Number]
    sizes: list[Number]
    strides: list[Number]
    axes: list[int]


def merge_parts(func: ir.Operation) -> None:
    """Take and replace parts of arrays directly, never through parts that enclose them."""
    for op in [op for op in walk(func) if op.name == _INSERT]:
        _put(op)
    for op in [op for op in walk(func) if op.name in (_EXTRACT, "tensor.extract")]:
        _take(op) if op.name == _EXTRACT else _element(op)


def chain_insertions(func: ir.Operation) -> None:
    """Replace a part in the array in which it has been replaced before, where there is one.

    Simplification takes the array from before that, which then has to be kept.
    """
    latest: dict[tuple, ir.Value] = {}
    for op in [op for op in walk(func) if op.name == _INSERT]:
        where = [*list(op.operands)[1:], *(op.attributes[name] for name in LISTS)]
        key = (op.block, *where)
        before = latest.get(key)
        latest[key] = op.results[0]
        if before is not None:
            op.operands[1] = before


# --- reading ----------------------------------------------------------------------------------


def _take(op: ir.Operation) -> None:
    """Take a part of a part from the array itself."""
    outer = _made_by(op.operands[0], _EXTRACT)
    if outer is None:
        return
    around, inside = _part(outer, outer.results[0].type), _part(op, op.results[0].type)
    if around is None or inside is None:
        return
    with ir.InsertionPoint(op), op.location:
        whole = _joined(around, inside)
        new = _sliced(_EXTRACT, op.results[0].type, [outer.operands[0]], whole)
    op.results[0].replace_all_uses_with(new)
    op.erase()


def _element(op: ir.Operation) -> None:
    """Read an element of a part from the array itself."""
    outer = _made_by(op.operands[0], _EXTRACT)
    if outer is None:
        return
    part = _part(outer, outer.results[0].type)
    if part is None:
        return
    with ir.InsertionPoint(op), op.location:
        where = _places(part, list(op.operands)[1:])
        new = emit("tensor.extract", op.results[0].type, outer.operands[0], *where)
    op.results[0].replace_all_uses_with(new)
    op.erase()


# --- writing ----------------------------------------------------------------------------------


def _put(op: ir.Operation) -> None:
    """Replace in an array what is replaced in a part of it that is put back."""
    insert = _made_by(op.operands[0], _INSERT, "tensor.insert")
    if insert is None or not is_part(insert.operands[1], op):
        return
    base, part = op.operands[1], _part(op, insert.results[0].type)
    inner = _part(insert, insert.operands[0].type) if insert.name == _INSERT else None
    if part is None or (inner is None and insert.name == _INSERT):
        return
    if not _read_from_array(op, insert.results[0]):
        return
    with ir.InsertionPoint(op), op.location:
        if inner is not None:
            values = [insert.operands[0], base]
            new = _sliced(_INSERT, base.type, values, _joined(part, inner))
        else:
            where = _places(part, list(insert.operands)[2:])
            new = emit("tensor.insert", base.type, insert.operands[0], base, *where)
    op.results[0].replace_all_uses_with(new)
    op.erase()
    if not list(insert.results[0].uses):
        insert.erase()


def _read_from_array(op: ir.Operation, value: ir.Value) -> bool:
    """Have all others that read what ``op`` puts into an array take it from there.

    False if one reads it before.
    """
    users = [use.owner.operation for use in value.uses if use.owner.operation != op]
    if not users:
        return True
    order = order_in(op.block)
    outer = [enclosing(user, order) for user in users]
    if any(user is None or order[user] <= order[op] for user in outer):
        return False
    with ir.InsertionPoint.after(op), op.location:
        part = same_part(op.results[0], op)
    for user in users:
        for number, operand in enumerate(user.operands):
            if operand == value:
                user.operands[number] = part
    return True


# --- parts ------------------------------------------------------------------------------------


def _made_by(value: ir.Value, *names: str) -> ir.Operation | None:
    if isinstance(value, ir.BlockArgument) or value.owner.name not in names:
        return None
    return value.owner.operation


def _part(op: ir.Operation, type_: ir.Type) -> ArrayPart | None:
    """The part that an operation takes or replaces, which has this type.

    None where axes of size 1 are left away and others are not: which of them, types do not tell.
    """
    counts = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    operands = iter(list(op.operands)[sum(counts[:-3]) :])
    lists: list[list[Number]] = []
    for name in LISTS:
        static = ir.DenseI64ArrayAttr(op.attributes[name])
        lists.append([next(operands) if n == _OPEN else n for n in static])
    shape, axes = ir.RankedTensorType(type_).shape, list[int]()
    for axis, size in enumerate(lists[1]):
        extent = shape[len(axes)] if len(axes) < len(shape) else None
        if (size if isinstance(size, int) else _OPEN) == extent:
            axes.append(axis)
    if len(axes) < len(lists[1]) and 1 in shape:
        return None
    if len(axes) != len(shape):
        raise InternalError(f"{op.name} has a part of a shape that its sizes do not give")
    offsets, sizes, strides = lists
    return ArrayPart(offsets, sizes, strides, axes)


def _joined(outer: ArrayPart, inner: ArrayPart) -> ArrayPart:
    """A part of a part, as one of the array; its axes are those of the array that it keeps."""
    offsets, strides = list(outer.offsets), list(outer.strides)
    sizes: list[Number] = [1] * len(outer.sizes)
    for number, axis in enumerate(outer.axes):
        step = outer.strides[axis]
        offsets[axis] = _sum(outer.offsets[axis], _product(inner.offsets[number], step))
        sizes[axis] = inner.sizes[number]
        strides[axis] = _product(inner.strides[number], step)
    return ArrayPart(offsets, sizes, strides, [outer.axes[k] for k in inner.axes])


def _places(part: ArrayPart, indices: Sequence[ir.Value]) -> list[ir.Value]:
    """The place in the array of an element of a part."""
    places = list(part.offsets)
    for axis, index in zip(part.axes, indices, strict=True):
        places[axis] = _sum(part.offsets[axis], _product(index, part.strides[axis]))
    return [_value(n) for n in places]


def _sliced(name: str, type_: ir.Type, values: Sequence[ir.Value], part: ArrayPart) -> ir.Value:
    return sliced(name, type_, values, part.offsets, part.sizes, part.strides)


def _value(number: Number) -> ir.Value:
    if not isinstance(number, int):
        return number
    index = ir.IndexType.get()
    return emit("arith.constant", index, value=ir.IntegerAttr.get(index, number))


def _sum(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if 0 in (n for n in (a, b) if isinstance(n, int)):
        return b if isinstance(a, int) else a
    return emit("arith.addi", ir.IndexType.get(), _value(a), _value(b))


def _product(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if 1 in (n for n in (a, b) if isinstance(n, int)):
        return b if isinstance(a, int) else a
    return emit("arith.muli", ir.IndexType.get(), _value(a), _value(b))
