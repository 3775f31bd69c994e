"""Sums that are zero: of what a mean has been subtracted from.

In ``c = x - mean(x)`` the gradient of the mean is minus the sum of that of c. Of a norm, one term
of that gradient is c times what does not vary along the averaged axes, and sums to zero but for
rounding. By the chain rule it would be added up all the same, in a pass of its own, as it waits for
the gradient of the norm's variance. That a term sums to zero is proven here from the ops that have
made it: it is c itself, or a product or quotient of one such term and of what does not vary.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..ir.postorder import postorder
from ..ir.program import Instr
from ..ir.types import ScalarType
from ..ops.elementwise.binary import Add, Div, Mul, Sub
from ..ops.elementwise.families import Elementwise
from ..ops.elementwise.unary import Neg, Positive
from ..ops.gradient_ops import SumTo
from ..ops.manipulation.shape import BroadcastTo, ExpandDims
from ..ops.reductions.moments import Mean
from ..ops.reductions.reduce import Reduction, reduced_axes
from ..ops.sizes import normalize_axes

if TYPE_CHECKING:
    from ..importers.numpy.tracing.recorder import Recorder
    from .builder import TraceBuilder

Axes = frozenset[int]  # counted from the back: operands are aligned there
_SCALED = (Mul, Div, Neg, Positive, SumTo)


def subtracted_mean(rec: Recorder, instr: Instr) -> int | None:
    """The position of the operand of ``x - mean(x)`` that is the mean; None = it is no such."""
    if instr.op is not Sub:
        return None
    for k in (1, 0):
        if _averaged(rec, instr.operands[1 - k], instr.operands[k]) is not None:
            return k
    return None


def gradient_of_mean(b: TraceBuilder, instr: Instr, position: int, g: Any) -> Any:
    """The gradient of the mean that ``instr`` subtracts, from that of its result.

    It is recorded without the terms that sum to zero. None = all of them do.
    """
    rec = b.rec
    mean = instr.operands[position]
    axes = _averaged(rec, instr.operands[1 - position], mean)
    assert axes is not None
    terms = list(_terms(b, g.value, instr.results[0]))
    remaining = [(v, negated) for v, negated in terms if not _sums_to_zero(rec, v, axes)]
    if len(remaining) == len(terms):
        total = g if position == 0 else -g
    else:
        definition = rec.defs[mean]
        rec.remark(
            f"{len(terms) - len(remaining)} of {len(terms)} terms of the gradient of the mean at "
            f"{definition.loc} are left out: they are multiples of what the mean is subtracted from, and "
            "sum to 0"
        )
        total = None
        for v, negated in remaining:
            term = b.value(v)
            less = negated != (position == 1)
            if total is None:
                total = -term if less else term
            else:
                total = total - term if less else total + term
    return None if total is None else b.like(total, b.value(mean))


def _averaged(rec: Recorder, x: int, mean: int) -> Axes | None:
    """The axes along which one value is the mean of another, with which it is aligned."""
    definition = rec.defs.get(mean)
    expanded = None
    if definition is not None and definition.op is ExpandDims:
        rank = len(rec.shape(mean))
        expanded = set(normalize_axes(definition.attrs["axes"], rank))
        definition = rec.defs.get(definition.operands[0])
    if definition is None or definition.op is not Mean or definition.operands[0] != x:
        return None
    attrs = definition.op.full_attrs(definition.attrs)
    rank = len(rec.shape(x))
    axes = set(reduced_axes(attrs["axes"], rank))
    if expanded is None and not attrs["keepdims"]:
        expanded = set(range(len(axes)))  # the leading ones, with which nothing is aligned
    if expanded is not None and (attrs["keepdims"] or expanded != axes):
        return None
    return frozenset(a - rank for a in axes)


def _terms(b: TraceBuilder, value: int, whole: int) -> Iterator[tuple[int, bool]]:
    """The values of the shape of ``whole`` that ``value`` is a sum of, and which are negated."""
    shape = b.value(whole)
    waiting = [(value, False)]
    while waiting:
        v, negated = waiting.pop()
        instr = b.rec.defs.get(v)
        parts = instr.operands if instr is not None and instr.op in (Add, Sub, Neg) else ()
        if instr is None or not parts or not all(b.same_shape(b.value(p), shape) for p in parts):
            yield v, negated
            continue
        waiting.extend(
            (p, negated != (instr.op is Neg or (instr.op is Sub and k == 1)))
            for k, p in reversed(list(enumerate(parts)))
        )


def _sums_to_zero(rec: Recorder, value: int, axes: Axes) -> bool:
    """True if the sum of a value along axes is zero but for rounding."""
    zero_axes: dict[int, Axes | None] = {}  # the axes along which a value sums to zero

    def needs(v: int) -> tuple[int, ...]:
        definition = rec.defs.get(v)
        return definition.operands if definition is not None and definition.op in _SCALED else ()

    for v in postorder([value], needs):
        definition = rec.defs.get(v)
        zero_axes[v] = None
        if definition is None:
            continue
        if definition.op is Sub and (k := subtracted_mean(rec, definition)) is not None:
            zero_axes[v] = _averaged(rec, definition.operands[1 - k], definition.operands[k])
        elif definition.op in (Neg, Positive, SumTo):
            zero_axes[v] = zero_axes[definition.operands[0]]
        elif definition.op in (Mul, Div):
            a, c = definition.operands
            for centred, factor in ((a, c), (c, a)) if definition.op is Mul else ((a, c),):
                zero = zero_axes[centred]
                if zero is not None and zero <= _constant_axes(rec, factor, zero):
                    zero_axes[v] = zero
    zero = zero_axes[value]
    return zero is not None and zero <= axes


def _constant_axes(rec: Recorder, value: int, wanted: Axes) -> Axes:
    """Those of the axes along which a value does not vary, whatever its sizes."""
    constant: dict[int, Axes] = {}
    unit: dict[int, Axes] = {}  # those of them that have size 1, and are not broadcast

    def needs(v: int) -> tuple[int, ...]:
        definition = rec.defs.get(v)
        if definition is None or not issubclass(definition.op, (Elementwise, SumTo, BroadcastTo)):
            return ()
        return definition.operands[-1:] if definition.op is SumTo else definition.operands

    for v in postorder([value], needs):
        definition = rec.defs.get(v)
        rank = 0 if isinstance(rec.hints[v], ScalarType) else len(rec.shape(v))
        missing = frozenset(a for a in wanted if a < -rank)
        constant[v] = unit[v] = missing
        if definition is None or not rank:
            continue
        if definition.op is SumTo:  # it has the shape of its second operand
            constant[v] = unit[v] = missing | unit[definition.operands[1]]
        elif definition.op is BroadcastTo:
            constant[v] = missing | constant[definition.operands[0]]
        elif issubclass(definition.op, Elementwise):
            constant[v] = wanted.intersection(*(constant[o] for o in definition.operands))
            unit[v] = wanted.intersection(*(unit[o] for o in definition.operands))
        elif definition.op is ExpandDims or issubclass(definition.op, Reduction):
            constant[v] = unit[v] = missing | wanted & _made_of_size_one(definition, rank)
    return constant[value]


def _made_of_size_one(instr: Instr, rank: int) -> Axes:
    """The axes of size 1 that an op adds or keeps in its result."""
    attrs = instr.op.full_attrs(instr.attrs)
    if instr.op is ExpandDims:
        axes = normalize_axes(attrs["axes"], rank)
    else:
        axes = reduced_axes(attrs["axes"], rank) if attrs["keepdims"] else ()
    return frozenset(a - rank for a in axes)
