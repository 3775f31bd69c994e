"""The journal of a trace: it finds and undoes changes that traced code makes outside of the call.

A trace runs the user's code once; later calls run the graph. So whatever the code does to objects
that were there before the call would happen once and never again. The journal notes what such
objects hold when the function first reads them, shallowly and by identity, and compares when the
trace has ended, well or not. Objects that the function itself makes are never in it: they may
change.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any

import numpy as np

from ....dataclass import dataclass
from ..python import purity
from ..python.generators import is_generator, locked, state_of_generator
from ..python.objects import ATTRIBUTES, CONTENTS, FIELDS, FIXED, STATE, Facet, attributes_of, facets_of
from ..python.pausing import apart
from ..python.users_code import is_made_by_user, is_of_a_library, is_users_class, is_users_file, is_users_module
from ..tracing.operators import Recording
from .contents import Contents, may_change
from .restoring import ATOMS, MOST_OBJECTS, RESTORE

_ITEMS = 4_000_000  # items of containers that are compared
KEPT_BYTES = 1 << 26  # of arrays that are kept as copies; further arrays are compared by checksum
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
        asked: names by which the code may ask for what modules and classes hold.
        asks_all: it may put such names together.
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
        self._spaces: list[tuple[Any, str]] = []  # modules and classes of the user's
        self.asked: set[str] = set()
        self.asks_all = False

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

    def ask(self, names: Set[str], every: bool) -> None:
        """Watch what code that is about to run names of modules and classes, of which it takes a small part alone.

        ``every``: it may put names together.
        """
        every, self.asks_all = every and not self.asks_all, every or self.asks_all
        if not every and names <= self.asked:
            return
        fresh = set(names) - self.asked
        self.asked |= fresh
        for space, name in tuple(self._spaces if fresh or every else ()):
            for value, label in _named(space, name, None if every else fresh):
                self.watch(value, label)

    def _space(self, space: Any, name: str) -> list[tuple[Any, str]]:
        """Note a module or a class, and return what the code names of it."""
        self._note("class" if isinstance(space, type) else "attributes", space, dict(vars(space)), name)
        self._spaces.append((space, name))
        return _named(space, name, None if self.asks_all else self.asked)

    def _watch(self, value: Any, name: str) -> None:
        todo = [(value, name)]
        while todo and len(self._seen) < MOST_OBJECTS and self._items < _ITEMS:
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
            return self._space(value, value.__name__) if is_made_by_user(value) else []
        if issubclass(kind, types.ModuleType):
            return self._space(value, name) if is_users_module(value) else []
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
                change = RESTORE[watch.kind](watch.target, watch.held)
                if change is not None:
                    before = watch.held
                    self.is_undone &= type(before) is not Contents or before.fits(watch.target)
                    changes.append((*_told(watch, change), change or None))
        finally:
            while self._locks:
                self._locks.pop().release()
        # The trace is part of reference cycles, which may live long; the copies need not.
        self._watches.clear()
        self._spaces.clear()
        self._seen.clear()
        return changes


def _named(space: Any, name: str, names: set[str] | None) -> list[tuple[Any, str]]:
    """What a module or a class holds under these names, None for all, and of a class what may change by itself."""
    attributes, is_class = dict(vars(space)), isinstance(space, type)
    parts = []
    for key, value in attributes.items():
        if key.startswith("__") or not (names is None or key in names or (is_class and _is_free(value))):
            continue
        if not (is_class and _is_empty(type(value))):
            parts.append((value, f"{name}.{key}"))
    return parts


def _is_free(value: Any) -> bool:
    """True for what may change without being named, in a class."""
    return issubclass(type(value), _MUTABLE) or is_users_class(type(value))


def _is_empty(kind: type) -> bool:
    """True for descriptors of C code, which hold nothing."""
    return not (facets_of(kind) or is_users_class(kind))


def _told(watch: Watch, attribute: str) -> tuple[str, str]:
    name = watch.name
    if attribute:
        return f"the attribute {name}.{attribute}", attribute
    kind = type(watch.target)
    what = "array" if issubclass(kind, np.ndarray) else kind.__name__
    what = "random generator" if watch.kind == "generator" else what
    return f"the {what} {name}", name.rpartition(".")[2]
