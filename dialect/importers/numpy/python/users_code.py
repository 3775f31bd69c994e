"""The code that is the user's: what a trace may hand substitutes to, and whose errors it watches."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import types
from typing import Any

from .instances import HEAP_TYPE, holds_attributes

# Tests and examples of a checkout are users' code.
_ROOT = os.path.abspath(f"{__file__}/../../../../..")
_OWN = tuple(f"{_ROOT}/{name}" for name in ("__init__.py", "dialect/", "executor/", "lowering/", "tools/"))
_STANDARD = os.path.dirname(os.__file__)
_LIBRARIES = (f"{_STANDARD}/", f"{os.path.realpath(_STANDARD)}/", *_OWN)
_GENERATED = "<profuse: "
_LATER = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
SOURCE = "__profuse_source__"  # what converted code asks (see `source`); no name by accident
IS = "__profuse_is__"  # what such code asks that compares with True by ``is``
PREFIX = "_profuse_source_"  # of the variables of converted code
# What a class has in the place of attributes that its objects keep in slots.
SLOT_TYPES = (types.GetSetDescriptorType, types.MemberDescriptorType, types.WrapperDescriptorType)
JITTED: set[type] = set()  # classes of what is made of users' functions, and has their attributes in its dict
# What goes before attributes of objects. A call may fill a cached property.
_FIRST = (*SLOT_TYPES, property, functools.cached_property)


def generated_file(what: str) -> str:
    """The file name for code that is made at run time, which is not the user's."""
    return f"{_GENERATED}{what}>"


def wraps(wrapper: Any, fn: Any) -> None:
    """Have an object that calls a function tell its name, text and module.

    It has the attributes of a plain function, also what marks it as abstract, but for those that it
    sets itself from here on. Those of other callables, as of functions that are jitted already, are
    their state. `inspect` takes it for a generator or a coroutine function where it calls one.
    """
    functools.update_wrapper(wrapper, fn, updated=())
    if type(fn) is types.FunctionType:
        for name, value in vars(fn).items():
            if name != "__wrapped__" and not hasattr(type(wrapper), name):
                setattr(wrapper, name, value)
        if runs_later(fn):
            for name in ("__code__", "__defaults__", "__kwdefaults__"):  # which `inspect` asks for
                setattr(wrapper, name, getattr(fn, name))


def runs_later(fn: Any) -> bool:
    """True for a function or method whose code a call only makes an object of: a generator, or a coroutine."""
    code = getattr(getattr(fn, "__func__", fn), "__code__", None)
    return isinstance(code, types.CodeType) and bool(code.co_flags & _LATER)


@functools.lru_cache(maxsize=4096)
def is_own_file(file: str) -> bool:
    """True for source of this package, and for what it makes at run time."""
    return file.startswith((_GENERATED, *_OWN))


@functools.lru_cache(maxsize=4096)
def is_users_file(file: str) -> bool:
    """True for source outside of Python's library, of installed packages and of this one."""
    if not file or file.startswith(("<frozen", _GENERATED)):
        return False
    if file == "<__array_function__ internals>":
        return False
    return not file.startswith(_LIBRARIES) and "-packages/" not in file


def is_users_name(module: str | None) -> bool:
    """False for this package and NumPy, wherever they are."""
    return (module or "").partition(".")[0] not in ("profuse", "numpy")


def is_users_module(module: types.ModuleType) -> bool:
    """True for a module of the user's own; also without a file, unless a package or Python itself has made it."""
    if not is_users_name(module.__name__):
        return False
    if file := getattr(module, "__file__", None):
        return is_users_file(file)
    outer = sys.modules.get(module.__name__.partition(".")[0], module)
    if outer is not module and getattr(outer, "__file__", None):
        return is_users_module(outer)
    origin = getattr(module.__spec__, "origin", None)  # Python's own are "built-in" or "frozen"
    return origin is None and all(is_users_file(f"{path}/") for path in getattr(module, "__path__", ()))


def is_users_class(cls: Any) -> bool:
    """True for a class of the user's, and for plain holders of attributes."""
    return _is_users_class(cls)


@functools.lru_cache(maxsize=4096)
def _is_users_class(cls: Any) -> bool:
    return is_made_by_user(cls) or holds_attributes(cls) or hasattr(cls, "__dataclass_fields__")


def is_made_by_user(cls: type) -> bool:
    """True for a class of the user's own code."""
    name = cls.__module__
    module = sys.modules.get(name)
    if name == "builtins":  # so are classes of code that runs in globals without a name
        return bool(cls.__flags__ & HEAP_TYPE)
    if not is_users_name(name) or name in sys.builtin_module_names:
        return False
    return module is None or is_users_file(getattr(module, "__file__", None) or "<input>")


def is_of_a_library(value: Any, kind: type) -> bool:
    """True for an object with attributes, of a class of a package, and for what is made of a function.

    There is no shadow of it, as code of the package may do anything with it. So what a function
    reads of it is compared at each call, and what it writes to it is Python's.
    """
    if not kind.__flags__ & HEAP_TYPE or issubclass(kind, type) or kind.__module__ == "builtins":
        return False
    if kind in JITTED:
        return True
    if kind.__module__.partition(".")[0] == "profuse" or is_users_class(kind):
        return False
    return type(getattr(value, "__dict__", None)) is dict


def names_of_class(cls: type) -> set[str]:
    """The names of what objects of a class have from classes of the user's, and may have of their own."""
    return {
        key
        for base in cls.__mro__
        if is_users_class(base)
        for key, value in vars(base).items()
        if not isinstance(value, _FIRST)
    }
