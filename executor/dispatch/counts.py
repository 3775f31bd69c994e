"""Adds the counts of emitted code to the counters of executors, when the counters are read.

A leaf counts only complete calls. From the number of calls follow all other counts: each call is
one call of the function, one miss of the guard of every outer specialisation, and one hit of every
guard and one launch of every kernel of the leaf's own plan.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence

from ...dialect.ir.dtypes import dtype_of
from ...dialect.ir.types import TensorType
from ...lowering.abi import CONTIGUOUS
from ..plans.guard import PlanGuard
from ..settings.events import Counters
from ..settings.fork_lock import ForkLock
from .counter_table import LeafCells
from .leaf_spec import Leaf
from .leaf_values import ArrayValue
from .loaded_dispatcher import Entry


class Level:
    """One executor of the chain that leads to a leaf; the last level is the leaf's own executor.

    Attributes:
        own: the executor's counters; if the executor is dropped, its counts go to their heir.
        guards: the guards of the executor's plan.
        missed: the arrays that the only guard checks, which a call has missed; None = a call has
            hit all guards.
        calls: whether the executor counts calls.
    """

    def __init__(
        self,
        own: Counters,
        guards: Sequence[PlanGuard],
        missed: tuple[ArrayValue, ...] | None = None,
        *,
        calls: bool = False,
    ) -> None:
        self.own, self.guards, self.missed, self.calls = own, guards, missed, calls

    @property
    def counters(self) -> Counters:
        """The counters to which counts are added now."""
        return self.own.last_heir()

    def enter(self, add_up: Callable[[], None]) -> None:
        """Register ``add_up`` to be called before anyone reads these counters or guards."""
        for counters in self._places():
            counters.native.append(add_up)
        for guard in self.guards:
            guard.native = self.own.current

    def leave(self, add_up: Callable[[], None]) -> None:
        """Undo `enter`."""
        for counters in self._places():
            if add_up in counters.native:
                counters.native.remove(add_up)

    def _places(self) -> Iterator[Counters]:
        counters: Counters | None = self.own
        while counters is not None:
            yield counters
            counters = counters.heir


class LeafCounts:
    """Adds the counts of one leaf to the counters of executors and to the guards of their plans.

    Cells only grow and are never reset, so a call that runs meanwhile is neither lost nor counted
    twice. `Counters` adds in a way that no other thread can interrupt. Once the builtin is freed,
    the last calls are added, and this object unregisters itself.

    Args:
        leaf: the leaf.
        number: index of the leaf among the leaves of the entry.
        entry: the builtin and its table.
        levels: the executors of a call, outermost first; the last one has run the kernels.
    """

    def __init__(self, leaf: Leaf, number: int, entry: Entry, levels: Sequence[Level]) -> None:
        self._cells: LeafCells = entry.cells[number]
        self._table, self._keep = entry.table, entry.keep
        self._alive = weakref.ref(entry.call)
        self._levels = levels
        # The leaf itself holds what the function reads, which outlives no function for its counts.
        self._evaluated, self._donated = leaf.evaluated, leaf.donated
        self._launches = len(leaf.steps)
        self._library_calls = sum(step.library_calls for step in leaf.steps)
        self._seen: dict[int, int] = {}
        self._lock = ForkLock()  # re-entrant, because finalizers may read counters
        for level in levels:
            level.enter(self.add_up)

    def _new(self, cell: int) -> int:
        """The growth of a cell since the previous query."""
        now = self._table[cell]
        grown = now - self._seen.get(cell, 0)
        self._seen[cell] = now
        return grown

    def add_up(self) -> None:
        """Bring counters and guards up to date."""
        with self._lock:
            last = self._alive() is None
            hits = self._new(self._cells.hits)
            if hits:
                for level in self._levels:
                    level.counters.calls += hits * level.calls
                    if level.missed is None:
                        self._add_hits(level, hits)
                    else:
                        self._add_misses(level, level.missed, hits)
                self._add_launches(self._levels[-1].counters, hits)
            guards = self._levels[-1].guards
            outer = [g for level in self._levels[:-1] if level.missed is None for g in level.guards]
            for index, cell in self._cells.timed.items():
                timed = self._new(cell)
                seconds = self._new(self._cells.nanoseconds[index]) * 1e-9
                for guard in (guards[index], *outer):
                    guard.timed += timed
                    guard.timed_seconds += seconds
            if last:
                for level in self._levels:
                    level.leave(self.add_up)

    def _add_hits(self, level: Level, hits: int) -> None:
        level.counters.guard_hits += hits * len(level.guards)
        for guard in level.guards:
            guard.counted += hits

    def _add_launches(self, counters: Counters, hits: int) -> None:
        launched = self._cells.launched
        counters.kernel_launches += hits * self._launches if launched is None else self._new(launched)
        counters.library_calls += hits * self._library_calls
        counters.evaluated_ops += hits * self._evaluated
        counters.donated_results += hits * self._donated

    def _add_misses(self, level: Level, checked: tuple[ArrayValue, ...], hits: int) -> None:
        (guard,) = level.guards
        counters = level.counters
        counters.guard_misses += hits
        counters.fallback_calls += hits
        guard.missed += hits
        assert self._cells.when is not None
        when = self._table[self._cells.when]
        if when > guard.missed_at:
            guard.missed_at = when
            guard.missed_types = tuple(self._type_of(value) for value in checked)

    def _type_of(self, value: ArrayValue) -> TensorType:
        """The type that `dialect.ir.types.type_of` would give for an array at the latest hit."""
        first, rank = self._cells.missed[value.ref], len(value.sizes)
        flags, noted, *rest = (self._table[first + k] for k in range(2 + 2 * rank))
        dtype = dtype_of(value.dtype)
        size = dtype.itemsize
        strides: tuple[int | None, ...] | str = CONTIGUOUS
        if not flags:
            strides = tuple(None if s % size else s // size for s in rest[rank:])
        is_noted = value.tracked and bool(noted)
        return TensorType(dtype, tuple(rest[:rank]), strides, value.device, is_noted, True)
