"""Reductions whose accumulators lie in memory, one for each iteration of the innermost loop of the stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlir import ir

from ..schedule.graph import Compute
from ..schedule.groups import Loop
from ..schedule.nests import NestStage
from .reduction_loops import Carried

if TYPE_CHECKING:
    from .nest import NestEmitter


class MemoryReduction:
    """Emits the loops of a stage whose accumulators lie in memory, in the current scope.

    Args:
        nest: the emitter of the nest, inside its outer loops.
        stage: the stage.
    """

    def __init__(self, nest: NestEmitter, stage: NestStage) -> None:
        self.nest, self.ops, self.stage = nest, nest.ops, stage

    def run(self) -> None:
        """Emit everything, inside of all parallel loops but the innermost one."""
        nest, stage = self.nest, self.stage
        lane = stage.parallel[-1]
        fresh = [op for op in stage.reductions if op not in nest.nest.accumulated]
        if fresh:
            nest.nested([lane], lambda: self.initialise(fresh))
        if stage.rows == 1:
            nest.nested([*stage.reduced, lane], self.accumulate)
        else:
            nest.nested(stage.reduced[:-1], lambda: self._several_rows(lane))

    def _several_rows(self, lane: Loop) -> None:
        """Fold as many whole steps of `NestStage.rows` iterations as there are, and then the rest."""
        nest, stage = self.nest, self.stage
        row, rows = stage.reduced[-1], stage.rows
        low, high = nest.bounds(row)
        whole = high
        is_known = row not in nest.ranges and isinstance(row.extent, int)
        if stage.alone is not None or not is_known or row.extent % rows:
            with nest.scope.point():
                whole = self._whole_steps(low, high)
        with nest.loop(row, low, whole, rows):
            nest.nested([lane], lambda: self.accumulate(rows))
            nest.end_loop()
        if whole is not high:
            with nest.loop(row, whole, high):
                nest.nested([lane], self.accumulate)
                nest.end_loop()

    def _whole_steps(self, low: ir.Value, high: ir.Value) -> ir.Value:
        """The end of the whole steps."""
        ops, size, alone = self.ops, self.nest.size, self.stage.alone
        rows = size(self.stage.rows)
        steps = ops.create("arith.divsi", ops.word, ops.subtract(high, low), rows)
        whole = ops.add(low, ops.mul(steps, rows))
        if alone is None:
            return whole
        (few, most), (many, least) = alone
        is_more = ops.less(size(most), size(few))
        is_less = ops.less(size(many), size(least + 1))
        return ops.select(ops.create("arith.ori", ops.i1, is_more, is_less), whole, low)

    def initialise(self, reductions: list[Compute]) -> None:
        """Store the initial values of the accumulators of one iteration."""
        nest = self.nest
        with nest.scope.point():
            for op in reductions:
                for carried in nest.carried(op):
                    nest.write(carried.tensor, nest.own_index(op, carried.number), nest.initial(carried))

    def accumulate(self, rows: int = 1) -> None:
        """Fold iterations of the stage into accumulators.

        ``rows``: how many iterations of the innermost reduced loop, from the current one on.
        """
        row = self.stage.reduced[-1] if rows > 1 else None
        values: dict[Compute, list[ir.Value]] = {}
        for number in range(rows):
            if row is not None:
                self.nest.ahead[row] = number
            self._fold(values, is_last=number + 1 == rows)
        if row is not None:
            del self.nest.ahead[row]

    def _fold(self, values: dict[Compute, list[ir.Value]], is_last: bool) -> None:
        """Fold one iteration.

        Args:
            values: what the bodies of reductions have yielded in the iteration before, which stands
                for accumulators in memory; empty = these are loaded. It is brought up to date.
            is_last: True = accumulators are stored.
        """
        nest = self.nest
        nest.maps(self.stage)
        with nest.scope.point():
            for op in self.stage.reductions:
                carried = {one.number: one for one in nest.carried(op)}
                before = values.get(op)
                previous = {k: self._accumulator(one) if before is None else before[k] for k, one in carried.items()}
                values[op] = nest.body(op, nest.own_loops(op), previous, in_order=True)
                for number, tensor in enumerate(op.outputs):
                    is_kept = tensor.buffer is not None or tensor in nest.scratch
                    if is_kept and (is_last or number not in carried):
                        nest.write(tensor, nest.own_index(op, number), values[op][number])

    def _accumulator(self, carried: Carried) -> ir.Value:
        """The accumulator in memory of the current iteration."""
        pointer = self.nest.slot(carried.tensor, self.nest.own_index(carried.op, carried.number))
        return self.ops.load(pointer, carried.tensor.element)
