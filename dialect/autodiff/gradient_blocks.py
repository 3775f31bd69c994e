"""Reverse mode where gradients of results may be undefined: every op's gradient is a block (R2.30).

A graph of several results may be run backwards when gradients of some of them alone have arrived.
So each op's gradient stands in a ``grad_of``, which runs if any gradient of the op's results is
defined. What flows into a value from several ops meets in ``autograd_add``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..importers.numpy.tracing.operators import as_value, op, wrap
from ..importers.numpy.tracing.recorder import Recorder
from ..ir.program import Block, Instr
from ..ir.types import BOOL_SCALAR, ScalarType
from ..ops.control_flow.control import If
from ..ops.gradient_ops import AnyNonzero, AutogradAdd, GradOf
from .builder import TraceBuilder
from .sweep import active_values, contributions


def pull_back_blocks(
    rec: Recorder, instrs: Sequence[Instr], gradients: Iterable[tuple[int, int]], wanted: Sequence[int]
) -> list[int | None]:
    """`sweep.pull_back` for gradients any of which may be undefined, as those of the result may be.

    Args:
        rec: the trace.
        instrs: what is differentiated.
        gradients: pairs of a value and the value that is its gradient.
        wanted: the values whose gradients are returned.

    None = no gradient ever flows there. Raises TraceError as `sweep.pull_back` does.
    """
    b = TraceBuilder(rec)
    sums: dict[int, int] = {}
    for value, g in gradients:
        _add(rec, sums, value, g)
    active = active_values(rec, instrs, sums, wanted)
    for instr in reversed(instrs):
        gs = [sums.pop(r, None) if r in active else None for r in instr.results]
        if any(g is not None for g in gs):
            with rec.at(instr.loc):
                for value, g in _block(b, instr, gs, active).items():
                    _add(rec, sums, value, g)
    return [sums.get(v) for v in wanted]


def _add(rec: Recorder, sums: dict[int, int], value: int, g: int) -> None:
    """Let a gradient flow into a value, where another one may have flowed before."""
    if value in sums:
        total = rec.new_value(rec.hints[value])
        rec.append(Instr(AutogradAdd, (sums[value], g), (total,), {}, (), rec.line))
        g = total
    sums[value] = g


def _block(b: TraceBuilder, instr: Instr, gs: Sequence[int | None], active: set[int]) -> dict[int, int]:
    """Record the gradient block of one instruction; returns a gradient of each value it reads."""
    rec = b.rec
    incoming = [g for g in gs if g is not None]
    block = Block()
    with rec.nested(block):
        cotangents = [
            None if g is None else wrap(rec, g if len(incoming) == 1 else _or_zeros(rec, g, r))
            for g, r in zip(gs, instr.results, strict=True)
        ]
        sums: dict[int, Any] = {}
        for value, g in contributions(b, instr, cotangents, active):
            sums[value] = sums[value] + g if value in sums else g
        block.outputs = tuple(as_value(rec, _as_tensor(rec, g)) for g in sums.values())
    b.forget_products()  # they are values of the block
    results = tuple(rec.new_value(rec.hints[v]) for v in block.outputs)
    attrs = {"forward": instr.op.name}
    rec.append(Instr(GradOf, tuple(incoming), results, attrs, (block,), instr.loc))
    return dict(zip(sums, results, strict=True))


def _or_zeros(rec: Recorder, gradient: int, result: int) -> int:
    """A gradient, or zeros of the shape of the result where it is undefined.

    Rules of ops with several results are given those of all that anything depends on.
    """
    is_defined = rec.new_value(BOOL_SCALAR)
    rec.append(Instr(AnyNonzero, (gradient,), (is_defined,), {}, (), rec.line))
    then, other = Block(outputs=(gradient,)), Block()
    with rec.nested(other):
        other.outputs = (as_value(rec, np.zeros_like(wrap(rec, result))),)
    out = rec.new_value(rec.hints[result])
    rec.append(Instr(If, (is_defined,), (out,), {}, (then, other), rec.line))
    return out


def _as_tensor(rec: Recorder, g: Any) -> Any:
    """A gradient as a tensor: blocks of gradients yield nothing else."""
    hint = rec.hints[as_value(rec, g)]
    if not isinstance(hint, ScalarType):
        return g
    return op("to_tensor", g, dtype=hint.dtype)
