"""The definition of guards: which of their checks fail, for values and for recorded types.

`holds` is what ``profuse.type_check``, ``profuse.dynamic_guard`` and ``profuse.cuda_guard`` answer.
Guards answer, they never raise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Union

from ..dataclass import dataclass
from ..ir.gradient_mode import gradients
from ..ir.size_algebra import sym_max
from ..ir.symbolic import Dim, Sym, dim_text, evaluate
from ..ir.types import Type, contiguous_strides
from .checks import ALL_FREE, UNDEFINED, Check, Kind, checks_of, described, table
from .free_sizes import FreeSizes, axis_of
from .relaxed import layout_mismatch
from .seen import Seen, seen_type


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One check that fails.

    Attributes:
        operand: index of the operand.
        kind: ``"object"``, ``"dtype"``, ``"device"``, ``"rank"``, ``"size"``, ``"equal-sizes"``,
            ``"empty"``, ``"layout"``, ``"requires-grad"``, ``"relaxed"``, or ``"strides"``, which
            differ because sizes do.
        text: the property, what it was and what was expected.
    """

    operand: int
    kind: str
    text: str


def check_types(types: Sequence[Type], values: Sequence[object]) -> bool:
    """True if all values fit their types; equal symbols stand for equal sizes (R1.39, R1.40)."""
    return len(types) == len(values) and holds(checks_of(types), values)


def fits_relaxed(types: Sequence[Type], values: Sequence[object], free: FreeSizes = ALL_FREE) -> bool:
    """True if every value fits its type but for sizes, which fit each other (R3.42, A6).

    An undefined tensor never does. ``free``: what is asked of sizes.
    """
    return len(types) == len(values) and holds(checks_of(types, relaxed=True, free=free), values)


def flags_fit(types: Sequence[Type], values: Sequence[object]) -> bool:
    """True if every value has the dtype, the rank and the flag of its type (R1.39).

    Of whether a value requires gradients, its flag counts alone, and not gradient mode.
    """
    return len(types) == len(values) and flags_hold(checks_of(types, flags=True), values)


def flags_hold(checks: Sequence[Check], values: Sequence[object]) -> bool:
    """True if values pass all checks, of which flags hold whatever gradient mode is (R1.39)."""
    with gradients(on=True):
        return holds(checks, values)


def holds(checks: Sequence[Check], values: Sequence[object]) -> bool:
    """True if values pass all checks."""
    failed = _failed(checks, lambda operand: seen_type(values[operand]), None)
    return next(failed, None) is None


def mismatches(
    expected: Sequence[Type],
    seen: Sequence[Seen],
    labels: Sequence[str] | None = None,
    *,
    relaxed: bool = False,
    flags: bool = False,
    free: FreeSizes = ALL_FREE,
) -> list[Mismatch]:
    """All checks that fail, in order of the operands (R1.39, R1.40, R3.42); [] = the guard passes.

    Args:
        seen: types of the values that were checked (`seen_type`); None = the undefined tensor.
        labels: what the user calls the operands; default ``operand 0``, ``operand 1``, …
        relaxed: as the relaxed guard compares.
        flags: as the guard of a differentiated graph compares.
        free: what the relaxed guard asks of sizes (A6).
    """
    checks = checks_of(expected, relaxed=relaxed, flags=flags, free=free)
    return sorted(_failed(checks, seen.__getitem__, labels), key=lambda m: m.operand)


def _failed(checks: Sequence[Check], seen: Callable[[int], Seen], labels: Sequence[str] | None) -> Iterator[Mismatch]:
    state = _CheckState(labels.__getitem__ if labels else "operand {}".format)
    operand, got = -1, None
    ended = set()  # operands of which nothing more can be said
    for check in checks:
        if check.operand != operand:
            operand, got = check.operand, seen(check.operand)
        if operand in ended or (got is None and check.kind != "object"):
            continue
        kind, compare = _COMPARISONS[check.kind]
        text = compare(check, got, state)
        if text is None:
            continue
        # Literal strides that differ along with the sizes say nothing that the sizes do not.
        if check.kind == "stride" and check.wanted is not None and (operand, "size") in state.failures:
            kind = "strides"
        state.failures.add((operand, kind))
        if kind in ("object", "rank"):
            ended.add(operand)
        yield Mismatch(operand, kind, f"{state.label(operand)}: {text}")


@dataclass(frozen=True)
class _CheckState:
    """The facts that earlier checks of a guard have found: sizes of symbols, and failures by operand."""

    label: Callable[[int], str]
    symbols: dict[str, tuple[int, Check]] = field(default_factory=dict)
    failures: set[tuple[int, str]] = field(default_factory=set)


_Compare = Callable[[Check, Any, _CheckState], Union[str, None]]


# --- what is compared, per kind: None where it holds, else why not -----------------------------


def _described(got: Any) -> str:
    if got is None:
        return UNDEFINED
    return f"a {got.__name__}" if isinstance(got, type) else described(got)


def _object(check: Check, got: Any, _: _CheckState) -> str | None:
    words = _described(got)
    return None if words in check.wanted else f"is {words}, specialised for {check.wanted[-1]}"


def _dtype(check: Check, got: Any, _: _CheckState) -> str | None:
    foreign = getattr(got, "is_foreign", False)
    if check.wanted in (None, got.dtype) and not foreign:
        return None
    dtype = f"{getattr(got, 'other', '') or got.dtype}{' in foreign byte order' if foreign else ''}"
    return f"dtype is {dtype}, specialised for {check.wanted or 'native byte order'}"


def _differs(words: str, read: Callable[[Any, Check], object]) -> _Compare:
    """A comparison of what ``read`` finds with what is wanted."""

    def compare(check: Check, got: Any, _: _CheckState) -> str | None:
        value = read(got, check)
        if value == check.wanted:
            return None
        text = f"{words.format(check.axis)} {value}, specialised for {check.wanted}"
        return text.lower() if isinstance(value, bool) else text

    return compare


def _symbol(check: Check, got: Any, state: _CheckState) -> str | None:
    size = got.shape[check.axis]
    if size == 0:
        return None  # which is not positive, and says so
    name, times = check.wanted
    text = f"{_SIZE.format(check.axis)} {size}, must"
    if size % times:
        return f"{text} be a multiple of {times}"
    bound, first = state.symbols.setdefault(name, (size // times, check))
    if bound == size // times:
        return None
    place = f"dimension {first.axis} of {state.label(first.operand)}"
    before = first.wanted[1]
    if before == times:
        return f"{text} equal {place}, which is {bound * times}"
    return f"{text} be {bound * times}, as {place} is {bound * before}"


def _expression(check: Check, got: Any, state: _CheckState) -> str | None:
    size = got.shape[check.axis]
    text = f"{_SIZE.format(check.axis)} {size}"
    try:
        expected = evaluate(check.wanted, {name: n for name, (n, _) in state.symbols.items()})
    except (KeyError, ZeroDivisionError):
        # Its symbol has failed itself, and has been told of, or stands nowhere by itself.
        unknown = f"{text}, and nothing tells what {check.wanted} stands for"
        return None if state.failures else unknown
    return None if size in (expected, 0) else f"{text}, must be {check.wanted} = {expected}"


def _floor(larger: Dim, size: Dim) -> Dim | None:
    """``least`` where ``larger`` is ``max(size, least)``."""
    atom = larger.terms[0][0][0] if isinstance(larger, Sym) and larger.terms[0][0] else ""
    sides = atom[1:] if isinstance(atom, tuple) else ()
    return next((side for side in sides if side != size and larger == sym_max(size, side)), None)


def _fit(check: Check, _: Any, state: _CheckState) -> str | None:
    sides = check.wanted
    places = {
        name: f"dimension {axis} of {state.label(operand)}"
        for side in sides
        for name in getattr(side, "symbols", ())
        for operand, axis in [axis_of(name)]
    }
    words = " must be ".join(f"{dim_text(side, places.__getitem__)}" for side in sides)
    try:
        values = [evaluate(side, {name: n for name, (n, _) in state.symbols.items()}) for side in sides]
    except (KeyError, ZeroDivisionError):
        return None if state.failures else f"nothing tells whether {words}"
    if values[0] == values[1]:
        return None
    floor = _floor(*sides)
    if floor is not None:
        least = f"{values[0]}" if isinstance(floor, int) else f"{dim_text(floor, places.__getitem__)} = {values[0]}"
        return f"{dim_text(sides[1], places.__getitem__)} is {values[1]}, must be at least {least}"
    return f"sizes do not fit: {words}, they are {values[0]} and {values[1]}"


def _stride(check: Check, got: Any, _: _CheckState) -> str | None:
    if got.shape[check.axis] == 1 or 0 in got.shape:
        return None  # no address depends on this stride
    steps = got.strides if isinstance(got.strides, tuple) else contiguous_strides(got.shape)
    step, where = steps[check.axis], f"stride of dimension {check.axis} is"
    if step is None:
        return f"{where} no multiple of the item size"
    return None if check.wanted in (None, step) else f"{where} {step}, specialised for {check.wanted}"


_SIZE = "size of dimension {} is"
_size = _differs(_SIZE, lambda got, check: got.shape[check.axis])
_COMPARISONS: Mapping[Kind, tuple[str, _Compare]] = table(
    {
        "object": ("object", _object),
        "dtype": ("dtype", _dtype),
        "device": ("device", _differs("is on", lambda got, _: got.device)),
        "requires_grad": ("requires-grad", _differs("requires_grad is", lambda got, _: bool(got.requires_grad))),
        "rank": ("rank", _differs("rank is", lambda got, _: len(got.shape))),
        "size": ("size", _size),
        "positive": (
            "empty",
            lambda check, got, _: (
                None if got.shape[check.axis] else f"{_SIZE.format(check.axis)} 0, specialised for sizes of at least 1"
            ),
        ),
        "symbol": ("equal-sizes", _symbol),
        "expression": ("equal-sizes", _expression),
        "single": (
            "relaxed",
            lambda check, got, state: (
                None if got.shape[check.axis] not in (0, 1) and check.wanted not in (0, 1) else _size(check, got, state)
            ),
        ),
        "aligned": (
            "layout",
            lambda _, got, __: (
                f"data is not aligned to {got.misaligned} bytes" if getattr(got, "misaligned", 0) else None
            ),
        ),
        "contiguous": (
            "layout",
            lambda _, got, __: (
                None
                if got.strides == "contiguous" or 0 in got.shape
                else "is not contiguous, specialised for contiguous"
            ),
        ),
        "stride": ("layout", _stride),
        "order": ("relaxed", lambda check, got, _: layout_mismatch(check.wanted, got)),
        "fit": ("equal-sizes", _fit),
    }
)
