"""The state of instances, read and made anew without running code of their class."""

from __future__ import annotations

import types
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

# Classes of plain values, which cannot change.
PLAIN_TYPES: frozenset[type] = frozenset(
    {bool, int, float, complex, str, bytes, type(None), type(Ellipsis), slice, range}
)
ABSENT = object()  # in the place of a slot that holds nothing
_MAKERS = (object.__new__, types.SimpleNamespace.__new__, dict.__new__)  # which make empty objects
HEAP_TYPE = 1 << 9  # in `__flags__` of classes that no C code has declared
_READERS = (object.__getattribute__, types.SimpleNamespace.__getattribute__)
_TABLES = (types.GetSetDescriptorType, types.MemberDescriptorType)  # what classes have under ``__dict__``
_EMPTY = (object, dict, types.SimpleNamespace)  # classes of C code without a state of their own


class ClassSet:
    """Classes by identity, which go when nobody else has them.

    Attributes:
        ids: the identities, to be asked for many objects at once: ``ids.issuperset(map(id, map(type, objects)))``.
    """

    def __init__(self, classes: Iterable[type] = ()) -> None:
        self.ids: set[int] = set()
        self._refs: dict[int, Any] = {}
        for cls in classes:
            self.add(cls)

    def add(self, cls: type) -> None:
        """Add a class."""
        number = id(cls)
        self._refs[number] = weakref.ref(cls, lambda _: self._remove(number))
        self.ids.add(number)

    def remove(self, cls: type) -> None:
        """Take a class out, if it is there."""
        self._remove(id(cls))

    def _remove(self, number: int) -> None:
        self.ids.discard(number)
        self._refs.pop(number, None)


def slots_of(value: Any, kind: type) -> Iterator[tuple[str, Any]]:
    """Names and contents of an object's slots; `ABSENT` for what has not been set."""
    for cls in kind.__mro__:
        for name in _own_slots(cls):
            yield name, kept(value, name)


def _own_slots(cls: type) -> Iterator[str]:
    """The names of the slots that a class adds, by which objects have them."""
    names = vars(cls).get("__slots__", ())
    for name in (names,) if isinstance(names, str) else names:
        if name not in ("__dict__", "__weakref__"):
            is_private = name.startswith("__") and not name.endswith("__")
            yield f"_{cls.__name__.lstrip('_')}{name}" if is_private else name


def state_of(value: Any) -> dict[str, Any]:
    """The values of an object's slots and attributes, by name."""
    slots = {k: v for k, v in slots_of(value, type(value)) if v is not ABSENT}
    return {**slots, **getattr(value, "__dict__", {})}


def kept(holder: Any, key: str) -> Any:
    """The value that C code keeps for an object under a name, as in a slot; `ABSENT` if nothing."""
    try:
        return object.__getattribute__(holder, key)
    except (AttributeError, ValueError):  # the latter of cells
        return ABSENT


def holds_attributes(cls: type) -> bool:
    """True for classes of Python's library whose objects have attributes and nothing else."""
    if cls is types.SimpleNamespace:
        return True
    return cls.__name__ == "Namespace" and cls.__module__ == "argparse"  # not loaded for its sake


def has_plain_state(cls: type) -> bool:
    """True if slots, attributes and items of a dict are all that instances consist of.

    Another instance with the same state then stands for the first. Classes with ``__del__`` are
    left out: their code would run for each such instance.
    """
    if cls.__new__ not in _MAKERS or hasattr(cls, "__del__"):
        return False
    return all(base in _EMPTY or base.__flags__ & HEAP_TYPE for base in cls.__mro__)


def is_told_by_names(cls: type, names: Sequence[str]) -> bool:
    """True if an instance has these attributes all in its dict, or all in slots, which no code of the class hides."""
    if cls.__getattribute__ not in _READERS:
        return False
    slots = [name for base in cls.__mro__ for name in _own_slots(base)]
    if slots:
        return not cls.__dictoffset__ and sorted(slots) == sorted(names)
    tables = [vars(base)["__dict__"] for base in cls.__mro__ if "__dict__" in vars(base)]
    return bool(cls.__dictoffset__) and all(isinstance(table, _TABLES) for table in tables)


def instance_with(cls: Any, state: Mapping[str, Any]) -> Any:
    """A new instance with this state; neither ``__init__`` nor ``__post_init__`` runs."""
    instance = cls.__new__(cls)
    attributes = getattr(instance, "__dict__", None)
    slots = {name for name, _ in slots_of(instance, cls)}
    for name, value in state.items():
        if attributes is None or name in slots:
            object.__setattr__(instance, name, value)
        else:
            attributes[name] = value
    return instance


def dict_type(table: dict) -> type[dict]:
    """The class of Python's whose methods read and write a dict, past those of the user's class.

    An `OrderedDict` keeps its order beside the table, which those of dict know nothing of.
    """
    return OrderedDict if isinstance(table, OrderedDict) else dict
