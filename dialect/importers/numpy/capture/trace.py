"""The product of tracing: a graph, and all that calls it holds for."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from ....dataclass import dataclass
from ....ir.program import Module
from ....ir.types import Type
from ....ops.indexing.inplace import Borrow
from ....trees.leaves import kind_of, memory_of
from ....trees.pytree import TreeDef
from ..python.generators import is_plain_generator
from ..python.objects import CONTENTS
from ..tracing.layouts import Copied, Laid
from ..tracing.trace_guards import TraceGuard
from ..world.places import Place, StateRead
from ..world.stores import PlaceStore

if TYPE_CHECKING:
    from ..tracing.quick_guards import QuickGuards
    from ..world.draws import Draw
    from ..world.given import Containers

_ASKED_OFTEN = 4  # calls that Python dispatches, after which it pays to compile guards


@dataclass
class Trace:
    """A function as a graph.

    The graph holds for every call with the same argument structure, Python-number types, dtypes
    and ranks for which `accepts` is true; sizes and values of Python numbers are free otherwise.

    Attributes:
        module: inputs are the argument leaves, then ``captured``, then what is drawn; outputs the
            result's leaves.
        in_tree: structure of ``(args, kwargs)``.
        out_tree: structure of the result.
        captured: arrays the function closes over, by reference; a device's among them.
        guards: numbers that tracing baked into the graph.
        kinds: per argument leaf, `leaves.leaf_kind`.
        names: per argument leaf, what the user calls it.
        strict: the function asks for strict fusion (R1.46).
        remarks: sentences on how the graph was made.
        slots: attributes and items that the function assigns. What they hold before the call are
            inputs of the graph, after the argument leaves.
        stores: what the function assigns, in order.
        writes: inputs whose arrays the function writes to, in order. What they hold afterwards are
            the last outputs of the graph, one each.
        sources: for each leaf of the result, and after these for each leaf of ``stores``, the
            number of an output, or ``~k`` for input ``k`` itself; None = the outputs are the leaves
            of the result. Containers among the arguments are numbered behind the inputs.
        containers: these, if there are effects and any containers.
        reads: what the function has read from outside of the call; the graph holds for that alone.
        lends: the graph writes to arrays of the caller's where they are, if it may (`Borrow`).
        draws: what each call draws from random generators before the graph runs, in order.
        generators: those that the function reads, if others are arguments: the code was traced for
            different ones, so that calls with one of these are left to Python.
        held: per captured array of the host, its dtype and shape. Plain Python code may have read
            either, so that the graph holds for these alone.
        plain: arrays from outside that the code has got as they are: the graph holds for their
            contents alone.
        hints: what is known of the values of the graph, for who admits it; empty afterwards.
        copied: copies where NumPy has views, likewise.
        laid: how values lie in memory, where their ops do not tell, likewise.
        is_native: arrays in a foreign byte order would be treated in another way.
        overwrites: the function writes to arrays under `no_grad`.
        notes_writes: it writes to arrays elsewhere, which the tape would note.
        asks_for_gradients: it switches gradient mode on, whatever the mode of the caller is.
    """

    module: Module
    in_tree: TreeDef
    out_tree: TreeDef
    captured: list[Any]
    guards: list[TraceGuard]
    kinds: tuple[Any, ...] = ()
    names: tuple[str, ...] = ()
    strict: bool = False
    remarks: tuple[str, ...] = ()
    reads: tuple[StateRead, ...] = ()
    slots: tuple[Place, ...] = ()
    stores: tuple[PlaceStore, ...] = ()
    writes: tuple[int, ...] = ()
    sources: tuple[int, ...] | None = None
    containers: Containers | None = None
    draws: tuple[Draw, ...] = ()
    generators: tuple[Any, ...] = ()
    hints: dict[int, Type] = field(default_factory=dict)
    copied: dict[int, Copied] = field(default_factory=dict)
    laid: dict[int, Laid] = field(default_factory=dict)
    is_native: bool = False
    overwrites: bool = False
    notes_writes: bool = False
    asks_for_gradients: bool = False
    held: tuple[tuple[Any, ...] | None, ...] = field(init=False)
    lends: bool = field(init=False)
    plain: tuple[np.ndarray, ...] = field(init=False)
    _quick: QuickGuards | None = field(init=False, default=None, repr=False, compare=False)
    _asked: int = field(init=False, default=0, repr=False, compare=False)

    def __post_init__(self) -> None:
        places = (read.place for read in self.reads)
        self.plain = tuple([np.asarray(p.holder) for p in places if p.facet is CONTENTS])
        self.held = self._held()
        self.lends = bool(self.writes) and any(i.op is Borrow for i in self.module.main.body.instrs)

    def _held(self) -> tuple[tuple[Any, ...] | None, ...]:
        arrays = [a if isinstance(a, np.ndarray) else memory_of(a) for a in self.captured]
        return tuple([None if a is None else (a.dtype, a.shape) for a in arrays])

    @property
    def captures_tensors(self) -> bool:
        """True if the function closes over tensors of other libraries, with which NumPy may not compute."""
        return any(not isinstance(a, np.ndarray) for a in self.captured)

    def holds_what_it_held(self) -> bool:
        """True if what the function reads from outside is what it was when tracing.

        Of captured arrays, that is dtypes and shapes: their contents are inputs of the graph.
        """
        for read in self.reads:
            if not read.holds():
                return False
        if self.slots and self.slot_kinds() != self.slot_kinds_held:
            return False
        return not self.captured or self._held() == self.held

    @property
    def slot_kinds_held(self) -> tuple[Any, ...]:
        """The kinds that the trace has assumed of the slots."""
        return self.kinds[self.in_tree.leaves :]

    @property
    def has_effects(self) -> bool:
        """True if calls write to what was there before them, or draw random numbers."""
        return self.sources is not None or bool(self.draws or self.generators)

    @property
    def tells_gradients(self) -> bool:
        """False if how gradients flow does not follow from the graph alone."""
        return not (self.overwrites or self.asks_for_gradients)

    @property
    def takes_generators(self) -> bool:
        """True if an argument is a random generator, which may be another one at each call."""
        return takes_generators(self.in_tree)

    @property
    def bakes_floats(self) -> bool:
        """True if the graph holds for one value of some float or complex number alone."""
        return any(guard.is_float for guard in self.guards)

    def slot_kinds(self) -> tuple[Any, ...]:
        """The kinds that a trace would assume of the slots now; None for one that is no leaf."""
        return tuple([kind_of_slot(slot) for slot in self.slots])

    def changed(self) -> list[StateRead]:
        """The value that the function reads from outside, and that is another one by now."""
        return [read for read in self.reads if not read.holds()]

    def accepts(self, leaves: Sequence[Any]) -> bool:
        """True if the baked numbers hold for these leaves, and captured arrays kept their types."""
        if not self.holds_what_it_held():
            return False
        if self.slots and self.guards:
            leaves = [*leaves, *(slot.find() for slot in self.slots)]
        if self._quick is None:
            self._asked += 1
            if self._asked < _ASKED_OFTEN or sys.is_finalizing():  # when nothing can be imported
                return all(guard.holds(leaves) for guard in self.guards)
            from ..tracing.quick_guards import QuickGuards  # few traces are asked so often

            self._quick = QuickGuards.of(self.guards)
        return self._quick.hold(leaves)

    def signature(self) -> str:
        """Dtypes, ranks and kinds of numbers that the graph holds for, in words.

        The text of a graph says nothing of these: graphs that hold for others may print the same.
        """
        array_kinds = [(h[0], len(h[1])) for h in self.held if h is not None]
        draw_kinds = [draw.kind for draw in self.draws]
        return " ".join(_kind_text(kind) for kind in (*self.kinds, *array_kinds, *draw_kinds))

    def depths(self) -> list[int]:
        """In how many containers each argument leaf was passed."""
        # The tuple or dict of arguments, and the pair of these two, contain every leaf.
        return [depth - 2 for depth in self.in_tree.depths()]

    def explain(self) -> list[str]:
        """One sentence per baked number, and the remarks."""
        return [*(guard.explain() for guard in self.guards), *self.remarks]


def takes_generators(tree: TreeDef) -> bool:
    """True if a random generator is among the arguments."""
    return any(is_plain_generator(static) for static in tree.statics())


def kind_of_slot(slot: Place) -> Any:
    """The kind of what a slot holds; None = it holds no leaf."""
    return kind_of(slot.find())


def _kind_text(kind: Any) -> str:
    """A `leaves.leaf_kind` in words, without the byte order, which kernels never see."""
    if isinstance(kind, type):
        return kind.__name__
    dtype, rank, *device = kind
    return f"{np.dtype(dtype).name}[{rank}]{''.join(device)}"
