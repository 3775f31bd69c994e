"""Pickling of jitted functions: by name where a name leads to them, else with the Python function.

A pickled function carries no profiles and no plans: it is traced anew where it is loaded.
"""

from __future__ import annotations

import operator
import sys
from types import FunctionType
from typing import TYPE_CHECKING, Any, SupportsIndex

from ..tiers.profiling import Options

if TYPE_CHECKING:
    from .function import GraphFunction
    from .numpy_source import NumPySource

_BY_NAME = "._by_name"  # the property of `GraphFunction`


def reduced(jitted: GraphFunction, source: NumPySource, protocol: SupportsIndex) -> str | tuple:
    """The result of ``__reduce_ex__`` for a jitted function.

    If ``jitted`` can be imported by its name, it is pickled by name. Picklers such as cloudpickle
    pickle functions of some modules (``__main__``) by value; `GraphFunction._by_name` gives them a
    plain function, so that they can decide.
    """
    options = jitted._options
    name = getattr(jitted, "__qualname__", "")
    if _named(jitted.__module__, name) is not jitted:
        return type(jitted), (source, options)
    if jitted._by_name is None or operator.index(protocol) < 4:  # before 4, no dotted names
        return name
    # The names are restored as state, because a recursive function refers to itself.
    names = {key: getattr(jitted, key) for key in ("__module__", "__name__", "__qualname__")}
    return _restored, (type(jitted), type(source), jitted._by_name, options), names


def importable(fn: FunctionType, module: str, name: str) -> FunctionType:
    """A copy of ``fn`` that can be imported from ``module`` as ``<name>._by_name``."""
    copy = FunctionType(fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
    copy.__kwdefaults__, copy.__module__ = fn.__kwdefaults__, module
    copy.__doc__, copy.__annotations__ = fn.__doc__, fn.__annotations__
    copy.__qualname__ = f"{name}{_BY_NAME}"
    return copy


def _named(module: str, name: str) -> Any:
    """The object with a dotted name in a module; None = there is none."""
    value: Any = sys.modules.get(module)
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def _restored(
    kind: type[GraphFunction], source: type[NumPySource], fn: FunctionType, options: Options
) -> GraphFunction:
    """Unpickle a jitted function: the existing one whose `_by_name` is ``fn``, or a new one."""
    name = getattr(fn, "__qualname__", "").removesuffix(_BY_NAME)
    owner = _named(fn.__module__, name)
    if isinstance(owner, kind) and owner._by_name is fn:
        return owner
    fn.__qualname__ = name
    return kind(source(fn), options)
