"""Pickling of jitted functions: by name where a name leads to them, else with the Python function.

A pickled function carries no profiles and no plans: it is traced anew where it is loaded.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, SupportsIndex

from ..tiers.profiling import Options

if TYPE_CHECKING:
    from .jit import JitFunction

_BY_NAME = "._by_name"  # the property of `JitFunction`


def reduced(
    jitted: JitFunction, fn: Callable[..., Any], options: Options, protocol: SupportsIndex
) -> str | tuple:
    """The result of ``__reduce_ex__`` for a jitted function.

    If ``jitted`` can be imported by its name, it is pickled by name. Picklers such as cloudpickle
    pickle functions of some modules (``__main__``) by value; `JitFunction._by_name` gives them a
    plain function, so that they can decide.
    """
    kind = type(jitted)
    name = getattr(jitted, "__qualname__", "")
    if _named(jitted.__module__, name) is not jitted:
        return kind, (fn, options)
    if jitted._by_name is None or operator.index(protocol) < 4:  # before 4, no dotted names
        return name
    # The names are restored as state, because a recursive function refers to itself.
    names = {key: getattr(jitted, key) for key in ("__module__", "__name__", "__qualname__")}
    return _restored, (kind, jitted._by_name, options), names


def importable(fn: FunctionType, module: str, name: str) -> FunctionType:
    """A copy of ``fn`` that can be imported from ``module`` as ``<name>._by_name``."""
    made = FunctionType(fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
    made.__kwdefaults__, made.__module__ = fn.__kwdefaults__, module
    made.__doc__, made.__annotations__ = fn.__doc__, fn.__annotations__
    made.__qualname__ = f"{name}{_BY_NAME}"
    return made


def _named(module: str, name: str) -> Any:
    """The object with a dotted name in a module; None = there is none."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _restored(kind: type[JitFunction], fn: FunctionType, options: Options) -> JitFunction:
    """Unpickle a jitted function: the existing one whose `_by_name` is ``fn``, or a new one."""
    name = getattr(fn, "__qualname__", "").removesuffix(_BY_NAME)
    owner = _named(fn.__module__, name)
    if isinstance(owner, kind) and owner._by_name is fn:
        return owner
    fn.__qualname__ = name
    return kind(fn, options)
