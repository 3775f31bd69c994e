"""The kinds of containers that arguments and results may be nested in, one class each.

A container is taken apart into ``meta``, which is hashable and part of the structure of a call, and
items, and is made of both again. Classes that nobody here knows join through `register_pytree`.
"""

from __future__ import annotations

import types
from abc import ABC, abstractmethod
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..importers.numpy.python.instances import (
    ClassSet,
    dict_type,
    has_plain_state,
    holds_attributes,
    instance_with,
    is_told_by_names,
    state_of,
)
from .leaves import NUMBERS, TraceValue


class Container(ABC):
    """One kind of container; `kind` names it in structures."""

    kind: str

    @abstractmethod
    def apart(self, value: Any) -> tuple[Any, Sequence[Any]]:
        """``meta`` and the items of a container."""

    def items(self, value: Any) -> Sequence[Any]:
        """The items of a container."""
        return self.apart(value)[1]

    @abstractmethod
    def made(self, meta: Any, items: Sequence[Any]) -> Any:
        """A new container of these items."""

    @abstractmethod
    def labels(self, meta: Any, count: int) -> Iterable[str]:
        """The texts by which Python code reaches each item, as ``[0]``, ``['w']`` and ``.w``."""

    @abstractmethod
    def text(self, meta: Any, shown: Sequence[str]) -> str:
        """The container in messages; ``shown``: its items."""

    def items_like(self, meta: Any, given: Any) -> Sequence[Any] | None:
        """The items of a container in the order of ``meta``; None if its own differs."""
        if container_of(given) is not self:
            return None
        own_meta, items = self.apart(given)
        return items if own_meta == meta else None

    def class_of(self, meta: Any) -> type | None:
        """The class that files would have to name; None for containers of Python itself."""
        return None

    def attributes(self, meta: Any) -> tuple[str, ...]:
        """The names of the attributes that a container has of its own."""
        return ()


class _OfClass(Container):
    """A kind whose ``meta`` begins with the class of the instance."""

    def class_of(self, meta: Any) -> type | None:
        return meta[0]


class _Sequence(Container):
    def __init__(self, cls: type) -> None:
        self.kind, self._cls = cls.__name__, cls

    def apart(self, value: Any) -> tuple[Any, Sequence[Any]]:
        return None, value

    def made(self, meta: Any, items: Sequence[Any]) -> Any:
        return self._cls(items)

    def labels(self, meta: Any, count: int) -> Iterable[str]:
        return (f"[{k}]" for k in range(count))

    def text(self, meta: Any, shown: Sequence[str]) -> str:
        inner = ", ".join(shown)
        return f"[{inner}]" if self._cls is list else f"({inner}{',' * (len(shown) == 1)})"


def list_of_rows(meta: tuple[bool, tuple[str, ...], bool, int], *items: Any) -> list[Any]:
    """A list of which some elements are the rows of arrays.

    Args:
        meta: whether each row is a tuple of one of each array; what rows become: ``number`` of
            Python's, NumPy's ``scalar``, or ``array``; whether rows are counted; how many elements
            are behind them.
        items: the elements before, the arrays, an array of the number of rows if they are
            counted, and the elements behind.
    """
    is_tuple, kinds, is_counted, behind = meta
    values = list(items)
    last = [values.pop() for _ in range(behind)][::-1]
    count = int(values.pop()[0]) if is_counted else None
    first = len(values) - len(kinds)
    arrays = [array if count is None else array[:count] for array in values[first:]]
    rows = [_rows(kind, array) for kind, array in zip(kinds, arrays, strict=True)]
    return [*values[:first], *(zip(*rows, strict=True) if is_tuple else rows[0]), *last]


def _rows(kind: str, array: Any) -> Iterable[Any]:
    if type(array) is not np.ndarray or kind == "scalar":  # of the tape, or of another trace
        return array
    return array.tolist() if kind == "number" else map(np.array, array)


class _TracedRows(Container):
    """Of a trace; ``meta``: the kind of elements."""

    kind = "rows"

    def apart(self, value: Any) -> tuple[Any, Sequence[Any]]:
        return value.as_rows()

    def made(self, meta: Any, items: Sequence[Any]) -> Any:
        return list_of_rows(meta, *items)

    def labels(self, meta: Any, count: int) -> Iterable[str]:
        return (f"[{k}]" for k in range(count))

    def text(self, meta: Any, shown: Sequence[str]) -> str:
        return f"[{', '.join(shown)}, …]"


class _ScalarArray(Container):
    """An array without axes, of which graphs and kernels give the scalar."""

    kind = "array"

    def apart(self, value: Any) -> tuple[Any, Sequence[Any]]:
        return None, (value,)

    def made(self, meta: Any, items: Sequence[Any]) -> Any:
        (item,) = items
        # Arrays of the tape say that they are scalars, too.
        return np.asarray(item) if issubclass(type(item), np.generic) else item

    def labels(self, meta: Any, count: int) -> Iterable[str]:
        return ("",)

    def text(self, meta: Any, shown: Sequence[str]) -> str:
        return shown[0]

    def items_like(self, meta: Any, given: Any) -> Sequence[Any] | None:
        return (given,)


class _Dict(Container):
    """``meta``: the keys."""

    def __init__(self, kind: str, cls: type) -> None:
        self.kind, self._cls = kind, cls

    def apart(self, value: Any) -> tuple[Any, Sequence[Any]]:
        return _keys(value), self.items(value)

    def items(self, value: Any) -> Sequence[Any]:
        return tuple(value.values())

    def made(self, meta: Any, items: Sequence[Any]) -> Any:
        return self._cls(zip(meta, items, strict=True))

    def labels(self, meta: Any, count: int) -> Iterable[str]:
        return (f"[{key!r}]" for key in meta)

    def text(self, meta: Any, shown: Sequence[str]) -> str:
        return f"{{{', '.join(f'{key!r}: {c}' for key, c in zip(meta, shown, strict=True))}}}"

    def items_like(self, meta: Any, given: Any) -> Sequence[Any] | None:
        if type(given) not in (dict, OrderedDict) or given.keys() != set(meta):
            return None
        return [given[key] for key in meta]


class _NamedTuple(Container):
    """``meta``: the class."""

    kind = "namedtuple"

    def apart(self, value: Any) -> tuple[Any, Sequence[Any]]:
        return type(value), value

    def made(self, meta: Any, items: Sequence[Any]) -> Any:
        return meta(*items)

    def labels(self, meta: Any, count: int) -> Iterable[str]:
        return (f".{name}" for name in meta._fields)

    def text(self, meta: Any, shown: Sequence[str]) -> str:
        return _call(meta, meta._fields, shown)

    def class_of(self, meta: Any) -> type | None:
        return meta


class _Instance(_OfClass):
    """Instances of dataclasses and namespaces; ``meta``: the class, the names of its attributes.

    They are made anew with the state that they had, not by calls of their class: fields may have
    changed since, or are no parameters, and ``__post_init__`` may change what it is given.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def apart(self, value: Any) -> tuple[Any, Sequence[Any]]:
        cls = type(value)
        if not has_plain_state(cls):
            raise ArgumentError(
                f"objects of type {cls.__name__} are not supported: their class makes or deletes "
                "them in its own way, or is derived from one of C code",
                hint="name the parts of such objects by profuse.register_pytree",
            )
        state = state_of(value)
        return (cls, tuple(state)), tuple(state.values())

    def items(self, value: Any) -> Sequence[Any]:
        cls = type(value)
        if id(cls) not in _of_dicts.ids:
            (_, names), items = self.apart(value)
            if is_told_by_names(cls, names) and cls.__dictoffset__:
                _of_dicts.add(cls)
            return items
        return tuple(value.__dict__.values())

    def made(self, meta: Any, items: Sequence[Any]) -> Any:
        cls, names = meta
        return instance_with(cls, dict(zip(names, items, strict=True)))

    def labels(self, meta: Any, count: int) -> Iterable[str]:
        return (f".{name}" for name in meta[1])

    def text(self, meta: Any, shown: Sequence[str]) -> str:
        return _call(meta[0], meta[1], shown)

    def attributes(self, meta: Any) -> tuple[str, ...]:
        return tuple(meta[1])

    def items_like(self, meta: Any, given: Any) -> Sequence[Any] | None:
        cls, names = meta
        state = state_of(given) if type(given) is cls else {}
        return [state[name] for name in names] if state.keys() == set(names) else None


class _DictOfClass(_OfClass):
    """Dicts of a subclass with their attributes; ``meta``: the class, its extra, keys and names.

    The extra is what a defaultdict makes missing items with, or True where attributes are the
    items, as in classes that set ``self.__dict__ = self``.
    """

    kind = "dict subclass"

    def apart(self, value: Any) -> tuple[Any, Sequence[Any]]:
        cls = type(value)
        items = tuple(dict_type(value).values(value))
        if cls is defaultdict:
            return (cls, value.default_factory, _keys(value), ()), items
        extra = getattr(value, "__dict__", None) is value
        state = {} if extra else state_of(value)
        return (cls, extra, _keys(value), tuple(state)), (*items, *state.values())

    def made(self, meta: Any, items: Sequence[Any]) -> Any:
        cls, extra, keys, names = meta
        if cls is defaultdict:
            return defaultdict(extra, zip(keys, items, strict=True))
        instance = instance_with(cls, dict(zip(names, items[len(keys) :], strict=True)))
        for key, item in zip(keys, items, strict=False):
            dict_type(instance).__setitem__(instance, key, item)
        if extra:
            object.__setattr__(instance, "__dict__", instance)
        return instance

    def labels(self, meta: Any, count: int) -> Iterable[str]:
        return (*(f"[{key!r}]" for key in meta[2]), *(f".{name}" for name in meta[3]))

    def attributes(self, meta: Any) -> tuple[str, ...]:
        return tuple(meta[3])

    def text(self, meta: Any, shown: Sequence[str]) -> str:
        items = ", ".join(f"{key!r}: {c}" for key, c in zip(meta[2], shown, strict=False))
        return f"{meta[0].__name__}({{{items}}})"


class _Registered(_OfClass):
    """Instances of registered classes; ``meta``: the class and what its function calls static."""

    kind = "registered object"

    def apart(self, value: Any) -> tuple[Any, Sequence[Any]]:
        cls = type(value)
        items, static = _registered[cls][0](value)
        try:
            hash(static)
        except TypeError:
            raise ArgumentError(
                f"the static part of a {cls.__name__} is not hashable: {static!r:.80}",
                hint="have the registered function return tuples in place of lists and dicts",
            ) from None
        return (cls, type(static), static), tuple(items)

    def made(self, meta: Any, items: Sequence[Any]) -> Any:
        cls, _, static = meta
        return _registered[cls][1](static, items)

    def labels(self, meta: Any, count: int) -> Iterable[str]:
        return (f"<{k}>" for k in range(count))

    def text(self, meta: Any, shown: Sequence[str]) -> str:
        return f"{meta[0].__name__}({', '.join(shown)})"


class _Keys(tuple):
    """Keys of a dict, some of them no strings, compared by type and value as statics are.

    As keys, 1, 1.0 and True are equal, but code may compute with them.
    """

    __slots__ = ()
    __hash__ = tuple.__hash__

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, other) is True and _types(self) == _types(other)


def _types(key: Any) -> Any:
    return tuple(map(_types, key)) if isinstance(key, tuple) else type(key)


def _keys(table: dict) -> tuple:
    # A subclass of the user's may iterate over something else.
    keys = tuple(map(plain_key, dict_type(table).keys(table)))
    return keys if all(type(key) is str for key in keys) else _Keys(keys)


def plain_key(key: Any) -> Any:
    """A key of a dict, with numbers in the place of traced ones: the graph holds for these."""
    kind = type(key)
    if kind is str or kind is int:
        return key
    if kind is tuple or kind is frozenset:
        return kind(map(plain_key, key))
    return key.bake() if issubclass(kind, TraceValue) else key


def _call(cls: type, names: Sequence[str], shown: Sequence[str]) -> str:
    return f"{cls.__name__}({', '.join(f'{n}: {c}' for n, c in zip(names, shown, strict=True))})"


_of_dicts = ClassSet()  # whose instances have all that they hold in their dict
_TUPLE, _LIST = _Sequence(tuple), _Sequence(list)
_ROWS, ARRAY = _TracedRows(), _ScalarArray()
_DICT, _ORDERED = _Dict("dict", dict), _Dict("ordered", OrderedDict)
_NAMED, _DATACLASS, _NAMESPACE = _NamedTuple(), _Instance("dataclass"), _Instance("namespace")
_OF_CLASS, _OF_USERS = _DictOfClass(), _Registered()
CONTAINERS: dict[str, Container] = {
    c.kind: c
    for c in (_TUPLE, _LIST, _DICT, _ORDERED, _NAMED, _DATACLASS, _NAMESPACE, _OF_CLASS, _OF_USERS, _ROWS, ARRAY)
}
_BY_TYPE: dict[type, Container] = {
    tuple: _TUPLE,
    list: _LIST,
    dict: _DICT,
    OrderedDict: _ORDERED,
    types.SimpleNamespace: _NAMESPACE,
}
WHEN_REGISTERED: list[Callable[[type], object]] = []
"""Called with each class that `register_pytree` makes one of containers."""
_registered: dict[type, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {}


def container_of(value: Any) -> Container | None:
    """The kind of container that an object is, or None."""
    cls: Any = type(value)
    container = _BY_TYPE.get(cls)
    if container is not None:
        return container
    if cls is defaultdict:
        # A function is often a new one at each call, which would be a new structure each time.
        is_named = value.default_factory is None or isinstance(value.default_factory, type)
        return _OF_CLASS if is_named else None
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return _NAMED
    if hasattr(cls, "as_rows"):
        return _ROWS
    if issubclass(cls, dict) and has_plain_state(cls):
        return _OF_CLASS  # of a dataclass as well, which has items beside its attributes
    if holds_attributes(cls):
        return _NAMESPACE
    return _DATACLASS if hasattr(cls, "__dataclass_fields__") else None


def register_pytree(
    cls: type, flatten: Callable[[Any], tuple[Iterable[Any], Any]], unflatten: Callable[[Any, tuple[Any, ...]], Any]
) -> None:
    """Make instances of a class containers, as arguments and as results of jitted functions.

    Args:
        cls: the class; instances of subclasses are not meant.
        flatten: from an instance to its parts (arrays, numbers, containers, and what may be part of
            the structure) and a hashable object of all else. It must not change the instance.
        unflatten: from that object and a tuple of the parts to an instance. The parts are traced
            values in a trace: they have no values yet, so they must not be looked into.

    Functions that have been traced keep their graphs. Raises ArgumentError if ``cls`` is no class,
    has been registered before, or is a container or leaf already.
    """
    if not isinstance(cls, type):
        raise ArgumentError(f"{cls!r:.80} is no class", hint="register the class of the objects")
    if cls in _registered:
        raise ArgumentError(f"{cls.__name__} has been registered already")
    if cls in _BY_TYPE or cls is defaultdict or issubclass(cls, (*NUMBERS, np.generic, np.ndarray)):
        raise ArgumentError(f"{cls.__name__} has a meaning of its own here", hint="register a class of yours")
    for function in (flatten, unflatten):
        if not callable(function):
            raise ArgumentError(f"{function!r:.80} cannot be called")
    _registered[cls] = flatten, unflatten
    _BY_TYPE[cls] = _OF_USERS
    for note in WHEN_REGISTERED:
        note(cls)
