"""Python numbers of a specialisation: passed, held by the graph, or computed of others."""

from __future__ import annotations

import struct
from typing import ClassVar, Union

from ...dialect.dataclass import dataclass
from ...dialect.ir.symbolic import Dim
from .refs import Position

# Of `math`, what CPython leaves to the C library. Without a finite result, Python may raise.
LIBRARY = (
    "sqrt",
    "exp",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "fabs",
    "erf",
    "atan2",
    "copysign",
    "fmod",
)


@dataclass(frozen=True)
class NumberValue:
    """A Python number among the arguments; ``kind``: bool, int or float."""

    position: Position
    kind: type


@dataclass(frozen=True, eq=False)
class KnownNumber:
    """A Python number that the graph holds, an int of 64 bits or a float."""

    value: int | float

    @property
    def kind(self) -> type:
        """The number's type."""
        return type(self.value)

    def text(self) -> str:
        """The number in LLVM IR, as a double or an i64."""
        if isinstance(self.value, float):
            return f"0x{struct.unpack('<Q', struct.pack('<d', self.value))[0]:016X}"
        return str(self.value)


@dataclass(frozen=True)
class SizeNumber:
    """A size of an array, as a Python int."""

    size: Dim
    kind: ClassVar[type] = int


@dataclass(frozen=True, eq=False)
class ComputedNumber:
    """A Python number computed of others.

    Attributes:
        kind: int or float.
        op: ``add``, ``sub``, ``mul``, ``div``, ``pow``, ``neg``, of ints also ``//``, ``%``,
            ``max`` and ``min``, or a function of the C library.
        operands: what it is computed of.
    """

    kind: type
    op: str
    operands: tuple[NumberValue | KnownNumber | SizeNumber | ComputedNumber, ...]


Number = Union[NumberValue, KnownNumber, SizeNumber, ComputedNumber]
NUMBERS = (NumberValue, KnownNumber, SizeNumber, ComputedNumber)
