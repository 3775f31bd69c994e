"""Changes of Python objects by a round of a loop: a loop is recorded only if there are none.

A recorded body has run once, whatever the number of rounds. So all that the user's code can reach
is noted before a round and compared afterwards: the variables of its frame and what these hold,
cells of functions, shadows of objects from outside. Arrays that the trace knows are left out, as
what is written to them is recorded. Attributes and items may be carried (`places`).
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..python.instances import ABSENT
from ..python.objects import FACETS, FIELDS, FIXED, facets_of
from ..python.users_code import PREFIX
from ..world.journal import Journal
from ..world.places import Key, Place
from .carried_places import Moved
from .names import may_carry, same

if TYPE_CHECKING:
    from ..tracing.recorder import Recorder

_MISSING = object()


class ObjectSnapshot(Journal):
    """The contents of Python objects at one point of a trace.

    Args:
        rec: the trace.
        names: variables of the frame that runs the statement.
        free: of these, the ones that the statement itself may bind.
    """

    def __init__(self, rec: Recorder, names: Mapping[str, Any], free: frozenset[str]) -> None:
        super().__init__()
        self.iterator: str | None = None  # the name of something that a round may use up
        self._cells: list[tuple[types.CellType, Any, str]] = []
        names = {k: v for k, v in names.items() if not k.startswith(PREFIX)}
        self._names = {k: v for k, v in names.items() if k not in free}
        self._free = free
        self._rec, self.codes = rec, rec.journal.codes
        self.ask(rec.journal.asked, rec.journal.asks_all)
        for name, value in names.items():
            self.watch(value, name)
        if rec.source is not None:
            self.watch(rec.source.exits.held, "exits")
        shadows = rec.shadows
        self._shadows = 0
        if shadows is not None:
            self._shadows = shadows.count
            for shadow, name in shadows.made():
                self.watch(shadow, name)

    def _enter(self, value: Any, kind: type, name: str) -> list[tuple[Any, str]]:
        if kind is types.FunctionType:
            parts = list(self._function(value))
            for facet in facets_of(kind):
                parts += self._facet(facet, value, name) if facet is not FIXED else ()
            return parts
        if self.iterator is None and hasattr(kind, "__next__"):
            self.iterator = name
        return super()._enter(value, kind, name)

    def _function(self, function: types.FunctionType) -> Iterator[tuple[Any, str]]:
        """The cells of a function, of which the statement itself may bind some."""
        names = function.__code__.co_freevars
        for cell, name in zip(function.__closure__ or (), names, strict=True):
            content = FIELDS.copy(cell)["cell_contents"]
            if name not in self._free:
                self._cells.append((cell, content, name))
            if content is not ABSENT:
                yield content, name

    def moved(self, given: Mapping[Key, Any]) -> dict[Key, Moved]:
        """The attributes and items that a round has changed, as far as a loop may carry them.

        They hold again what they held before; ``given``: what carried ones held instead.
        """
        moves: dict[Key, Moved] = {}
        for watch in self._watches:
            facet = FACETS.get(watch.kind)
            if facet is None or not facet.is_carried:
                continue
            now, old = facet.keyed(facet.copy(watch.target)), facet.keyed(watch.held)
            if now.keys() != old.keys():
                continue
            for key, value in now.items():
                if value is old[key]:
                    continue
                place = Place(facet, watch.target, key, watch.name + facet.label(key))
                before = given.get(place.id, old[key])
                if not same(value, before):
                    if not may_carry(value):
                        continue
                    moves[place.id] = Moved(place, before, value)
                place.put(watch.target, old[key])
        return moves

    def changed(self, names: Mapping[str, Any]) -> str | None:
        """A change by a round, as the subject of a sentence; None if there is none."""
        if self.iterator is not None:
            return f"what {self.iterator} iterates over"
        for name, value in self._names.items():
            if names.get(name, _MISSING) is not value:
                return f"the variable {name}"
        for cell, content, name in self._cells:
            if FIELDS.copy(cell)["cell_contents"] is not content:
                return f"the variable {name}"
        shadows = self._rec.shadows
        if shadows is not None:
            shadow = shadows.changed_since(self._shadows)
            if shadow is not None:
                return shadow
        changes = self.undo()
        return changes[0][0] if changes else None
