"""Names for the objects that emitted code reads.

A *position* names an argument (an int), an item of a container among the arguments (`Inside`),
what an argument holds that may be an array of the tape (`OnTape`), what an object from outside
holds (`InState`), or what a function of a library gives (`FromHost`). A *ref* names an array: a
position, a NumPy scalar (`ScalarRef`), an array of another library (`DescribedRef`), or an array that the graph
captured (`Held`). Sizes are expressions (`dialect.ir.symbolic`) over the leaves `Dimension` and
`Stride` of a ref, and `Integer` of a position.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar, Union

from ...dialect.dataclass import dataclass
from ...dialect.ir.symbolic import ArgumentRead

if TYPE_CHECKING:
    from ...dialect.importers.numpy.python.objects import Facet
    from ..exchange.c_functions import Reader


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
    """A result of a function of a library: the value of the graph with this number."""

    value: int


Position = Union[int, Inside, OnTape, InState, FromHost]


@dataclass(frozen=True)
class ScalarRef:
    """A NumPy scalar at a position, which kernels read as an array of rank 0.

    ``is_python``: a complex number of Python's, which has its parts in the same place.
    """

    position: Position
    is_python: bool = False


@dataclass(frozen=True)
class DescribedRef:
    """An array that its library describes: one in the memory of a device, or a tensor of the host.

    Attributes:
        position: position of the argument, or the object that the graph captured.
        itemsize: bytes of an element.
        exchange: the DLPack functions of its library.
    """

    position: Position | Held
    itemsize: int
    exchange: Reader = field(repr=False)


Ref = Union[Position, ScalarRef, Held, DescribedRef]


@dataclass(frozen=True, slots=True, repr=False)
class Stride(ArgumentRead):
    """A leaf of size expressions: the stride of an array, in elements of ``itemsize`` bytes."""

    array: Ref
    axis: int
    itemsize: int
    signed: ClassVar[bool] = True


def position_of(ref: Ref) -> Position | Held:
    """The position of an array, or the captured array."""
    return ref.position if isinstance(ref, (DescribedRef, ScalarRef)) else ref


def is_python_number(ref: Ref) -> bool:
    """True of a number of Python's, whose type alone tells all that a guard would ask."""
    return isinstance(ref, ScalarRef) and ref.is_python
