"""The journal of a trace: it finds and undoes changes that traced code makes outside of the call.

A trace runs the user's code once; later calls run the graph. So whatever the code does to objects
that were there before the call would happen once and never again. The journal notes what such
objects hold when the function first reads them, shallowly and by identity, and compares when the
trace has ended, well or not. Objects that the function itself makes are never in it: they may
change.
"""

from __future__ import annotations

import dis
import operator
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from ....dataclass import dataclass
from ..python.generators import is_generator, locked
from ..python.instances import ABSENT, HEAP_TYPE, dict_type, holds_attributes, slots_of
from ..python.purity import BOUND, bound_to
from ..python.users_code import is_users_file, is_users_module, is_users_name
from ..tracing.operators import Recording
from ..tracing.recorder import checksum

_OBJECTS = 20_000  # objects that are watched
_ITEMS = 4_000_000  # items of containers that are compared
_BYTES = 1 << 26  # of arrays that are kept as copies; further arrays are compared by checksum
ATOMS = frozenset({
    bool, int, float, complex, str, bytes, type(None), type(Ellipsis), slice, range, np.dtype,
    np.ufunc, types.FunctionType, types.CodeType, types.GenericAlias,
})  # fmt: skip
_MUTABLE = (list, dict, set, np.ndarray)


@dataclass(eq=False)
class _Watch:
    """One object, what it held, and what the user calls it."""

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
        self._watches: list[_Watch] = []
        self._seen: dict[int, Any] = {}
        self._ours: set[int] = set()
        self._locks: list[Any] = []  # of generators: no other thread draws during the trace
        self._items = self._bytes = 0
        self.meets_hidden: Callable[[Any, str], None] | None = None  # called for objects of C
        self.is_undone = True  # False once something had changed that could not be restored
        self.codes: Sequence[types.CodeType] = ()  # what the trace has run of the user's

    def is_outer(self, value: Any) -> bool:
        """True for an object that was there before the call, as far as it has been reached."""
        return id(value) in self._seen

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

    def watch_attributes(self, target: Any, name: str) -> None:
        """Note what an object's attributes are."""
        held = getattr(target, "__dict__", None)
        if held and id(held) not in self._seen:
            self._note("attributes", target, dict(held), name)
            self._seen[id(held)] = held

    def watch(self, value: Any, name: str) -> None:
        """Note what an object holds, and what the objects in it hold."""
        if type(value) in self.atoms:
            return
        todo = [(value, name)]
        while todo and len(self._seen) < _OBJECTS and self._items < _ITEMS:
            value, name = todo.pop()
            kind = type(value)
            if kind in self.atoms or id(value) in self._seen:
                continue
            if issubclass(kind, (np.generic, Recording)):
                continue
            self._seen[id(value)] = value
            todo += self._enter(value, kind, name)

    def _enter(self, value: Any, kind: type, name: str) -> list[tuple[Any, str]]:
        """Note one object and return its parts; ``kind`` is its real type, even of a tracer."""
        if issubclass(kind, np.ndarray):
            self._array(value, name)
            return []
        if issubclass(kind, (list, deque)):
            return self._container("list", value, list(value), value, name)
        if issubclass(kind, dict):
            return self._container("dict", value, dict(value), value.values(), name)
        if issubclass(kind, (set, bytearray)):
            return self._container("set", value, kind(value), (), name)
        if issubclass(kind, (tuple, frozenset)):
            return [(item, name) for item in value]
        if is_generator(value):
            lock = locked(value)
            if lock is not None:
                self._locks.append(lock)
            self._note("generator", value, _state(value), name)
            return []
        if issubclass(kind, type):
            if _is_users(value):
                self._note("class", value, dict(vars(value)), value.__name__)
                return [
                    (v, f"{value.__name__}.{k}")
                    for k, v in vars(value).items()
                    if not k.startswith("__") and issubclass(type(v), _MUTABLE)
                ]
            return []
        if issubclass(kind, types.ModuleType):
            if is_users_module(value):
                self._note("attributes", value, dict(vars(value)), name)
            return []
        if issubclass(kind, types.MethodType):
            return [(value.__self__, name)]
        if kind in BOUND:
            owner = bound_to(value)
            return [] if owner is None else [(owner, name)]
        if issubclass(kind, partial):
            return [(part, name) for part in (value.func, *value.args, *value.keywords.values())]
        if not is_users_class(kind):
            if not is_of_a_library(value, kind):
                if self.meets_hidden is not None:
                    self.meets_hidden(value, name)
                return []
            held = dict(vars(value))
            self._note("library", value, (held, self), name)
            return [(v, f"{name}.{k}") for k, v in held.items() if type(v) is np.ndarray]
        parts: list[tuple[Any, str]] = [(kind, kind.__name__)]
        attributes = getattr(value, "__dict__", None)
        if attributes is not None:
            self._note("attributes", value, dict(attributes), name)
            self._seen[id(attributes)] = attributes
            parts += [(v, f"{name}.{k}") for k, v in attributes.items()]
        slots = dict(slots_of(value, kind))
        if slots:
            self._note("slots", value, slots, name)
            parts += [(v, f"{name}.{k}") for k, v in slots.items()]
        return parts

    def _container(
        self, kind: str, value: Any, held: Any, parts: Any, name: str
    ) -> list[tuple[Any, str]]:
        self._items += len(held)
        self._note(kind, value, held, name)
        return [(item, name) for item in parts if type(item) not in self.atoms]

    def _array(self, array: np.ndarray, name: str) -> None:
        if array.dtype.hasobject:
            self._note("objects", array, list(array.flat), name)
        elif may_change(array):
            if self._bytes + array.nbytes <= _BYTES:
                self._bytes += array.nbytes
                self._note("array", array, np.array(array, subok=False), name)
            else:
                self._note("checksum", array, checksum(array), name)

    def _note(self, kind: str, target: Any, held: Any, name: str) -> None:
        self._watches.append(_Watch(kind, target, held, name))

    # --- afterwards ---------------------------------------------------------------------------

    def undo(
        self, is_untouched: Callable[[Any], bool] = lambda target: False
    ) -> list[tuple[str, str, str | None]]:
        """Give every object back what it held; the journal is empty afterwards.

        ``is_untouched``: the trace cannot have changed an object, so that others have.

        Returns what had changed: for each change the subject of a sentence, the name of the object
        or attribute, and the attribute, if it is one.
        """
        told = []
        try:
            for watch in self._watches:
                if is_untouched(watch.target):
                    continue
                change = _RESTORE[watch.kind](watch.target, watch.held)
                if change is not None:
                    self.is_undone &= watch.kind != "checksum"
                    told.append((*_told(watch, change), change or None))
        finally:
            while self._locks:
                self._locks.pop().release()
        # The trace is part of reference cycles, which may live long; the copies need not.
        self._watches.clear()
        self._seen.clear()
        return told


def _told(watch: _Watch, attribute: str) -> tuple[str, str]:
    name = watch.name
    if watch.kind in ("attributes", "slots", "class", "library"):
        return f"the attribute {name}.{attribute}", attribute
    what = {
        "list": type(watch.target).__name__, "dict": type(watch.target).__name__,
        "set": type(watch.target).__name__, "generator": "random generator",
    }.get(watch.kind, "array")  # fmt: skip
    return f"the {what} {name}", name.rpartition(".")[2]


def _list(target: Any, held: list) -> str | None:
    if len(target) == len(held) and all(map(operator.is_, target, held)):
        return None
    target.clear()
    target.extend(held)
    return ""


def _same_items(target: Any, held: dict) -> bool:
    return (
        len(target) == len(held)
        and all(map(operator.is_, target.keys(), held.keys()))
        and all(map(operator.is_, target.values(), held.values()))
    )


def _dict(target: Any, held: dict) -> str | None:
    if _same_items(target, held):
        return None
    kind = dict_type(target)
    kind.clear(target)
    for key, value in held.items():
        kind.__setitem__(target, key, value)
    return ""


def _attributes(target: Any, held: dict) -> str | None:
    found = target.__dict__
    if _same_items(found, held):
        return None
    changed = [
        k for k in {**held, **found}
        if found.get(k, ABSENT) is not held.get(k, ABSENT)
        and not _memoised(target, k, found, held)
    ]  # fmt: skip
    if changed:
        kept = {k: v for k, v in found.items() if k not in held and k not in changed}
        found.clear()  # so that deleted attributes come back in their order
        found.update({**held, **kept})
    return changed[0] if changed else None


def _library(target: Any, held: tuple[dict, Journal]) -> str | None:
    """Give an object of a package back what the user's code has assigned, and no more.

    Other threads, and code of the package that the function calls, may have changed the rest.
    """
    before, journal = held
    found = vars(target)
    changed = [
        k for k, v in found.items()
        if v is not before.get(k, ABSENT) and (holds_tracer(v) or k in assigned(journal.codes))
    ]  # fmt: skip
    for key in changed:
        if key in before:
            found[key] = before[key]
        else:
            del found[key]
    return changed[0] if changed else None


def assigned(codes: Iterable[types.CodeType]) -> set[str]:
    """Names of attributes that code assigns, and code inside of it."""
    found, todo = set(), list(codes)
    while todo:
        code = todo.pop()
        todo += [c for c in code.co_consts if isinstance(c, types.CodeType)]
        found |= {i.argval for i in dis.get_instructions(code) if i.opname == "STORE_ATTR"}
    return found


def _memoised(target: Any, key: str, found: dict, held: dict) -> bool:
    """True for a dunder of a module, and for a `cached_property` that holds no traced values."""
    if key in held or not isinstance(getattr(type(target), key, None), cached_property):
        return key.startswith("__") and isinstance(target, types.ModuleType)
    return not holds_tracer(found[key])


def holds_tracer(value: Any, depth: int = 0) -> bool:
    """True if there is a traced value in an object, as far as its attributes and items tell."""
    kind = type(value)
    if issubclass(kind, Recording):
        return True
    if depth > 4:
        return False
    parts: list[Any] = []
    if kind is types.FunctionType:
        parts = [*(value.__defaults__ or ()), *map(_contents, value.__closure__ or ())]
    elif kind is types.MethodType:
        parts = [value.__self__]
    elif kind not in ATOMS and not issubclass(kind, (type, types.ModuleType)):
        if issubclass(kind, dict):
            parts = list(value.values())
        elif issubclass(kind, (list, tuple, set)):
            parts = list(value)
        parts += getattr(value, "__dict__", {}).values()
        parts += (v for _, v in slots_of(value, kind))
    return any(holds_tracer(part, depth + 1) for part in parts)


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _restore_slots(target: Any, held: dict) -> str | None:
    changed = [k for k, v in held.items() if getattr(target, k, ABSENT) is not v]
    for key in changed:
        if held[key] is ABSENT:
            object.__delattr__(target, key)
        else:
            object.__setattr__(target, key, held[key])
    return changed[0] if changed else None


def _class(target: type, held: dict) -> str | None:
    found = vars(target)
    if _same_items(found, held):
        return None
    changed = [
        k for k in {**held, **found}
        if found.get(k, ABSENT) is not held.get(k, ABSENT) and not k.startswith(("__", "_abc_"))
    ]  # fmt: skip
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


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """True if arrays of one dtype and shape hold the same, bit by bit: also nan and -0.0."""
    if not a.nbytes:
        return True
    if a.flags.c_contiguous and b.flags.c_contiguous:
        word = np.uint64 if a.nbytes % 8 == 0 else np.uint8
        a, b = (np.asarray(x).reshape(-1).view(np.uint8).view(word) for x in (a, b))
        return not (a != b).any()
    return checksum(a) == checksum(b)


def same_objects(array: np.ndarray, held: list[Any]) -> bool:
    """True if the elements of an array of objects are these very ones."""
    return array.size == len(held) and all(map(operator.is_, array.flat, held))


def may_change(array: np.ndarray) -> bool:
    """False for an array that nobody can write to any more."""
    return array.dtype.hasobject or array.flags.writeable or isinstance(array.base, np.ndarray)


def _array(target: np.ndarray, held: np.ndarray) -> str | None:
    if target.shape == held.shape and same_bits(target, held):
        return None
    if target.shape == held.shape:
        target[...] = held
    return ""


def _objects(target: np.ndarray, held: list) -> str | None:
    if same_objects(target, held):
        return None
    target.flat[:] = held
    return ""


def _sum_only(target: np.ndarray, held: int) -> str | None:
    return None if checksum(target) == held else ""


def _state(generator: Any) -> Any:
    if hasattr(generator, "bit_generator"):
        return generator.bit_generator.state
    if hasattr(generator, "getstate"):
        try:
            return generator.getstate()
        except NotImplementedError:
            return None  # the system's generator has no state to restore
    return generator.get_state(legacy=False) if hasattr(generator, "get_state") else generator.state


def _generator(target: Any, held: Any) -> str | None:
    if same_state(_state(target), held):
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


def is_users_class(cls: type) -> bool:
    """True for a class of the user's, and for plain holders of attributes."""
    return _is_users(cls) or holds_attributes(cls) or hasattr(cls, "__dataclass_fields__")


def is_of_a_library(value: Any, kind: type) -> bool:
    """True for an object with attributes, of a class of an installed package.

    There is no shadow of it, as code of the package may do anything with it. So what a function
    reads of it is compared at each call, and what it writes to it is Python's.
    """
    if not kind.__flags__ & HEAP_TYPE or issubclass(kind, type) or kind.__module__ == "builtins":
        return False
    if kind.__module__.partition(".")[0] == "profuse" or is_users_class(kind):
        return False
    return type(getattr(value, "__dict__", None)) is dict


def is_of_c(kind: type) -> bool:
    """True for numbers, arrays and structures of C, whose fields are no attributes."""
    return any(base.__module__ == "_ctypes" for base in kind.__mro__)


def _is_users(cls: type) -> bool:
    name = cls.__module__
    module = sys.modules.get(name)
    if name == "builtins":  # so are classes of code that runs in globals without a name
        return bool(cls.__flags__ & HEAP_TYPE)
    if not is_users_name(name) or name in sys.builtin_module_names:
        return False
    return module is None or is_users_file(getattr(module, "__file__", None) or "<input>")


_RESTORE: dict[str, Any] = {
    "list": _list, "dict": _dict, "set": _set, "attributes": _attributes, "slots": _restore_slots,
    "library": _library,
    "class": _class, "array": _array, "objects": _objects, "checksum": _sum_only,
    "generator": _generator,
}  # fmt: skip

__all__ = [
    "ATOMS", "Journal", "holds_tracer", "is_of_a_library", "is_of_c",
    "is_users_class", "may_change", "same_bits", "same_objects", "same_state",
]  # fmt: skip
