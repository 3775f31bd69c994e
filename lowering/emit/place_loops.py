"""Updates at places that arrays name: a loop over the places, in order, in place of one over all.

The generic (`Builder.update_at`) compares the index of each element with each place. Here the place
is the index, so that an iteration reads one place and takes in one row of numbers. All elements get
their numbers in the order of the places, however the rest is divided.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from mlir import ir

from ..schedule.groups import Loop
from ..schedule.nests import NestStage
from .memory_reductions import MemoryReduction

if TYPE_CHECKING:
    from .nest import NestEmitter


class PlacesEmitter:
    """Emits the stage of a nest that goes through places.

    Args:
        nest: the emitter of the nest, inside its outer loops.
        stage: the stage; its only member has `Compute.placed`.
    """

    def __init__(self, nest: NestEmitter, stage: NestStage) -> None:
        self.nest, self.ops, self.stage = nest, nest.ops, stage
        self.fold = MemoryReduction(nest, stage)
        (self.op,) = stage.reductions
        loops = nest.nest.group.loops[self.op]
        self.placed: dict[Loop, int] = {loops[k]: n for n, k in enumerate(self.op.placed)}

    def run(self) -> None:
        """Emit everything."""
        nest, stage = self.nest, self.stage
        nest.nested(_long(stage.parallel), lambda: self.fold.initialise([self.op]))
        nest.nested(_long(stage.reduced), self._add)

    def _add(self) -> None:
        """Emit what one place has added to it."""
        nest, op = self.nest, self.op
        row = [g for g in _long(self.stage.parallel) if g not in self.placed]
        depth = len(nest.scopes) - 1
        inside: ir.Value | None = None
        for loop, number in self.placed.items():
            if loop.extent == 1:
                continue
            with nest.scope.point():
                place = nest.value(*nest.read(op, number))
                nest.atoms[loop] = place, depth
                if loop in nest.ranges:
                    inside = self._within(inside, place, loop)
        if inside is None:
            nest.nested(row, self.fold.accumulate)
        else:
            with nest.scope.point():
                branch = ir.Operation.create("scf.if", operands=[inside], regions=2)
            with nest.branch(branch, branch.regions[0].blocks.append()):
                nest.nested(row, self.fold.accumulate)
                ir.Operation.create("scf.yield")
        for loop in self.placed:
            nest.atoms.pop(loop, None)

    def _within(self, known: ir.Value | None, place: ir.Value, loop: Loop) -> ir.Value:
        """True where a place is one of those that this call of the nest serves, and ``known``."""
        ops, (low, high) = self.ops, self.nest.bounds(loop)
        conditions = [
            ops.create("arith.xori", ops.i1, ops.less(place, low), ops.constant(1, ops.i1)),
            ops.less(place, high),
            *([] if known is None else [known]),
        ]
        return functools.reduce(lambda a, b: ops.create("arith.andi", ops.i1, a, b), conditions)


def _long(loops: list[Loop]) -> list[Loop]:
    return [loop for loop in loops if loop.extent != 1]
