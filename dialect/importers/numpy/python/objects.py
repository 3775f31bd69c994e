"""The parts of Python's objects: one table, of which all that walks through objects is a fold.

An object is a bundle of *facets*: the items of a list, the attributes of an instance, what an array
holds. Each kind of facet tells how what it holds is copied, found by key, put back and written by a
user. `facets_of` lists those of a class; a list of a user's class has items, attributes and slots.

A fold has an entry for each kind (`table`): the journal restores, snapshots of loops carry, shadows
stand in, guards compare. `parts_of` is all that an object leads to, whatever holds it.
"""

from __future__ import annotations

import functools
import gc
import types
from abc import ABC, abstractmethod
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeVar, get_args

import numpy as np

from ....errors import InternalError
from .instances import ABSENT, dict_type, kept, slots_of
from .purity import BOUND, bound_to
from .users_code import JITTED

Kind = Literal["list", "dict", "set", "fixed", "fields", "attributes", "slots", "contents", "class"]
_Entry = TypeVar("_Entry")


def table(entries: Mapping[Any, _Entry]) -> dict[str, _Entry]:
    """A fold's entries; raises InternalError unless there is one for each kind of facet."""
    if differing := sorted(set(entries) ^ set(get_args(Kind))):
        raise InternalError(f"a fold over the facets of objects differs in {', '.join(differing)}")
    return dict(entries)


class Facet(ABC):
    """One way in which objects hold others.

    Attributes:
        kind: what it is called.
        step: how code reaches what is there: ``"item"``, ``"attribute"``, or None.
        is_carried: the rounds of a recorded loop may give its keys other values.
    """

    kind: Kind
    step: str | None = None
    is_carried = False

    @abstractmethod
    def copy(self, target: Any) -> Any:
        """The values that an object holds now, in a container of its own; a shallow copy."""

    def keyed(self, held: Any) -> dict[Any, Any]:
        """The values of such a copy, by key; nothing where there are no keys."""
        return held

    def parts(self, target: Any) -> Iterable[Any]:
        """The objects that are held now."""
        return self.keyed(self.copy(target)).values()

    def find(self, target: Any, key: Any) -> Any:
        """The value that an object holds there now; `ABSENT` if nothing. No code of its class runs."""
        return self.copy(target).get(key, ABSENT)

    def look(self, target: Any, key: Any) -> Any:
        """The value that code finds under the key; `ABSENT` if nothing. Code of the class may run."""
        return self.find(target, key)

    def outline(self, target: Any) -> Any:
        """The outline of an object without the values under its keys: which keys, or how many."""
        raise InternalError(f"the {self.kind} of an object has no outline")

    def fill(self, target: Any, key: Any, held: Any) -> None:
        """Have a container hold these items alone; there is no one key of them."""
        raise InternalError(f"the {self.kind} of an object cannot be filled")

    def put(self, target: Any, key: Any, value: Any) -> None:
        """Have an object hold a value; no code of its class runs."""
        raise InternalError(f"nothing can be put into the {self.kind} of an object")

    def label(self, key: Any) -> str:
        """The text by which users write the way from an object to the part."""
        return f"[{key!r:.40}]" if self.step == "item" else f".{key}"


class _Items(Facet):
    kind, step, is_carried = "list", "item", True

    def copy(self, target: Any) -> list[Any]:
        return list(target)

    def keyed(self, held: list[Any]) -> dict[Any, Any]:
        return dict(enumerate(held))

    def parts(self, target: Any) -> Iterable[Any]:
        return tuple(target)

    def find(self, target: Any, key: Any) -> Any:
        try:
            return target[key]
        except LookupError:
            return ABSENT

    look = find  # which calls do often: a call less

    def outline(self, target: Any) -> int:
        return len(target)

    def fill(self, target: Any, key: Any, held: Any) -> None:
        target.clear()
        target.extend(held)

    def put(self, target: Any, key: Any, value: Any) -> None:
        if type(target) is list:
            target[key] = value
        else:
            (list if isinstance(target, list) else deque).__setitem__(target, key, value)


class _Table(Facet):
    kind, step, is_carried = "dict", "item", True

    def copy(self, target: Any) -> dict[Any, Any]:
        if type(target) is dict:
            return dict(target)
        return dict(dict_type(target).items(target))  # a user's class may iterate otherwise

    def find(self, target: Any, key: Any) -> Any:
        if type(target) is dict:
            return target.get(key, ABSENT)
        return dict_type(target).get(target, key, ABSENT)

    look = find

    def outline(self, target: Any) -> tuple:
        return tuple(target if type(target) is dict else dict_type(target).keys(target))

    def fill(self, target: Any, key: Any, held: Any) -> None:
        kind = dict_type(target)
        kind.clear(target)
        kind.update(target, held)

    def put(self, target: Any, key: Any, value: Any) -> None:
        if type(target) is dict:
            target[key] = value
        else:
            dict_type(target).__setitem__(target, key, value)


class _Members(Facet):
    kind = "set"

    def copy(self, target: Any) -> Any:
        return (bytearray if isinstance(target, bytearray) else set)(target)

    def keyed(self, held: Any) -> dict[Any, Any]:
        return dict.fromkeys(held)

    def parts(self, target: Any) -> Iterable[Any]:
        return () if isinstance(target, bytearray) else tuple(target)

    def outline(self, target: Any) -> Any:
        return (bytes if isinstance(target, bytearray) else frozenset)(target)


class _Fixed(Facet):
    """The parts that objects hold as long as they live."""

    kind = "fixed"

    def copy(self, target: Any) -> tuple:
        return tuple(self.parts(target))

    def keyed(self, held: Any) -> dict[Any, Any]:
        return {}

    def parts(self, target: Any) -> Iterable[Any]:
        kind = type(target)
        if kind is types.MethodType:
            return target.__func__, target.__self__
        if kind in BOUND:
            owner = bound_to(target)
            return () if owner is None else (owner,)
        if kind is types.MappingProxyType:
            return gc.get_referents(target)  # the mapping, for which Python has no name
        if isinstance(target, functools.partial):
            return target.func, *target.args, target.keywords
        if kind is types.FunctionType:
            return target.__closure__ or ()
        return tuple(functions_in(target)) if isinstance(target, DESCRIPTORS) else target


class _Named(Facet):
    """Attributes, which code finds where Python looks for them: in the class, too."""

    step = "attribute"

    def look(self, target: Any, key: Any) -> Any:
        return getattr(target, key, ABSENT)


class _NamesInC(Facet):
    """The values that C code keeps for an object under names, some of which may be bound to nothing."""

    step = "attribute"

    def find(self, target: Any, key: Any) -> Any:
        return kept(target, key)

    def keyed(self, held: dict[Any, Any]) -> dict[Any, Any]:
        return {k: v for k, v in held.items() if v is not ABSENT}

    def put(self, target: Any, key: Any, value: Any) -> None:
        if value is ABSENT:
            object.__delattr__(target, key)
        else:
            object.__setattr__(target, key, value)


class _Fields(_NamesInC):
    kind = "fields"

    def copy(self, target: Any) -> dict[Any, Any]:
        return {name: kept(target, name) for name in fields_of(target)}


class _Attributes(_Named):
    kind, is_carried = "attributes", True

    def copy(self, target: Any) -> dict[Any, Any]:
        return dict(attributes_of(target) or ())

    def find(self, target: Any, key: Any) -> Any:
        return (attributes_of(target) or {}).get(key, ABSENT)

    def put(self, target: Any, key: Any, value: Any) -> None:
        target.__dict__[key] = value


class _Slots(_Named, _NamesInC):
    kind, is_carried = "slots", True

    def copy(self, target: Any) -> dict[Any, Any]:
        return dict(slots_of(target, type(target)))


class _Contents(Facet):
    """The elements of an array, or of a record: `contents` compares them."""

    kind = "contents"

    def copy(self, target: Any) -> Any:
        return np.array(np.asarray(target))

    def keyed(self, held: Any) -> dict[Any, Any]:
        return {}

    def parts(self, target: Any) -> Iterable[Any]:
        return np.asarray(target).flat if target.dtype == object else ()


class _Class(_Named):
    kind = "class"

    def copy(self, target: Any) -> dict[Any, Any]:
        return dict(vars(target))

    def find(self, target: Any, key: Any) -> Any:
        """The value that the class, or one that it is derived from, has there."""
        return next((vars(cls)[key] for cls in target.__mro__ if key in vars(cls)), ABSENT)

    def outline(self, target: Any) -> frozenset[str]:
        return frozenset(key for key in vars(target) if not key.startswith("_abc_"))


LIST, TABLE, MEMBERS, FIXED, FIELDS = _Items(), _Table(), _Members(), _Fixed(), _Fields()
ATTRIBUTES, SLOTS, CONTENTS, CLASS = _Attributes(), _Slots(), _Contents(), _Class()
STATE = (ATTRIBUTES, SLOTS)  # what objects have that Python's classes have made
FACETS: dict[str, Facet] = table(
    {f.kind: f for f in (LIST, TABLE, MEMBERS, FIXED, FIELDS, ATTRIBUTES, SLOTS, CONTENTS, CLASS)}
)
# Descriptors, and the names under which they have what they call.
DESCRIPTORS = (property, classmethod, staticmethod, functools.cached_property)
_CALLED = ("__func__", "fget", "fset", "fdel", "func")
# What objects of classes of C code hold, beside attributes and slots.
_OF_C: dict[type, tuple[Facet, ...]] = {
    list: (LIST,),
    deque: (LIST,),
    dict: (TABLE,),
    OrderedDict: (TABLE,),
    defaultdict: (TABLE, FIELDS),
    set: (MEMBERS,),
    bytearray: (MEMBERS,),
    tuple: (FIXED,),
    frozenset: (FIXED,),
    types.MethodType: (FIXED,),
    **dict.fromkeys(BOUND, (FIXED,)),
    functools.partial: (FIXED,),
    types.MappingProxyType: (FIXED,),
    **dict.fromkeys(DESCRIPTORS, (FIXED,)),
    types.FunctionType: (FIELDS, FIXED),
    types.CellType: (FIELDS,),
    BaseException: (FIELDS,),
    np.ndarray: (CONTENTS,),
    np.void: (CONTENTS,),
    type: (CLASS,),
}
_FIELDS: dict[type, tuple[str, ...]] = {
    types.FunctionType: ("__code__", "__defaults__", "__kwdefaults__"),
    types.CellType: ("cell_contents",),
    defaultdict: ("default_factory",),
    BaseException: ("args",),
}


def facets_of(kind: Any) -> tuple[Facet, ...]:
    """The facets that the objects of a class have."""
    return _facets_of(kind)


@functools.lru_cache(maxsize=4096)
def _facets_of(kind: Any) -> tuple[Facet, ...]:
    if kind in JITTED:
        return (ATTRIBUTES,)
    facets = next((_OF_C[cls] for cls in kind.__mro__ if cls in _OF_C), ())
    if CLASS in facets or kind in DESCRIPTORS:
        return facets
    if kind.__dictoffset__ or issubclass(kind, types.ModuleType):
        facets = (*facets, ATTRIBUTES)
    has_slots = any(vars(cls).get("__slots__") for cls in kind.__mro__)
    return (*facets, SLOTS) if has_slots else facets


def fields_of(value: Any) -> tuple[str, ...]:
    """The names of what C code keeps for an object, where that may change."""
    return next((_FIELDS[cls] for cls in type(value).__mro__ if cls in _FIELDS), ())


def facet_of_attribute(value: Any, name: str) -> Facet:
    """The facet in which an object keeps an attribute, or would keep one."""
    facets = facets_of(type(value))
    if SLOTS not in facets:
        return CLASS if CLASS in facets else ATTRIBUTES
    is_kept = any(name == slot for slot, _ in slots_of(value, type(value)))
    return SLOTS if is_kept or ATTRIBUTES not in facets else ATTRIBUTES


def attributes_of(value: Any) -> dict[str, Any] | None:
    """The dict of an object's attributes, if it has one beside its own items."""
    attributes = getattr(value, "__dict__", None)
    return None if attributes is value or type(attributes) is not dict else attributes


def parts_of(value: Any) -> Iterator[Any]:
    """All objects that an object holds."""
    for facet in facets_of(type(value)):
        yield from facet.parts(value)


def functions_in(descriptor: Any) -> Iterator[Any]:
    """The functions that a descriptor of a class calls."""
    functions = (getattr(descriptor, name, None) for name in _CALLED)
    return (function for function in functions if function is not None)
