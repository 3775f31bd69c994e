"""Sizes that emitted code works out, and the arrays that it reads them from.

A *size* is an int, ``("dim", ref, axis)``, ``("elements", ref, axis, bytes)`` (a stride, in
elements of so many bytes), ``("integer", place)`` (a Python int) or ``(operator, size, size)``. A
*place* is the position of an argument, or `Inside` of one. A *ref* names an array: a place, an
array `OnDevice`, or a `Held` one that the graph captured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

from ...dialect.symbolic import BINARY, Dim

if TYPE_CHECKING:
    from ..cuda.exchange import Exchange

Size = Union[int, tuple]


class Refused(Exception):
    """The plan cannot be dispatched natively; the text says why."""


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

    holder: Place
    index: int


Place = Union[int, Inside]


@dataclass(frozen=True)
class OnDevice:
    """An argument in a device's memory, which its library describes.

    Attributes:
        place: of the argument.
        itemsize: bytes of an element.
        exchange: of its library.
    """

    place: Place
    itemsize: int
    exchange: Exchange


Ref = Union[Place, Held, OnDevice]


def bytes_of(itemsize: int, sizes: tuple[Size, ...]) -> Size:
    """Bytes of an array."""
    known, rest = itemsize, []
    for size in sizes:
        if isinstance(size, int):
            known *= size
        else:
            rest.append(size)
    total: Size = known
    for size in rest:
        total = ("*", total, size)
    return total if known else 0


def size_of(dim: Dim, symbols: Mapping[str, Size]) -> Size:
    """A size expression over symbols that stand for sizes; raises Refused."""
    if isinstance(dim, int):
        return dim

    def binary(op: str, a: Size, b: Size) -> Size:
        if op in ("//", "%") and not (isinstance(b, int) and b > 0):
            raise Refused(f"a size is divided by another one ({dim})")
        return BINARY[op](a, b) if isinstance(a, int) and isinstance(b, int) else (op, a, b)

    try:
        return dim.fold(lambda name: symbols[name], int, binary)
    except KeyError as error:
        raise Refused(f"size symbol {error} is not bound") from None
