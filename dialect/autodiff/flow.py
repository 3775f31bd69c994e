"""Gradients and tangents of branches and loops, whose blocks are recorded anew.

A branch computes what it needs again inside of the block that is taken. `loops` runs loops
backwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..importers.numpy.tracing.operators import as_value, wrap
from ..importers.numpy.tracing.traced_control import cond, fori_loop, while_loop
from ..ir.program import Block, Instr
from ..ops.control_flow.control import For, If
from .loop_gradients import LoopGradient, Pull, check_step
from .rerun import as_array, rerun, values_read, zeros, zeros_as_array

if TYPE_CHECKING:
    from ..importers.numpy.tracing.recorder import Recorder

# `sweep.push_forward` of one trace.
Push = Callable[[Sequence[Instr], dict[int, Any], Sequence[int]], list[Any]]


def pull_flow(rec: Recorder, instr: Instr, gs: Sequence[Any], active: set[int], pull: Pull) -> dict[int, Any]:
    """Gradients of the values that a branch or loop reads: by value, free ones included.

    ``active``: the values whose gradients are asked for. Raises TraceError where a loop carries
    arrays whose sizes change.
    """
    free = [v for v in values_read(*instr.blocks) if v in active]
    if instr.op is If:
        return _branch(rec, instr, gs, free, pull)
    return LoopGradient(rec, instr, gs, active, free, pull).gradients()


def push_flow(rec: Recorder, instr: Instr, tangents: dict[int, Any], push: Push) -> list[Any]:
    """Tangents of the results of a branch or loop, from those of the values that it reads.

    ``push``: `sweep.push_forward` of one trace. None = a result is no float.
    """
    free = {v: tangents[v] for v in values_read(*instr.blocks) if v in tangents}
    floats = [k for k, v in enumerate(instr.results) if rec.dtype(v).kind in "fcV"]

    def of(outputs: Sequence[int], instrs: Sequence[Instr], given: dict[int, Any]) -> list[Any]:
        targets = [outputs[k] for k in floats]
        results = push(instrs, {**free, **given}, targets)
        return [
            zeros_as_array(rec, v) if t is None else as_array(rec, t, v) for v, t in zip(targets, results, strict=True)
        ]

    if instr.op is If:
        sides = [lambda block=block: of(*rerun(rec, block, ()), {}) for block in instr.blocks]
        moved = cond(wrap(rec, instr.operands[0]), *sides)
    else:
        moved = _pushed_loop(rec, instr, tangents, floats, of)
    results: list[Any] = [None] * len(instr.results)
    for k, t in zip(floats, moved, strict=True):
        results[k] = t
    return results


def _pushed_loop(
    rec: Recorder, instr: Instr, tangents: dict[int, Any], floats: Sequence[int], of: Callable
) -> list[Any]:
    """The tangents that a loop carries beside its values, after the last round."""
    inits = instr.operands[3:] if instr.op is For else instr.operands
    starts = [
        as_array(rec, tangents[inits[k]], inits[k]) if inits[k] in tangents else zeros_as_array(rec, inits[k])
        for k in floats
    ]
    body = instr.blocks[-1]

    def step(index: Sequence[int], state: Any) -> Any:
        values, moved = [as_value(rec, x) for x in state[0]], state[1]
        tangent_of = {values[k]: t for k, t in zip(floats, moved, strict=True)}
        outputs, instrs = rerun(rec, body, [*index, *values])
        return [wrap(rec, v) for v in outputs], of(outputs, instrs, tangent_of)

    state = ([wrap(rec, v) for v in inits], starts)
    if instr.op is For:
        lower, upper = (wrap(rec, v) for v in instr.operands[:2])
        check_step(rec, instr)
        return fori_loop(lower, upper, lambda i, s: step([as_value(rec, i)], s), state)[1]

    def goes_on(state: Any) -> Any:
        outputs, _ = rerun(rec, instr.blocks[0], [as_value(rec, x) for x in state[0]])
        return wrap(rec, outputs[0])

    return while_loop(goes_on, lambda s: step([], s), state)[1]


def _branch(rec: Recorder, instr: Instr, gs: Sequence[Any], free: Sequence[int], pull: Pull) -> dict[int, Any]:
    def side(block: Block) -> Callable[[], list[Any]]:
        def run() -> list[Any]:
            outputs, instrs = rerun(rec, block, ())
            gradients = pull(instrs, zip(outputs, gs, strict=True), free)
            return [zeros(rec, v) if g is None else as_array(rec, g, v) for v, g in zip(free, gradients, strict=True)]

        return run

    then, other = map(side, instr.blocks)
    gradients = cond(wrap(rec, instr.operands[0]), then, other)
    return dict(zip(free, gradients, strict=True))
