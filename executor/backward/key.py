"""The cache of captured runs: a trie of the keys of nodes, with what was captured at its leaves.

A walk that ends at a leaf with equal sizes traces nothing (R4.7). Sizes are compared at the leaf:
one that has changed is passed from then on, for good, and the graph captured anew (R4.9).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ...dialect.dataclass import dataclass
from ...dialect.errors import InternalError
from ..settings.events import log
from .capture import Captured, Dims
from .walk import Shape, Walk

Compiled = Callable[[list, list, list, list, list], Sequence[Any]]


class Entry:
    """What is known of one key.

    Attributes:
        shapes: of the last run that it served.
        pattern: which lifted arrays are the same one.
        ranks: of the shapes.
        dynamic: sizes that have changed, and so are passed.
        captured, compiled: what the last capture has made; None before it.
    """

    __slots__ = ("captured", "compiled", "dynamic", "pattern", "ranks", "shapes")

    def __init__(self, shapes: list[Shape], pattern: list[int], dynamic: Dims) -> None:
        self.shapes, self.pattern, self.dynamic = shapes, pattern, dynamic
        self.ranks = list(map(len, shapes))
        self.captured: Captured | None = None
        self.compiled: Compiled | None = None


@dataclass(frozen=True)
class Miss:
    """Why a run was captured (R4.10).

    Attributes:
        kind: ``"node"`` for a new node, ``"arrays"`` where other lifted arrays are the same one,
            or of other ranks, ``"size"`` for a size that has changed.
        text: the reason, as a sentence.
    """

    kind: str
    text: str


class _Step:
    """A node of the trie."""

    __slots__ = ("entries", "next")

    def __init__(self) -> None:
        self.next: dict[Hashable, _Step] = {}
        self.entries: list[Entry] = []


class Cache:
    """Captured runs of one compiler and one setting of ``dynamic``."""

    def __init__(self, dynamic: bool) -> None:
        self.dynamic = dynamic
        self.root = _Step()
        self.count = 0

    def find(self, walk: Walk, pattern: list[int]) -> Entry | None:
        """The entry that serves a walk; None where it has to be captured."""
        at: _Step | None = self.root
        for step in walk.steps:
            at = at.next.get(step)  # type: ignore[union-attr]
            if at is None:
                return None
        shapes = walk.shapes
        for entry in at.entries:  # type: ignore[union-attr]
            if entry.pattern == pattern and entry.compiled is not None:
                if entry.shapes == shapes:
                    return entry
                changed = _changed(entry, shapes)
                if changed is not None and changed <= entry.dynamic:
                    entry.shapes = shapes
                    return entry
        return None

    def missed(self, walk: Walk, pattern: list[int]) -> tuple[Entry, list[Miss]]:
        """The entry to capture for, and why none could serve."""
        misses: list[Miss] = []
        at = self.root
        for k, step in enumerate(walk.steps):
            found = at.next.get(step)
            if found is None:
                if not misses:
                    misses.append(_new_node(walk, k, at))
                found = at.next[step] = _Step()
            at = found
        shapes = walk.shapes
        for entry in at.entries:
            changed = _changed(entry, shapes) if entry.pattern == pattern else None
            if changed is not None:
                new = sorted(changed - entry.dynamic)
                misses += [_new_size(walk, place, axis) for place, axis in new]
                entry.dynamic |= changed
                entry.shapes, entry.compiled = shapes, None
                return entry, _told(misses)
        if not misses:
            misses.append(Miss("arrays", "other lifted arrays are the same, or have other ranks"))
        dynamic = frozenset(
            (k, axis)
            for k, shape in enumerate(shapes) for axis, size in enumerate(shape) if size > 1
        ) if self.dynamic else frozenset()  # fmt: skip
        made = Entry(shapes, pattern, dynamic)
        at.entries.append(made)
        return made, _told(misses)


def _changed(entry: Entry, shapes: list[Shape]) -> Dims | None:
    """Which sizes are others than those of an entry; None for other ranks."""
    if list(map(len, shapes)) != entry.ranks:
        return None
    return frozenset(
        (k, axis)
        for k, (new, old) in enumerate(zip(shapes, entry.shapes, strict=True)) if new != old
        for axis, (a, b) in enumerate(zip(new, old, strict=True)) if a != b
    )  # fmt: skip


def _new_node(walk: Walk, k: int, at: _Step) -> Miss:
    """The first node whose key is new, with the sizes of keys that are known in its place."""
    name = "the roots" if k == 0 else walk.nodes[k - 1].name
    size, known = _size(walk.steps[k]), [_size(step) for step in at.next]
    seen = f"; known there: {known}" if known else ""
    return Miss("node", f"new autograd node {name} (NodeCall {k}) with key size {size}{seen}")


def _size(step: Hashable) -> int:
    """How many entries a key has."""
    return sum(map(_size, step)) if isinstance(step, tuple) else 1


def _new_size(walk: Walk, place: int, axis: int) -> Miss:
    return Miss("size", f"size {axis} of shape {place}, of {_owner(walk, place)}, became dynamic")


def _owner(walk: Walk, place: int) -> str:
    assert walk.marks is not None
    ends = [*(m[1] for m in walk.marks[1:])]
    if place < walk.marks[0][1]:
        return "the roots"
    return next(n.name for n, end in zip(walk.nodes, ends, strict=True) if place < end)


def _told(misses: list[Miss]) -> list[Miss]:
    """Emit the reasons as an event; raises InternalError for none (R4.10)."""
    if not misses:
        raise InternalError("a backward run is captured for no reason")
    text = "; ".join(miss.text for miss in misses)
    log("backward-miss", "compiled_autograd", text, reasons=[miss.text for miss in misses])
    return misses


__all__ = ["Cache", "Compiled", "Entry", "Miss"]
