"""Objects that are part of a structure: which ones are equal, and so share a graph.

Texts, dtypes, enums and other values of libraries are, where Python says so. An object of a class
of the user's is equal to itself alone: what its ``__eq__`` compares need not be all that the
function reads, and neither that nor its ``__hash__`` is called here.
"""

from __future__ import annotations

import enum
import sys
from typing import Any

_OF_VALUES = frozenset({"builtins", "numpy", "ml_dtypes", "profuse"})


class Same:
    """An object that is equal to itself alone."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is Same and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)

    def __repr__(self) -> str:
        return repr(self.value)


class Generator:
    """A generator in a structure, equal to any other: which one it is, calls look up.

    ``number``: of the different generators among the arguments.
    """

    __slots__ = ("number", "value")

    def __init__(self, number: int, value: Any) -> None:
        self.number, self.value = number, value

    def __eq__(self, other: object) -> bool:
        return type(other) is Generator and self.number == other.number

    def __hash__(self) -> int:
        return hash((Generator, self.number))

    def __repr__(self) -> str:
        return type(self.value).__name__


def in_structure(value: Any) -> Any:
    """The key that stands for an object in a structure; raises TypeError for a value without a hash."""
    if is_compared_by_value(type(value)):
        try:
            hash(value)
        except Exception as error:  # a ValueError of memory that may be written to
            raise TypeError(f"{type(value).__name__} has no hash") from error
        return value
    return Same(value)


def real(static: Any) -> Any:
    """The object that something in a structure stands for."""
    return static.value if type(static) in (Same, Generator) else static


def is_compared_by_value(kind: type) -> bool:
    """True for classes whose ``__eq__`` tells whether objects are interchangeable."""
    if issubclass(kind, enum.Enum):
        return True
    root = kind.__module__.partition(".")[0]
    return root in _OF_VALUES or root in sys.stdlib_module_names
