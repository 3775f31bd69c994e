"""Whether a function may come upon tensors of other libraries that are no arguments of it.

NumPy does not compute with such tensors beside arrays, so Python gets the tensors of a call themselves where there are
some. What code reads is looked for by its names, along closures, globals, default values, attributes and items.
"""

from __future__ import annotations

import functools
import types
from collections import deque
from collections.abc import Iterable, Iterator
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
_BY_NAME = (*STATE, CLASS)
_PLAIN = PLAIN_TYPES | {np.ndarray, np.ufunc, np.dtype, types.BuiltinFunctionType}


class _Search:
    """One search.

    Attributes:
        names: those in the code that has been found so far, and the texts with which it may ask for attributes.
        has_any: some of that code makes up names.
    """

    def __init__(self, fn: Any) -> None:
        self._fn = fn
        self.names: set[str] = set()
        self.has_any = False
        self._seen: dict[int, Any] = {}
        self._named: list[Any] = []  # what holds objects by name

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
            return parts_of(value)
        if _is_users(value, kind):
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
        yield from (fn.__kwdefaults__ or {}).values()
        yield from (fn.__globals__[name] for name in names if name in fn.__globals__)

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


def reads_tensors(fn: Any, arguments: Iterable[Any]) -> bool:
    """True if a function may read tensors that are no arguments.

    Args:
        fn: the function.
        arguments: what it is called with, arrays in the place of tensors.
    """
    try:
        return _Search(fn).finds((fn, getattr(type(fn), "__call__", None), *arguments))  # noqa: B004
    except (ProfuseError, RuntimeError):  # an object that another thread changes meanwhile
        return False
