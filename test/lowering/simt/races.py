"""Who touched what: two threads, one address, at least one write, and no barrier in between.

Barriers order the threads of one block, so accesses from two blocks of one launch never are.
"""

from __future__ import annotations

import numpy as np

from .grid import Active, coordinates

NOBODY, SEVERAL = -1, -2
Conflict = tuple[np.ndarray, str]  # which of the active threads race, and with whom


class Touches:
    """For each unit of memory, who made one sort of access to it last.

    ``thread`` is a number in the launch, or `SEVERAL` since the latest barrier of ``block``;
    ``block`` is `SEVERAL` once two blocks came here; ``epoch`` counts the block's barriers.
    """

    def __init__(self, units: int) -> None:
        self.block = np.full(units, NOBODY, np.int64)
        self.thread = np.full(units, NOBODY, np.int64)
        self.epoch = np.zeros(units, np.int64)

    def conflicts(self, units: np.ndarray, thread: np.ndarray, block: np.ndarray, epoch: np.ndarray) -> np.ndarray:
        """Where the recorded access is another thread's, unordered with one by ``thread`` now."""
        before = self.block[units]
        if (before == NOBODY).all():
            return np.zeros(units.shape, bool)
        unordered = (self.thread[units] != thread) & (self.epoch[units] == epoch)
        return (before != NOBODY) & ((before != block) | unordered)

    def record(self, units: np.ndarray, thread: np.ndarray, block: np.ndarray, epoch: np.ndarray) -> None:
        """Note these accesses; the same unit may occur many times."""
        before, same_time = self.block[units], self.epoch[units] == epoch
        others = (before != NOBODY) & (before != block)
        shared = (before == block) & same_time & (self.thread[units] != thread)
        self.block[units], self.thread[units], self.epoch[units] = block, thread, epoch
        others |= self.block[units] != block
        shared |= self.thread[units] != thread
        self.block[units[others]] = SEVERAL
        self.thread[units[shared]] = SEVERAL


class Ledger:
    """Plain reads, plain writes and atomic updates of one buffer since a launch began."""

    def __init__(self, units: int) -> None:
        self._units = units
        self._touches: dict[str, Touches] = {}

    def read(self, units: np.ndarray, active: Active, space: str) -> Conflict | None:
        """Note reads of a row of units per active thread; their conflict with what went before."""
        return self._note("was read", ("was written", "was atomically updated"), units, active, space)

    def write(self, units: np.ndarray, active: Active, space: str) -> Conflict | None:
        """Note writes; as `read`."""
        before = ("was read", "was written", "was atomically updated")
        return self._note("was written", before, units, active, space)

    def update(self, units: np.ndarray, active: Active, space: str) -> Conflict | None:
        """Note atomic updates, which race with plain accesses alone; as `read`."""
        before = ("was read", "was written")
        return self._note("was atomically updated", before, units, active, space)

    def _note(
        self, verb: str, conflicting: tuple[str, ...], units: np.ndarray, active: Active, space: str
    ) -> Conflict | None:
        thread = active.threads[:, None]
        local = active.blocks_in_wave
        block = (local + active.wave.first)[:, None]
        epoch = active.wave.barriers[space][local][:, None]
        who = tuple(np.broadcast_to(a, units.shape) for a in (thread, block, epoch))
        for other in conflicting:
            if (touches := self._touches.get(other)) is None:
                continue
            if (bad := touches.conflicts(units, *who)).any():
                culprit = touches.thread[units[bad][0]]
                # The first conflicting row names the thread that `Active.where` will name.
                return bad.any(axis=1), f"{other} by {_name(active, int(culprit))}"
        if verb not in self._touches:
            self._touches[verb] = Touches(self._units)
        touches = self._touches[verb]
        if verb == "was written" and (at_once := _written_twice(touches, units, who)) is not None:
            bad, culprit = at_once
            return bad, f"{verb} at once by {_name(active, culprit)}"
        touches.record(units, *who)
        return None


def _written_twice(touches: Touches, units: np.ndarray, who: tuple[np.ndarray, ...]) -> tuple[np.ndarray, int] | None:
    """Threads that lose a unit to another thread in the same instruction, and a winner."""
    touches.thread[units] = who[0]
    lost = touches.thread[units] != who[0]
    if not lost.any():
        return None
    return lost.any(axis=1), int(touches.thread[units[lost][0]])


def _name(active: Active, thread: int) -> str:
    if thread < 0:
        return "several threads"
    block, place = coordinates(active.wave, thread)
    return f"block {block}, thread {place}"
