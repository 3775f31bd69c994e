"""Finds the last use of each array that a plan makes.

The Python function of a plan drops its reference there. The array lives on if another object still
holds it, such as a view that an op returned, or a fallback. Memory that only kernels see is reused
by other means (`intermediates`, `dispatch.leaves.memory`).
"""

from __future__ import annotations

from ...dialect.analysis.alias import uses
from ...dialect.ir.program import Block, Instr, Program
from ...dialect.ir.types import ScalarType
from ...dialect.ops.speculation import Guard


class Liveness:
    """The last uses in a plan's main function; inputs, constants and outputs have none."""

    def __init__(self, main: Program) -> None:
        self._main = main
        self._made: set[int] = set()
        self._dead: dict[int, tuple[int, ...]] = {}
        self._block(main.body)

    def dead_after(self, instr: Instr) -> tuple[int, ...]:
        """Arrays of the instruction's own block that no later instruction reads."""
        return self._dead.get(id(instr), ())

    def handed_on(self, block: Block, targets: tuple[int, ...]) -> tuple[int, ...]:
        """Outputs of a side of a branch that only the branch's results refer to afterwards.

        ``targets``: the branch's results. If the plan returns all of them, nothing can be dropped.
        """
        if set(targets) <= set(self._main.outputs):
            return ()
        own = {r for instr in block.instrs for r in instr.results}
        return tuple(v for v in dict.fromkeys(block.outputs) if v in own and v in self._made)

    def _block(self, block: Block) -> None:
        own: set[int] = set()
        for instr in block.instrs:
            for inner in instr.blocks:
                self._block(inner)
            own.update(self._arrays(instr))
        read_later = set(block.outputs)
        for instr in reversed(block.instrs):
            used = uses(instr)
            dead = dict.fromkeys((*sorted(used), *instr.results))
            self._dead[id(instr)] = tuple(v for v in dead if v in own and v not in read_later)
            read_later |= used

    def _arrays(self, instr: Instr) -> set[int]:
        """Results that may be arrays which the plan has made."""
        if issubclass(instr.op, Guard):
            pairs = zip(instr.results, instr.operands, strict=False)  # the last result is a bool
            found = {alias for alias, value in pairs if value in self._made}
        elif instr.operands:
            types = self._main.type_of
            found = {r for r in instr.results if not isinstance(types(r), ScalarType)}
        else:
            found = set()
        self._made |= found
        return found


__all__ = ["Liveness"]
