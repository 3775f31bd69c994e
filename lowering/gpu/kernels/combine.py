"""Combining one value of every thread: shuffles within a warp, shared memory between warps.

The order of combination depends only on sizes, so results are deterministic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlir import ir

from ...emit.reduction_loops import Carried
from ...schedule.graph import Combiner, Compute
from .kernel import Kernel
from .ops import WARP, GpuOps, is_float

_NEUTRAL_FLOAT = {
    "arith.addf": -0.0,
    "arith.mulf": 1.0,
    "arith.maximumf": -math.inf,
    "arith.minimumf": math.inf,
    "arith.maxnumf": -math.inf,
    "arith.minnumf": math.inf,
}


def is_combinable(op: Compute) -> bool:
    """True if threads can each reduce some elements of an operation and combine their results."""
    return not op.is_scan and all(c is not None and not c.ordered for c in op.combiners)


def combiners_of(carried: Sequence[Carried]) -> list[Combiner]:
    """The combiners of accumulators; all operations must be combinable."""
    return [c.combiner for c in carried if c.combiner is not None]


def neutral(ops: GpuOps, combiner: Combiner, type_: ir.Type) -> ir.Value:
    """The neutral element of a combiner."""
    if is_float(type_):
        return ops.float_constant(_NEUTRAL_FLOAT[combiner.op], type_)
    width = ir.IntegerType(type_).width
    value = {
        "arith.muli": 1,
        "arith.andi": -1,
        "arith.maxsi": -(1 << (width - 1)),
        "arith.minsi": (1 << (width - 1)) - 1,
        "arith.minui": -1,
    }.get(combiner.op, 0)
    return ops.constant(value, type_)


def combined(ops: GpuOps, combiner: Combiner, a: ir.Value, b: ir.Value) -> ir.Value:
    """Two values, combined."""
    return ops.create(combiner.op, a.type, a, b)


def in_warp(ops: GpuOps, combiner: Combiner, value: ir.Value, lanes: int = WARP) -> ir.Value:
    """Combine the values of each ``lanes`` neighbouring threads; all of them get the result."""
    while lanes > 1:
        lanes //= 2
        value = combined(ops, combiner, value, ops.shuffle(value, lanes))
    return value


def in_block(kernel: Kernel, combiners: Sequence[Combiner], values: Sequence[ir.Value], threads: int) -> list[ir.Value]:
    """Combine several values of each thread along x; all threads get the results.

    ``threads`` is a power of two. If it is more than a warp, it must be the whole block, and all
    threads of the block must execute this code.
    """
    ops = kernel.ops
    lanes = min(threads, WARP)
    totals = [in_warp(ops, c, v, lanes) for c, v in zip(combiners, values, strict=True)]
    warps = threads // WARP
    if warps <= 1:
        return totals
    shared = [kernel.shared(warps, v.type) for v in values]
    thread = ops.position("thread_id", "x")
    lane = ops.create("arith.andi", ops.word, thread, ops.constant(WARP - 1))
    choice = ir.Operation.create("scf.if", operands=[ops.equal(lane, ops.constant(0))], regions=2)
    with ir.InsertionPoint(choice.regions[0].blocks.append()):
        warp = ops.create("arith.shrui", ops.word, thread, ops.constant(WARP.bit_length() - 1))
        for memory, total in zip(shared, totals, strict=True):
            ops.store(total, ops.offset(memory, warp, total.type))
        ir.Operation.create("scf.yield")
    ops.barrier()
    mine = ops.create("arith.andi", ops.word, lane, ops.constant(warps - 1))
    parts = [ops.load(ops.offset(m, mine, v.type), v.type) for m, v in zip(shared, values, strict=True)]
    return [in_warp(ops, c, v, warps) for c, v in zip(combiners, parts, strict=True)]
