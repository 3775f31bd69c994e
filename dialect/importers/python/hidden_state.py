"""Objects of packages and of Python whose state only their own code tells.

What a function reads of an object's attributes is compared at each call. What a method, a property
or an operator computes of the object is not, so that it would be a constant of the graph: a length
of a queue, an edge of a graph. Functions that may ask for it are Python's.
"""

from __future__ import annotations

import array
import inspect
import os
import sys
import types
import weakref
from collections.abc import Collection
from contextvars import ContextVar
from typing import Any

from .journal import is_of_c

_CHANGING = (
    bytearray, memoryview, array.array, ContextVar, types.MappingProxyType, weakref.ref,
)  # fmt: skip
_OF_CONTAINERS = ("__len__", "__getitem__", "__iter__", "__contains__")
# Packages, or modules of them, whose objects are values: what they compute stays the same.
_VALUES = frozenset({
    "abc", "ast", "dataclasses", "datetime", "decimal", "enum", "fractions", "functools",
    "inspect", "ipaddress", "logging", "numbers", "operator", "pathlib", "re", "string", "types",
    "typing", "uuid", "warnings", "zoneinfo", "scipy.stats",
})  # fmt: skip
_ENVIRONMENT = {
    "environ", "environb", "exists", "getcwd", "getenv", "getmtime", "getsize", "isdir", "isfile",
    "listdir", "scandir", "stat",
}  # fmt: skip


def hidden_state(value: Any, kind: type, names: Collection[str]) -> str | None:
    """What code with these names may ask an object for that nobody can compare; None = nothing.

    ``value`` is no container, and no object of a class of the user's.
    """
    if value is os.getenv or (value is os and not _ENVIRONMENT.isdisjoint(names)):
        return "the environment"
    if is_of_c(kind) or issubclass(kind, _CHANGING):
        return "what it holds"
    if hasattr(kind, "__next__"):
        return "its next item"
    if type(getattr(value, "__dict__", None)) is not dict or _is_value(kind):
        return None
    if any(hasattr(kind, name) for name in _OF_CONTAINERS):
        return "what it holds"
    held = vars(value)
    others = (key for key in sorted(names) if key not in held and not key.startswith("__"))
    asked = next((key for key in others if _is_computed(kind, key)), None)
    return None if asked is None else f"what it computes as {asked}"


def _is_computed(kind: type, key: str) -> bool:
    found = inspect.getattr_static(kind, key, None)
    return isinstance(found, (types.FunctionType, types.MethodDescriptorType, property))


def _is_value(kind: type) -> bool:
    module = kind.__module__
    parts = module.split(".")
    if any(".".join(parts[: k + 1]) in _VALUES for k in range(len(parts))):
        return True
    if parts[0] != "numpy":
        return False
    return getattr(sys.modules.get(module), kind.__name__, None) is kind


__all__ = ["hidden_state"]
