"""The shadows that a trace has handed out in place of objects, and what the code has written there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from ....dataclass import dataclass
from ....trees.pytree import TreeDef
from ..python.objects import ATTRIBUTES, TABLE, Facet
from .places import Place


@dataclass(eq=False)
class PlaceStore:
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
        """The number of leaves of the value."""
        return 0 if self.tree is None else self.tree.leaves

    def value(self, leaves: Sequence[Any]) -> Any:
        """The value, with these leaves."""
        return self.kept if self.tree is None else self.tree.unflatten(leaves)


@dataclass(eq=False)
class ShadowFacet:
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
        """The values that the shadow holds now, by key."""
        return self.facet.keyed(self.facet.copy(self.shadow))

    @property
    def is_as_made(self) -> bool:
        """True if nothing has been written."""
        now, before = self.found(), self.held
        if now.keys() != before.keys() or not all(now[k] is before[k] for k in now):
            return False
        return self.keeps_order(now)

    def keeps_order(self, now: dict[Any, Any]) -> bool:
        """True if the keys that there were are the first ones, in their order, if they have any."""
        pairs = zip(now, self.held, strict=False)
        return self.facet not in (TABLE, ATTRIBUTES) or all(a is b or a == b for a, b in pairs)
