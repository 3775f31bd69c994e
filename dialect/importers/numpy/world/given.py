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

from ....trees.containers import CONTAINERS, container_of
from ....trees.pytree import LEAF, TreeDef, static_of
from ..python.objects import facets_of
from .places import ArgumentNode
from .stores import PlaceStore, ShadowFacet

if TYPE_CHECKING:
    from ..tracing.recorder import Recorder
    from .shadows import Shadows

_MUTABLE = frozenset({"list", "dict", "ordered", "dataclass", "namespace"})
_OPEN = _MUTABLE | {"tuple", "namedtuple"}  # others are watched as a whole


class Containers:
    """The containers of all calls of one graph, for its effects.

    Args:
        tree: structure of the arguments.
        kinds: of all containers among them, outer ones first, as `containers.CONTAINERS` names
            them. A `ArgumentNode` is a number in this order.
        written: numbers of those that the function assigns to.
        reached: objects from outside that it has reached, where it assigns to arguments.
        assigned: objects from outside that it assigns to.
    """

    def __init__(
        self,
        tree: TreeDef,
        kinds: Sequence[str],
        written: Sequence[int],
        reached: Sequence[Any],
        assigned: Sequence[Any],
    ) -> None:
        self._tree, self.kinds = tree, tuple(kinds)
        self.written, self.reached = tuple(written), tuple(reached)
        self.assigned = tuple(assigned)

    @cached_property
    def _outer(self) -> tuple[frozenset[int], frozenset[int]]:
        return frozenset(map(id, self.reached)), frozenset(map(id, self.assigned))

    @cached_property
    def _nested(self) -> list[tuple[int, str, list]]:
        args, kwargs = self._tree.spec[2]
        return _nested((*args[2], *kwargs[2]))

    def find(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """The containers of a call."""
        return _inside(self._nested, (*args, *kwargs.values()), [])

    @staticmethod
    def numbered(sources: Sequence[Any], behind: int) -> tuple[int, ...]:
        """`Trace.sources` with numbers alone: containers come behind the inputs."""
        return tuple([~(behind + k.number) if isinstance(k, ArgumentNode) else k for k in sources])

    def is_mutable(self, number: int) -> bool:
        """True of a container that calls may assign to."""
        return self.kinds[number] in _MUTABLE

    def are_apart(self, instances: Sequence[Any]) -> bool:
        """True if none that is assigned to is another one, or an object from outside."""
        ids = [id(x) for k, x in enumerate(instances) if self.is_mutable(k)]
        reached, assigned = self._outer
        targets = [id(instances[k]) for k in self.written]
        if len(set(ids)) != len(ids) and any(ids.count(k) > 1 for k in targets):
            return False
        return reached.isdisjoint(targets) and assigned.isdisjoint(ids)


def _nested(specs: Sequence[tuple]) -> list[tuple[int, str, list]]:
    """The items that are containers: their numbers, their kinds, and the same of their items."""
    return [(k, spec[0], _nested(spec[2])) for k, spec in enumerate(specs) if spec[0] not in ("leaf", "static")]


def _inside(nested: list[tuple[int, str, list]], items: Sequence[Any], containers: list[Any]) -> list:
    """The containers among the items of one, and those in them, added to what has been found."""
    for k, kind, inner in nested:
        containers.append(items[k])
        if inner:
            _inside(inner, CONTAINERS[kind].items(items[k]), containers)
    return containers


class Given:
    """The arguments that one trace hands to the function.

    Args:
        rec: the trace.
        shadows: of the trace.
        tree: structure of the arguments, around shadows of objects from outside.
        names: what the user calls the positional arguments.

    Attributes:
        entries: what the containers that the trace has made held at first.
    """

    def __init__(self, rec: Recorder, shadows: Shadows, tree: TreeDef, names: Sequence[str]) -> None:
        self._rec, self._shadows, self._tree, self._names = rec, shadows, tree, names
        self._kinds: list[str] = []
        self.entries: list[ShadowFacet] = []

    def build(self, leaves: Sequence[Any]) -> tuple[tuple, dict[str, Any]]:
        """The arguments, by position and by keyword, around these leaves."""
        (_, _, positional), (_, keys, specs) = self._tree.spec[2]
        rest = iter(leaves)
        args = [self._build(spec, rest, name) for spec, name in zip(positional, self._names, strict=True)]
        kwargs = {key: self._build(spec, rest, key) for key, spec in zip(keys, specs, strict=True)}
        return tuple(args), kwargs

    def _build(self, spec: tuple, leaves: Iterator[Any], name: str, inside: bool = False) -> Any:
        """An argument, or an item of one; ``inside``: of what is watched as a whole."""
        if spec == LEAF:
            return next(leaves)
        kind, meta, children = spec
        if kind == "static":
            return static_of(spec)
        node, container = ArgumentNode(len(self._kinds)), CONTAINERS[kind]
        self._kinds.append(kind)
        watched = inside or kind not in _OPEN
        labels = container.labels(meta, len(children))
        instance = container.made(
            meta,
            [self._build(child, leaves, name + label, watched) for child, label in zip(children, labels, strict=True)],
        )
        # Its methods are bound to the container itself, in which effects are looked for.
        self._shadows.leave(instance)
        if watched and not inside:
            self._rec.journal.watch(instance, name)
        elif kind in _MUTABLE and not inside:
            self._rec.journal.skip(instance)
            self.entries += [ShadowFacet(node, instance, facet, name) for facet in facets_of(type(instance))]
        return instance

    # --- effects --------------------------------------------------------------------------------

    def nodes(self) -> dict[int, ArgumentNode]:
        """By identity, the containers that the trace has made."""
        return {id(entry.shadow): entry.original for entry in self.entries}

    def replaced(self, leaves: Sequence[Any]) -> set[int]:
        """The numbers of the leaves that other values have taken the place of."""
        own = {id(x): k for k, x in enumerate(leaves)}
        numbers = set()
        for entry in self.entries:
            now = entry.found()
            numbers |= {own[id(x)] for k, x in entry.held.items() if id(x) in own and now.get(k) is not x}
        return numbers

    def containers(self, stores: Sequence[PlaceStore]) -> Containers:
        """The facts of their containers that calls need."""
        nodes = {node: None for s in stores if (node := s.place.node) is not None}
        assigned = [s.place.holder for s in stores if s.place.node is None]
        reached = self._rec.journal.reached() if nodes else ()
        outer = [x for x in reached if container_of(x) is not None]
        return Containers(self._tree, self._kinds, tuple(nodes), outer, assigned)
