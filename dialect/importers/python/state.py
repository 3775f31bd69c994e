"""What a trace has read of objects that outlive the call, and whether that is still so.

A graph holds the values that globals, closure cells, attributes and items had when it was traced.
Each of them becomes a `StateRead`, which calls compare with what is there now. Globals and cells
are those that the code has read. Of the objects behind them those attributes count that the code
names, in whatever way it gets there: by a name, or by a text for `getattr`.
A name too many costs a comparison; a dynamic name (``getattr(self, f"w{k}")``) whose parts are no
attributes is not seen.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dataclass import dataclass
from ...errors import TraceError
from .contents import Contents, may_change
from .instances import slots_of
from .journal import is_of_a_library, is_of_c, is_users_class
from .users_code import is_users_module

if TYPE_CHECKING:
    from .scope import Scope

MOST_READS = 4096  # of one trace
_MISSING = object()
_NUMBERS = (bool, int, float, complex)
_FOLLOWED = (
    int, float, complex, str, bytes, list, tuple, dict, set, frozenset, deque, type,
    types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, np.ufunc,
    np.dtype, functools.partial,
)  # fmt: skip
_PLAIN = (*_NUMBERS, str, bytes)
_OPEN = (types.FunctionType, types.BuiltinFunctionType, np.ufunc, np.ndarray, np.generic)
# What a module or class holds under a name for ever, unless somebody patches it.
_FIXED = (
    types.BuiltinFunctionType, np.ufunc, types.GetSetDescriptorType, types.MemberDescriptorType,
    types.WrapperDescriptorType, types.MethodDescriptorType, property, classmethod, staticmethod,
    functools.cached_property,
)  # fmt: skip


@dataclass(eq=False, slots=True)
class StateRead:
    """One value that a trace has read from outside of the call.

    Attributes:
        step: how it is found: ``"global"`` and ``"item"`` look ``key`` up in a dict or list,
            ``"attribute"`` in an object, ``"own attribute"`` there and not in its class,
            ``"method"`` looks for the function of a method there, ``"cell"`` reads a cell,
            ``"size"`` takes the length of a container, ``"members"`` is all that a set holds,
            ``"contents"`` is what an array holds.
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
        return self.value is _MISSING

    def holds(self) -> bool:
        """True if the same object is found now, or an equal number or text."""
        if self.step == "contents":
            return self.value.fits(self.holder)
        found = _FIND[self.step](self.holder, self.key)
        return found is self.value or _equal(found, self.value)


@dataclass(eq=False, slots=True)
class Place:
    """An attribute or item of an object from outside, which calls read and write.

    Attributes:
        step: ``"attribute"``, ``"item"``, or ``"all"`` that a list or dict holds.
        holder: the object, dict or list; None = it is an argument.
        key: name, key or index there.
        name: what the user calls it.
    """

    step: str
    holder: Any
    key: Any
    name: str
    kind: type | None = None  # of the holder, when it was last looked at
    slot: bool = False  # whether that keeps the attribute in a slot

    def find(self) -> Any:
        """What is there now; None if nothing is."""
        found = self._found()
        return None if found is _MISSING else found

    def absence(self) -> StateRead:
        """That nothing is there, as a read of it."""
        step = "item" if self.step == "item" else "own attribute"
        return StateRead(step, self.holder, self.key, _MISSING, self.name)

    def _found(self) -> Any:
        return (_item if self.step == "item" else _own)(self.holder, self.key)

    def put(self, holder: Any, value: Any) -> None:
        """Store a value there, past what the class does on assignment: that is in the value."""
        if self.step == "item":
            holder[self.key] = value
        elif self.step == "all":
            holder.clear()
            (holder.extend if isinstance(holder, list) else holder.update)(value)
        elif hasattr(holder, "__dict__") and not self._in_slot(holder):
            holder.__dict__[self.key] = value
        else:
            object.__setattr__(holder, self.key, value)

    def _in_slot(self, holder: Any) -> bool:
        kind = type(holder)
        if self.kind is not kind:
            self.kind, self.slot = kind, _is_slot(kind, self.key)
        return self.slot


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
    return kind in _PLAIN and found == value


_FIND: dict[str, Any] = {
    "global": lambda holder, key: holder.get(key, _MISSING),
    "cell": lambda holder, key: _contents(holder),
    "attribute": lambda holder, key: getattr(holder, key, _MISSING),
    "method": lambda holder, key: getattr(getattr(holder, key, None), "__func__", _MISSING),
    "item": lambda holder, key: _item(holder, key),
    "size": lambda holder, key: len(holder),
    "members": lambda holder, key: frozenset(holder),
    "own attribute": lambda holder, key: _own(holder, key),
}


def _own(holder: Any, key: str) -> Any:
    """What an object itself holds, whatever its class would compute."""
    attributes = getattr(holder, "__dict__", {})
    if key in attributes:
        return attributes[key]
    return getattr(holder, key, _MISSING) if _is_slot(type(holder), key) else _MISSING


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


def _item(holder: Any, key: Any) -> Any:
    try:
        return holder[key]
    except LookupError:
        return _MISSING


def state_reads(
    scope: Scope, reached: Iterable[tuple[Any, str]], is_plain: Callable[[np.ndarray], bool]
) -> list[StateRead]:
    """What the traced code has read of what was there before the call, each place once.

    Args:
        scope: of the trace, which has ended.
        reached: objects that it got without reading a name: itself, and arguments that are no
            leaves, each with its name.
        is_plain: whether the code got an array itself, and may have computed of its contents.

    Raises TraceError where that is more than calls can compare.
    """
    roots = [*reached, *scope.functions_seen()]
    names, asked = set(_names(scope.codes)), set(_texts(scope.codes))
    while True:
        walk = _Walk(names | asked, asked, is_plain)
        for step, holder, key, value, name in scope.read():
            walk.note(step, holder, key, value, name)
        for value, name in roots:
            walk.descend(value, name)
        codes = list(walk.run())
        further, texts = set(_names(codes)) - names, set(_texts(codes)) - asked
        if not further and not texts:
            return walk.reads
        names, asked = names | further, asked | texts


def named(scope: Scope) -> set[str]:
    """All names and texts in the code that a trace has run."""
    return {*_names(scope.codes), *_texts(scope.codes)}


def _names(codes: Iterable[types.CodeType]) -> Iterator[str]:
    """All names in code and the code inside of it."""
    return (name for code in _nested(codes) for name in code.co_names)


def _texts(codes: Iterable[types.CodeType]) -> Iterator[str]:
    """All texts in such code, with which it may ask for attributes."""
    for code in _nested(codes):
        for constant in code.co_consts:
            parts = constant if isinstance(constant, tuple) else (constant,)
            yield from (part for part in parts if isinstance(part, str))


def _nested(codes: Iterable[types.CodeType]) -> Iterator[types.CodeType]:
    todo = list(codes)
    while todo:
        code = todo.pop()
        yield code
        todo += [c for c in code.co_consts if isinstance(c, types.CodeType)]


def _can_be_followed(value: Any) -> bool:
    """False for objects of packages whose state nobody sees."""
    kind = type(value)
    return (
        not _may_change(value) or is_users_class(kind) or is_of_a_library(value, kind)
        or issubclass(kind, (*_FOLLOWED, np.ndarray, np.generic))
    )  # fmt: skip


class _Walk:
    """Follows what the code names through the objects that it reads."""

    def __init__(
        self, names: set[str], asked: set[str], is_plain: Callable[[np.ndarray], bool]
    ) -> None:
        self.reads: list[StateRead] = []
        self._names, self._asked, self._is_plain = names, asked, is_plain
        self._seen: dict[int, Any] = {}
        self._classes: dict[type, None] = {}

    def read(self, step: str, holder: Any, key: Any, name: str) -> None:
        """Note what is found somewhere now, and what the code names of it."""
        value = _FIND[step](holder, key)
        if step == "attribute" and type(value) is types.MethodType:
            step, value = "method", value.__func__
        if value is not _MISSING and StateRead(step, holder, key, value, name).holds():
            self.note(step, holder, key, value, name)  # else a descriptor makes it anew each time

    def note(self, step: str, holder: Any, key: Any, value: Any, name: str) -> None:
        """Note a read, and what the code names of the value."""
        if not _may_change(value):
            if value is os:
                self._check_hidden(value, type(value), name)
            return
        if len(self.reads) >= MOST_READS:
            raise TraceError(
                f"the function reads more than {MOST_READS} values that are there before the call, "
                f"{name} among them: comparing them would take longer than the call",
                hint="pass them as arguments",
            )
        self.reads.append(StateRead(step, holder, key, value, name))
        self.descend(value, name)

    def descend(self, value: Any, name: str) -> None:
        """Note what the code names of an object."""
        kind = type(value)
        if kind in _PLAIN or value is None or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if issubclass(kind, np.ndarray):
            if may_change(value) and self._is_plain(value):
                self.reads.append(StateRead("contents", value, None, Contents(value), name))
        elif kind is tuple or (issubclass(kind, tuple) and hasattr(kind, "_fields")):
            for item in value:
                self.descend(item, name)
        elif issubclass(kind, (list, deque)):
            self.read("size", value, None, f"len({name})")
            for k in range(len(value)):
                self.read("item", value, k, f"{name}[{k}]")
        elif issubclass(kind, dict):
            self.read("size", value, None, f"len({name})")
            for key in tuple(value):
                self.read("item", value, key, f"{name}[{key!r:.40}]")
        elif issubclass(kind, set):
            self.read("members", value, None, name)
        elif kind is types.MethodType:
            self.descend(value.__self__, name)
        elif kind is functools.partial:
            for part in (value.func, *value.args, *value.keywords.values()):
                self.descend(part, name)
        elif isinstance(value, types.ModuleType):
            if is_users_module(value):
                self._attributes(value, vars(value), name)
        elif isinstance(value, type):
            self._class(value)
        elif is_users_class(kind) and not is_of_c(kind):
            held = {**dict(slots_of(value, kind)), **getattr(value, "__dict__", {})}
            self._attributes(value, held, name)
            self._class(kind)
            # The object may be given attributes that hide those of its class.
            for key, inherited in sorted(self._of_class(kind).items()):
                if key in self._names and key not in held and not key.startswith("__"):
                    step = "method" if type(inherited) is types.FunctionType else "attribute"
                    self.read(step, value, key, f"{name}.{key}")
            if self._names & {"getattr", "hasattr"}:
                self._absent(value, name)
        elif is_of_a_library(value, kind):
            self._attributes(value, vars(value), name)
            self._check_computed(value, kind, name)
            self._check_hidden(value, kind, name)
        else:
            self._check_hidden(value, kind, name)

    def _check_hidden(self, value: Any, kind: type, name: str) -> None:
        """Raise TraceError where the code may read state that its object alone tells."""
        if issubclass(kind, _OPEN) and value is not os.getenv:
            return
        from .hidden_state import hidden_state  # most functions read nothing of the kind

        found = hidden_state(value, kind, self._names)
        if found is not None:
            raise TraceError(
                f"the function may read {found} of {name}, a {kind.__name__}, which may change "
                "from call to call, unseen",
                hint="read it outside of the function and pass it as an argument",
            )

    def _check_computed(self, value: Any, kind: type, name: str) -> None:
        """Raise TraceError where the code may read what a package computes of an object's state."""
        if kind.__module__.partition(".")[0] in sys.stdlib_module_names:
            return
        held = vars(value)
        for key in sorted(self._names):
            computed = key not in held and isinstance(getattr(kind, key, None), property)
            if computed or (key in held and not _can_be_followed(held[key])):
                raise TraceError(
                    f"the function may read {name}.{key}, which {kind.__module__} computes of an "
                    "object that may change",
                    hint="read it outside of the function and pass it as an argument",
                )

    def _attributes(self, holder: Any, held: Iterable[str], name: str) -> None:
        for key in sorted(self._names & set(held)):
            if not (key.startswith("__") and key.endswith("__")):
                self.read("attribute", holder, key, f"{name}.{key}")

    def _class(self, kind: type) -> None:
        for cls in kind.__mro__:
            if cls not in self._classes and is_users_class(cls):
                self._classes[cls] = None
                self._attributes(cls, vars(cls), cls.__name__)

    @staticmethod
    def _of_class(kind: type) -> dict[str, Any]:
        """What objects of a class have from it, other than descriptors."""
        return {
            key: value
            for cls in reversed(kind.__mro__)
            if is_users_class(cls)
            for key, value in vars(cls).items()
            if not isinstance(value, _FIXED)
        }

    def _absent(self, holder: Any, name: str) -> None:
        """Note attributes that the code may have asked for, and that there are none."""
        for key in sorted(self._asked):
            if key.isidentifier() and inspect.getattr_static(holder, key, _MISSING) is _MISSING:
                read = StateRead("attribute", holder, key, _MISSING, f"{name}.{key}")
                self.reads.append(read)

    def run(self) -> Iterator[types.CodeType]:
        """Code of operators and properties of the classes met, which no scope sees run."""
        for cls in self._classes:
            for name, value in vars(cls).items():
                found = value.fget if isinstance(value, property) else value
                found = getattr(found, "func", found)  # of a cached_property
                is_operator = name.startswith("__") and name not in ("__init__", "__new__")
                if isinstance(found, types.FunctionType) and (
                    is_operator or not isinstance(value, types.FunctionType)
                ):
                    yield found.__code__


def _may_change(value: Any) -> bool:
    """False for what nobody binds anew: modules and functions of libraries, descriptors."""
    if isinstance(value, types.ModuleType):
        return is_users_module(value)
    if isinstance(value, types.FunctionType):
        return (value.__module__ or "").partition(".")[0] != "numpy"
    if isinstance(value, type):
        return is_users_class(value)
    return not isinstance(value, _FIXED)


__all__ = ["Place", "StateRead", "named", "state_reads"]
