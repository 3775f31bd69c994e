"""Shadows: what a trace hands out in place of objects from outside of the call.

The user's code reads arrays that were there before the call: in globals and cells, in attributes
and items of objects. A graph must read them anew at each call, so the code gets a traced value in
the place of each, and shadows of the objects that lead there: instances of the same classes whose
attributes and items are shadows in turn. What the code writes to a shadow, no other thread sees;
the differences in the end are the effects of the call (`Shadows.stores`).

Each object has one shadow, so that identities among them hold. Objects of other libraries, classes
and C code stand for themselves: what they hold is plain.
"""

from __future__ import annotations

import functools
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....dataclass import dataclass
from ....errors import ProfuseError, TraceError
from ..python.instances import has_plain_state, state_of
from ..python.purity import BOUND, bound_to
from ..python.users_code import is_users_module
from ..tracing.containers import plain_key
from ..tracing.leaves import check_array
from ..tracing.operators import Recording
from ..tracing.pytree import TreeDef, flatten
from .hidden import Hidden, is_hidden
from .journal import is_of_a_library, is_users_class
from .places import Place

if TYPE_CHECKING:
    from ..tracing.recorder import Recorder

_MOST = 5000  # shadows of one trace
_MISSING = object()
_PLAIN = frozenset({
    bool, int, float, complex, str, bytes, type(None), type(Ellipsis), slice, range, np.dtype,
    np.ufunc, types.CodeType,
})  # fmt: skip
_NAMES = (str, bytes, type, types.FunctionType, types.BuiltinFunctionType)
# What may be stored as it is at each call.
_CONSTANTS = (str, bytes, type(None), np.dtype, type, types.FunctionType, types.BuiltinFunctionType)


@dataclass(eq=False)
class Store:
    """A place that the function writes to.

    Attributes:
        place: of an object from outside.
        tree: the structure of the new value, with holes for what the graph computes.
        leaves: traced values and numbers for these holes.
        kept: the object from outside that is stored there; `tree` is None then.
        is_new: nothing is there before the call.
        container: number of the container among the arguments that the place is in; None = it is
            in an object from outside.
    """

    place: Place
    tree: TreeDef | None
    is_new: bool
    leaves: tuple[Any, ...] = ()
    kept: Any = None
    container: int | None = None

    @property
    def count(self) -> int:
        """How many leaves the value has."""
        return 0 if self.tree is None else self.tree.leaves

    def value(self, leaves: Sequence[Any]) -> Any:
        """The value, with these leaves."""
        return self.kept if self.tree is None else self.tree.unflatten(leaves)


@dataclass(eq=False)
class _Entry:
    """An object with its shadow, and what the shadow held at first, by attribute or item."""

    original: Any
    shadow: Any
    step: str
    held: dict[Any, Any]
    name: str


class Shadows:
    """The shadows of one trace.

    Args:
        rec: the trace.
        slots: traced values that stand in some places, by holder and key.

    Attributes:
        whole: by identity, objects that are stored as they are: containers among the arguments.
        has_hidden: the code has got objects that it must not use.
    """

    def __init__(self, rec: Recorder, slots: dict[tuple[int, Any], Any]) -> None:
        self._rec, self._slots = rec, slots
        self._made: dict[int, tuple[Any, Any]] = {}
        self._originals: dict[int, Any] = {}
        self._own: dict[int, Any] = {}  # objects that the function itself has made
        self._entries: list[_Entry] = []
        self.whole: dict[int, Any] = {}
        self._others: dict[int, Any] = {}  # objects of packages, which stand for themselves
        self.has_hidden = False

    @property
    def is_empty(self) -> bool:
        """True if the code has got nothing but plain values."""
        return not self._made

    def of(self, value: Any, name: str) -> Any:
        """The shadow of an object, or the object itself if there is none, as for shadows."""
        kind = type(value)
        if kind in _PLAIN or issubclass(kind, (np.generic, Recording)):
            return value
        known = self._made.get(id(value))
        if known is not None:
            return known[1]
        if id(value) in self._originals or id(value) in self._own:
            return value
        if len(self._made) >= _MOST:
            raise TraceError("the function reaches more objects than a trace follows")
        make = self._maker(value, kind)
        return value if make is None else make(value, name)

    def follows(self, value: Any) -> bool:
        """True of an object that may change, and of which code gets a shadow."""
        kind = type(value)
        if kind in _PLAIN or issubclass(kind, (np.generic, Recording, tuple, frozenset)):
            return False
        return id(value) not in self._own and self._maker(value, kind) is not None

    def has(self, value: Any) -> bool:
        """True of an object that the code has got a shadow of."""
        return id(value) in self._made

    def leave(self, value: Any) -> None:
        """Have an object that the function itself has made stand for itself."""
        self._own[id(value)] = value

    @property
    def count(self) -> int:
        """How many shadows of objects that may change there are."""
        return len(self._entries)

    def made(self) -> Iterator[tuple[Any, str]]:
        """The shadows of objects that may change, with their names."""
        return ((entry.shadow, entry.name) for entry in self._entries)

    def changed_since(self, count: int) -> str | None:
        """The name of a shadow made after the first ``count`` that the code has written to."""
        return next((e.name for e in self._entries[count:] if not _is_as_made(e)), None)

    def is_read_elsewhere(self) -> bool:
        """True if an object that has no shadow holds one whose shadow the code has written to."""
        changed = {id(entry.original) for entry in self._entries if not _is_as_made(entry)}
        changed |= self._rec.written_arrays()
        if not changed or not self._others:
            return False
        todo, met = [*self._others.values()], set[int]()
        while todo and len(met) < _MOST:
            value = todo.pop()
            if id(value) in met or type(value) in _PLAIN:
                continue
            met.add(id(value))
            if isinstance(value, dict):
                todo += value.values()
            elif isinstance(value, (list, tuple, set, frozenset, deque)):
                todo += value
            todo += getattr(value, "__dict__", {}).values()
        return len(met) >= _MOST or not changed.isdisjoint(met)

    def _maker(self, value: Any, kind: type) -> Any:
        if issubclass(kind, np.ndarray):
            return self._array
        if kind in (list, deque):
            return self._list
        if kind in (dict, OrderedDict, defaultdict):
            return self._dict
        if kind in (set, frozenset):
            return self._set
        if issubclass(kind, tuple) and (kind is tuple or hasattr(kind, "_fields")):
            return self._tuple
        if kind is types.MethodType:
            return self._method
        if kind in BOUND:
            return None if bound_to(value) is None else self._bound
        if kind is functools.partial:
            return self._partial
        if kind is types.ModuleType:
            return self._module if is_users_module(value) else None
        if is_users_class(kind) and _is_state(value, kind):
            return self._instance
        if is_hidden(value, kind):
            return self._hidden
        if is_of_a_library(value, kind):
            self._others[id(value)] = value
        return None

    def original(self, value: Any) -> Any:
        """The object whose shadow this is, or the value itself."""
        return self._originals.get(id(value), value)

    def _enter(self, value: Any, shadow: Any) -> Any:
        self._made[id(value)] = value, shadow
        if shadow is not value:
            self._originals[id(shadow)] = value
            self._rec.journal.skip(shadow)
        return shadow

    # --- kinds of objects -----------------------------------------------------------------------

    def _array(self, value: np.ndarray, name: str) -> Any:
        from ..tracing.traced import TracedArray

        try:
            check_array(value, "")
        except ProfuseError:
            return value
        if id(value) in self._rec.created:
            return value  # the function itself has made it, by code that is not traced
        captured, owner = self._rec.capture(value), f"the array {name}"
        return self._enter(value, TracedArray(self._rec, captured, owner, is_input=True))

    def _list(self, value: Any, name: str) -> Any:
        shadow = self._enter(value, deque(maxlen=value.maxlen) if type(value) is deque else [])
        shadow.extend(self._in(value, k, x, f"{name}[{k}]") for k, x in enumerate(tuple(value)))
        self._note(value, shadow, "item", dict(enumerate(shadow)), name)
        return shadow

    def _dict(self, value: Any, name: str) -> Any:
        factory = (value.default_factory,) if type(value) is defaultdict else ()
        shadow = self._enter(value, type(value)(*factory))
        for key, item in tuple(value.items()):
            shadow[self.of(key, name)] = self._in(value, key, item, f"{name}[{key!r:.40}]")
        self._note(value, shadow, "item", dict(shadow), name)
        return shadow

    def _set(self, value: Any, name: str) -> Any:
        items = [self.of(x, name) for x in tuple(value)]
        if all(a is b for a, b in zip(items, value, strict=True)) and type(value) is frozenset:
            return value
        shadow = self._enter(value, type(value)(items))
        self._note(value, shadow, "members", dict.fromkeys(items), name)
        return shadow

    def _tuple(self, value: Any, name: str) -> Any:
        items = [self.of(x, f"{name}[{k}]") for k, x in enumerate(value)]
        if all(a is b for a, b in zip(items, value, strict=True)):
            return value
        return self._enter(value, tuple.__new__(type(value), items))

    def _method(self, value: types.MethodType, name: str) -> Any:
        holder = self.of(value.__self__, name)
        if holder is value.__self__:
            return value
        return self._enter(value, types.MethodType(value.__func__, holder))

    def _bound(self, value: Any, name: str) -> Any:
        owner = bound_to(value)
        holder = self.of(owner, name)
        if holder is owner:
            return value
        return self._enter(value, getattr(holder, value.__name__))

    def _hidden(self, value: Any, name: str) -> Any:
        self.has_hidden = True
        return self._enter(value, Hidden(value, name))

    def _partial(self, value: functools.partial, name: str) -> Any:
        parts = (value.func, *value.args, *value.keywords.values())
        if all(self.of(part, name) is part for part in parts):
            return value
        function, *args = (self.of(part, name) for part in (value.func, *value.args))
        keywords = {k: self.of(v, name) for k, v in value.keywords.items()}
        return self._enter(value, functools.partial(function, *args, **keywords))

    def _module(self, value: types.ModuleType, name: str) -> Any:
        shadow = self._enter(value, types.ModuleType(value.__name__))
        return self._filled(value, shadow, name)

    def _instance(self, value: Any, name: str) -> Any:
        kind: Any = type(value)
        return self._filled(value, self._enter(value, kind.__new__(kind)), name)

    def _filled(self, value: Any, shadow: Any, name: str) -> Any:
        attributes = getattr(value, "__dict__", None)
        if attributes is not None:
            for key, item in tuple(attributes.items()):
                shadow.__dict__[key] = self._in(value, key, item, f"{name}.{key}")
        for key, item in state_of(value).items():
            if attributes is None or key not in attributes:
                object.__setattr__(shadow, key, self._in(value, key, item, f"{name}.{key}"))
        self._note(value, shadow, "attribute", state_of(shadow), name)
        return shadow

    def _in(self, holder: Any, key: Any, value: Any, name: str) -> Any:
        """The shadow of what an object holds somewhere."""
        slot = self._slots.get((id(holder), key), _MISSING)
        return self.of(value, name) if slot is _MISSING else slot

    def _note(self, value: Any, shadow: Any, step: str, held: dict[Any, Any], name: str) -> None:
        self._entries.append(_Entry(value, shadow, step, held, name))

    # --- effects --------------------------------------------------------------------------------

    def stores(self) -> list[Store]:
        """What the code has written to shadows.

        Raises TraceError for what no graph can repeat at each call: attributes and items that are
        deleted, containers of another length, new objects other than containers of arrays.
        """
        return [store for entry in self._entries for store in self._stores_of(entry)]

    def _stores_of(self, entry: _Entry) -> Iterator[Store]:
        if _is_as_made(entry):
            return
        found, held = _contents(entry), entry.held
        kind = type(entry.shadow)
        if entry.step == "members" or kind is deque or not held.keys() <= found.keys():
            raise unrepeatable(entry.name)
        if isinstance(entry.shadow, dict) and not _keeps_order(found, held):
            raise unrepeatable(entry.name)
        if kind is list and len(found) != len(held):
            raise unrepeatable(entry.name)
        for key, value in found.items():
            if key not in held or value is not held[key]:
                yield self._store(entry, plain_key(key), value)

    def _store(self, entry: _Entry, key: Any, value: Any) -> Store:
        dot = entry.step == "attribute"
        name = f"{entry.name}.{key}" if dot else f"{entry.name}[{key!r:.40}]"
        place = Place(entry.step, entry.original, key, name)
        return self.store(place, value, key not in entry.held)

    def store(self, place: Place, value: Any, is_new: bool, container: int | None = None) -> Store:
        """That the function assigns a value; raises TraceError for what no graph can make anew.

        ``container``: see `Store`.
        """
        if id(value) in self._originals:
            return Store(place, None, is_new, kept=self.original(value), container=container)
        try:
            leaves, tree = flatten(value, self.whole)
        except ProfuseError:
            raise unrepeatable(place.name) from None
        for static in tree.statics():
            if not isinstance(static, _CONSTANTS):
                raise unrepeatable(place.name)
        if any(id(leaf) in self._originals for leaf in leaves):
            raise unrepeatable(place.name)
        return Store(place, tree, is_new, tuple(leaves), container=container)


def _is_state(value: Any, kind: type) -> bool:
    """False for objects whose shadow would do harm: of code of their own, of another identity.

    Those that hold names alone are often told apart by ``is``, from what a class holds.
    """
    if issubclass(kind, dict) or not has_plain_state(kind):
        return False
    return not all(isinstance(x, _NAMES) for x in state_of(value).values())


def _is_as_made(entry: _Entry) -> bool:
    found, held = _contents(entry), entry.held
    if found.keys() != held.keys() or not all(found[k] is held[k] for k in found):
        return False
    return not isinstance(entry.shadow, dict) or _keeps_order(found, held)


def _keeps_order(found: dict[Any, Any], held: dict[Any, Any]) -> bool:
    """Whether the keys that a dict had are its first ones, in their order."""
    return all(a is b or a == b for a, b in zip(found, held, strict=False))


def _contents(entry: _Entry) -> dict[Any, Any]:
    shadow = entry.shadow
    if entry.step == "attribute":
        return state_of(shadow)
    if entry.step == "members":
        return dict.fromkeys(shadow)
    return dict(shadow) if isinstance(shadow, dict) else dict(enumerate(shadow))


def unrepeatable(name: str) -> TraceError:
    """The error for effects that calls cannot have by a graph; ``name``: what is changed."""
    return TraceError(f"{name} is changed by the function in a way that no graph repeats")


__all__ = ["Shadows", "Store", "unrepeatable"]
