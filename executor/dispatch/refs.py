"""Where the arrays are that emitted code reads.

A *position* is that of an argument, or `Inside` of one. A *ref* names an array: a position, an
array `OnDevice`, or a `Held` one that the graph captured. Sizes (`dialect.ir.symbolic`) are
expressions over each `Dimension` of a ref, each `Stride`, and the `Integer` at a position.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Union

from ...dialect.ir.symbolic import Read

if TYPE_CHECKING:
    from ..cuda.exchange.dlpack_exchange import Exchange


class Held:
    """An object that the emitted code knows by address; compared by identity."""

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
    """An item of a container that is an argument, or inside of one."""

    holder: Position
    index: int


Position = Union[int, Inside]


@dataclass(frozen=True)
class OnDevice:
    """An argument in a device's memory, which its library describes.

    Attributes:
        position: of the argument.
        itemsize: bytes of an element.
        exchange: of its library.
    """

    position: Position
    itemsize: int
    exchange: Exchange = field(repr=False)


Ref = Union[Position, Held, OnDevice]


@dataclass(frozen=True, slots=True, repr=False)
class Stride(Read):
    """A leaf of sizes: the stride of an array, in elements of ``itemsize`` bytes."""

    array: Ref
    axis: int
    itemsize: int
    signed: ClassVar[bool] = True
