"""Names for the objects that emitted code reads.

A *position* names an argument (an int), or an item of a container among the arguments (`Inside`).
A *ref* names an array: a position, an array on a device (`OnDevice`), or an array that the graph
captured (`Held`). Sizes are expressions (`dialect.ir.symbolic`) over the leaves `Dimension` and
`Stride` of a ref, and `Integer` of a position.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar, Union

from ...dialect.dataclass import dataclass
from ...dialect.ir.symbolic import Read

if TYPE_CHECKING:
    from ..cuda.exchange.dlpack_exchange import Exchange


class Held:
    """An object that emitted code finds in its table; equality compares identities of objects."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)

    def __repr__(self) -> str:
        return f"Held({id(self.value)})"


@dataclass(frozen=True)
class Inside:
    """The item at ``index`` of the container at the position ``holder``."""

    holder: Position
    index: int


Position = Union[int, Inside]


@dataclass(frozen=True)
class OnDevice:
    """An array argument in the memory of a device.

    Attributes:
        position: position of the argument.
        itemsize: bytes of an element.
        exchange: the DLPack functions of its library.
    """

    position: Position
    itemsize: int
    exchange: Exchange = field(repr=False)


Ref = Union[Position, Held, OnDevice]


@dataclass(frozen=True, slots=True, repr=False)
class Stride(Read):
    """A leaf of size expressions: the stride of an array, in elements of ``itemsize`` bytes."""

    array: Ref
    axis: int
    itemsize: int
    signed: ClassVar[bool] = True
