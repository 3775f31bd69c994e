"""The journal of a trace: it finds and undoes changes that traced code makes outside of the call.

A trace runs the user's code once; later calls run the graph. So whatever the code does to objects
that were there before the call would happen once and never again. The journal notes what such
objects hold when the function first reads them, shallowly and by identity, and compares when the
trace has ended, well or not. Objects that the function itself makes are never in it: they may
change.
"""

from __future__ import annotations

import dis
import functools
import operator
import types
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ....dataclass import dataclass
from ....ir.program import Program
from ..python import purity
from ..python.generators import is_generator, locked
from ..python.instances import ABSENT, PLAIN_TYPES, dict_type
from ..python.objects import (
    ATTRIBUTES,
    CONTENTS,
    FIELDS,
    FIXED,
    SLOTS,
    STATE,
    Facet,
    attributes_of,
    facets_of,
    parts_of,
    table,
)
from ..python.pausing import apart
from ..python.users_code import is_made_by_user, is_of_a_library, is_users_class, is_users_file, is_users_module
from ..tracing.operators import Recording
from .contents import Contents, may_change

_OBJECTS = 20_000  # objects that are watched
_ITEMS = 4_000_000  # items of containers that are compared
KEPT_BYTES = 1 << 26  # of arrays that are kept as copies; further arrays are compared by checksum
ATOMS = PLAIN_TYPES | {np.dtype, np.ufunc, types.CodeType, types.GenericAlias}
_MUTABLE = (list, dict, set, np.ndarray)


@dataclass(eq=False)
class Watch:
    """One object, what it held, and what the user calls it; ``kind``: of a facet, ``generator`` or ``library``."""

    kind: str
    target: Any
    held: Any
    name: str


class Journal:
    """The objects that one trace can reach from outside of the call.

    Attributes:
        atoms: classes of objects that hold nothing that may change.
    """

    atoms = ATOMS

    def __init__(self) -> None:
        self._watches: list[Watch] = []
        self._seen: dict[int, Any] = {}
        self._ours: set[int] = set()
        self._locks: list[Any] = []  # of generators: no other thread draws during the trace
        self._items = self._bytes = 0
        self.meets_hidden: Callable[[Any, str], None] | None = None  # called for objects of C
        self.is_undone = True  # False once something had changed that could not be restored
        self.codes: Sequence[types.CodeType] = ()  # what the trace has run of the user's
        self.watched: Iterable[types.CodeType] = ()  # and what Python or packages have called

    def is_outer(self, value: Any) -> bool:
        """True for an object that was there before the call, as far as it has been reached."""
        return id(value) in self._seen

    def is_new(self, value: Any) -> bool:
        """True for an object that the traced code has made, as far as is known, and that is no value.

        Of a value, any other one will do; so it is of classes of packages.
        """
        kind = type(value)
        if kind is tuple or kind is frozenset:
            return any(map(self.is_new, value))
        if issubclass(kind, type):
            is_value = not is_made_by_user(value)
        else:
            is_value = kind not in (object, functools.partial) and purity.is_value(value, kind)
        return not (is_value or self.is_outer(value))

    def watches_array(self, array: np.ndarray) -> bool:
        """True if changes of this array are seen here."""
        return id(array) in self._seen

    def reached(self) -> list[Any]:
        """The objects from outside that have been met."""
        return [x for k, x in self._seen.items() if k not in self._ours]

    def skip(self, value: Any) -> None:
        """Leave an object of the trace's own, and what it holds, out."""
        self._seen[id(value)] = value
        self._ours.add(id(value))

    def watch(self, value: Any, name: str) -> None:
        """Note what an object holds, and what the objects in it hold."""
        if type(value) not in self.atoms:
            apart(self._watch, value, name)

    def _watch(self, value: Any, name: str) -> None:
        todo = [(value, name)]
        while todo and len(self._seen) < _OBJECTS and self._items < _ITEMS:
            value, name = todo.pop()
            kind = type(value)
            if kind in self.atoms or id(value) in self._seen:
                continue
            if issubclass(kind, (np.generic, Recording)) and kind is not np.void:
                continue
            self._seen[id(value)] = value
            todo += self._enter(value, kind, name)

    def _enter(self, value: Any, kind: type, name: str) -> list[tuple[Any, str]]:
        """Note one object and return its parts; ``kind`` is its real type, even of a tracer."""
        if is_generator(value):
            lock = locked(value)
            if lock is not None:
                self._locks.append(lock)
            self._note("generator", value, state_of_generator(value), name)
            return []
        if issubclass(kind, type):
            if not is_made_by_user(value):
                return []
            self._note("class", value, dict(vars(value)), value.__name__)
            return [
                (v, f"{value.__name__}.{k}")
                for k, v in vars(value).items()
                if not k.startswith("__") and (issubclass(type(v), _MUTABLE) or is_users_class(type(v)))
            ]
        if issubclass(kind, types.ModuleType):
            if is_users_module(value):
                self._note("attributes", value, dict(vars(value)), name)
            return []
        facets, is_users = facets_of(kind), is_users_class(kind)
        parts: list[tuple[Any, str]] = [(kind, kind.__name__)] if is_users else []
        is_packages = not is_users and is_of_a_library(value, kind)
        if kind is types.FunctionType:
            is_packages, facets = not is_users_file(value.__code__.co_filename), (ATTRIBUTES,)
            name = value.__name__
        elif not (is_users or is_packages) and all(facet in STATE for facet in facets):
            if self.meets_hidden is not None:
                self.meets_hidden(value, name)
            return []
        for facet in facets:
            if not is_packages or facet not in STATE:
                parts += self._facet(facet, value, name)
        if is_packages:
            attributes = dict(vars(value))
            self._note("library", value, (attributes, self), name)
            parts += [(v, f"{name}.{k}") for k, v in attributes.items() if issubclass(type(v), _MUTABLE)]
        return parts

    def _facet(self, facet: Facet, value: Any, name: str) -> list[tuple[Any, str]]:
        """Note one facet of an object and return its parts."""
        if facet is CONTENTS:
            self._contents(value, name)
            return []
        if facet is FIXED:
            return [(item, name) for item in facet.parts(value)]
        if facet is ATTRIBUTES:
            attributes = attributes_of(value)
            if attributes is None:
                return []
            self._seen[id(attributes)] = attributes
        state = facet.copy(value)
        self._note(facet.kind, value, state, name)
        if facet in (*STATE, FIELDS):
            return [(v, name + facet.label(k)) for k, v in facet.keyed(state).items()]
        self._items += len(state)
        return [(item, name) for item in facet.parts(value) if type(item) not in self.atoms]

    def _contents(self, array: Any, name: str) -> None:
        if may_change(array):
            contents = Contents(array, KEPT_BYTES - self._bytes)
            self._bytes += contents.nbytes
            self._note("contents", array, contents, name)

    def _note(self, kind: str, target: Any, held: Any, name: str) -> None:
        self._watches.append(Watch(kind, target, held, name))

    @property
    def watches(self) -> Sequence[Watch]:
        """The objects that are watched, in the order in which they were reached."""
        return self._watches

    # --- afterwards ---------------------------------------------------------------------------

    def undo(self, is_untouched: Callable[[Any], bool] = lambda target: False) -> list[tuple[str, str, str | None]]:
        """Give every object back what it held; the journal is empty afterwards.

        ``is_untouched``: the trace cannot have changed an object, so that others have.

        Returns what had changed: for each change the subject of a sentence, the name of the object
        or attribute, and the attribute, if it is one.
        """
        changes = []
        try:
            for watch in self._watches:
                if is_untouched(watch.target):
                    continue
                change = _RESTORE[watch.kind](watch.target, watch.held)
                if change is not None:
                    before = watch.held
                    self.is_undone &= type(before) is not Contents or before.fits(watch.target)
                    changes.append((*_told(watch, change), change or None))
        finally:
            while self._locks:
                self._locks.pop().release()
        # The trace is part of reference cycles, which may live long; the copies need not.
        self._watches.clear()
        self._seen.clear()
        return changes


def _told(watch: Watch, attribute: str) -> tuple[str, str]:
    name = watch.name
    if attribute:
        return f"the attribute {name}.{attribute}", attribute
    kind = type(watch.target)
    what = "array" if issubclass(kind, np.ndarray) else kind.__name__
    what = "random generator" if watch.kind == "generator" else what
    return f"the {what} {name}", name.rpartition(".")[2]


def _list(target: Any, held: list) -> str | None:
    if len(target) == len(held) and all(map(operator.is_, target, held)):
        return None
    target.clear()
    target.extend(held)
    return ""


def same_items(target: Any, held: dict) -> bool:
    """True if two dicts have the same keys and values, by identity and in this order."""
    return (
        len(target) == len(held)
        and all(map(operator.is_, target.keys(), held.keys()))
        and all(map(operator.is_, target.values(), held.values()))
    )


def _dict(target: Any, held: dict) -> str | None:
    if same_items(target, held):
        return None
    kind = dict_type(target)
    kind.clear(target)
    for key, value in held.items():
        kind.__setitem__(target, key, value)
    return ""


def _attributes(target: Any, held: dict) -> str | None:
    attributes = target.__dict__
    if same_items(attributes, held):
        return None
    changed = [
        k
        for k in {**held, **attributes}
        if attributes.get(k, ABSENT) is not held.get(k, ABSENT) and not _memoised(target, k, attributes, held)
    ]
    if changed:
        kept = {k: v for k, v in attributes.items() if k not in held and k not in changed}
        attributes.clear()  # so that deleted attributes come back in their order
        attributes.update({**held, **kept})
    return changed[0] if changed else None


def _library(target: Any, held: tuple[dict, Journal]) -> str | None:
    """Give an object of a package back what code that has run in the trace assigns, and no more.

    Other threads may have changed the rest.
    """
    before, journal = held
    attributes = vars(target)
    changed = [k for k, v in attributes.items() if v is not before.get(k, ABSENT)]
    if not changed:
        return None
    names = assigned((*journal.codes, *journal.watched))
    changed = [k for k in changed if k in names or holds_tracer(attributes[k])]
    for key in changed:
        if key in before:
            attributes[key] = before[key]
        else:
            del attributes[key]
    return changed[0] if changed else None


def assigned(codes: Iterable[types.CodeType]) -> set[str]:
    """Names of attributes that code assigns, and code inside of it."""
    names, todo = set(), list(codes)
    while todo:
        code = todo.pop()
        todo += [c for c in code.co_consts if isinstance(c, types.CodeType)]
        names |= {i.argval for i in dis.get_instructions(code) if i.opname == "STORE_ATTR"}
    return names


def _memoised(target: Any, key: str, attributes: dict, held: dict) -> bool:
    """True for a dunder of a module, and for a `cached_property` that holds no traced values."""
    if key in held or not isinstance(getattr(type(target), key, None), cached_property):
        return key.startswith("__") and isinstance(target, types.ModuleType)
    return not holds_tracer(attributes[key])


def holds_tracer(value: Any) -> bool:
    """True if there is a traced value, or code of a trace, in an object or in what it holds."""
    todo, seen = [value], dict[int, Any]()
    while todo:
        value = todo.pop()
        kind = type(value)
        if issubclass(kind, Recording):
            return True
        if kind is types.FunctionType and type(value.__globals__) is not dict:
            return True
        # A graph, which may have more parts than are watched, has numbers in the place of traced values.
        if kind in ATOMS or id(value) in seen or issubclass(kind, (type, types.ModuleType, Program)):
            continue
        if len(seen) >= _OBJECTS:
            return True  # nobody knows
        seen[id(value)] = value
        todo += parts_of(value)
    return False


def _put_back(facet: Facet) -> Callable[[Any, dict], str | None]:
    """The function that restores a facet that keeps its keys."""

    def restore(target: Any, held: dict) -> str | None:
        state = facet.copy(target)
        changed = [k for k, v in held.items() if state[k] is not v]
        for key in changed:
            facet.put(target, key, held[key])
        return changed[0] if changed else None

    return restore


def _fixed(target: Any, held: Any) -> None:
    return None  # it never changes


def _class(target: type, held: dict) -> str | None:
    attributes = vars(target)
    if same_items(attributes, held):
        return None
    changed = [
        k
        for k in {**held, **attributes}
        if attributes.get(k, ABSENT) is not held.get(k, ABSENT) and not k.startswith(("__", "_abc_"))
    ]
    for key in changed:
        if key in held:
            setattr(target, key, held[key])
        else:
            delattr(target, key)
    return changed[0] if changed else None


def _set(target: Any, held: Any) -> str | None:
    if target == held:
        return None
    target.clear()
    (target.extend if isinstance(target, bytearray) else target.update)(held)
    return ""


def _contents(target: Any, held: Contents) -> str | None:
    if held.fits(target):
        return None
    held.restore(target)
    return ""


def state_of_generator(generator: Any) -> Any:
    """The state of a generator of random numbers."""
    if hasattr(generator, "bit_generator"):
        return generator.bit_generator.state
    if hasattr(generator, "getstate"):
        try:
            return generator.getstate()
        except NotImplementedError:
            return None  # the system's generator has no state to restore
    return generator.get_state(legacy=False) if hasattr(generator, "get_state") else generator.state


def _generator(target: Any, held: Any) -> str | None:
    if same_state(state_of_generator(target), held):
        return None
    if hasattr(target, "bit_generator"):
        target.bit_generator.state = held
    elif hasattr(target, "setstate"):
        target.setstate(held)
    elif hasattr(target, "set_state"):
        target.set_state(held)
    else:
        target.state = held
    return ""


def same_state(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same_state(a[k], b[k]) for k in a)
    return np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b


_RESTORE: dict[str, Callable[[Any, Any], str | None]] = {
    **table(
        {
            "list": _list,
            "dict": _dict,
            "set": _set,
            "fixed": _fixed,
            "fields": _put_back(FIELDS),
            "attributes": _attributes,
            "slots": _put_back(SLOTS),
            "contents": _contents,
            "class": _class,
        }
    ),
    "library": _library,
    "generator": _generator,
}
