"""Whether a function may come upon tensors of other libraries that are no arguments of it.

NumPy does not compute with such tensors beside arrays, so Python gets the tensors of a call themselves where there are
some. What code reads is looked for by its names, along closures, globals, default values, attributes and items.
"""

from __future__ import annotations

import functools
import operator
import types
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ...dialect.errors import ProfuseError
from ...dialect.importers.numpy.capture.code_names import makes_names, names_in, texts_in
from ...dialect.importers.numpy.capture.method_calls import codes_in
from ...dialect.importers.numpy.python.instances import ABSENT, PLAIN_TYPES, kept
from ...dialect.importers.numpy.python.objects import CLASS, DESCRIPTORS, STATE, facets_of, parts_of
from ...dialect.importers.numpy.python.users_code import is_users_class, is_users_file, is_users_module, is_users_name
from ...dialect.ir.device import has_exchange

_MOST = 2000  # objects; where there are more, nobody knows
_HOLDERS = (
    list, tuple, dict, set, frozenset, deque, types.CellType, types.MethodType, functools.partial, *DESCRIPTORS
)  # fmt: skip
_CONTAINERS = (list, tuple, dict, set, frozenset, deque, types.CellType)
_FEW = 64  # places that are compared
_BY_NAME = (*STATE, CLASS)
_PLAIN = PLAIN_TYPES | {np.ndarray, np.ufunc, np.dtype, types.BuiltinFunctionType}


class _Search:
    """One search.

    Attributes:
        names: those in the code that has been found so far, and the texts with which it may ask for attributes.
        has_any: some of that code makes up names.
        places: what tells whether a later search would find the same.
    """

    def __init__(self, fn: Any) -> None:
        self._fn = fn
        self.names: set[str] = set()
        self.has_any = False
        self._seen: dict[int, Any] = {}
        self._named: list[Any] = []  # what holds objects by name
        self.places = _Places()

    def finds(self, roots: Iterable[Any]) -> bool:
        """True if a tensor is reached."""
        todo, named = [*roots], (-1, False)
        while todo or named != (len(self.names), self.has_any):
            if not todo:  # code that was found late names more
                named = len(self.names), self.has_any
                todo = [part for holder in self._named for part in self._by_name(holder)]
                continue
            value = todo.pop()
            kind = type(value)
            if kind in _PLAIN or id(value) in self._seen:
                continue
            if has_exchange(kind):
                return True
            self._seen[id(value)] = value
            if len(self._seen) > _MOST:
                return False
            todo += self._parts(value, kind)
        return False

    def _parts(self, value: Any, kind: type) -> Iterable[Any]:
        """What code reaches of an object."""
        if kind is types.FunctionType:
            return self._of_function(value)
        if issubclass(kind, _HOLDERS):
            return self.places.held(value, kind)
        if _is_users(value, kind):
            self.places.are_few = False
            self._named.append(value)
            return self._by_name(value)
        wrapped = kept(value, "__wrapped__")  # of a function that is jitted, say
        return () if wrapped is ABSENT else (wrapped,)

    def _of_function(self, fn: types.FunctionType) -> Iterator[Any]:
        """What the code of a function reads; that of libraries knows no tensors of the user's but its arguments."""
        module = fn.__globals__.get("__name__") or ""
        is_own = module.partition(".")[0] == (getattr(self._fn, "__module__", None) or "").partition(".")[0]
        if not is_own and not (is_users_name(module) and is_users_file(fn.__code__.co_filename)):
            return
        names, texts, has_any = _names_of(fn.__code__)
        self.names.update(names, texts)
        self.has_any |= has_any
        yield from fn.__closure__ or ()
        yield from fn.__defaults__ or ()
        yield from self.places.held(fn.__kwdefaults__ or {}, dict)
        yield from self.places.read(fn, names)

    def _by_name(self, holder: Any) -> list[Any]:
        """What an object, a class or a module has under the names in code, and its classes."""
        parts: list[Any] = [type(holder), *(holder.__mro__[1:] if isinstance(holder, type) else ())]
        for facet in facets_of(type(holder)):
            if facet in _BY_NAME:
                held = facet.keyed(facet.copy(holder))
                parts += [x for name, x in held.items() if self.has_any or name in self.names]
            else:
                parts += facet.parts(holder)
        return parts


class _Places:
    """The places that a search has passed, where another object may come to be.

    Attributes:
        are_few: they are all here, and to compare them takes less time than another search.
    """

    def __init__(self) -> None:
        self.are_few = True
        self._functions: list[tuple[types.FunctionType, tuple]] = []
        self._names: list[tuple[dict[str, Any], str, Any]] = []
        self._held: list[tuple[Any, list[Any]]] = []

    def read(self, fn: types.FunctionType, names: Iterable[str]) -> list[Any]:
        """The global variables of a function that have some of the names; the others may come to be such."""
        table = fn.__globals__
        values = {name: table.get(name, ABSENT) for name in names}
        self._functions.append((fn, _parts(fn)))
        self._names += [(table, name, _but_plain(value)) for name, value in values.items()]
        self.are_few &= len(self._names) <= _FEW
        return [value for value in values.values() if value is not ABSENT]

    def held(self, value: Any, kind: type) -> list[Any]:
        """The parts of a container, or of another holder."""
        parts = [*parts_of(value)]
        self.are_few &= kind in _CONTAINERS and len(self._held) + len(parts) <= _FEW
        if self.are_few:
            self._held.append((value, [*map(_but_plain, parts)]))
        return parts

    def are_same(self) -> bool:
        """True if no other object has come to be there, but for plain ones."""
        try:
            return (
                all(all(map(operator.is_, _parts(fn), parts)) for fn, parts in self._functions)
                and all(_is_same(table.get(name, ABSENT), value) for table, name, value in self._names)
                and all(_are_same([*parts_of(value)], parts) for value, parts in self._held)
            )
        except RuntimeError:  # a container that another thread changes meanwhile
            return False


_parts = operator.attrgetter("__code__", "__defaults__", "__kwdefaults__")


def _but_plain(value: Any) -> Any:
    return None if type(value) in _PLAIN else value


def _is_same(now: Any, before: Any) -> bool:
    return now is before or type(now) in _PLAIN


def _are_same(now: list[Any], before: list[Any]) -> bool:
    return len(now) == len(before) and all(map(_is_same, now, before))


@functools.lru_cache(maxsize=1024)
def _names_of(code: types.CodeType) -> tuple[frozenset[str], frozenset[str], bool]:
    """The names in code and in what is defined there, the texts, and whether some of it makes up names."""
    codes = list(codes_in(code))
    return frozenset(names_in(codes)), frozenset(texts_in(codes)), any(map(makes_names, codes))


def _is_users(value: Any, kind: type) -> bool:
    """True for objects and classes of the user's, and for modules."""
    if kind is types.ModuleType:
        return is_users_module(value)
    return is_users_class(value if isinstance(value, type) else kind)


class TensorReads:
    """Whether a function may read tensors that are no arguments, asked at each call.

    A search takes as long as some calls. One that was in vain holds while nothing else is where it has looked.

    Args:
        fn: the function.
    """

    def __init__(self, fn: Any) -> None:
        self._fn = fn
        self._in_vain: _Places | None = None

    def may(self, arguments: Sequence[Any], *, are_plain: bool) -> bool:
        """True if a call may.

        Args:
            arguments: what the function is called with, arrays in the place of tensors.
            are_plain: none of them holds objects.
        """
        in_vain = self._in_vain
        if are_plain and in_vain is not None and in_vain.are_same():
            return False
        search = _Search(self._fn)
        try:
            finds = search.finds((self._fn, getattr(type(self._fn), "__call__", None), *arguments))  # noqa: B004
        except (ProfuseError, RuntimeError):  # an object that another thread changes meanwhile
            return False
        self._in_vain = search.places if are_plain and search.places.are_few and not finds else None
        return finds
