"""Places outside of a call that traces read and calls write, and what was found there.

A place is told by the object that holds it: what leads to that is compared step by step, as a
`StateRead` each. How a place is read, compared and written follows from its facet.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Callable
from typing import Any, NamedTuple

from ....dataclass import dataclass
from ....errors import InternalError
from ..python.instances import ABSENT as MISSING
from ..python.objects import CONTENTS, FIELDS, Facet

ALL = object()  # the key of all that an object holds by one facet
Key = tuple[Any, int, Any]
NUMBERS = (bool, int, float, complex)
PLAIN = (*NUMBERS, str, bytes)  # compared by value


@dataclass(frozen=True)
class ArgumentNode:
    """A container among the arguments of calls, by its number there: outer ones come first."""

    number: int


class Place(NamedTuple):
    """An attribute or item of an object, which calls, or rounds of a loop, read and write.

    Attributes:
        facet: of the object.
        holder: the object, or a `ArgumentNode`, for which each call has another one.
        key: name, key or index there; `ALL` = all that the facet has, of which values under keys
            are other places to those who read, but are written with it.
        name: what the user calls it.
    """

    facet: Facet
    holder: Any
    key: Any
    name: str

    @property
    def id(self) -> Key:
        """The key that tells the place from others as long as the object lives."""
        return self.facet.step, id(self.holder), self.key

    @property
    def node(self) -> int | None:
        """The number of the container among the arguments that it is in; None if it is in none."""
        return self.holder.number if type(self.holder) is ArgumentNode else None

    def find(self) -> Any:
        """The value there now; None if nothing is."""
        value = self.facet.find(self.holder, self.key)
        return None if value is MISSING else value

    def read(self) -> StateRead:
        """A read of this place, with what code finds there now."""
        facet, holder, key, _ = self
        return StateRead(self, facet.outline(holder) if key is ALL else facet.look(holder, key))

    @property
    def put_to(self) -> Callable[[Any, Any, Any], None]:
        """The function that stores a value at `key` of a holder."""
        return self.facet.put if self.key is not ALL else self.facet.fill

    def put(self, holder: Any, value: Any) -> None:
        """Store a value there."""
        self.put_to(holder, self.key, value)


class _Answer(Facet):
    """The answer of an object to a call without arguments, which the object keeps or asks for."""

    step = "answer"

    def copy(self, target: Any) -> Any:
        raise InternalError("an answer is no part of an object")

    def find(self, target: Any, key: Any) -> Any:
        try:
            return target()
        except Exception:  # which the call itself will raise
            return MISSING


ANSWER = _Answer()


class _ObjectClass(Facet):
    """The class of an object, which may be given another one (`x.__class__ = …`)."""

    step = "class"

    def copy(self, target: Any) -> Any:
        raise InternalError("the class of an object is no part of it")

    def find(self, target: Any, key: Any) -> Any:
        return type(target)


KIND = _ObjectClass()


def cell_place(cell: types.CellType, name: str) -> Place:
    """The place of a variable of an enclosing function."""
    return Place(FIELDS, cell, "cell_contents", name)


@dataclass(eq=False, slots=True)
class StateRead:
    """The value that a trace has found in a place outside of the call.

    Attributes:
        place: where that is.
        value: what was found; `MISSING` if the object itself held nothing there.
    """

    place: Place
    value: Any

    @property
    def is_absent(self) -> bool:
        """True if nothing was found."""
        return self.value is MISSING

    def holds(self) -> bool:
        """True if the same object is found now, or an equal number or text."""
        facet, holder, key, _ = self.place
        if self.value is MISSING:
            return facet.find(holder, key) is MISSING
        if facet is CONTENTS:
            return self.value.fits(holder)
        value = facet.outline(holder) if key is ALL else facet.look(holder, key)
        return value is self.value or _equal(value, self.value)


def _equal(other: Any, value: Any) -> bool:
    if other is value:
        return True
    kind = type(value)
    if type(other) is not kind:
        return False
    if kind in (frozenset, tuple):
        if kind is frozenset or len(other) != len(value):
            return other == value
        return all(map(operator.is_, other, value)) or all(map(_equal, other, value))
    if kind is types.MethodType:  # made anew by each look-up
        return other.__func__ is value.__func__ and other.__self__ is value.__self__
    if kind in (float, complex):
        return repr(other) == repr(value)  # tells 0.0 from -0.0
    return kind in PLAIN and other == value


__all__ = ["ALL", "ANSWER", "KIND", "MISSING", "PLAIN", "ArgumentNode", "Key", "Place", "StateRead", "cell_place"]
