"""Reductions to the first index of an extremum, along the innermost loop of a stage.

A best value and its index that are carried from element to element are a serial chain. So blocks of
elements are reduced to their extrema alone, which is SIMD code in the width of an element; the
reduction's own body compares blocks in place of elements; and the place of the extremum is searched
in the block that has won, which is SIMD code as well.

The search reads elements again. Computed elements are kept for it: to compute them twice costs
more, and could round differently, so that no element would equal the extremum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlir import ir

from ..schedule import affine as ix
from ..schedule.affine import AffineIndex
from ..schedule.graph import Compute, Tensor, read_at, viewed
from ..schedule.groups import Loop, loop_index

if TYPE_CHECKING:
    from .nest import NestEmitter

BLOCK = 512  # elements; more make the search longer, fewer make the comparison of blocks matter


class Search:
    """Emits one reduction to an index; see `Compute.extremum`.

    Args:
        loop: the loop that is reduced.
        blocked: True if the loop is split into blocks of `BLOCK` elements; else it has at most as
            many iterations.
    """

    def __init__(self, nest: NestEmitter, op: Compute, loop: Loop, blocked: bool) -> None:
        self.nest, self.op, self.loop, self.blocked = nest, op, loop, blocked
        self.ops = nest.ops
        self.element = op.outputs[0].element
        assert op.extremum is not None
        self.better = op.extremum
        self.is_float = self.better.endswith("f")
        self.kept = self._kept() if self._is_computed() else None
        self.low: ir.Value | None = None
        self.memory: ir.Value | None = None
        self.turn: ir.Value | None = None
        if self.kept is not None and blocked:
            with nest.scopes[0].point():
                self.turn = self.ops.alloca(1, self.ops.word, 8)
            self.ops.store(nest.size(0), self.turn)

    def _is_computed(self) -> bool:
        tensor, _ = viewed(*self._read())
        producer = tensor.producer
        return isinstance(producer, Compute) and self.nest.is_inlined(producer)

    def _read(self) -> tuple[Tensor, tuple[AffineIndex, ...]]:
        return read_at(self.op, 0, self.nest.own_loops(self.op))

    def _kept(self) -> ir.Value:
        """Stack memory for the elements of a block, twice if a block may have to be kept."""
        extent = self.loop.extent
        count = 2 * BLOCK if self.blocked else extent
        assert isinstance(count, int)
        with self.nest.scopes[0].point():
            return self.ops.alloca(count, self.element)

    # --- the extremum of a block -----------------------------------------------------------------

    def enter(self, low: ir.Value) -> None:
        """Emit what precedes the loop over the block that begins at ``low``."""
        self.low = low
        self.memory = self.kept
        if self.turn is not None:
            self.memory = self.ops.offset(self.kept, self._turns(self.turn)[0], self.element)

    def step(self, best: ir.Value) -> ir.Value:
        """Emit one iteration of that loop: the extremum of ``best`` and the current element."""
        nest, ops = self.nest, self.ops
        element = nest.value(*self._read())
        if self.memory is not None:
            place = self._difference(nest.atoms[self.loop][0], self.low)
            ops.store(element, ops.offset(self.memory, place, self.element))
        # Zeros are equal here whatever their sign.
        flags = {"fastmath": ops.no_signed_zeros} if self.is_float else {}
        return ops.create(self.better, self.element, best, element, **flags)

    def merge(self, total: tuple[ir.Value, ir.Value], best: ir.Value) -> list[ir.Value]:
        """The best value so far and the block where it is, after a block with the value ``best``.

        A block is named by the index at which it begins.
        """
        nest, ops = self.nest, self.ops
        loops = [ix.atom(("block", g)) if g is self.loop else loop_index(g) for g in nest.nest.group.loops[self.op]]
        values = nest.body(self.op, loops, dict(enumerate(total)), {0: best})
        if self.turn is not None:
            has_won = ops.equal(values[1], self.low)
            turn, other = self._turns(self.turn)
            ops.store(ops.select(has_won, other, turn), self.turn)
        return values

    def _turns(self, turn: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The places in memory of the current block and of the best one so far."""
        now = self.ops.load(turn, self.ops.word)
        return now, self._difference(self.ops.constant(BLOCK), now)

    def _difference(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.ops.create("arith.subi", self.ops.word, a, b)

    # --- the search ------------------------------------------------------------------------------

    def find(self, best: ir.Value, low: ir.Value) -> ir.Value:
        """Emit the search for ``best`` in the block that begins at ``low``; returns the index."""
        nest, ops = self.nest, self.ops
        high = nest.size(self.loop.extent)
        memory = self.kept
        if self.blocked:
            high = ops.least(ops.add(low, nest.size(BLOCK)), high)
        if self.turn is not None:
            memory = ops.offset(self.kept, self._turns(self.turn)[1], self.element)
        count = self._difference(high, low)
        # Places in a block need 32 bits, so that more of them fit into a vector.
        last = ops.cast_index(self._difference(count, ops.constant(1)), ops.i32)
        with nest.loop(("place", self.loop), nest.size(0), count, 1, [last]) as loop:
            with nest.scope.point():
                place = loop.induction_variable
                if memory is not None:
                    element = ops.load(ops.offset(memory, place, self.element), self.element)
                else:
                    nest.atoms[self.loop] = ops.add(low, place), len(nest.scopes) - 1
                    element = nest.value(*self._read())
                    del nest.atoms[self.loop]
                is_best = self._is_best(element, best)
                hit = ops.select(is_best, ops.cast_index(place, ops.i32), last)
                first = ops.create("arith.minsi", ops.i32, loop.inner_iter_args[0], hit)
            nest.end_loop([first])
        return ops.add(low, ops.cast_index(loop.results[0], ops.word))

    def _is_best(self, element: ir.Value, best: ir.Value) -> ir.Value:
        ops = self.ops
        if not self.is_float:
            return ops.equal(element, best)
        # If there is a NaN in the block, it is the extremum.
        same, is_nan = ops.compare("oeq", element, best), ops.compare("uno", element, element)
        return ops.create("arith.ori", ops.i1, same, is_nan)
