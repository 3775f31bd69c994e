"""The order of values of a trace in memory in NumPy, where their ops do not tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....dataclass import dataclass
from ....errors import Loc


@dataclass(frozen=True)
class Copied:
    """A view, which NumPy has in place of a copy.

    Attributes:
        source: the array of which it is a view.
        take: gives the view of an array and of what ``operands`` are; None = it is not known.
        operands: further values.
        loc: the line.
        order: "C" or "F", if it is in this order, and a copy of an array that is not.
    """

    source: int
    take: Callable[..., Any] | None = None
    operands: tuple[int, ...] = ()
    loc: Loc | None = None
    order: str | None = None


@dataclass(frozen=True)
class Laid:
    """The order of the axes of a value in memory in NumPy.

    Attributes:
        sources: arrays on which that depends.
        make: what makes an array that lies so of arrays that lie as they do.
    """

    sources: tuple[int, ...]
    make: Callable[..., Any]


class Layouts:
    """The notes of one trace on the memory of values.

    Attributes:
        unordered: values in the memory order of another array; None = in any.
        laid: values in an order that their ops do not tell.
        raveled: reshapes that copy what is not contiguous.
        copied: copies where NumPy has views.
    """

    def __init__(self) -> None:
        self.unordered: dict[int, Laid | None] = {}
        self.laid: dict[int, Laid] = {}
        self.raveled: dict[int, Copied] = {}
        self.copied: dict[int, Copied] = {}

    def copies(self) -> dict[int, Copied]:
        """All copies in whose place NumPy has, or may have, views."""
        return self.copied | self.raveled

    def orders(self) -> dict[int, Laid]:
        """The values whose order follows from that of others."""
        return self.laid | {v: laid for v, laid in self.unordered.items() if laid is not None}
