"""Values of control flow as leaves, which graphs carry, and the structure around them, which they do not."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....dataclass import dataclass
from ...numpy.tracing.current import trace_error
from ...numpy.tracing.operators import Recording
from .script_containers import ScriptDict, ScriptList

_NUMBERS = (bool, int, float, complex)


class _Uninitialized:
    """The value of what a run does not read: TorchScript has such values where functions are left early."""

    def __repr__(self) -> str:
        return "uninitialized"


UNINITIALIZED = _Uninitialized()


@dataclass(frozen=True, slots=True)
class Fixed:
    """A part that is no leaf, and is the same on every way."""

    value: Any


@dataclass(frozen=True, slots=True)
class LeafAt:
    """A part that is a leaf, by its place among the leaves."""

    place: int


@dataclass(frozen=True, slots=True)
class Parts:
    """A list, tuple or dictionary of parts; the keys of a dictionary, else None."""

    kind: type
    parts: tuple[Any, ...]
    keys: tuple[Any, ...] | None = None

    def build(self, parts: list[Any]) -> Any:
        """The container of these parts."""
        if self.kind is tuple:
            return tuple(parts)
        container = ScriptList(parts) if self.keys is None else ScriptDict(zip(self.keys, parts, strict=True))
        container.is_joined = True
        return container


Structure = Fixed | LeafAt | Parts


def is_leaf(value: Any) -> bool:
    """True for tensors and numbers."""
    return isinstance(value, (Recording, np.ndarray, np.generic)) or type(value) in _NUMBERS


def joined(sides: tuple[Any, ...], leaves: list[tuple[Any, ...]], *, keeps: bool = False) -> Structure:
    """The structure that values have in common that are one on each way.

    ``leaves``: gets, for each leaf of the structure, its value on each way, which may be `UNINITIALIZED`.
    ``keeps``: a list or dictionary that is the same object on all ways stays that.
    Raises TraceError for structures that differ.
    """
    valued = [side for side in sides if side is not UNINITIALIZED]
    first = valued[0] if valued else UNINITIALIZED
    if all(map(is_leaf, valued)) and valued:
        leaves.append(sides)
        return LeafAt(len(leaves) - 1)
    if not valued:
        return Fixed(UNINITIALIZED)
    if type(first) in (tuple, ScriptList, ScriptDict) and all(type(side) is type(first) for side in valued):
        is_growing = type(first) is ScriptList and first.growing is not None
        if (is_growing or (keeps and type(first) is not tuple)) and all(side is first for side in sides):
            return Fixed(first)
        if not is_growing:
            keys = tuple(first.items) if type(first) is ScriptDict else None
            parts = [_items(side) for side in valued]
            alike = all(keys == tuple(side.items) for side in valued) if keys is not None else True
            if alike and len(set(map(len, parts))) == 1:
                return Parts(type(first), _joined_parts(sides, len(parts[0]), leaves, keeps), keys)
    elif len(valued) == len(sides) and all(side is first or (type(first) is str and side == first) for side in valued):
        return Fixed(first)
    shown = " and ".join(dict.fromkeys(_shown(side) for side in valued))
    raise trace_error(
        f"a value is {shown}, which only a run decides", "return tensors of one dtype and rank on all ways"
    )


def _joined_parts(
    sides: tuple[Any, ...], count: int, leaves: list[tuple[Any, ...]], keeps: bool
) -> tuple[Structure, ...]:
    parts = [(UNINITIALIZED,) * count if side is UNINITIALIZED else _items(side) for side in sides]
    return tuple(joined(part, leaves, keeps=keeps) for part in zip(*parts, strict=True))


def _items(value: Any) -> tuple[Any, ...]:
    if type(value) is ScriptDict:
        return tuple(value.items.values())
    return value if type(value) is tuple else tuple(value.known())


def _shown(value: Any) -> str:
    return "a tensor or number" if is_leaf(value) else repr(value) if value is None else f"a {type(value).__name__}"


def built(structure: Structure, leaves: Any) -> Any:
    """The value of this structure with these leaves."""
    if isinstance(structure, LeafAt):
        return leaves[structure.place]
    if isinstance(structure, Fixed):
        return structure.value
    return structure.build([built(part, leaves) for part in structure.parts])
