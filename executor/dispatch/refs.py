"""Names for the objects that emitted code reads.

A *position* names an argument (an int), an item of a container among the arguments (`Inside`),
what an argument holds that may be an array of the tape (`OnTape`), what an object from outside
holds (`InState`), or what a function of a library gives (`FromHost`). A *ref* names an array: a
position, a NumPy scalar (`Scalar`), an array on a device (`OnDevice`), or an array that the graph
captured (`Held`). Sizes are expressions (`dialect.ir.symbolic`) over the leaves `Dimension` and
`Stride` of a ref, and `Integer` of a position.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar, Union

from ...dialect.dataclass import dataclass
from ...dialect.ir.symbolic import Read

if TYPE_CHECKING:
    from ...dialect.importers.numpy.python.objects import Facet
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


@dataclass(frozen=True)
class OnTape:
    """The elements of the `Array` at a position; if another object is there, that object."""

    position: Union[int, Inside]


@dataclass(frozen=True)
class InState:
    """A place outside of the call (`world.places.Place`) that emitted code can look at.

    Attributes:
        facet: of the object.
        holder: the object.
        key: name, key or index there.
    """

    facet: Facet
    holder: Held
    key: Held


@dataclass(frozen=True)
class FromHost:
    """What a function of a library has given: the value of the graph with this number."""

    value: int


Position = Union[int, Inside, OnTape, InState, FromHost]


@dataclass(frozen=True)
class Scalar:
    """A NumPy scalar at a position, which kernels read as an array of rank 0.

    ``is_python``: a complex number of Python's, which has its parts in the same place.
    """

    position: Position
    is_python: bool = False


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


Ref = Union[Position, Scalar, Held, OnDevice]


@dataclass(frozen=True, slots=True, repr=False)
class Stride(Read):
    """A leaf of size expressions: the stride of an array, in elements of ``itemsize`` bytes."""

    array: Ref
    axis: int
    itemsize: int
    signed: ClassVar[bool] = True


def position_of(ref: Ref) -> Position | Held:
    """The position of an array, or the captured array."""
    return ref.position if isinstance(ref, (OnDevice, Scalar)) else ref


def is_python_number(ref: Ref) -> bool:
    """True of a number of Python's, whose type alone tells all that a guard would ask."""
    return isinstance(ref, Scalar) and ref.is_python
