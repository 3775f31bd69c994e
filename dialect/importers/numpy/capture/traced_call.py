"""A call that is traced once or several times, until nothing new comes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ....errors import Loc, TraceError
from ....ops.control_flow.control import LOOPS
from ....trees.pytree import TreeDef, leaf_names
from ..tracing.recorder import Recorder
from ..world.effects import labelled
from ..world.places import Place
from ..world.stores import PlaceStore
from .trace import kind_of_slot

if TYPE_CHECKING:
    pass


_RESTARTS = 16  # of one trace for what it assigns; a call that needs more has no graph


class Restart(Exception):
    """A trace has found effects, and is to begin anew with what the call has noted of them."""


class TracedCall:
    """The call that is traced, and what earlier traces of it have found.

    Attributes:
        leaves: example values of the graph's inputs: the argument leaves, then the slots.
        names: what the user calls them.
        slots: attributes and items that the function assigns.
        shadowed: the function gets shadows of what it reads; else the objects themselves, of which
            it may read plain values, but not change them.
        lifts_new: arrays that NumPy makes meanwhile are traced values, to which others can be
            written, but whose contents Python cannot read.
        lazy_sizes: `len` gives traced sizes; else numbers, which some functions need.
        plain: what was raised before that, and is to be told if it helps nothing.
        fixable: so many arguments become constants of the graph if they are ints and decide sizes.
        fixed: these, and the lines that need them.
    """

    def __init__(self, fn: Callable[..., Any], leaves: list[Any], in_tree: TreeDef, *, writes: bool) -> None:
        self.fn, self.in_tree, self.writes = fn, in_tree, writes
        self.arguments = leaves
        self.argument_names = tuple(leaf_names(fn, in_tree))
        self.slots: list[Place] = []
        self.values: list[Any] = []
        self.shadowed = True
        self.lifts_new, self.lazy_sizes = False, True
        self.plain: TraceError | None = None
        self.memory: dict[str, Any] = {}  # see `Recorder.memory`
        self.restarts = 0
        self.fixable = 0
        self.fixed: dict[int, Loc | None] = {}

    @property
    def leaves(self) -> list[Any]:
        return [*self.arguments, *self.values]

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.argument_names, *(slot.name for slot in self.slots))

    def statics(self) -> list[tuple[Any, str]]:
        """The arguments that are no leaves, and what the user calls them."""
        args, kwargs = self.in_tree.unflatten(self.arguments)
        labels = {id(value): label for value, label in labelled(args, kwargs, self.fn)}
        return [(value, labels.get(id(value), "an argument")) for value in self.in_tree.statics()]

    def fixes(self, rec: Recorder) -> bool:
        """Make constants of the ints that have decided sizes; True if there are new ones.

        Graphs with loops keep them: loops of few rounds would be recorded round by round.
        """
        is_new = not rec.numbers.size_leaves.keys() <= self.fixed.keys()
        if not is_new or any(instr.op in LOOPS for instr in rec.program.body.walk()):
            return False
        self.fixed |= rec.numbers.size_leaves
        return True

    def learns(self, error: Exception, rec: Recorder) -> bool:
        """True if a new trace may end otherwise than with this error."""
        if isinstance(error, TraceError) and (error.of_world or not error.is_undone):
            return False
        if self.fixed:
            self.fixable, self.fixed = 0, {}
            return True
        if rec.gave_sizes and self.lazy_sizes:
            self.lazy_sizes = False
            return True
        if isinstance(error, TraceError) and rec.writes_new and not self.lifts_new:
            self.lifts_new, self.plain = True, error
            return True
        shadows = rec.shadows
        if shadows is not None and not shadows.is_empty and not shadows.has_hidden:
            self.shadowed = False
            self.lifts_new, self.plain = False, None
            self.slots, self.values = [], []
            return True
        return False

    def note(self, stores: Sequence[PlaceStore]) -> None:
        """Make slots of the places that are assigned; raises `Restart` if there are new ones."""
        ids = {slot.id for slot in self.slots}
        new = [s.place for s in stores if s.place.id not in ids]
        places = [place for place in new if kind_of_slot(place) is not None]
        if places:
            self.restarts += 1
            if self.restarts > _RESTARTS:
                raise TraceError(
                    "each trace assigns attributes or items of other objects than the one before",
                    hint="make the objects outside of the function",
                )
            self.slots += places
            self.values += [place.find() for place in places]
            raise Restart
