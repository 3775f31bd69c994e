"""The loop of a step that is divided, and its number of chunks, as emitted code decides on them.

What sizes tell before is a constant. `schedule.chunks` computes the same from known sizes.
"""

from __future__ import annotations

from typing import NamedTuple

from mlir import ir

from ...dialect.ir.symbolic import Dim
from ..schedule.chunks import FEW, Chunks, DividedLoop
from ..schedule.library_calls import FEW as FEW_MULTIPLICATIONS
from ..schedule.library_calls import JoinableKernels
from ..thread_pool import CHUNK, COLUMNS, POOL, WORK
from .loop_ops import Ops, Sizes


class Chosen(NamedTuple):
    """The loop that is divided, as words.

    Attributes:
        number: of the choice.
        grain: iterations of a chunk.
        count, taken: what the pool is given: iterations, or chunks of calls by their numbers, and
            how many of these make a chunk.
    """

    number: ir.Value
    grain: ir.Value
    count: ir.Value
    taken: ir.Value


class _Choice(NamedTuple):
    """The words of a `DividedLoop`, and its number.

    ``lowest``: iterations of a chunk, at least. ``taken``: for chunks that are launched by their
    numbers; 0 = neighbouring ones may be one call.
    """

    extent: ir.Value
    number: ir.Value
    unit: ir.Value
    most: ir.Value
    least: ir.Value
    lowest: ir.Value
    taken: ir.Value


class Grains:
    """Emits the division of a step, at the current insertion point; ``sizes``: in the entry."""

    def __init__(self, ops: Ops, chunks: Chunks, sizes: Sizes) -> None:
        self.ops, self.chunks, self.sizes = ops, chunks, sizes

    def chosen(self) -> Chosen:
        """The loop that is divided, and its chunks."""
        choice = self._choice()
        grain = self._grain(choice)
        if not self.chunks.by_number:
            return Chosen(choice.number, grain, choice.extent, grain)
        if not self.chunks.of_calls:
            return Chosen(choice.number, grain, ceiling(self.ops, choice.extent, grain), self.ops.constant(0))
        return Chosen(choice.number, grain, self._count(choice, grain), choice.taken)

    def _choice(self) -> _Choice:
        """The loop to divide, as `Chunks.choices` describes it."""
        ops, choices = self.ops, self.chunks.choices
        best = self._words(0)
        parts = None
        for k in range(1, len(choices)):
            other = self._words(k)
            if self.chunks.of_calls:
                better = ops.less(best.extent, ops.constant(2 * choices[0].unit))
            else:
                parts = parts or ops.create("arith.divui", ops.i64, best.extent, best.least)
                others = ops.create("arith.divui", ops.i64, other.extent, other.least)
                is_short, has_more = ops.less(parts, ops.constant(FEW)), ops.less(parts, others)
                better = ops.create("arith.andi", ops.i1, is_short, has_more)
                parts = ops.select(better, others, parts)
            pairs = zip(best, other, strict=True)
            best = _Choice(*(ops.select(better, b, a) for a, b in pairs))
        return best

    def _words(self, number: int) -> _Choice:
        """The words of a choice."""
        ops, choice = self.ops, self.chunks.choices[number]
        joined = JoinableKernels.ALL if choice.calls is None else choice.calls.joined
        by_kernel = joined is JoinableKernels.SOME
        return _Choice(
            extent=self._size(choice.extent),
            number=ops.constant(number),
            unit=ops.constant(choice.unit),
            most=ops.constant(choice.most),
            least=ops.constant(choice.least),
            lowest=self._lowest(choice),
            taken=self._word(COLUMNS, ops.i64) if by_kernel else ops.constant(int(joined is JoinableKernels.NONE)),
        )

    def _grain(self, chosen: _Choice) -> ir.Value:
        """Iterations of a chunk, as `Chunks.grain` computes them for known sizes.

        Floats are used because products of the sizes of empty arrays may need more than 64 bits.
        """
        ops, chunks, constant = self.ops, self.chunks, self.chunks.grain
        if constant is not None:
            return ops.constant(constant)
        total = ops.float_constant(0.0, ops.f64)
        for cost, dims in chunks.work:
            term = ops.float_constant(float(cost), ops.f64)
            for dim in dims:
                wide = ops.create("arith.sitofp", ops.f64, self._size(dim))
                term = ops.create("arith.mulf", ops.f64, term, wide)
            total = ops.create("arith.addf", ops.f64, total, term)
        parts = ops.create("arith.divf", ops.f64, total, self._word(WORK, ops.f64))
        one = ops.float_constant(1.0, ops.f64)
        most = ops.create("arith.sitofp", ops.f64, chosen.most)
        for op, limit in (("arith.maxnumf", one), ("arith.minnumf", most)):
            parts = ops.create(op, ops.f64, parts, limit)
        parts = ops.create("arith.fptosi", ops.i64, parts)
        unit = chosen.unit
        if chunks.of_calls:
            few = ops.create("arith.divsi", ops.i64, chosen.extent, chosen.least)
            parts = ops.least(parts, ops.binary("max", few, ops.constant(2)))
            units = ops.create("arith.divsi", ops.i64, chosen.extent, unit)
            units = ops.create("arith.divsi", ops.i64, units, parts)
        else:
            units = ceiling(ops, ceiling(ops, chosen.extent, unit), parts)
        return ops.binary("max", ops.mul(units, unit), chosen.lowest)

    def _lowest(self, choice: DividedLoop) -> ir.Value:
        """Iterations of a chunk, at least, as `Calls.lowest` computes them for known sizes.

        The limit of few multiplications is one of work, which checks of kernels lower.
        """
        ops, calls = self.ops, choice.calls
        if calls is None:
            return ops.constant(choice.unit)
        constant = calls.lowest(choice.unit)
        if constant is not None:
            return ops.constant(constant)
        assert calls.each is not None, "else it is known"
        each = ops.float_constant(float(choice.unit), ops.f64)
        for dim in calls.each:
            wide = ops.create("arith.sitofp", ops.f64, self._size(dim))
            some = ops.create("arith.maxnumf", ops.f64, wide, ops.float_constant(1.0, ops.f64))
            each = ops.create("arith.mulf", ops.f64, each, some)
        few = ops.float_constant(FEW_MULTIPLICATIONS / CHUNK, ops.f64)
        few = ops.create("arith.mulf", ops.f64, self._word(WORK, ops.f64), few)
        units = ops.create("arith.fptosi", ops.i64, ops.create("arith.divf", ops.f64, few, each))
        iterations = ops.mul(ops.add(units, ops.constant(1)), ops.constant(choice.unit))
        return ops.binary("max", iterations, ops.constant(calls.last))

    def _count(self, chosen: _Choice, grain: ir.Value) -> ir.Value:
        """Number of chunks, as `Chunks.count` computes it for known sizes."""
        ops, constant = self.ops, self.chunks.count
        if constant is not None:
            return ops.constant(constant)
        above = ops.create("arith.divsi", ops.i64, ops.subtract(chosen.extent, chosen.lowest), grain)
        return ops.binary("max", ops.add(above, ops.constant(1)), ops.constant(1))

    def _word(self, place: int, type_: ir.Type) -> ir.Value:
        """A word of the pool's block."""
        ops = self.ops
        pool = ops.create("llvm.mlir.addressof", ops.pointer, global_name=ir.FlatSymbolRefAttr.get(POOL))
        return ops.load(ops.offset(pool, ops.constant(place), ops.i64), type_)

    def _size(self, dim: Dim) -> ir.Value:
        return self.sizes.value(dim, ir.InsertionPoint.current)


def ceiling(ops: Ops, value: ir.Value, by: ir.Value) -> ir.Value:
    """A quotient that is rounded up."""
    above = ops.add(value, ops.subtract(by, ops.constant(1)))
    return ops.create("arith.divsi", ops.i64, above, by)
