"""Places outside of a call that traces read and calls write, and how each is looked up."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any, NamedTuple

from ....dataclass import dataclass
from ..python.instances import ABSENT as MISSING
from ..python.objects import FIELDS, Facet

ALL = object()  # the key of all that a list or dict holds
Key = tuple[int, Any]
NUMBERS = (bool, int, float, complex)
PLAIN = (*NUMBERS, str, bytes)  # compared by value


@dataclass(eq=False, slots=True)
class StateRead:
    """One value that a trace has read from outside of the call.

    Attributes:
        step: how it is found: ``"global"`` and ``"item"`` look ``key`` up in a dict or list,
            ``"attribute"`` in an object, ``"own attribute"`` there and not in its class,
            ``"method"`` looks for the function of a method there, ``"cell"`` reads a cell,
            ``"size"`` takes the length of a list, ``"keys"`` are those of a dict in their order,
            ``"members"`` is all that a set holds, ``"contents"`` is what an array holds,
            ``"code"`` is that of a function, ``"static"`` an attribute whatever ``__getattr__`` of
            the class would make up.
        holder: the dict, list, object, cell, set or array.
        key: name, index or key there; None where the step needs none.
        value: what was found.
        name: what the user calls it.
    """

    step: str
    holder: Any
    key: Any
    value: Any
    name: str

    @property
    def is_absent(self) -> bool:
        """True if nothing was found."""
        return self.value is MISSING

    def holds(self) -> bool:
        """True if the same object is found now, or an equal number or text."""
        if self.step == "contents":
            return self.value.fits(self.holder)
        found = FIND[self.step](self.holder, self.key)
        return found is self.value or _equal(found, self.value)


class Place(NamedTuple):
    """An attribute or item of an object, which calls, or rounds of a loop, read and write.

    An object is told by itself: what leads to it is compared step by step, each as a `StateRead`.

    Attributes:
        facet: of the object.
        holder: the object; None = it is an argument of calls.
        key: name, key or index there; `ALL` = all that a list or dict holds.
        name: what the user calls it.
    """

    facet: Facet
    holder: Any
    key: Any
    name: str

    @property
    def id(self) -> Key:
        """What tells it from others as long as the object lives."""
        return id(self.holder), self.key

    def find(self) -> Any:
        """What is there now; None if nothing is."""
        found = self.facet.find(self.holder, self.key)
        return None if found is MISSING else found

    def absence(self) -> StateRead:
        """That nothing is there, as a read of it."""
        step = "item" if self.facet.step == "item" else "own attribute"
        return StateRead(step, self.holder, self.key, MISSING, self.name)

    @property
    def put_to(self) -> Callable[[Any, Any, Any], None]:
        """What stores a value, of a holder and `key`; what the class does then is in the value."""
        return self.facet.put if self.key is not ALL else self.facet.fill

    def put(self, holder: Any, value: Any) -> None:
        """Store a value there."""
        self.put_to(holder, self.key, value)


def _is_slot(kind: type, key: str) -> bool:
    return isinstance(inspect.getattr_static(kind, key, None), types.MemberDescriptorType)


def _equal(found: Any, value: Any) -> bool:
    kind = type(value)
    if type(found) is not kind:
        return False
    if kind in (frozenset, tuple):
        if kind is frozenset or len(found) != len(value):
            return found == value
        return all(a is b or _equal(a, b) for a, b in zip(found, value, strict=True))
    if kind in (float, complex):
        return repr(found) == repr(value)  # tells 0.0 from -0.0
    return kind in PLAIN and found == value


FIND: dict[str, Any] = {
    "global": lambda holder, key: holder.get(key, MISSING),
    "cell": lambda holder, key: FIELDS.find(holder, "cell_contents"),
    "attribute": lambda holder, key: getattr(holder, key, MISSING),
    "method": lambda holder, key: getattr(getattr(holder, key, None), "__func__", MISSING),
    "item": lambda holder, key: _item(holder, key),
    "size": lambda holder, key: len(holder),
    "keys": lambda holder, key: tuple(holder),
    "members": lambda holder, key: _members(holder),
    "code": lambda holder, key: holder.__code__,
    "static": lambda holder, key: inspect.getattr_static(holder, key, MISSING),
    "own attribute": lambda holder, key: _own(holder, key),
}


def _own(holder: Any, key: str) -> Any:
    """What an object itself holds, whatever its class would compute."""
    attributes = getattr(holder, "__dict__", {})
    if key in attributes:
        return attributes[key]
    return getattr(holder, key, MISSING) if _is_slot(type(holder), key) else MISSING


def _members(holder: Any) -> Any:
    return bytes(holder) if isinstance(holder, bytearray) else frozenset(holder)


def _item(holder: Any, key: Any) -> Any:
    try:
        return holder[key]
    except LookupError:
        return MISSING


__all__ = ["ALL", "FIND", "MISSING", "PLAIN", "Key", "Place", "StateRead"]
