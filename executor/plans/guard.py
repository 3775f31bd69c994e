"""One guard of a plan and how it fared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...dialect.guards.checks import symbol_name
from ...dialect.ir.device import HOST
from ...dialect.ir.types import TensorType


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
    value: str, type_: TensorType, bound: dict[str, str], bind: Callable[[str, Any], str]
) -> str | None:
    """An exact comparison, as source, that implies a guard; None where none is cheap.

    Args:
        value: name of what is checked.
        type_: what it has to be.
        bound: each size symbol met so far -> the expression that reads it; is added to.
        bind: gives an object a name, of this prefix, in the source.
    """
    if type_.dtype is None or not type_.is_complete:
        return None
    if type_.requires_grad or type_.defined is False:
        return None  # the quick source cannot say this of an array
    dtype = bind("d", type_.dtype.numpy)
    parts = [f"{value}.dtype is {dtype}"]
    if type_.is_static:
        parts.append(f"{value}.shape == {tuple(type_.shape or ())!r}")
    else:
        parts.append(f"len({value}.shape) == {type_.rank}")
        for axis, dim in enumerate(type_.shape or ()):
            place = f"{value}.shape[{axis}]"
            name = symbol_name(dim)
            if isinstance(dim, int):
                parts.append(f"{place} == {dim}")
            elif name is None:
                return None
            elif bound.setdefault(name, place) == place:
                parts.append(place)  # symbols stand for sizes of at least 1
            else:
                parts.append(f"{place} == {bound[name]}")
    size, alignment = type_.dtype.itemsize, type_.dtype.numpy.alignment
    on_device = type_.device not in (None, HOST)
    aligned = f"({value}.address or 0) % {alignment} == 0"  # of a device's
    if on_device or type_.strides != "contiguous":
        parts.insert(0, f"{value}.device == {type_.device or HOST!r}")
    if on_device and type_.requires_grad is False:
        parts.append(f"not {value}.requires_grad")  # host arrays in plans are NumPy's own
    if type_.strides == "contiguous":
        if on_device:
            parts.append(f"{value}.is_contiguous and {aligned}")
        else:
            # One property of arrays that are writeable, too, as most are.
            fits = f"{value}.flags.c_contiguous and {value}.flags.aligned"
            parts.append(f"({value}.flags.carray or {fits})")
    elif type_.strides is not None and None not in type_.strides:
        strides = tuple(s * size for s in type_.strides)  # type: ignore[operator]
        parts.append(f"{value}.strides == {strides!r}")
        parts.append(aligned if on_device else f"{value}.flags.aligned")
    elif type_.strides is not None:
        return None
    return " and ".join(parts)
