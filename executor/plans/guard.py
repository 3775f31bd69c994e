"""One guard of a plan and how it fared, and the quick source of its checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...dialect.guards.checks import TENSOR_WORDS, Check, Kind, table
from ...dialect.ir.device import HOST
from ...dialect.ir.types import TensorType, Type


@dataclass
class Guard:
    """One guard of a plan and how it fared.

    Attributes:
        types: expected types of the checked values.
        behavior: ``"static"``, ``"dynamic"`` or ``"relaxed"`` (R3.42).
        callee: the fusion function it protects.
        fallback: the fallback function on its other side.
        operands: the checked values of the graph.
        forced: misses that stress mode made; they are not kept in ``last_miss``.
        counted, missed, missed_types: hits, misses and ``last_miss`` as far as they are added up.
        missed_at: the latest miss in emitted code that is in them, on its clock.
        timed, timed_seconds: hits that were timed, and how long their groups took.
        native: counts up what emitted code has counted.
        stressed: True if it fails on purpose now and then.
    """

    types: tuple[TensorType, ...]
    behavior: str
    callee: str = ""
    fallback: str = ""
    counted: int = 0
    missed: int = 0
    operands: tuple[int, ...] = ()
    missed_types: tuple[Any, ...] | None = None
    missed_at: int = 0
    forced: int = 0
    timed: int = 0
    timed_seconds: float = 0.0
    native: Callable[[], object] | None = None
    stressed: bool = False

    def _add_up(self) -> None:
        if self.native is not None:
            self.native()

    @property
    def hits(self) -> int:
        """How often the guard has held."""
        self._add_up()
        return self.counted

    @property
    def misses(self) -> int:
        """How often it has not."""
        self._add_up()
        return self.missed

    @property
    def last_miss(self) -> tuple[Any, ...] | None:
        """The values' types at the latest miss (None = never missed)."""
        self._add_up()
        return self.missed_types

    @property
    def run_seconds(self) -> float:
        """Time that the group behind the guard has run, taken from the timed hits."""
        hits = self.hits  # read first: it brings the others up to date
        return self.timed_seconds / self.timed * hits if self.timed else 0.0


def quick_check(
    types: Sequence[Type],
    checks: Sequence[Check],
    values: Sequence[str],
    bind: Callable[[str, Any], str],
) -> str | None:
    """An exact comparison, as source, that implies the checks; None where none is cheap.

    It may raise AttributeError for what is no array.

    Args:
        types, values: per operand what is expected, and the name of what is checked.
        bind: gives an object a name, of this prefix, in the source.
    """
    bound: dict[str, str] = {}
    operands = [_Operand(v, t, bound, bind) for v, t in zip(values, types, strict=True)]
    parts = []
    for check in checks:
        part = _QUICK[check.kind](check, operands[check.operand])
        if part is None:
            return None
        parts.append(part)
    return " and ".join(filter(None, parts))


@dataclass(frozen=True)
class _Operand:
    """A value, by name, and its expected type; what names stand for symbols, and name objects."""

    value: str
    type_: Any
    bound: dict[str, str]
    bind: Callable[[str, Any], str]

    @property
    def on_device(self) -> bool:
        return self.type_.device not in (None, HOST)


# Per kind: a part of the source; "" where other parts imply it, None where it cannot be said.


def _object(check: Check, o: _Operand) -> str | None:
    if TENSOR_WORDS not in check.wanted or o.type_.dtype is None:
        return None
    if not o.on_device and o.type_.strides == "contiguous":
        return ""  # its part asks for flags, which arrays of the host alone have
    return f"{o.value}.device == {o.type_.device or HOST!r}"


def _symbol(check: Check, o: _Operand) -> str | None:
    place = f"{o.value}.shape[{check.axis}]"
    first = o.bound.setdefault(check.wanted, place)
    return place if first == place else f"{place} == {first}"  # at least 1, then as large


_QUICK: Mapping[Kind, Callable[[Check, _Operand], str | None]] = table({
    "object": _object,
    "dtype": lambda check, o: f"{o.value}.dtype is {o.bind('d', check.wanted.numpy)}",
    "device": lambda check, o: "",  # `_object` has said it
    "requires_grad": lambda check, o: (
        None if check.wanted
        else f"not {o.value}.requires_grad" if o.on_device else ""  # plans see NumPy's own arrays
    ),
    "rank": lambda check, o: (
        f"{o.value}.shape == {tuple(o.type_.shape)!r}"
        if o.type_.is_static and o.type_.rank == check.wanted
        else f"len({o.value}.shape) == {check.wanted}"
    ),
    "size": lambda check, o: (
        "" if o.type_.is_static else f"{o.value}.shape[{check.axis}] == {check.wanted}"
    ),
    "positive": lambda check, o: "",  # its symbol says it
    "symbol": _symbol,
    "expression": lambda check, o: None,
    "single": lambda check, o: None,
    "aligned": lambda check, o: (
        f"({o.value}.address or 0) % {o.type_.dtype.numpy.alignment} == 0" if o.on_device
        else "" if o.type_.strides == "contiguous" else f"{o.value}.flags.aligned"
    ),
    # Of the host one property of arrays that are writeable, too, as most are, and else two.
    "contiguous": lambda check, o: (
        f"{o.value}.is_contiguous" if o.on_device
        else f"({o.value}.flags.carray or {o.value}.flags.c_contiguous and {o.value}.flags.aligned)"
    ),
    "stride": lambda check, o: (
        None if None in o.type_.strides
        else "" if check.axis  # the first compares all
        else f"{o.value}.strides == {tuple(s * o.type_.dtype.itemsize for s in o.type_.strides)!r}"
    ),
    "order": lambda check, o: None,
})  # fmt: skip
