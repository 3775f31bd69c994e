"""The objects that stand in a trace for those whose state nobody can compare: locks, files, connections.

Their state is C code's own, or outside of the program. A function that uses one is Python's, and
finds that out before it does: a lock that a trace took would be taken once, and at no later call.
"""

from __future__ import annotations

from typing import Any

from ....ir.device import is_foreign
from ..python.purity import is_python_state, is_value
from ..tracing.current import world_error

# What Python looks up on classes when code uses an object, but for ``is`` and `isinstance`.
_USES = (
    "add",
    "aenter",
    "aexit",
    "aiter",
    "and",
    "anext",
    "await",
    "bool",
    "bytes",
    "call",
    "complex",
    "contains",
    "delattr",
    "delitem",
    "divmod",
    "enter",
    "eq",
    "exit",
    "float",
    "floordiv",
    "format",
    "ge",
    "getitem",
    "gt",
    "hash",
    "iadd",
    "iand",
    "index",
    "int",
    "invert",
    "ior",
    "iter",
    "le",
    "len",
    "lshift",
    "lt",
    "matmul",
    "mod",
    "mul",
    "ne",
    "neg",
    "next",
    "or",
    "pos",
    "pow",
    "radd",
    "rand",
    "repr",
    "rfloordiv",
    "rmatmul",
    "rmod",
    "rmul",
    "ror",
    "rpow",
    "rshift",
    "rsub",
    "rtruediv",
    "setattr",
    "setitem",
    "str",
    "sub",
    "truediv",
    "xor",
)


class Hidden:
    """An object that a trace has met and must not use.

    Args:
        original: the object.
        name: what the user calls it.
    """

    __slots__ = ("_kind", "_name")

    def __init__(self, original: Any, name: str) -> None:
        object.__setattr__(self, "_kind", type(original))
        object.__setattr__(self, "_name", name)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return object.__getattribute__(self, "_kind")

    def __getattr__(self, name: str) -> Any:
        raise hidden_error(self._name, self._kind)


def is_hidden(value: Any, kind: type) -> bool:
    """True for an object of C whose state nobody can compare."""
    return not (is_python_state(kind) or is_value(value, kind) or is_foreign(value))


def check_seen(value: Any, name: str) -> None:
    """Raise TraceError for an object of C that code which has no shadows may use."""
    if is_hidden(value, type(value)):
        raise hidden_error(name, type(value))


def hidden_error(name: str, kind: type) -> Exception:
    """The error for code that uses an object whose state nobody can compare."""
    return world_error(
        f"the function uses {name}, a {kind.__name__}, whose state nobody can compare: it may be "
        "another at each call, unseen",
        "use it outside of the function, and pass what it gives as an argument",
    )


def _refused(self: Hidden, *args: Any, **kwargs: Any) -> Any:
    kind = object.__getattribute__(self, "_kind")
    raise hidden_error(object.__getattribute__(self, "_name"), kind)


for _use in _USES:
    setattr(Hidden, f"__{_use}__", _refused)
