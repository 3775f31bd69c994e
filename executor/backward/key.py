"""The cache of captured runs: a trie of the keys of nodes, with what was captured at its leaves.

A walk that ends at a leaf with equal sizes traces nothing (R4.7). Sizes are compared at the leaf,
and so are numbers among the operands: one that has changed is passed from then on, for good, and
the graph captured anew (R4.9).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any
from weakref import ref

from ...dialect.dataclass import dataclass
from ...dialect.errors import InternalError
from ..settings.events import log
from ..tape.op_node import OpNode
from .beside import BESIDE
from .capture import Captured, Dims, Numbers, Place
from .joined import Gather
from .walk import Shape, Walk
from .walk_outline import Outline

Compiled = Callable[[list, list, list, list, list], Sequence[Any]]
_RECENT = 4  # entries that are compared before the trie is walked
_GATHERED = 32  # graphs whose runs are gathered without a walk


class CaptureResult:
    """The result of a capture.

    Attributes:
        captured: the graph.
        run: what runs it.
        is_ready: whether a run may be given to it now; else it is run eagerly.
        dynamic: the sizes that are passed, with the numbers of their symbols.
        shapes: of the last run that it served.
        ranks: of the shapes.
        changing: which numbers are passed.
        numbers: of the run that was captured.
    """

    __slots__ = ("captured", "changing", "dynamic", "is_ready", "numbers", "ranks", "run", "shapes")

    def __init__(self, captured: Captured, run: Compiled, is_ready: Callable[[], bool], entry: KeyEntry) -> None:
        self.captured, self.run, self.is_ready = captured, run, is_ready
        self.dynamic, self.shapes, self.ranks = entry.dynamic, entry.shapes, entry.ranks
        self.changing, self.numbers = entry.changing, entry.numbers

    def serves(self, shapes: list[Shape], numbers: list[float]) -> bool:
        """True if the graph holds for these shapes and numbers."""
        if self.numbers != numbers and not _others(self.numbers, numbers) <= self.changing:
            return False
        if self.shapes == shapes:
            return True
        dynamic = self.dynamic
        changed = _changed(self.shapes, shapes) if list(map(len, shapes)) == self.ranks else None
        if changed is None or not changed <= dynamic.keys() or _split(dynamic, shapes):
            return False
        self.shapes = shapes
        return True


def _changed(before: list[Shape], shapes: list[Shape]) -> set[Place]:
    """The sizes that are others; ranks are the same."""
    return {
        (k, axis)
        for k, (new, old) in enumerate(zip(shapes, before, strict=True))
        if new != old
        for axis, (a, b) in enumerate(zip(new, old, strict=True))
        if a != b
    }


def _others(before: list[float], numbers: list[float]) -> set[int]:
    """The numbers that are others."""
    return {k for k, (a, b) in enumerate(zip(before, numbers, strict=True)) if a != b}


def _split(dynamic: Dims, shapes: list[Shape]) -> list[Place]:
    """Sizes of which others with the same symbol are not equal any more."""
    values: dict[int, int] = {}
    return [
        (k, axis)
        for (k, axis), symbol in dynamic.items()
        if values.setdefault(symbol, shapes[k][axis]) != shapes[k][axis]
    ]


class KeyEntry:
    """The entries and counts of one key.

    Attributes:
        steps: the keys of the nodes.
        shapes: of the last run that was captured.
        pattern: which lifted arrays are the same one.
        ranks: of the shapes.
        dynamic: sizes that have changed, and so are passed, each with the number of its symbol:
            sizes have one symbol while they have been equal in all runs.
        numbers: of the last run that was captured.
        changing: those that have changed, and so are passed.
        made: what the last capture has made; None before it. Other threads read it while this
            entry is widened, so that it has all that they compare.
    """

    __slots__ = ("changing", "dynamic", "made", "numbers", "pattern", "ranks", "shapes", "steps")

    def __init__(self, walk: Outline) -> None:
        self.steps, self.shapes, self.pattern = walk.steps, walk.shapes, walk.pattern
        self.numbers = walk.numbers
        self.changing: Numbers = frozenset()
        self.dynamic: Dims = {}
        self.ranks = list(map(len, walk.shapes))
        self.made: CaptureResult | None = None

    def changed(self, shapes: list[Shape]) -> set[Place] | None:
        """The sizes that are others than those of the last capture; None for other ranks."""
        return _changed(self.shapes, shapes) if list(map(len, shapes)) == self.ranks else None

    def widen(self, places: Iterable[Place], shapes: list[Shape]) -> None:
        """Make sizes dynamic, and give one symbol to those that have always been equal."""
        symbols: dict[Any, int] = {}
        dynamic: Dims = {}
        for k, axis in sorted({*self.dynamic, *places}):
            before = self.dynamic.get((k, axis))
            key = before, None if before is not None else self.shapes[k][axis], shapes[k][axis]
            dynamic[k, axis] = symbols.setdefault(key, len(symbols))
        self.dynamic = dynamic


@dataclass(frozen=True)
class Miss:
    """The reason why a run was captured (R4.10).

    Attributes:
        kind: ``"node"`` for a new node, ``"arrays"`` where other lifted arrays are the same one,
            or of other ranks, ``"size"`` for a size that has changed, ``"number"`` for a number,
            ``"failed"`` for another try.
        text: the reason, as a sentence.
    """

    kind: str
    text: str


class _TrieNode:
    """A node of the trie."""

    __slots__ = ("entries", "next")

    def __init__(self) -> None:
        self.next: dict[Hashable, _TrieNode] = {}
        self.entries: list[KeyEntry] = []


def _serves(entry: KeyEntry, walk: Walk | Outline, pattern: Sequence[int]) -> CaptureResult | None:
    """The captured run of an entry for a walk of its key; None for other sizes or arrays."""
    variant = entry.made
    if variant is None or entry.pattern != pattern or not variant.serves(walk.shapes, walk.numbers):
        return None
    return variant


def _is_like(outline: Outline, walk: Walk, pattern: Sequence[int]) -> bool:
    return (
        outline.shapes == walk.shapes
        and outline.steps == walk.steps
        and outline.pattern == pattern
        and outline.numbers == walk.numbers
    )


class Gathered:
    """A function that gathers what runs are given, what they run by, and which followed it last.

    Programs repeat their steps: what followed a run once is likely to follow it again.
    """

    __slots__ = ("__weakref__", "following", "gather", "made")

    def __init__(self, gather: Gather, variant: CaptureResult) -> None:
        self.gather, self.made = gather, variant
        self.following: ref[Gathered] | None = None  # it may have been dropped


class Awaited:
    """A run that is captured beside others.

    Attributes:
        nodes: how many it has.
        era: of the thread that captures it, which a forked child has not.
        outline: of it; None until it has been walked.
    """

    __slots__ = ("era", "nodes", "outline")

    def __init__(self, nodes: int, outline: Outline | None = None) -> None:
        self.nodes, self.outline, self.era = nodes, outline, BESIDE.era


class Cache:
    """Captured runs of one compiler and one setting of ``dynamic``."""

    def __init__(self, dynamic: bool) -> None:
        self.dynamic = dynamic
        self.root = _TrieNode()
        self.captures = 0
        self.runs: list[Any] = []  # what was captured, as `Backward`
        self.is_told = False  # that there are too many
        self._awaited: list[Awaited] = []  # runs that are captured beside others
        self._sizes: set[int] = set()  # numbers of nodes of runs that were asked for
        # Both are replaced as a whole, as threads read them.
        self._recent: tuple[KeyEntry, ...] = ()
        self.gathers: tuple[Gathered, ...] = ()
        self._last: Gathered | None = None

    @property
    def awaited(self) -> list[Awaited]:
        """Runs that are captured beside others; a forked child drops those of its parent."""
        if self._awaited and self._awaited[0].era is not BESIDE.era:
            self._awaited = [a for a in self._awaited if a.era is BESIDE.era]
        return self._awaited

    def find(self, walk: Walk | Outline, pattern: Sequence[int]) -> CaptureResult | None:
        """The captured run that serves a walk; None where it has to be captured."""
        # One comparison of lists of nearly always the same objects is quicker than any hash.
        steps = walk.steps
        for entry in self._recent:
            if entry.steps == steps and (variant := _serves(entry, walk, pattern)) is not None:
                return variant
        at: _TrieNode | None = self.root
        for step in steps:
            at = at.next.get(step)  # type: ignore[union-attr]
            if at is None:
                return None
        for entry in at.entries:  # type: ignore[union-attr]
            variant = _serves(entry, walk, pattern)
            if variant is not None:
                self._recent = (entry, *self._recent[: _RECENT - 1])
                return variant
        return None

    def awaits(self, walk: Walk, pattern: Sequence[int]) -> bool:
        """True if a run that is like this one is captured beside others, or cannot be."""
        return any(
            other.nodes == len(walk.nodes) and ((outline := other.outline) is None or _is_like(outline, walk, pattern))
            for other in tuple(self.awaited)
        )

    def is_new(self, nodes: int) -> bool:
        """True if no run of so many nodes has been captured, nor is about to be."""
        return nodes not in self._sizes and all(a.nodes != nodes for a in tuple(self.awaited))

    def expected(self) -> Iterator[Gathered]:
        """The entries that may serve a run: first the one that has followed the last run, then the others."""
        gathers, last = self.gathers, self._last
        first = None if last is None or last.following is None else last.following()
        if first is not None and first in gathers:
            yield first
        for gathered in gathers:
            if gathered is not first:
                yield gathered

    def met(self, gathered: Gathered) -> None:
        """Note that this one has served the last run."""
        if self._last is not None:
            self._last.following = ref(gathered)
        self._last = gathered

    def keep(self, entry: KeyEntry, variant: CaptureResult, gather: Gather | None) -> None:
        """Serve runs of an entry by what was made for it; ``gather`` finds what they are given."""
        entry.made = variant
        self.captures += 1
        if gather is not None:
            self.gathers = (Gathered(gather, variant), *self.gathers[: _GATHERED - 1])

    def missed(self, walk: Outline) -> tuple[KeyEntry, list[Miss]]:
        """The entry to capture for, and why none could serve."""
        self._sizes.add(len(walk.nodes))
        pattern = walk.pattern
        misses: list[Miss] = []
        at = self.root
        for k, step in enumerate(walk.steps):
            child = at.next.get(step)
            if child is None:
                if not misses:
                    misses.append(_new_node(walk, k, at))
                child = at.next[step] = _TrieNode()
            at = child
        shapes = walk.shapes
        for entry in at.entries:
            changed = entry.changed(shapes) if entry.pattern == pattern else None
            if changed is not None:
                new = sorted(changed - entry.dynamic.keys())
                misses += [_new_size(walk, *place) for place in new]
                others = _others(entry.numbers, walk.numbers) - entry.changing
                misses += [_new_number(walk, place) for place in sorted(others)]
                misses += [_split_size(walk, *place) for place in _split(entry.dynamic, shapes)]
                if not misses and entry.made is None:
                    misses.append(Miss("failed", "capture that has failed before"))
                entry.widen(changed, shapes)
                entry.changing, entry.numbers = entry.changing | others, walk.numbers
                self.gathers = tuple(g for g in self.gathers if g.made is not entry.made)
                entry.shapes, entry.made = shapes, None
                return entry, _told(misses)
        if not misses:
            misses.append(Miss("arrays", "other lifted arrays are the same, or have other ranks"))
        entry = KeyEntry(walk)
        if self.dynamic:
            # Bounds of slices are not, as kernels would have to ask for them.
            entry.changing = frozenset(range(len(walk.numbers))) - _bounds(walk)
            entry.widen([(k, a) for k, s in enumerate(shapes) for a, n in enumerate(s) if n > 1], shapes)
        at.entries.append(entry)
        return entry, _told(misses)


def _bounds(walk: Outline) -> set[int]:
    """The places, among the numbers of a walk, of those that are attributes of ops."""
    return {
        place
        for node, before, behind in zip(walk.nodes, walk.marks, walk.marks[1:], strict=False)
        if isinstance(node, OpNode) and node.plan.bounds
        for place in range(before[6], behind[6])
    }


def _new_node(walk: Outline, k: int, at: _TrieNode) -> Miss:
    """The first node whose key is new, with the sizes of keys that are known in its place."""
    name = "the roots" if k == 0 else walk.nodes[k - 1].name
    size, sizes = _size(walk.steps[k]), [_size(step) for step in at.next]
    suffix = f"; known there: {sizes}" if sizes else ""
    return Miss("node", f"new autograd node {name} (NodeCall {k}) with key size {size}{suffix}")


def _size(step: Hashable) -> int:
    """The number of entries that a key has."""
    return sum(map(_size, step)) if isinstance(step, tuple) else 1


def _new_size(walk: Outline, place: int, axis: int) -> Miss:
    return Miss("size", f"size {axis} of shape {place}, of {_owner(walk, place)}, became dynamic")


def _split_size(walk: Outline, place: int, axis: int) -> Miss:
    owner = _owner(walk, place)
    return Miss("size", f"size {axis} of shape {place}, of {owner}, equals others no longer")


def _new_number(walk: Outline, place: int) -> Miss:
    """A number among the operands that is another one than in all runs before."""
    return Miss("number", f"number {place}, of {_owner(walk, place, 6)}, changed and became an input")


def _owner(walk: Outline, place: int, which: int = 1) -> str:
    """The node that has lifted a shape, or what else is in another of the lists of the walk."""
    ends = [*(m[which] for m in walk.marks[1:])]
    if place < walk.marks[0][which]:
        return "the roots"
    return next(n.name for n, end in zip(walk.nodes, ends, strict=True) if place < end)


def _told(misses: list[Miss]) -> list[Miss]:
    """Emit the reasons as an event; raises InternalError for none (R4.10)."""
    if not misses:
        raise InternalError("a backward run is captured for no reason")
    text = "; ".join(miss.text for miss in misses)
    log("backward-miss", "compiled_autograd", text, reasons=[miss.text for miss in misses])
    return misses
