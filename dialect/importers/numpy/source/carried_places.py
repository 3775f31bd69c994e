"""Attributes and items that rounds or branches change: they are carried like variables.

`self.x += v` and `state["x"] = y` change objects of Python, of which a recorded statement knows
what they hold: traced values are put there before a round, and read behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ..world.places import Key, Place


class Moved(NamedTuple):
    """A place with what it held, and what it holds now."""

    place: Place
    old: Any
    new: Any


class CarriedPlaces:
    """The places that one recorded statement carries, with what they held before it."""

    def __init__(self) -> None:
        self._of: dict[str, Place] = {}  # by the names under which they are carried
        self._names: dict[Key, str] = {}
        self.start: dict[str, Any] = {}
        self.given: dict[Key, Any] = {}  # in the block that is recorded

    def __bool__(self) -> bool:
        return bool(self._of)

    def __contains__(self, place: Place) -> bool:
        return place.id in self._names

    def add(self, moved: Moved) -> None:
        """Carry one more."""
        name = f" {len(self._of):06}"
        self._names[moved.place.id], self._of[name] = name, moved.place
        self.start[name] = moved.old

    def hand(self, values: dict[str, Any]) -> None:
        """Put values into the places, by the names under which they are carried."""
        for name, place in self._of.items():
            place.put(place.holder, values[name])
            self.given[place.id] = values[name]

    def values(self, moved: dict[Key, Moved]) -> dict[str, Any]:
        """The values of the places behind a round that has changed some of them."""
        return {
            name: moved[place.id].new if place.id in moved else self.given[place.id] for name, place in self._of.items()
        }

    def hand_back(self) -> None:
        """Have all hold what they held before the statement."""
        self.hand(self.start)

    def forget(self) -> None:
        """Carry none any more."""
        self.hand_back()
        self.__init__()  # type: ignore[misc]

    def take(self, values: dict[str, Any]) -> Iterator[Any]:
        """Put the results of the statement into the places; returns them."""
        for name, place in self._of.items():
            value = values.pop(name)
            place.put(place.holder, value)
            yield value


__all__ = ["CarriedPlaces", "Key", "Moved"]
