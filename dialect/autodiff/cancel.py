"""Maxima that cancel: what a function subtracts for the sake of range, and does not depend on.

``exp(z - m) / sum(exp(z - m))`` and ``log(sum(exp(z - m))) + m`` are the same for every m that does
not vary along the summed axes. By the chain rule a maximum in the place of m would get a gradient
of rounding errors, at the cost of a comparison and a reduction. That a function does not depend on
m is proven here, op by op: a value is ``x``, ``x - k m`` or ``x exp(-k m)``, where x does not
depend on m, or nothing is known of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..dataclass import dataclass
from ..ir.program import Instr
from ..ir.types import ScalarType
from ..ops.elementwise.binary import Add, Div, Mul, Sub
from ..ops.elementwise.families import Elementwise
from ..ops.elementwise.select import Cast
from ..ops.elementwise.unary import Exp, Log, Neg, Positive
from ..ops.indexing.slicing import Pick
from ..ops.manipulation.shape import ExpandDims, Squeeze
from ..ops.reductions.moments import Mean, Var
from ..ops.reductions.reduce import Max, Min, Sum, reduced_axes
from ..ops.sizes import normalize_axes, normalize_axis
from .rerun import values_read

if TYPE_CHECKING:
    from ..importers.numpy.tracing.recorder import Recorder

SHIFT, SCALE = "shift", "scale"
_SUMS = (Sum, Mean)


@dataclass(frozen=True)
class _Form:
    """The way in which a value depends on m: ``x - k m`` or ``x exp(-k m)``.

    Attributes:
        kind: SHIFT or SCALE.
        k: not 0; the value would be free of m.
        axes: for each axis of the value, the axis of m that varies along it; None = none does.
    """

    kind: str
    k: int
    axes: tuple[int | None, ...]


class _Unknown(Exception):
    """A value depends on m in another way."""


def cancelling(rec: Recorder, instrs: Sequence[Instr], outputs: Iterable[int]) -> set[int]:
    """The maxima and minima among the results of ``instrs`` that ``outputs`` do not depend on."""
    extrema = set()
    targets = set(outputs)
    for start, instr in enumerate(instrs):
        if instr.op in (Max, Min) and _cancels(rec, instr, instrs[start + 1 :], targets):
            extrema.add(instr.results[0])
    return extrema


def _cancels(rec: Recorder, extremum: Instr, after: Sequence[Instr], targets: set[int]) -> bool:
    (m,) = extremum.results
    attrs = extremum.op.full_attrs(extremum.attrs)
    rank = len(rec.shape(extremum.operands[0]))
    gone = reduced_axes(attrs["axes"], rank)
    axes = [None if a in gone else a for a in range(rank)]
    if not attrs["keepdims"]:
        axes = [a for a in axes if a is not None]
    forms = {m: _Form(SHIFT, -1, tuple(axes))}
    subtracted = False
    for instr in after:
        if not forms.keys() & set(instr.operands):
            if instr.blocks and forms.keys() & values_read(*instr.blocks):
                return False
            continue
        subtracted |= instr.op is Sub
        try:
            form = _form(rec, instr, forms)
        except _Unknown:
            return False
        if form is not None:
            forms[instr.results[0]] = form
    return subtracted and not forms.keys() & targets


def _form(rec: Recorder, instr: Instr, forms: dict[int, _Form]) -> _Form | None:
    """The form of a result, None if it is free of m; raises _Unknown."""
    op, of_operands = instr.op, [forms.get(v) for v in instr.operands]
    first = of_operands[0]
    if instr.blocks or len(instr.results) != 1 or rec.dtype(instr.results[0]).kind not in "fV":
        raise _Unknown  # what is rounded to an integer is no difference any more
    if issubclass(op, _SUMS) and not issubclass(op, Var):
        return _summed(rec, instr, first)
    if op in (ExpandDims, Squeeze, Pick):
        return _viewed(rec, instr, first)
    if not issubclass(op, Elementwise):
        raise _Unknown
    axes = _aligned(rec, instr, of_operands)
    if op in (Positive, Cast) and first is not None:
        return _Form(first.kind, first.k, axes)
    if op is Neg and first is not None and first.kind == SHIFT:
        return _Form(SHIFT, -first.k, axes)
    if op is Exp and first is not None and first.kind == SHIFT:
        return _Form(SCALE, first.k, axes)
    if op is Log and first is not None and first.kind == SCALE:
        return _Form(SHIFT, first.k, axes)
    if op in (Add, Sub):
        return _combined(SHIFT, of_operands, op is Sub, axes)
    if op in (Mul, Div):
        return _combined(SCALE, of_operands, op is Div, axes)
    raise _Unknown


def _combined(kind: str, of_operands: Sequence[_Form | None], less: bool, axes: tuple[int | None, ...]) -> _Form | None:
    """Of a sum of shifts, or a product of scales; ``less``: of a difference, or a quotient."""
    if any(f is not None and f.kind != kind for f in of_operands):
        raise _Unknown
    a, b = (0 if f is None else f.k for f in of_operands)
    k = a - b if less else a + b
    return _Form(kind, k, axes) if k else None


def _aligned(rec: Recorder, instr: Instr, of_operands: Sequence[_Form | None]) -> tuple[int | None, ...]:
    """The axes of m along those of an elementwise result, on which all operands must agree."""
    rank = max(_rank(rec, v) for v in instr.operands)
    axes: list[int | None] = [None] * rank
    for form in of_operands:
        if form is None:
            continue
        extra = rank - len(form.axes)
        for axis, of_m in enumerate(form.axes, extra):
            if of_m is not None:
                if axes[axis] not in (None, of_m):
                    raise _Unknown
                axes[axis] = of_m
    varying = [[a for a in f.axes if a is not None] for f in of_operands if f is not None]
    if any(sorted(v) != sorted(a for a in axes if a is not None) for v in varying):
        raise _Unknown
    return tuple(axes)


def _rank(rec: Recorder, value: int) -> int:
    return 0 if isinstance(rec.hints[value], ScalarType) else len(rec.shape(value))


def _summed(rec: Recorder, instr: Instr, form: _Form | None) -> _Form:
    """Of a sum of scales over axes along which m does not vary."""
    if form is None or form.kind != SCALE:
        raise _Unknown
    attrs = instr.op.full_attrs(instr.attrs)
    gone = reduced_axes(attrs["axes"], len(form.axes))
    if any(form.axes[a] is not None for a in gone):
        raise _Unknown
    keep = attrs["keepdims"]
    axes = tuple(a for k, a in enumerate(form.axes) if keep or k not in gone)
    return _Form(SCALE, form.k, axes)


def _viewed(rec: Recorder, instr: Instr, form: _Form | None) -> _Form:
    """Of a view that adds or drops axes along which m does not vary."""
    if form is None:
        raise _Unknown
    attrs = instr.op.full_attrs(instr.attrs)
    axes = list(form.axes)
    if instr.op is ExpandDims:
        for axis in sorted(normalize_axes(attrs["axes"], len(axes) + len(attrs["axes"]))):
            axes.insert(axis, None)
        return _Form(form.kind, form.k, tuple(axes))
    if instr.op is Pick:
        dropped = [normalize_axis(attrs["axis"], len(axes))]
    elif attrs["axes"] is None:
        raise _Unknown
    else:
        dropped = list(normalize_axes(attrs["axes"], len(axes)))
    if any(axes[a] is not None for a in dropped):
        raise _Unknown
    return _Form(form.kind, form.k, tuple(a for k, a in enumerate(axes) if k not in dropped))
