"""Where the arrays are that emitted code reads.

A *position* is that of an argument, or `Inside` of one. A *ref* names an array: a position, an
array `OnDevice`, or a `Held` one that the graph captured. Sizes (`memory.placement`) that are
read from arrays are ``("dim", ref, axis)`` and ``("elements", ref, axis, bytes)``, a stride in
elements of so many bytes; ``("integer", position)`` is a Python int.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

if TYPE_CHECKING:
    from ..cuda.dlpack_exchange import Exchange


class Held:
    """An object that the emitted code knows by address; compared by identity."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


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
    exchange: Exchange


Ref = Union[Position, Held, OnDevice]
