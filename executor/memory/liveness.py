"""When the arrays that a plan makes are read for the last time.

The Python function of a plan drops its references there, and whatever else holds an array (a view
that an op returned, a fallback) keeps it alive. Memory that only kernels see is given to what comes
next without that (`intermediates`, `dispatch.memory`).
"""

from __future__ import annotations

from ...dialect.analysis.alias import uses
from ...dialect.ir.program import Block, Instr, Program
from ...dialect.ir.types import ScalarType
from ...dialect.ops.speculation import Guard


class Liveness:
    """What dies where in a plan's main function. Inputs, constants and outputs never do."""

    def __init__(self, main: Program) -> None:
        self._main = main
        self._made: set[int] = set()
        self._dead: dict[int, tuple[int, ...]] = {}
        self._block(main.body)

    def dead_after(self, instr: Instr) -> tuple[int, ...]:
        """Arrays of the instruction's own block that nothing after it reads."""
        return self._dead.get(id(instr), ())

    def handed_on(self, block: Block, targets: tuple[int, ...]) -> tuple[int, ...]:
        """Outputs of a side of a branch that live on under the names of its results alone.

        ``targets``: the results. Where the plan returns them all there is nothing to gain.
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
        """Results that may hold memory which the plan has made."""
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
