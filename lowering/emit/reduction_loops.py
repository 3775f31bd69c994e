"""Reductions whose accumulators are loop-carried values.

Long float sums are summed in blocks, and block sums in a wider type, so that the rounding error
stays near that of pairwise summation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlir import ir

from ...dialect.dataclass import dataclass
from ..schedule.graph import Combiner, Compute, Tensor
from ..schedule.groups import Loop
from ..schedule.nests import NestStage
from . import extremum
from .loop_ops import OVER_BLOCKS

if TYPE_CHECKING:
    from .nest import NestEmitter

BLOCK = 4096  # elements summed in the element type before widening


@dataclass(frozen=True)
class Carried:
    """One accumulator of a reduction."""

    op: Compute
    number: int
    tensor: Tensor
    combiner: Combiner | None

    @property
    def is_sum(self) -> bool:
        """True for a float sum that may be reassociated."""
        return self.combiner is not None and self.combiner.is_float_sum and not self.combiner.ordered

    @property
    def is_wide(self) -> bool:
        """True if partial sums are added up in f64."""
        return self.is_sum and isinstance(self.tensor.element, ir.F32Type)

    def widen(self, emitter: NestEmitter, value: ir.Value) -> ir.Value:
        """Convert an element to the type of partial sums."""
        if not self.is_wide:
            return value
        return emitter.ops.create("arith.extf", emitter.ops.f64, value)

    def narrow(self, emitter: NestEmitter, value: ir.Value) -> ir.Value:
        """Convert a partial sum to the type of elements."""
        if not self.is_wide:
            return value
        return emitter.ops.create("arith.truncf", self.tensor.element, value)


class StageReduction:
    """Emits the reduced loops of a stage in the current scope."""

    def __init__(self, nest: NestEmitter, stage: NestStage) -> None:
        self.nest, self.stage, self.ops = nest, stage, nest.ops
        self.carried = [c for op in stage.reductions for c in nest.carried(op)]
        last = stage.reduced[-1]
        self.searched = [op for op in stage.reductions if op.extremum and nest.searches]
        self.searches: dict[Compute, extremum.Search] = {}
        self.block = extremum.BLOCK if self.searched else BLOCK
        self.blocked = bool(self.searched or any(c.is_sum for c in self.carried)) and not (
            isinstance(last.extent, int) and last.extent <= self.block
        )
        self.levels: list[tuple[str, Loop]] = [("all", g) for g in stage.reduced]
        if self.blocked:
            self.levels[-1:] = [("blocks", last), ("block", last)]

    def run(self) -> None:
        """Emit the loops; results are remembered, stored, or folded into outer accumulators."""
        nest = self.nest
        outside = {c.tensor for c in self.carried if c.op in nest.nest.accumulated}
        with nest.scope.point():
            for op in self.searched:
                last = self.stage.reduced[-1]
                self.searches[op] = extremum.Search(nest, op, last, self.blocked)
            starts = [self._start(c, c.tensor in outside) for c in self.carried]
            results = self._level(0, starts)
            for op, search in self.searches.items():
                value, index = self._places(op)
                results[index] = search.find(results[value], results[index])
            for carried, result in zip(self.carried, results, strict=True):
                if len(self.levels) > 1 and carried.is_sum:
                    result = carried.narrow(nest, result)
                self._finish(carried, result, carried.tensor in outside)

    def _start(self, carried: Carried, outside: bool) -> ir.Value:
        nest = self.nest
        if outside and carried.tensor in nest.cells:
            value = self._zero(carried)
        elif outside:
            index = nest.own_index(carried.op, carried.number)
            value = self.ops.load(nest.slot(carried.tensor, index), carried.tensor.element)
        else:
            value = nest.initial(carried)
        if len(self.levels) > 1 and carried.is_sum:
            return carried.widen(nest, value)
        return value

    def _zero(self, carried: Carried) -> ir.Value:
        return self.ops.float_constant(-0.0, carried.tensor.element)

    def _finish(self, carried: Carried, result: ir.Value, outside: bool) -> None:
        nest = self.nest
        index = nest.own_index(carried.op, carried.number)
        if outside and carried.tensor in nest.cells:
            cell = nest.cells[carried.tensor]
            wide = self.ops.load(cell, self.ops.f64)
            part = carried.widen(nest, result)
            self.ops.store(self.ops.create("arith.addf", self.ops.f64, wide, part), cell)
            return
        nest.scope.memo[carried.tensor, index] = result
        if carried.tensor.buffer is not None or carried.tensor in nest.scratch:
            nest.write(carried.tensor, index, result)

    # --- loops ---------------------------------------------------------------------------------

    def _level(self, number: int, starts: Sequence[ir.Value]) -> list[ir.Value]:
        """Emit one level of loops; returns the accumulators after it."""
        nest = self.nest
        kind, loop = self.levels[number]
        (low, high), step = nest.bounds(loop), 1
        atom: object = loop
        if kind == "blocks":
            atom, step = ("block", loop), self.block
        elif kind == "block":
            low = nest.atoms["block", loop][0]
            end = self.ops.add(low, nest.size(self.block))
            high = self.ops.least(end, high)
        if number == len(self.levels) - 1:
            for search in self.searches.values():
                search.enter(low)
        with nest.loop(atom, low, high, step, starts) as op:
            inner = list(op.inner_iter_args)
            if number == len(self.levels) - 1:
                nest.end_loop(self._iteration(inner))
            else:
                nest.end_loop(self._partial(number + 1, inner))
        if kind == "blocks" and self.searches:
            op.operation.attributes[OVER_BLOCKS] = ir.UnitAttr.get()
        return list(op.results)

    def _partial(self, number: int, totals: list[ir.Value]) -> list[ir.Value]:
        """Emit the next level of loops, and merge its accumulators into ``totals``."""
        nest = self.nest
        innermost = number == len(self.levels) - 1
        starts = totals
        if innermost:
            starts = [
                self._zero(c) if c.is_sum else nest.initial(c) if c.op in self.searches and c.number == 0 else total
                for c, total in zip(self.carried, totals, strict=True)
            ]
        ends = self._level(number, starts)
        if not innermost:
            return ends
        merged = [
            self._add(c, total, end) if c.is_sum else end
            for c, total, end in zip(self.carried, totals, ends, strict=True)
        ]
        for op, search in self.searches.items():
            value, index = self._places(op)
            total = totals[value], totals[index]
            merged[value], merged[index] = search.merge(total, ends[value])
        return merged

    def _places(self, op: Compute) -> tuple[int, int]:
        """The numbers of the value and of the index of a searched extremum among the accumulators."""
        value = next(k for k, c in enumerate(self.carried) if c.op is op)
        return value, value + 1

    def _add(self, carried: Carried, total: ir.Value, part: ir.Value) -> ir.Value:
        wide = carried.widen(self.nest, part)
        return self.ops.create("arith.addf", wide.type, total, wide)

    def _iteration(self, accumulators: list[ir.Value]) -> list[ir.Value]:
        nest = self.nest
        nest.maps(self.stage)
        out: list[ir.Value] = []
        with nest.scope.point():
            for op in self.stage.reductions:
                mine = {c.number: a for c, a in zip(self.carried, accumulators, strict=True) if c.op is op}
                if op in self.searches:
                    # While the loop runs, the index is that of a block's first element.
                    out += [self.searches[op].step(mine[0]), mine[1]]
                    continue
                values = nest.body(op, nest.own_loops(op), mine)
                for number, tensor in enumerate(op.outputs):
                    if number in mine:
                        out.append(values[number])
                    elif tensor.buffer is not None or tensor in nest.scratch:
                        nest.write(tensor, nest.own_index(op, number), values[number])
        return out
