"""A guard of a plan with its counts, and the Python source of its quick check."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...dialect.dataclass import dataclass
from ...dialect.guards.checks import ALL_FREE, TENSOR_WORDS, Check, Kind, checks_of, table
from ...dialect.guards.free_sizes import FreeSizes
from ...dialect.guards.mismatch import Mismatch, mismatches
from ...dialect.guards.seen import Seen, type_noted
from ...dialect.ir.device import HOST
from ...dialect.ir.symbolic import dim_text
from ...dialect.ir.types import TensorType, Type


@dataclass
class PlanGuard:
    """A guard of a plan, with its counts.

    Attributes:
        types: expected types of the checked values.
        behavior: ``"static"``, ``"dynamic"``, ``"relaxed"`` (R3.42) or ``"gradients"`` (R1.39).
        free: what it asks of sizes besides its types (A6).
        callee: name of the fusion function that the guard protects.
        fallback: name of the function that runs if the guard fails.
        operands: numbers of the checked values of the graph.
        answer: number of the value that is true if the types are right.
        changed: which speculated values had changed at the latest miss (R3.38); with the same restriction.
        forced: misses that stress mode has caused; ``last_miss`` does not include them.
        counted: hits, without those in emitted code that have not been added yet.
        missed: misses, with the same restriction.
        missed_types: what `seen.noted` says for ``last_miss``, with the same restriction.
        missed_at: clock of the emitted code at the latest of its misses that has been added.
        timed: number of timed hits.
        timed_seconds: time that the guarded group took in all timed hits.
        native: adds the counts of emitted code; None = no emitted code uses this guard.
        stressed: True if stress mode makes the guard fail at random.
    """

    types: tuple[TensorType, ...]
    behavior: str
    free: FreeSizes = ALL_FREE
    callee: str = ""
    fallback: str = ""
    counted: int = 0
    missed: int = 0
    operands: tuple[int, ...] = ()
    missed_types: tuple[Any, ...] | None = None
    missed_at: int = 0
    answer: int = -1
    changed: tuple[str, ...] = ()
    forced: int = 0
    timed: int = 0
    timed_seconds: float = 0.0
    native: Callable[[], object] | None = None
    stressed: bool = False

    def checks(self) -> tuple[Check, ...]:
        """Everything that the guard compares."""
        return checks_of(self.types, **self._mode())

    def shown_types(self) -> tuple[Any, ...]:
        """The types as users are told of them: sizes that are free have names."""
        return self.free.shown(self.types) if self.behavior == "relaxed" else self.types

    def mismatches(self, seen: Sequence[Seen], labels: Sequence[str] | None = None) -> list[Mismatch]:
        """The checks that fail for values of these types (`mismatch.mismatches`)."""
        return mismatches(self.types, seen, labels, **self._mode())

    def _mode(self) -> dict[str, Any]:
        return {"relaxed": self.behavior == "relaxed", "flags": self.behavior == "gradients", "free": self.free}

    def _add_up(self) -> None:
        if self.native is not None:
            self.native()

    @property
    def hits(self) -> int:
        """The number of times that the guard has held."""
        self._add_up()
        return self.counted

    @property
    def misses(self) -> int:
        """The number of times that the guard has failed."""
        self._add_up()
        return self.missed

    @property
    def last_miss(self) -> tuple[Any, ...] | None:
        """Types of the checked values at the latest miss; None = the guard has never failed."""
        self._add_up()
        missed = self.missed_types
        return None if missed is None else tuple(map(type_noted, missed))

    @property
    def run_seconds(self) -> float:
        """Total time of the guarded group in seconds, extrapolated from the timed hits."""
        hits = self.hits  # read first, because this adds the counts of emitted code
        return self.timed_seconds / self.timed * hits if self.timed else 0.0


def quick_check(
    types: Sequence[Type], checks: Sequence[Check], values: Sequence[str], bind: Callable[[str, Any], str]
) -> str | None:
    """Python source of a comparison that implies the checks; None if there is no cheap one.

    If the comparison is false, the checks may still hold. It may raise AttributeError for a value
    that is no array.

    Args:
        types: the expected type of each operand.
        checks: the checks of the guard.
        values: the variable name of each operand in the source.
        bind: (prefix, object) -> name under which the source can use the object.
    """
    bound: dict[str, str] = {}
    sized = {check.operand for check in checks if check.kind == "size"}
    operands = [_Operand(v, t, bound, bind, k in sized) for k, (v, t) in enumerate(zip(values, types, strict=True))]
    parts = []
    for check in checks:
        part = _QUICK[check.kind](check, operands[check.operand])
        if part is None:
            return None
        parts.append(part)
    return " and ".join(filter(None, parts))


def sure_miss(checks: Sequence[Check], values: Sequence[str]) -> str | None:
    """Python source of a comparison under which the checks cannot hold; None if there is none.

    Guards that a call has come to in vain, one before the other, cost little by it. It compares
    literal sizes, and may raise AttributeError for a value that is no array.

    Args:
        checks: the checks of the guard.
        values: the variable name of each operand in the source.
    """
    sizes: dict[int, dict[int, int]] = {}
    ranks = {c.operand: c.wanted for c in checks if c.kind == "rank"}
    for check in checks:
        if check.kind == "size":
            sizes.setdefault(check.operand, {})[check.axis] = check.wanted
    parts = []
    for operand, by_axis in sizes.items():
        if len(by_axis) == ranks.get(operand):
            shape = tuple(by_axis[axis] for axis in sorted(by_axis))
            parts.append(f"{values[operand]}.shape != {shape!r}")
    return " or ".join(parts) or None


@dataclass(frozen=True)
class _Operand:
    """An operand of a guard.

    Attributes:
        value: its variable name.
        type_: its expected type.
        bound: size symbol -> source that reads the size; shared by all operands of the guard.
        bind: see `quick_check`.
        sized: True if literal sizes are compared.
    """

    value: str
    type_: Any
    bound: dict[str, str]
    bind: Callable[[str, Any], str]
    sized: bool

    @property
    def on_device(self) -> bool:
        return self.type_.device not in (None, HOST)


# One function per kind of check. Each returns a part of the source, "" if other parts imply the
# check, or None if no cheap source expresses it.


def _object(check: Check, o: _Operand) -> str | None:
    if TENSOR_WORDS not in check.wanted or o.type_.dtype is None:
        return None
    if not o.on_device and o.type_.strides == "contiguous":
        return ""  # the part of "contiguous" reads flags, which only host arrays have
    return f"{o.value}.device == {o.type_.device or HOST!r}"


def _symbol(check: Check, o: _Operand) -> str | None:
    place = f"{o.value}.shape[{check.axis}]"
    name, times = check.wanted
    own = place if times == 1 else f"({place} // {times})"
    first = o.bound.setdefault(name, own)
    size = first if times == 1 else f"{first} * {times}"
    # The first use of a symbol requires a size of at least 1, later ones the same size.
    if size == place:
        return place
    return f"{place} and {place} == {size}" if first == own else f"{place} == {size}"


def _stride(check: Check, o: _Operand) -> str | None:
    itemsize, strides = o.type_.dtype.itemsize, o.type_.strides
    place = f"{o.value}.strides[{check.axis}]"
    if check.wanted is None:
        return None if o.on_device else f"{place} % {itemsize} == 0"
    if None not in strides:  # the part of axis 0 compares all strides
        return "" if check.axis else f"{o.value}.strides == {tuple(s * itemsize for s in strides)!r}"
    return None if o.on_device else f"{place} == {check.wanted * itemsize}"


def _order(check: Check, o: _Operand) -> str | None:
    if o.type_.strides == "contiguous":
        return _contiguous(o)
    return None if check.wanted.order else ""


def _contiguous(o: _Operand) -> str:
    # For host arrays ``carray`` comes first: it is one property for contiguous, aligned and
    # writeable, and most arrays are all three.
    if o.on_device:
        return f"{o.value}.is_contiguous"
    return f"({o.value}.flags.carray or {o.value}.flags.c_contiguous and {o.value}.flags.aligned)"


def _fit(check: Check, o: _Operand) -> str | None:
    left, right = (dim_text(side, lambda name: f"({o.bound[name]})") for side in check.wanted)
    return f"{left} == {right}"


_QUICK: Mapping[Kind, Callable[[Check, _Operand], str | None]] = table(
    {
        "object": _object,
        "dtype": lambda check, o: f"{o.value}.dtype is {o.bind('d', check.wanted.numpy)}",
        "device": lambda check, o: "",  # the part of `_object` implies it
        "requires_grad": lambda check, o: (
            None if check.wanted else f"not {o.value}.requires_grad" if o.on_device else ""  # NumPy arrays have no flag
        ),
        "rank": lambda check, o: (
            f"{o.value}.shape == {tuple(o.type_.shape)!r}"
            if o.type_.is_static and o.type_.rank == check.wanted and o.sized
            else f"len({o.value}.shape) == {check.wanted}"
        ),
        "size": lambda check, o: "" if o.type_.is_static else f"{o.value}.shape[{check.axis}] == {check.wanted}",
        "positive": lambda check, o: "",  # the part of `_symbol` implies it
        "symbol": _symbol,
        "expression": lambda check, o: None,
        "single": lambda check, o: (
            f"{o.value}.shape[{check.axis}] == {check.wanted}"
            if check.wanted in (0, 1)
            else f"{o.value}.shape[{check.axis}] > 1"
        ),
        "aligned": lambda check, o: (
            f"({o.value}.address or 0) % {o.type_.dtype.numpy.alignment} == 0"
            if o.on_device
            else ""
            if o.type_.strides == "contiguous"
            else f"{o.value}.flags.aligned"
        ),
        "contiguous": lambda check, o: _contiguous(o),
        "stride": _stride,
        "order": _order,
        "fit": _fit,
    }
)
