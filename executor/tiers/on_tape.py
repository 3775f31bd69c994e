"""Calls on the tape: the executor that they have, and those of halves of subgraphs (R2.19)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...dialect.ir.program import Module
from ...dialect.ops.speculation import DiffGraph, Gradient
from ..plans.differentiable import DiffOp
from ..plans.on_tape import needs_tape, plain

if TYPE_CHECKING:
    from .base import BaseExecutor


def run_any(executor: BaseExecutor, inputs: list) -> list:
    """Run a graph on values any of which may be on the tape; see `BaseExecutor.run_any`."""
    if not needs_tape(inputs):
        return executor.run([plain(x) for x in inputs])
    on_tape = executor.on_tape
    if on_tape is None:
        with executor._lock:
            on_tape = executor.on_tape
            if on_tape is None:
                options = executor.options.on_tape()
                on_tape = executor.on_tape = executor.made(executor.module, options)
    return on_tape.run(inputs)


def halved(executor: BaseExecutor, module: Module) -> tuple[dict[str, Any], dict[str, Any]]:
    """What runs the differentiable subgraphs of an optimised graph, made once (R2.19).

    Returns a `DiffOp` for each, by the name of its forward half, and the executors of all halves.
    """
    made: dict[str, Any] = {}
    halves: dict[str, Any] = {}
    for instr in module.main.body.walk():
        if instr.op is not DiffGraph:
            continue
        gradient = Gradient.of(instr, module)
        for program in (gradient.forward, gradient.reverse):
            part, options = module.part(program.name), executor.options.of_half(program.name)
            halves[program.name] = executor.made(part, options)
        forward, reverse = (halves[p.name] for p in (gradient.forward, gradient.reverse))
        name = f"{executor.options.name}/{gradient.forward.name.removesuffix('_forward')}"
        made[gradient.forward.name] = DiffOp(gradient, name, forward, reverse)
    return made, halves


__all__ = ["halved", "run_any"]
