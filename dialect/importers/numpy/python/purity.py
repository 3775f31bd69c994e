"""The calls of C functions and the modules that are known to be pure: a trace may run them.

Pure are functions whose results follow from their arguments, and which change nothing but these.
The table is one of permissions: what it does not name makes a function Python's. Users extend it
by calling `pure`.
"""

from __future__ import annotations

import _thread
import enum
import functools
import operator
import threading
import types
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from .generators import is_generator
from .instances import HEAP_TYPE, PLAIN_TYPES

_Any = TypeVar("_Any")
_IMMUTABLE = 1 << 8  # in `__flags__` of classes that C code makes at run time
_LOCKS = (type(threading.Lock()), type(threading.RLock()))
CACHED = type(functools.lru_cache(lambda: None))  # the class of what keeps its results
# What modules of packages hold, and nobody binds anew.
CODE = (types.FunctionType, types.BuiltinFunctionType, type, types.ModuleType, np.ufunc)
# Modules of C functions that are pure, but for those named here.
_FUNCTIONS: dict[str, frozenset[str]] = {
    "builtins": frozenset({"breakpoint", "id", "input", "open", "print"}),
    "numpy": frozenset(
        {
            "fromfile",
            "_load_from_filelike",
            "set_string_function",
            "setbufsize",
            "seterrobj",
            "set_numeric_ops",
            "set_typeDict",
            "_make_extobj",
        }
    ),
    "ml_dtypes": frozenset(),
    **dict.fromkeys(
        (
            "_abc",
            "_ast",
            "_bisect",
            "_codecs",
            "_collections",
            "_collections_abc",
            "_datetime",
            "_functools",
            "_heapq",
            "_json",
            "_opcode",
            "_operator",
            "_sre",
            "_statistics",
            "_string",
            "_struct",
            "_typing",
            "_weakref",
            "binascii",
            "cmath",
            "collections",
            "copyreg",
            "datetime",
            "functools",
            "itertools",
            "marshal",
            "math",
            "operator",
            "re",
            "struct",
            "types",
            "unicodedata",
            "zlib",
        ),
        frozenset(),
    ),
}
_READS_FILES = ("scipy.io", "scipy.datasets")
# Of other modules, the functions that are pure.
_SOME = {
    "sys": frozenset({"_getframe", "_getframemodulename", "exc_info", "getprofile", "intern", "setprofile"}),
    "time": frozenset({"strftime", "strptime"}),
}
# Classes of C code whose methods read and change nothing but their object and their arguments.
_KINDS = frozenset({"builtins", "collections", "functools", "itertools", "operator", "re", "types"})
_CLOCKS = frozenset({"fromtimestamp", "now", "today", "utcfromtimestamp", "utcnow", "timestamp"})
_FILES = frozenset({"dump", "tofile"})
# Methods that tell, or change, what nobody compares: of `functools.lru_cache`, and of classes.
_HIDDEN = frozenset({"cache_clear", "cache_info", "__subclasses__"})
# Modules written in Python that keep nothing which a result could depend on.
_PYTHON = frozenset(
    {
        "abc",
        "ast",
        "calendar",
        "cmath",
        "collections",
        "contextlib",
        "copy",
        "copyreg",
        "dataclasses",
        "datetime",
        "dis",
        "enum",
        "fractions",
        "functools",
        "heapq",
        "inspect",
        "ipaddress",
        "itertools",
        "json",
        "keyword",
        "math",
        "numbers",
        "numpy",
        "operator",
        "pprint",
        "profuse",
        "re",
        "reprlib",
        "statistics",
        "string",
        "textwrap",
        "types",
        "typing",
        "uuid",
        "weakref",
        "_collections_abc",
        "_weakrefset",
        "_py_abc",
        "genericpath",
        "posixpath",
        "bisect",
    }
)

_PLAIN_BASES = frozenset(
    {
        object,
        dict,
        list,
        set,
        frozenset,
        tuple,
        deque,
        str,
        bytes,
        int,
        float,
        complex,
        np.ndarray,
        OrderedDict,
        type,
        types.ModuleType,
        types.SimpleNamespace,
    }
)
_VALUES = frozenset(
    {
        *PLAIN_TYPES,
        type(NotImplemented),
        frozenset,
        object,
        types.FunctionType,
        property,
        classmethod,
        staticmethod,
        types.CodeType,
        types.GenericAlias,
        types.MappingProxyType,
        types.BuiltinFunctionType,
        types.MethodWrapperType,
        types.WrapperDescriptorType,
        types.MethodDescriptorType,
        types.ClassMethodDescriptorType,
        types.MemberDescriptorType,
        types.GetSetDescriptorType,
    }
)
# Modules whose objects are values, or whose state is seen elsewhere.
_OF_VALUES = frozenset(
    {
        "_ast",
        "_collections",
        "ast",
        "collections",
        "dataclasses",
        "datetime",
        "fractions",
        "functools",
        "ipaddress",
        "ml_dtypes",
        "numbers",
        "numpy",
        "operator",
        "pathlib",
        "profuse",
        "re",
        "types",
        "typing",
        "uuid",
        "zoneinfo",
    }
)

_pure: set[Any] = set()  # what users have told
_known: dict[Any, bool] = {}  # functions of C modules


def pure(target: _Any) -> _Any:
    """Tell that a function, or all functions of a module, may run while a function is traced.

    A pure function gives equal results for equal arguments, and changes nothing that outlives it.
    Where a trace calls it on plain values, its result is a constant of the graph, for as long as
    what its arguments were made of stays the same. A call of a function that is not known to be
    pure makes the function that calls it Python's. Can be used as a decorator.

    Args:
        target: a function, a method of a class, or a module.

    Returns the target itself.
    """
    _pure.add(target.__name__ if isinstance(target, types.ModuleType) else target)
    forget()
    return target


def forget() -> None:
    """Ask the table anew: it has changed."""
    _known.clear()
    _is_pure_method.cache_clear()
    is_pure_class.cache_clear()


def is_pure_call(function: Any) -> bool:
    """True if a C function, or a bound method of C code, is known to be pure."""
    owner = function.__self__
    if owner is None or type(owner) is types.ModuleType:
        is_pure = _known.get(function)
        if is_pure is None:
            is_pure = _known[function] = _is_pure_function(function)
        return is_pure
    kind: Any = owner if isinstance(owner, type) else type(owner)
    return _is_pure_method(kind, function.__name__)


def _is_pure_function(function: Callable) -> bool:
    module = getattr(function, "__module__", None) or ""
    if type(function.__self__) is types.ModuleType and not module:  # type: ignore[attr-defined]
        module = function.__self__.__name__  # type: ignore[attr-defined]
    root, name = module.partition(".")[0], function.__name__
    if function in _pure or module in _pure or root in _pure:
        return True
    if module.startswith("numpy.random"):
        return False
    if root == "scipy":
        return not module.startswith(_READS_FILES)
    if root in _FUNCTIONS:
        return name not in _FUNCTIONS[root]
    return name in _SOME.get(root, ())


@functools.lru_cache(maxsize=4096)
def _is_pure_method(kind: Any, name: str) -> bool:
    base = c_base(kind)
    module = base.__module__.partition(".")[0]
    if base in _pure or module in _pure or getattr(base, name, None) in _pure:
        return True
    if module == "datetime":
        return name not in _CLOCKS
    if module == "numpy":
        return not base.__module__.startswith("numpy.random") and name not in _FILES
    return module in _KINDS and name not in _HIDDEN


def c_base(kind: type) -> type:
    """The first class of C code that a class derives from."""
    return next(cls for cls in kind.__mro__ if not is_made_by_python(cls))


def is_made_by_python(cls: type) -> bool:
    """True for a class that a ``class`` statement, or `type`, has made."""
    return cls.__flags__ & (HEAP_TYPE | _IMMUTABLE) == HEAP_TYPE


def is_pure_module(name: str | None) -> bool:
    """True for a module written in Python that keeps nothing a result could depend on."""
    root = (name or "").partition(".")[0]
    return root in _PYTHON or root in _pure or name in _pure


@functools.lru_cache(maxsize=4096)
def is_pure_class(cls: type) -> bool:
    """True unless objects of a class are made by C code of which nothing is known."""
    base = c_base(cls)
    root = base.__module__.partition(".")[0]
    return (
        root in _KINDS or root in _OF_VALUES or root in _pure or base in _pure or cls in _pure
    ) and not base.__module__.startswith("numpy.random")


def is_python_state(kind: type) -> bool:
    """True if objects consist of attributes, and of the items of a container or a number, alone."""
    return c_base(kind) in _PLAIN_BASES or issubclass(kind, BaseException)


def is_value(value: Any, kind: type) -> bool:
    """True for an object that stays as it is, or whose changes are seen elsewhere."""
    if isinstance(value, enum.Enum) or is_generator(value):
        return True  # draws from generators are inputs
    module = kind.__module__
    root = module.partition(".")[0]
    if root in _pure or module in _pure or kind in _pure:
        return True
    if root == "builtins":
        return kind in _VALUES
    if root == "numpy" and is_made_by_python(kind):
        return False
    if root in ("_collections", "collections"):
        return not is_made_by_python(kind) and not hasattr(kind, "__next__")
    if root == "operator":
        return kind is operator.itemgetter  # the others ask for names that nobody sees
    return root in _OF_VALUES and not hasattr(kind, "__next__")


BOUND = (types.BuiltinFunctionType, types.MethodWrapperType)  # to an object, if to any


def bound_to(method: Any) -> Any:
    """The object that a method of C code is bound to; None for a function."""
    owner = method.__self__
    return None if isinstance(owner, (types.ModuleType, type)) else owner


def is_of_numpys(function: Any) -> bool:
    """True for what NumPy's own code may call, such as the context variables of `np.errstate`."""
    module = getattr(function, "__module__", None) or type(function.__self__).__module__
    return module.endswith("contextvars") or function.__name__ == "_make_extobj"


def is_of_pythons(function: Any) -> bool:
    """True for what pure modules of Python's library may call, such as the locks of caches."""
    return type(function.__self__) in _LOCKS or function in (id, _thread.get_ident)


def name_of(function: Any) -> str:
    """A C function as a user would write it."""
    owner = function.__self__
    if owner is None or type(owner) is types.ModuleType:
        module = getattr(function, "__module__", None) or ""
        return f"{module}.{function.__name__}".removeprefix("builtins.").lstrip(".")
    kind = owner if isinstance(owner, type) else type(owner)
    return f"{kind.__name__}.{function.__name__}"
