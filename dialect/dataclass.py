"""Dataclasses whose methods cost next to nothing before they are called.

The standard decorator compiles up to six methods for each class, half a millisecond: nearly half of
what importing our modules would take. This one compiles ``__init__`` when the first instance is
made, and the other methods need no code of their own. The classes are dataclasses all the same:
`fields`, `replace`, `asdict` and pattern matching work on them.

``__dataclass_params__`` says nothing of the methods, and a frozen class of the standard decorator
neither derives from one of these nor the other way round: passes, from which users derive theirs,
are of the standard decorator.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

_put = object.__setattr__  # stores attributes into frozen instances


def _dataclass(
    cls: type | None = None,
    /,
    *,
    eq: bool = True,
    frozen: bool = False,
    kw_only: bool = False,
    repr: bool = True,
    slots: bool = False,
) -> Any:
    """`dataclasses.dataclass`, with these of its options."""

    def made(cls: type) -> type:
        own = vars(cls)
        explicit_hash = not ("__hash__" not in own or (own["__hash__"] is None and "__eq__" in own))
        if cls.__doc__ is None:
            cls.__doc__ = cls.__name__  # the standard decorator would compute a signature
        cls = dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only, slots=slots)(cls)
        fields = dataclasses.fields(cls)
        add = _Adder(cls)
        add("__init__", _later_init(cls, frozen))
        if repr:
            add("__repr__", _repr_of([f.name for f in fields if f.repr]))
        if eq:
            add("__eq__", _eq_of([f.name for f in fields if f.compare]))
            if not explicit_hash:
                hashed = [f.name for f in fields if (f.compare if f.hash is None else f.hash)]
                cls.__hash__ = _hash_of(hashed) if frozen else None  # type: ignore[assignment]
        if frozen:
            names = frozenset(f.name for f in fields)
            for name, word in (("__setattr__", "assign to"), ("__delattr__", "delete")):
                cls_method = getattr(super(cls, cls), name)
                setattr(cls, name, _refusing(cls, names, cls_method, word))
            if slots:
                add("__getstate__", _getstate)
                add("__setstate__", _setstate)
        return cls

    return made if cls is None else made(cls)


class _Adder:
    """Adds methods to a class under its name; those that the class itself defines stay."""

    def __init__(self, cls: type) -> None:
        self._cls, self._own = cls, vars(cls)

    def __call__(self, name: str, method: Callable[..., Any]) -> None:
        if name not in self._own:
            method.__qualname__ = f"{self._cls.__qualname__}.{name}"
            setattr(self._cls, name, method)


def _later_init(cls: type, frozen: bool) -> Callable[..., None]:
    """An ``__init__`` that compiles the one that will replace it; two threads may both do so."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        init = _init_of(cls, frozen)
        cls.__init__ = init  # type: ignore[misc]
        init(self, *args, **kwargs)

    return __init__


def _init_of(cls: type, frozen: bool) -> Callable[..., None]:
    """The ``__init__`` that the standard decorator would compile."""
    scope: dict[str, Any] = {"_put": _put, "_made": _MADE}
    positional, keywords, body = ["self"], list[str](), list[str]()
    slots = "__slots__" in vars(cls)
    for f in dataclasses.fields(cls):
        value, default = f.name, ""
        if f.default is not dataclasses.MISSING:
            scope[f"_{f.name}"], default = f.default, f"=_{f.name}"
        elif f.default_factory is not dataclasses.MISSING:
            scope[f"_{f.name}"], default = f.default_factory, "=_made"
            value = f"_{f.name}() if {f.name} is _made else {f.name}"
        if f.init:
            (keywords if f.kw_only else positional).append(f.name + default)
        elif default == "=_made":
            value = f"_{f.name}()"
        elif default and slots:
            value = f"_{f.name}"
        else:
            continue
        body.append(f"_put(self, {f.name!r}, {value})" if frozen else f"self.{f.name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = [*positional, *(["*", *keywords] if keywords else [])]
    text = f"def __init__({', '.join(parameters)}):\n " + "\n ".join(body or ["pass"])
    exec(compile(text, "<profuse: dataclass>", "exec"), scope)
    init = scope["__init__"]
    init.__qualname__, init.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    types = {f.name: f.type for f in dataclasses.fields(cls) if f.init}
    init.__annotations__ = {**types, "return": None}
    return init


_MADE = type("<factory>", (), {"__repr__": lambda self: "<factory>"})()


def _values(names: list[str]) -> Callable[[Any], Any]:
    """A function that reads these attributes: a tuple of several, or the value of one."""
    return attrgetter(*names) if names else lambda self: ()


def _eq_of(names: list[str]) -> Callable[[Any, Any], Any]:
    values = _values(names)
    one = len(names) == 1

    def __eq__(self: Any, other: Any) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        if one:  # tuples take an object to be equal to itself
            return (values(self),) == (values(other),)
        return values(self) == values(other)

    return __eq__


def _hash_of(names: list[str]) -> Callable[[Any], int]:
    values = _values(names)

    def __hash__(self: Any) -> int:
        return hash(values(self))

    return __hash__


def _repr_of(names: list[str]) -> Callable[[Any], str]:
    @recursive_repr("...")
    def __repr__(self: Any) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{self.__class__.__qualname__}({shown})"

    return __repr__


def _refusing(cls: type, names: frozenset[str], above: Callable[..., None], word: str) -> Callable[..., None]:
    def refuse(self: Any, name: str, *value: Any) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot {word} field {name!r}")
        above(self, name, *value)

    return refuse


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in dataclasses.fields(self)]


def _setstate(self: Any, state: list[Any]) -> None:
    for f, value in zip(dataclasses.fields(self), state, strict=True):
        _put(self, f.name, value)


if TYPE_CHECKING:  # type checkers know the standard decorator
    from dataclasses import dataclass as dataclass
else:
    dataclass = _dataclass
