"""Small rewrites across two ops, beyond the canonical form (R1.24, R1.26)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from mlir import ir

from ...ir.op import Attrs, Fusion, Op
from ...ir.types import ScalarType, TensorType
from ...mlir.facts import constant_value, is_constant, source_of
from ...mlir.rewrite import attrs_of, create, op_class, replace, terminator_of, type_of, types_of
from ...ops.control_flow.control import If
from ...ops.create import Full
from ...ops.elementwise.binary import Add, Sub
from ...ops.elementwise.families import Elementwise
from ...ops.elementwise.unary import Neg
from ...ops.indexing.additions import IndexAdd
from ...ops.indexing.index import Index
from ...ops.indexing.scatter import SliceScatter
from ...ops.indexing.slicing import Slice
from ...ops.queries import DTypeCode, Query
from ..base import register_pass
from ..patterns import Match, Pattern, PatternPass


def _branch(m: Match) -> int:
    op = m.op
    blocks = [region.blocks[0] for region in op.regions if len(region.blocks)]
    if len(blocks) != 2:
        return 0
    changes = 0
    for result, a, b in zip(op.results, *(terminator_of(k).operands for k in blocks), strict=True):
        if next(iter(result.uses), None) is None:
            continue
        if a == b:
            new = a
        elif _truth(a) is True and _truth(b) is False:
            new = op.operands[0]
        else:
            continue
        result.replace_all_uses_with(new)
        changes += 1
    return changes


def _truth(value: ir.Value) -> bool | None:
    constant = constant_value(value) if is_constant(value) else None
    return constant if isinstance(constant, bool) else None


def _query(m: Match) -> int:
    source = source_of(m.op.operands[0])
    inner = op_class(source) if source is not None else None
    if source is None or inner is None or len(source.operands) != 1:
        return 0
    if not issubclass(inner, Elementwise) or inner.fusion is not Fusion.POINTWISE:
        return 0
    # A Python number has no sizes, and an op may change the dtype.
    x = source.operands[0]
    if m.cls is DTypeCode or not isinstance(type_of(x), TensorType):
        return 0
    m.op.operands[0] = x
    return 1


def _sign(m: Match) -> int:
    op, (a, b) = m.op, m.op.operands
    source = source_of(b)
    if source is None or op_class(source) is not Neg or m.function.memory.is_touched(source):
        return 0
    inner = source.operands[0]
    types = [type_of(v) for v in (a, inner)]
    # Negation in a narrow dtype wraps before the sum widens: the dtypes must be one.
    dtypes = {None if isinstance(t, ScalarType) else t.dtype for t in types}  # type: ignore[union-attr]
    if len(dtypes) != 1 or None in dtypes or next(iter(dtypes)).kind not in "iuf":  # type: ignore[union-attr]
        return 0
    opposite: type[Op] = Sub if m.cls is Add else Add
    replacement = create(opposite, [a, inner], {}, [type_of(op.results[0])], op)
    replace(op, list(replacement.results))
    return 1


def _addition(m: Match) -> int:
    """``x`` with a value added that is zero but for a slice: with that slice added, at the slice of the indices.

    ``x`` is zero, too, so that no -0.0 becomes 0.0 where a zero is no more added.
    """
    x, value, *indices = m.op.operands
    scatter = source_of(value)
    if scatter is None or op_class(scatter) is not SliceScatter or len(scatter.operands) > 2:
        return 0
    if not _is_zero(x) or not _is_zero(scatter.operands[0]):
        return 0
    if m.function.memory.is_touched(scatter) or m.function.memory.is_touched(m.op):
        return 0
    shapes = [
        t.shape for t in types_of((x, value, *indices)) if isinstance(t, TensorType) and t.shape and None not in t.shape
    ]
    if len(shapes) != 2 + len(indices):
        return 0
    rank = max(map(len, shapes[2:]))
    first = Index.place(Index.indexed(shapes[0], m.attrs))
    attrs = SliceScatter.full_attrs(attrs_of(scatter))
    sliced: dict[int, dict[int, int]] = {k: {} for k in range(len(indices))}  # by index: its axis, number of the slice
    for number, axis in enumerate(Slice.sliced_axes(len(shapes[1]), attrs)):
        along = [
            (k, place)
            for k, shape in enumerate(shapes[2:])
            if 0 <= (place := axis - first - rank + len(shape)) < len(shape) and shape[place] != 1
        ]
        if not along or axis >= first + rank or any(shapes[2 + k][place] != shapes[1][axis] for k, place in along):
            return 0
        for k, place in along:
            sliced[k][place] = number
    parts = [_sliced(m, index, attrs, sliced[k]) for k, index in enumerate(indices)]
    added = create(m.cls, [x, scatter.operands[1], *parts], m.attrs, [type_of(m.op.results[0])], m.op)
    replace(m.op, list(added.results))
    return 1


def _sliced(m: Match, index: ir.Value, attrs: Attrs, numbers: dict[int, int]) -> ir.Value:
    """An index with some of its axes sliced, as ``attrs`` slice the axes of another array."""
    if not numbers:
        return index
    own = {
        name: tuple(attrs[name][number] for number in numbers.values())
        for name in ("starts", "stops", "steps")
        if attrs[name] is not None
    }
    own["axes"] = tuple(numbers)
    (type_,) = Slice.infer([type_of(index)], Slice.full_attrs(own))
    return create(Slice, [index], own, [type_], m.op).results[0]


def _is_zero(value: ir.Value) -> bool:
    """True for an array that is made of zeros, none of them -0.0."""
    source = source_of(value)
    if source is None or op_class(source) is not Full or not is_constant(source.operands[0]):
        return False
    number = constant_value(source.operands[0])
    return not np.any(number) and not np.any(np.signbit([np.real(number), np.imag(number)]))


@register_pass
@dataclass(frozen=True)
class Peephole(PatternPass):
    """``x + -y`` and ``x - -y`` without the negation, queries past elementwise ops, idle branches, zeros not added.

    A size or rank is asked of the operand of a unary op instead of its result, which may then go.
    A branch whose blocks yield one value, or true and false, gives that value, or the condition.
    Of what is added to zeros at indices, and is zero but for a slice, that slice alone is added.
    """

    name: ClassVar[str] = "peephole"
    patterns: ClassVar[Sequence[Pattern]] = (
        Pattern("branch-results-replaced", (If,), _branch),
        Pattern("queries-moved", (Query,), _query),
        Pattern("negations-absorbed", (Add, Sub), _sign),
        Pattern("zeros-not-added", (IndexAdd,), _addition),
    )
