"""What a trace has read of objects that outlive the call, and whether that is still so.

A graph holds the values that globals, closure cells, attributes and items had when it was traced.
Each of them becomes a `StateRead`, which calls compare with what is there now. Globals and cells
are those that the code has read. Of the objects behind them those attributes count that the code
names, in whatever way it gets there: by a name, or by a text for `getattr`.
A name too many costs a comparison; a dynamic name (``getattr(self, f"w{k}")``) whose parts are no
attributes is not seen.
"""

from __future__ import annotations

import dis
import functools
import inspect
import itertools
import os
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import TraceError
from .instances import slots_of
from .journal import is_of_a_library, is_of_c, is_users_class, may_change
from .places import FIND, MISSING, PLAIN, StateRead
from .users_code import is_users_module

if TYPE_CHECKING:
    from .scope import Scope

MOST_READS = 4096  # of one trace
_FOLLOWED = (
    int, float, complex, str, bytes, list, tuple, dict, set, frozenset, deque, type,
    types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, np.ufunc,
    np.dtype, functools.partial,
)  # fmt: skip
_DATA = (*PLAIN, list, dict, set, deque, np.ndarray)
# What gives attributes by names that are no names or texts of the code.
_BY_NAME = frozenset({"__dict__", "__getattribute__", "__getattr__", "__slots__"})
_LISTS = frozenset({"asdict", "astuple", "attrgetter", "dir", "fields", "getmembers", "vars"})
_MODULES = frozenset({"dataclasses", "inspect", "operator"})  # of these functions
_TEXTS = frozenset({"__repr__", "__str__", "__format__"})
_WRITES = (
    frozenset({"ascii", "format", "print", "repr", "str"}),
    frozenset({"CONVERT_VALUE", "FORMAT_SIMPLE", "FORMAT_VALUE", "FORMAT_WITH_SPEC"}),
)
_COMPARISONS = frozenset({"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"})
_COMPARES = (
    frozenset({
        "count", "eq", "ge", "gt", "index", "le", "lt", "max", "min", "ne", "remove", "sort",
        "sorted",
    }),
    frozenset({"COMPARE_OP", "CONTAINS_OP", "MATCH_CLASS"}),
)  # fmt: skip
_REPLACES = frozenset({"__replace__", "replace"}), frozenset[str]()  # of dataclasses, since 3.13
_CALLS = ("PRECALL", "CALL", "CALL_FUNCTION", "CALL_FUNCTION_KW", "CALL_FUNCTION_EX", "CALL_KW")
_CONSTANT = frozenset({"cmath", "math", "numpy", "profuse"})  # modules that nobody changes
_OPEN = (types.FunctionType, types.BuiltinFunctionType, np.ufunc, np.ndarray, np.generic)
# What a module or class holds under a name for ever, unless somebody patches it.
_FIXED = (
    types.BuiltinFunctionType, np.ufunc, types.GetSetDescriptorType, types.MemberDescriptorType,
    types.WrapperDescriptorType, types.MethodDescriptorType, property, classmethod, staticmethod,
    functools.cached_property,
)  # fmt: skip


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
    seen = list(_nested(scope.codes))
    names, asked = set(_names(seen)), set(_texts(seen))
    while True:
        walk = _Walk(names | asked, asked, is_plain, makes_names=any(map(_makes_names, seen)))
        for step, holder, key, value, name in scope.read():
            walk.note(step, holder, key, value, name)
        for value, name in roots:
            walk.descend(value, name)
        seen = list(_nested(walk.run(seen)))
        further, texts = set(_names(seen)) - names, set(_texts(seen)) - asked
        if not further and not texts:
            return walk.reads
        seen += _nested(scope.codes)
        names, asked = names | further, asked | texts


def named(scope: Scope) -> set[str]:
    """All names and texts in the code that a trace has run."""
    codes = list(_nested(scope.codes))
    return {*_names(codes), *_texts(codes)}


def _names(codes: Iterable[types.CodeType]) -> Iterator[str]:
    """All names in code."""
    return (name for code in codes for name in code.co_names)


def _texts(codes: Iterable[types.CodeType]) -> Iterator[str]:
    """All texts in code, with which it may ask for attributes."""
    for code in codes:
        for constant in code.co_consts:
            parts = constant if isinstance(constant, tuple) else (constant,)
            yield from (part for part in parts if isinstance(part, str))


def _makes_names(code: types.CodeType) -> bool:
    """True of code that may ask for attributes by names that it makes up."""
    names = {*code.co_names}
    if names & _BY_NAME:
        return True
    if not names & _LISTS and "getattr" not in names:
        return False
    steps = list(dis.get_instructions(code))
    for k, step in enumerate(steps):
        if step.argval in _LISTS and (step.opname == "LOAD_GLOBAL" or names & _MODULES):
            return True
        if step.argval == "getattr" and step.opname.startswith("LOAD_"):
            given = list(itertools.takewhile(lambda s: s.opname not in _CALLS, steps[k + 1 :]))
            loads = all(s.opname.startswith(("LOAD_", "PUSH_", "CACHE", "COPY")) for s in given)
            if not loads or not any(type(s.argval) is str and "CONST" in s.opname for s in given):
                return True
    return False


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
        self, names: set[str], asked: set[str], is_plain: Callable[[np.ndarray], bool], *,
        makes_names: bool,
    ) -> None:  # fmt: skip
        self.reads: list[StateRead] = []
        self._names, self._asked, self._is_plain = names, asked, is_plain
        self._all = makes_names
        self._seen: dict[int, Any] = {}
        self._classes: dict[type, None] = {}

    def read(self, step: str, holder: Any, key: Any, name: str) -> None:
        """Note what is found somewhere now, and what the code names of it."""
        value = FIND[step](holder, key)
        if step == "attribute" and type(value) is types.MethodType:
            step, value = "method", value.__func__
        if value is not MISSING and StateRead(step, holder, key, value, name).holds():
            self.note(step, holder, key, value, name)  # else a descriptor makes it anew each time

    def note(self, step: str, holder: Any, key: Any, value: Any, name: str) -> None:
        """Note a read, and what the code names of the value."""
        if not _may_change(value):
            if value is os:
                self._check_hidden(value, type(value), name)
            elif isinstance(value, types.ModuleType):
                self._settings(value, name)
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
        if kind in PLAIN or value is None or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if issubclass(kind, np.ndarray):
            if may_change(value) and self._is_plain(value):
                from .contents import Contents  # few functions need any

                self.reads.append(StateRead("contents", value, None, Contents(value), name))
        elif kind is tuple or (issubclass(kind, tuple) and hasattr(kind, "_fields")):
            for item in value:
                self.descend(item, name)
        elif issubclass(kind, (list, deque)):
            self.read("size", value, None, f"len({name})")
            for k in range(len(value)):
                self.read("item", value, k, f"{name}[{k}]")
        elif issubclass(kind, dict):
            self.read("keys", value, None, f"the keys of {name}")
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
            if self._all and hasattr(value, "__dict__"):
                self.read("keys", vars(value), None, f"the attributes of {name}")
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
        every = self._all and not isinstance(holder, types.ModuleType)
        for key in sorted(set(held) if every else self._names & set(held)):
            if not (key.startswith("__") and key.endswith("__")):
                self.read("attribute", holder, key, f"{name}.{key}")

    def _settings(self, module: types.ModuleType, name: str) -> None:
        """Note numbers, texts and containers of a package's module, which others may change."""
        if module.__name__.partition(".")[0] in _CONSTANT:
            return
        held = vars(module)
        for key in sorted(self._names & held.keys()):
            is_data = isinstance(held[key], _DATA) and held[key] is not sys.modules
            if is_data and not key.startswith("__"):
                self.read("attribute", module, key, f"{name}.{key}")

    def _class(self, kind: type) -> None:
        if type(kind) is not type and is_users_class(type(kind)):
            self._class(type(kind))  # its properties are those of the class
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
            if key.isidentifier() and inspect.getattr_static(holder, key, MISSING) is MISSING:
                read = StateRead("attribute", holder, key, MISSING, f"{name}.{key}")
                self.reads.append(read)

    def run(self, codes: Sequence[types.CodeType]) -> Iterator[types.CodeType]:
        """Code of operators and properties of the classes met, which no scope sees run.

        Args:
            codes: all other code: what asks for no text, compares and replaces nothing needs no
                operators for that, which those of a dataclass are: they name all fields.
        """
        compares, writes = _uses(codes, _COMPARES), _uses(codes, _WRITES)
        replaces = _uses(codes, _REPLACES)
        for cls in self._classes:
            for name, value in vars(cls).items():
                if (name in _TEXTS and not writes) or (name == "__replace__" and not replaces):
                    continue
                if name in _COMPARISONS and not compares and cls.__hash__ is None:
                    continue
                found = value.fget if isinstance(value, property) else value
                found = getattr(found, "func", found)  # of a cached_property
                is_operator = name.startswith("__") and name not in ("__init__", "__new__")
                if isinstance(found, types.FunctionType) and (
                    is_operator or not isinstance(value, types.FunctionType)
                ):
                    yield found.__code__


def _uses(codes: Iterable[types.CodeType], asking: tuple[frozenset[str], frozenset[str]]) -> bool:
    """True if any code has one of these names or operations."""
    names, operations = asking
    numbers = {dis.opmap[name] for name in operations & dis.opmap.keys()}
    return any(
        not names.isdisjoint(code.co_names) or not numbers.isdisjoint(code.co_code[::2])
        for code in codes
    )


def _may_change(value: Any) -> bool:
    """False for what nobody binds anew: modules and functions of libraries, descriptors."""
    if isinstance(value, types.ModuleType):
        return is_users_module(value)
    if isinstance(value, types.FunctionType):
        return (value.__module__ or "").partition(".")[0] != "numpy"
    if isinstance(value, type):
        return is_users_class(value)
    return not isinstance(value, _FIXED)


__all__ = ["named", "state_reads"]
