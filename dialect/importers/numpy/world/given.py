"""Containers among the arguments of a trace, and what the function does to them.

A graph has the leaves of its arguments alone, so a trace builds the containers anew, around traced
values. What the function assigns to the items and attributes of these is found by comparison when
the trace has ended, and calls assign it to the caller's containers, which the structure of the
arguments tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ....dataclass import dataclass
from ..python.instances import state_of
from ..python.objects import LIST, TABLE, Facet, facet_of_attribute
from ..tracing.containers import CONTAINERS, container_of, plain_key
from ..tracing.pytree import LEAF, TreeDef, static_of
from .places import ALL, Place
from .shadows import Shadows, Store, unrepeatable

if TYPE_CHECKING:
    from ..tracing.recorder import Recorder

_BY_INDEX = frozenset({"tuple", "list", "namedtuple"})
_BY_KEY = frozenset({"dict", "ordered"})
_INSTANCES = frozenset({"dataclass", "namespace"})
_MUTABLE = frozenset({"list", *_BY_KEY, *_INSTANCES})


@dataclass(frozen=True)
class Whole:
    """A container among the arguments, by its number, where a graph has numbers of inputs."""

    number: int


@dataclass(frozen=True, slots=True)
class Container:
    """One container of a call.

    Attributes:
        parent: number of the container that it is in; None = it is an argument.
        index: which item of that it is, or which argument: those by keyword follow the others.
        kind: of container, as `containers.CONTAINERS` names it.
        key: of the item in a dict, or of an argument that is passed by keyword.
    """

    parent: int | None
    index: int
    kind: str
    key: Any = None

    @property
    def is_mutable(self) -> bool:
        """True for one that calls may assign to."""
        return self.kind in _MUTABLE


class Containers:
    """The containers of all calls of one graph, for its effects.

    Args:
        every: all containers, outer ones first.
        written: numbers of those that the function assigns to.
        reached: objects from outside that it has reached, where it assigns to arguments.
        assigned: objects from outside that it assigns to.
    """

    def __init__(
        self, every: Sequence[Container], written: Sequence[int], reached: Sequence[Any],
        assigned: Sequence[Any],
    ) -> None:  # fmt: skip
        self.every, self.written = tuple(every), tuple(written)
        self.reached, self.assigned = tuple(reached), tuple(assigned)

    @cached_property
    def _outer(self) -> tuple[frozenset[int], frozenset[int]]:
        return frozenset(map(id, self.reached)), frozenset(map(id, self.assigned))

    def find(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """The containers of a call."""
        found: list[Any] = []
        for c in self.every:
            if c.parent is None:
                found.append(args[c.index] if c.key is None else kwargs[c.key])
                continue
            kind, holder = self.every[c.parent].kind, found[c.parent]
            if kind in _BY_INDEX:
                found.append(holder[c.index])
            elif kind in _BY_KEY:
                found.append(holder[c.key])
            else:
                found.append(CONTAINERS[kind].apart(holder)[1][c.index])
        return found

    @staticmethod
    def numbered(sources: Sequence[Any], behind: int) -> tuple[int, ...]:
        """`Trace.sources` with numbers alone: containers come behind the inputs."""
        return tuple([~(behind + k.number) if isinstance(k, Whole) else k for k in sources])

    def are_apart(self, found: Sequence[Any]) -> bool:
        """True if none that is assigned to is another one, or an object from outside."""
        ids = [id(x) for x, c in zip(found, self.every, strict=True) if c.is_mutable]
        reached, assigned = self._outer
        written = [id(found[k]) for k in self.written]
        if len(set(ids)) != len(ids) and any(ids.count(k) > 1 for k in written):
            return False
        return reached.isdisjoint(written) and assigned.isdisjoint(ids)


@dataclass(eq=False)
class _Entry:
    """A container that a trace has made, and what that held at first, by item or attribute."""

    made: Any
    held: dict[Any, Any]
    name: str


class Given:
    """The arguments that one trace hands to the function.

    Args:
        rec: the trace.
        shadows: what it hands out for objects from outside.
        tree: structure of the arguments, around such shadows.
        names: what the user calls the positional arguments.
    """

    def __init__(
        self, rec: Recorder, shadows: Shadows, tree: TreeDef, names: Sequence[str]
    ) -> None:
        self._rec, self._shadows, self._tree, self._names = rec, shadows, tree, names
        self._every: list[Container] = []
        self._entries: dict[int, _Entry] = {}

    def build(self, leaves: Sequence[Any]) -> tuple[tuple, dict[str, Any]]:
        """The arguments, by position and by keyword, around these leaves."""
        (_, _, positional), (_, keys, named) = self._tree.spec[2]
        rest = iter(leaves)
        args = [
            self._build(spec, rest, self._names[k], Container(None, k, spec[0]))
            for k, spec in enumerate(positional)
        ]
        kwargs = {
            key: self._build(spec, rest, key, Container(None, k, spec[0], key))
            for k, (key, spec) in enumerate(zip(keys, named, strict=True), len(args))
        }
        return tuple(args), kwargs

    def _build(
        self, spec: tuple, leaves: Iterator[Any], name: str, place: Container, inside: bool = False
    ) -> Any:
        """An argument, or an item of one; ``inside``: of what is watched as a whole."""
        if spec == LEAF:
            return next(leaves)
        kind, meta, children = spec
        if kind == "static":
            return static_of(spec)
        number, container = len(self._every), CONTAINERS[kind]
        self._every.append(place)
        watched = inside or kind not in (*_MUTABLE, *_BY_INDEX)
        keys = meta if kind in _BY_KEY else (None,) * len(children)
        labels = container.labels(meta, len(children))
        made = container.made(meta, [
            self._build(child, leaves, name + label, Container(number, k, child[0], key), watched)
            for k, (child, label, key) in enumerate(zip(children, labels, keys, strict=True))
        ])  # fmt: skip
        if watched and not inside:
            self._rec.journal.watch(made, name)
        elif kind in _MUTABLE and not inside:
            self._rec.journal.skip(made)
            self._entries[number] = _Entry(made, _contents(made, kind), name)
        return made

    # --- effects --------------------------------------------------------------------------------

    def numbers(self) -> dict[int, Whole]:
        """By identity, the containers that the trace has made."""
        return {id(entry.made): Whole(number) for number, entry in self._entries.items()}

    def stores(self) -> list[Store]:
        """What the function has assigned to items and attributes of arguments.

        Raises TraceError for what no graph can repeat at each call.
        """
        return [store for number in self._entries for store in self._stores_of(number)]

    def _stores_of(self, number: int) -> Iterator[Store]:
        entry, kind = self._entries[number], self._every[number].kind
        found, held = _contents(entry.made, kind), entry.held
        is_longer = tuple(found)[: len(held)] == tuple(held)
        if is_longer and len(found) == len(held) and all(found[k] is held[k] for k in found):
            return
        if kind in _INSTANCES and not is_longer:
            raise unrepeatable(entry.name)
        if kind in _INSTANCES or (is_longer and (kind in _BY_KEY or len(found) == len(held))):
            for key, value in found.items():
                if key not in held or value is not held[key]:
                    at = plain_key(key)
                    facet = _facet(entry.made, kind, at)
                    place = Place(facet, None, at, entry.name + facet.label(at))
                    yield self._shadows.store(place, value, key not in held, number)
        else:
            items = {plain_key(k): x for k, x in found.items()}
            whole = list(entry.made) if kind == "list" else items
            place = Place(_facet(entry.made, kind, ALL), None, ALL, entry.name)
            yield self._shadows.store(place, whole, False, number)

    def replaced(self, leaves: Sequence[Any]) -> set[int]:
        """The numbers of the leaves that other values have taken the place of."""
        own = {id(x): k for k, x in enumerate(leaves)}
        found = set()
        for number, entry in self._entries.items():
            now = _contents(entry.made, self._every[number].kind)
            found |= {
                own[id(x)] for k, x in entry.held.items() if id(x) in own and now.get(k) is not x
            }
        return found

    def containers(self, stores: Sequence[Store]) -> Containers:
        """What calls need to know of their containers."""
        written = {s.container: None for s in stores if s.container is not None}
        assigned = [s.place.holder for s in stores if s.container is None]
        reached = self._rec.journal.reached() if written else ()
        met = [x for x in reached if container_of(x) is not None]
        return Containers(self._every, tuple(written), met, assigned)


def _facet(made: Any, kind: str, key: Any) -> Facet:
    if kind in _INSTANCES:
        return facet_of_attribute(made, key)
    return LIST if kind == "list" else TABLE


def _contents(made: Any, kind: str) -> dict[Any, Any]:
    if kind == "list":
        return dict(enumerate(made))
    return dict(made) if kind in _BY_KEY else state_of(made)


__all__ = ["Container", "Containers", "Given"]
