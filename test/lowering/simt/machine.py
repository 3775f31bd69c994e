"""Runs a program over one wave: values, and what of them is poison.

A value is an array with a row per thread, or a single row where all threads agree.  Rows of threads
that do not run hold anything.  Poison marks, of the same shape, are kept only for values that have
some.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .faults import SimtError
from .grid import Active, Wave
from .memory import Buffer, MemRef
from .program import Action, Code, Instruction, Program
from .types import dtype_of, shape_of
from .vectors import with_rank


class Marked(NamedTuple):
    """A value and where it is poison (None = nowhere)."""

    value: np.ndarray
    poison: np.ndarray | None = None


class Machine:
    """The state of one wave.

    Args:
        program: what runs.
        wave: the blocks.
        arguments: memrefs, and scalars of one row.
        shared: the dynamic workgroup memory of each block, if the launch asked for some.
        action_of: what an op does.
    """

    def __init__(
        self,
        program: Program,
        wave: Wave,
        arguments: list[MemRef | np.ndarray],
        shared: Buffer | None,
        action_of: Callable[[Instruction], Action],
    ) -> None:
        self._action_of = action_of
        self.program, self.wave, self.shared = program, wave, shared
        self.values: dict[int, np.ndarray] = {}
        self.poison: dict[int, np.ndarray] = {}
        self.memrefs: dict[int, MemRef] = {}
        self.ended: np.ndarray | None = None  # threads that an assertion has ended
        for slot, argument in zip(program.code.arguments, arguments, strict=True):
            if isinstance(argument, MemRef):
                self.memrefs[slot] = argument
            else:
                self.values[slot] = argument

    def run(self) -> None:
        """Run all threads to the end."""
        with np.errstate(all="ignore"):
            self.execute(self.program.code, Active(self.wave, self.wave.everyone))

    def execute(self, code: Code, active: Active) -> list[Marked]:
        """Run a block for these threads; the operands of its terminator.

        Those that end on the way do nothing more; where all of them do, the operands are 0.
        """
        for each in code.body:
            active = self.left(active)
            if not active.lanes.size:
                types = [value.type for value in code.terminator.op.operands]
                return [Marked(np.zeros((1, *shape_of(t)), dtype_of(t))) for t in types]
            active.site = each.site
            if each.action is None:
                each.action = self._action_of(each)
            each.action(self, each, active)
            for slot in each.last_uses:
                for table in (self.values, self.poison, self.memrefs):
                    table.pop(slot, None)
        active.site = code.terminator.site
        return self.marked(code.terminator.operands)

    def left(self, active: Active) -> Active:
        """The threads that have not ended."""
        if self.ended is None or not (self.ended & active.mask).any():
            return active
        return Active(active.wave, active.mask & ~self.ended)

    def end(self, active: Active, which: np.ndarray) -> None:
        """End some threads of the wave: they set the kernel's flag, which is no race."""
        if self.program.flag is None:
            raise SimtError(f"{active.site}: an assertion, and no flag of the kernel")
        flag = self.memrefs[self.program.code.arguments[self.program.flag]]
        flag.buffer.fill(flag.offset, np.ones(1, flag.dtype))
        ended = active.mask & which
        self.ended = ended if self.ended is None else self.ended | ended

    def marked(self, slots: tuple[int, ...]) -> list[Marked]:
        """The values in these slots, with their poison."""
        for slot in slots:
            if slot in self.memrefs:
                raise SimtError(f"@{self.program.name}: a memref is carried by control flow")
        return [Marked(self.values[s], self.poison.get(s)) for s in slots]

    def set(self, slot: int, value: np.ndarray, poison: np.ndarray | None = None) -> None:
        """Define a value."""
        self.values[slot] = value
        if poison is not None:
            self.poison[slot] = poison
        else:
            self.poison.pop(slot, None)

    def bind(self, slots: tuple[int, ...], values: list[Marked]) -> None:
        """Define several values."""
        for slot, value in zip(slots, values, strict=True):
            self.set(slot, *value)

    def row(self, slot: int, active: Active) -> np.ndarray:
        """The value of the active threads, a row each."""
        return gather(self.values[slot], active)

    def refuse_poison(self, slot: int, active: Active, use: str) -> None:
        """Raise a fault if an active thread's value is poison."""
        poison = self.poison.get(slot)
        if poison is None:
            return
        bad = gather(poison, active).reshape(active.lanes.size, -1).any(axis=1)
        if bad.any():
            active.fault("poison", f"{use} depends on an undefined value", bad)


def gather(values: np.ndarray, active: Active) -> np.ndarray:
    """The rows of the active threads."""
    if values.shape[0] == 1:
        return np.broadcast_to(values, (active.lanes.size, *values.shape[1:]))
    return values if active.all else values[active.lanes]


def scatter(rows: np.ndarray, active: Active) -> np.ndarray:
    """Inverse of `gather`; zero for threads that do not run."""
    if active.all:
        return rows
    values = np.zeros((active.wave.threads, *rows.shape[1:]), rows.dtype)
    values[active.lanes] = rows
    return values


def merge(condition: np.ndarray, a: list[Marked], b: list[Marked]) -> list[Marked]:
    """``a`` where the condition holds of a thread, else ``b``."""
    return [_choose(condition, x, y) for x, y in zip(a, b, strict=True)]


def _choose(condition: np.ndarray, a: Marked, b: Marked) -> Marked:
    condition = with_rank(condition, max(a.value.ndim, b.value.ndim))
    value = np.where(condition, a.value, b.value)
    if a.poison is None and b.poison is None:
        return Marked(value)
    marks = [False if v.poison is None else v.poison for v in (a, b)]
    poison = np.where(condition, *marks)
    return Marked(value, np.broadcast_to(poison, value.shape) if poison.any() else None)
