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
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import ProfuseError, TraceError
from ....ir.device import is_foreign
from ....trees.containers import plain_key
from ....trees.leaves import check_array, memory_of
from ....trees.pytree import flatten
from ..python.instances import has_plain_state, state_of
from ..python.objects import FIELDS, FIXED, LIST, MEMBERS, STATE, TABLE, Facet, facets_of, parts_of, table
from ..python.pausing import apart
from ..python.purity import BOUND, bound_to, is_pure_class
from ..python.users_code import is_of_a_library, is_users_class, is_users_module
from ..tracing.operators import Recording
from ..tracing.traced import TracedArray
from .opaque import Hidden, is_hidden
from .places import ALL, ArgumentNode, Key, Place
from .restoring import ATOMS, holds_tracer
from .stores import PlaceStore, ShadowFacet
from .substitutes import original_of, substitute

if TYPE_CHECKING:
    from ..tracing.recorder import Recorder

_MOST = 5000  # shadows of one trace
_MISSING = object()
_PLAIN = ATOMS - {types.GenericAlias}
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType)
_CODE = (type, *_FUNCTIONS)
_NAMES = (str, bytes, *_CODE)
# What may be stored as it is at each call.
_CONSTANTS = (str, bytes, type(None), np.dtype, *_CODE)


class Shadows:
    """The shadows of one trace.

    Args:
        rec: the trace.
        slots: traced values that stand in some places, by holder and key.

    Attributes:
        whole: by identity, objects that are stored as they are: containers among the arguments.
        has_hidden: the code has got objects that it must not use.
    """

    def __init__(self, rec: Recorder, slots: dict[Key, Any]) -> None:
        self._rec, self._slots = rec, slots
        self._made: dict[int, tuple[Any, Any]] = {}
        self._originals: dict[int, Any] = {}
        self._own: dict[int, Any] = {}  # objects that the function itself has made
        self._entries: list[ShadowFacet] = []
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
        entry = self._made.get(id(value))
        if entry is not None:
            return entry[1]
        return apart(self._shadow_of, value, name)

    def _shadow_of(self, value: Any, name: str) -> Any:
        kind = type(value)
        if id(value) in self._originals or id(value) in self._own:
            return value
        if len(self._made) >= _MOST:
            raise TraceError("the function reaches more objects than a trace follows")
        make = self._maker(value, kind)
        return value if make is None else make(self, value, name)

    def follows(self, value: Any) -> bool:
        """True of an object that may change, and of which code gets a shadow."""
        kind = type(value)
        if kind in _PLAIN or issubclass(kind, (np.generic, Recording, tuple, frozenset)):
            return False
        of_code = (None, Shadows._code, Shadows._class)
        return id(value) not in self._own and self._maker(value, kind) not in of_code

    def has(self, value: Any) -> bool:
        """True of an object that the code has got a shadow of."""
        return id(value) in self._made

    def leave(self, value: Any) -> None:
        """Have an object that the function itself has made stand for itself."""
        self._own[id(value)] = value

    @property
    def count(self) -> int:
        """The number of shadows of objects that may change."""
        return len(self._entries)

    def made(self) -> Iterator[tuple[Any, str]]:
        """The shadows of objects that may change, with their names."""
        return ((entry.shadow, entry.name) for entry in self._entries)

    def changed_since(self, count: int) -> str | None:
        """The name of a shadow made after the first ``count`` that the code has written to."""
        return next((e.name for e in self._entries[count:] if not e.is_as_made), None)

    def substituted(self) -> Iterator[Any]:
        """The functions and modules of packages in whose place objects hold something else."""
        for value, shadow in self._made.values():
            is_module = isinstance(value, types.ModuleType) and not is_users_module(value)
            if shadow is not value and (is_module or isinstance(value, _FUNCTIONS)):
                yield value

    def is_read_elsewhere(self) -> bool:
        """True if an object that has no shadow holds one whose shadow the code has written to."""
        changed = {id(entry.original) for entry in self._entries if not entry.is_as_made}
        changed |= self._rec.captures.written()
        if not changed or not self._others:
            return False
        todo, seen = [*self._others.values()], set[int]()
        while todo and len(seen) < _MOST:
            value = todo.pop()
            if id(value) in seen or type(value) in _PLAIN:
                continue
            seen.add(id(value))
            todo += parts_of(value)
        return len(seen) >= _MOST or not changed.isdisjoint(seen)

    def _maker(self, value: Any, kind: type) -> Callable[[Shadows, Any, str], Any] | None:
        make = _MAKERS.get(kind)
        if make is not None:
            return make
        if issubclass(kind, type):
            return Shadows._class
        if issubclass(kind, np.ndarray):
            return Shadows._array
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):
            return Shadows._tuple
        if is_foreign(value) and memory_of(value) is not None:
            return Shadows._tensor
        if kind in BOUND:
            return Shadows._code if bound_to(value) is None else Shadows._bound
        if kind is types.ModuleType:
            return Shadows._filled if is_users_module(value) else Shadows._code
        if is_users_class(kind) and _is_state(value, kind):
            return Shadows._filled
        if is_hidden(value, kind):
            return Shadows._hidden
        if is_of_a_library(value, kind):
            self._others[id(value)] = value
        return None

    def stands_for(self, shadow: Any, value: Any) -> None:
        """Have a shadow that is made elsewhere be known as that of an object."""
        self._originals[id(shadow)] = value

    def original(self, value: Any) -> Any:
        """The object whose shadow this is, or the value itself."""
        original = self._originals.get(id(value), _MISSING)
        return original_of(value) if original is _MISSING else original

    def _enter(self, value: Any, shadow: Any) -> Any:
        self._made[id(value)] = value, shadow
        if shadow is not value:
            self._originals[id(shadow)] = value
            self._rec.journal.skip(shadow)
        return shadow

    # --- kinds of objects -----------------------------------------------------------------------

    def _array(self, value: np.ndarray, name: str) -> Any:
        try:
            check_array(value, "")
        except ProfuseError:
            return value
        if id(value) in self._rec.captures.created:
            return value  # the function itself has made it, by code that is not traced
        captured, owner = self._rec.captures.take(value), f"the array {name}"
        return self._enter(value, TracedArray(self._rec, captured, owner, is_input=True))

    def _tensor(self, value: Any, name: str) -> Any:
        captured, owner = self._rec.captures.take(value, memory_of(value)), f"the tensor {name}"
        return self._enter(value, TracedArray(self._rec, captured, owner, is_input=True))

    def _filled(self, value: Any, name: str) -> Any:
        """A shadow whose facets are filled with shadows of what is there."""
        shadow = self._enter(value, _empty(value))
        for facet in facets_of(type(value)):
            _FILL[facet.kind](self, value, shadow, name)
            self._entries.append(ShadowFacet(value, shadow, facet, name))
        return shadow

    def _frozenset(self, value: frozenset, name: str) -> Any:
        items = [self.of(x, name) for x in value]
        if all(a is b for a, b in zip(items, value, strict=True)):
            return value
        return self._enter(value, frozenset(items))

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
        if type(holder) is Hidden:
            return self._hidden(value, name)
        return self._enter(value, getattr(holder, value.__name__))

    def _code(self, value: Any, name: str) -> Any:
        """The object that the code gets where it reads a function, or a module of a package, by name."""
        is_function = type(value) is types.FunctionType
        stand_in = self._rec.scope.reached(value, name) if is_function else substitute(value)
        return value if stand_in is value else self._enter(value, stand_in)

    def _class(self, value: type, name: str) -> Any:
        stand_in = substitute(value)
        if stand_in is not value:
            return self._enter(value, stand_in)
        return value if is_pure_class(value) else self._hidden(value, name)

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

    def _proxy(self, value: types.MappingProxyType, name: str) -> Any:
        (mapping,) = FIXED.parts(value)
        holder = self.of(mapping, name)
        if holder is mapping:
            return value
        return (
            self._hidden(value, name) if type(holder) is Hidden else self._enter(value, types.MappingProxyType(holder))
        )

    # --- what a facet holds ---------------------------------------------------------------------

    def _fill_list(self, value: Any, shadow: Any, name: str) -> None:
        for k, item in enumerate(tuple(value)):
            shadow.append(self._in(LIST, value, k, item, f"{name}[{k}]"))

    def _fill_dict(self, value: dict, shadow: dict, name: str) -> None:
        for key, item in tuple(value.items()):
            label = name + TABLE.label(key)
            shadow[self.of(key, name)] = self._in(TABLE, value, key, item, label)

    def _fill_set(self, value: set, shadow: set, name: str) -> None:
        shadow.update(self.of(x, name) for x in tuple(value))

    def _fill_named(self, value: Any, shadow: Any, name: str, facet: Facet) -> None:
        for key, item in facet.keyed(facet.copy(value)).items():
            facet.put(shadow, key, self._in(facet, value, key, item, name + facet.label(key)))

    def _in(self, facet: Facet, holder: Any, key: Any, value: Any, name: str) -> Any:
        """The shadow of what an object holds somewhere."""
        if not self._slots:  # as in most traces, which fill many
            return self.of(value, name)
        slot = self._slots.get(Place(facet, holder, key, name).id, _MISSING)
        return self.of(value, name) if slot is _MISSING else slot

    # --- effects --------------------------------------------------------------------------------

    def stores(self) -> list[PlaceStore]:
        """The values that the code has written to shadows.

        Raises TraceError for what no graph can repeat at each call: attributes and items that are
        deleted, containers of another length, new objects other than containers of arrays.
        """
        return self.stores_of(self._entries)

    def stores_of(self, entries: Iterable[ShadowFacet]) -> list[PlaceStore]:
        """The same of these; containers among the arguments may have any length."""
        return [store for entry in entries for store in self._stores_of(entry)]

    def _stores_of(self, entry: ShadowFacet) -> Iterator[PlaceStore]:
        if entry.is_as_made:
            return
        facet, now, before = entry.facet, entry.found(), entry.held
        if facet is not LIST and any(self._is_new_key(key) for key in now if key not in before):
            raise unrepeatable(entry.name)
        is_kept = before.keys() <= now.keys() and entry.keeps_order(now)
        if facet is LIST:
            is_kept = len(now) == len(before)
        if is_kept and facet is not MEMBERS and type(entry.shadow) is not deque:
            for key, value in now.items():
                if key not in before or value is not before[key]:
                    at = self._key(key)
                    place = Place(facet, entry.original, at, entry.name + facet.label(at))
                    yield self._store(place, value, key not in before)
        elif facet.step == "item" and type(entry.original) is ArgumentNode:
            items = {self._key(key): x for key, x in now.items()}
            whole = [*items.values()] if facet is LIST else items
            yield self._store(Place(facet, entry.original, ALL, entry.name), whole, False)
        else:
            raise unrepeatable(entry.name)

    def _is_new_key(self, key: Any) -> bool:
        """True for an object that the code has made, and of one with traced values: it is another key at each call."""
        key = self._key(key)
        return holds_tracer(key) or (self._rec.journal.is_new(key) and not self.has(key))

    def _key(self, key: Any) -> Any:
        """A key as calls have it: the object itself in the place of its shadow."""
        if type(key) in (tuple, frozenset):
            return type(key)(map(self._key, key))
        return self.original(plain_key(key))

    def _store(self, place: Place, value: Any, is_new: bool) -> PlaceStore:
        """That the function assigns a value; raises TraceError for what no graph can make anew."""
        original = self.original(value)
        if original is not value or id(value) in self._originals:
            return PlaceStore(place, None, is_new, kept=original)
        if type(place.holder) is not ArgumentNode and not is_new and is_foreign(place.find()):
            raise TraceError(
                f"the function assigns {place.name}, which holds a tensor of another library",
                hint="return what is new in place of storing it there",
            )
        try:
            leaves, tree = flatten(value, self.whole)
        except ProfuseError:
            raise unrepeatable(place.name) from None
        tree = tree.with_statics(self.original)
        for static in tree.statics():
            if not isinstance(static, _CONSTANTS) or holds_tracer(static):
                raise unrepeatable(place.name)
        if any(id(leaf) in self._originals for leaf in leaves):
            raise unrepeatable(place.name)
        return PlaceStore(place, tree, is_new, tuple(leaves))


def _is_state(value: Any, kind: type) -> bool:
    """False for objects whose shadow would do harm: of code of their own, of another identity.

    Those that hold names alone are often told apart by ``is``, from what a class holds.
    """
    if issubclass(kind, dict) or not has_plain_state(kind):
        return False
    return not all(isinstance(x, _NAMES) for x in state_of(value).values())


def _empty(value: Any) -> Any:
    """An object of the same class without what an object holds."""
    kind: Any = type(value)
    if kind is types.ModuleType:
        return types.ModuleType(value.__name__)
    if kind is deque:
        return deque(maxlen=value.maxlen)
    return kind.__new__(kind)


def _whole(shadows: Shadows, value: Any, shadow: Any, name: str) -> None:
    """A shadow with such a facet is made in one, as it cannot be filled."""


def unrepeatable(name: str) -> TraceError:
    """The error for effects that calls cannot have by a graph; ``name``: what is changed."""
    return TraceError(f"{name} is changed by the function in a way that no graph repeats")


_MAKERS: dict[type, Callable[[Shadows, Any, str], Any]] = {
    **dict.fromkeys((list, deque, dict, OrderedDict, defaultdict, set), Shadows._filled),
    frozenset: Shadows._frozenset,
    tuple: Shadows._tuple,
    types.MethodType: Shadows._method,
    functools.partial: Shadows._partial,
    types.MappingProxyType: Shadows._proxy,
    types.FunctionType: Shadows._code,
}
_FILL: dict[str, Callable[[Shadows, Any, Any, str], None]] = table(
    {
        "list": Shadows._fill_list,
        "dict": Shadows._fill_dict,
        "set": Shadows._fill_set,
        **{f.kind: functools.partial(Shadows._fill_named, facet=f) for f in (*STATE, FIELDS)},
        "fixed": _whole,
        "contents": _whole,
        "class": _whole,
    }
)
