"""What a trace has handed out in place of objects, and what the code has written there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from ....dataclass import dataclass
from ..python.objects import ATTRIBUTES, TABLE, Facet
from ..tracing.pytree import TreeDef
from .places import Place


@dataclass(eq=False)
class Store:
    """A place that the function writes to.

    Attributes:
        place: of an object from outside, or of a container among the arguments.
        tree: the structure of the new value, with holes for what the graph computes.
        leaves: traced values and numbers for these holes.
        kept: the object from outside that is stored there; `tree` is None then.
        is_new: nothing is there before the call.
    """

    place: Place
    tree: TreeDef | None
    is_new: bool
    leaves: tuple[Any, ...] = ()
    kept: Any = None

    @property
    def count(self) -> int:
        """How many leaves the value has."""
        return 0 if self.tree is None else self.tree.leaves

    def value(self, leaves: Sequence[Any]) -> Any:
        """The value, with these leaves."""
        return self.kept if self.tree is None else self.tree.unflatten(leaves)


@dataclass(eq=False)
class Entry:
    """One facet of an object with a shadow, and what the shadow held at first, by key.

    A container that a trace makes for one among the arguments is the shadow of a `Node`.
    """

    original: Any
    shadow: Any
    facet: Facet
    name: str
    held: dict[Any, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.held = self.found()

    def found(self) -> dict[Any, Any]:
        """What the shadow holds now, by key."""
        return self.facet.keyed(self.facet.copy(self.shadow))

    @property
    def is_as_made(self) -> bool:
        """True if nothing has been written."""
        found, held = self.found(), self.held
        if found.keys() != held.keys() or not all(found[k] is held[k] for k in found):
            return False
        return self.keeps_order(found)

    def keeps_order(self, found: dict[Any, Any]) -> bool:
        """Whether the keys that there were are the first ones, in their order, if they have any."""
        pairs = zip(found, self.held, strict=False)
        return self.facet not in (TABLE, ATTRIBUTES) or all(a is b or a == b for a, b in pairs)


__all__ = ["Entry", "Store"]
