"""Calls on the tape: the executors that they have, and those of halves of subgraphs (R2.19)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...dialect.ir.program import Module
from ...dialect.ops.speculation import DiffGraph, Gradient
from ..plans.differentiable import DiffOp
from ..plans.on_tape import is_noted, needs_tape, plain
from ..plans.plan import PLANS
from ..settings.events import absorb, log

if TYPE_CHECKING:
    from .executor_base import BaseExecutor

MOST_PATTERNS = 64  # of inputs that require gradients, per graph


def serving(executor: BaseExecutor, inputs: Sequence[Any]) -> BaseExecutor:
    """The executor of a call with values any of which may be on the tape.

    Calls that are noted have executors of their own, whose graph keeps all that gradients depend
    on: one for each pattern of inputs that require gradients, as parameters are frozen and thawed.
    So none of them misses a guard because of another. A keyed executor, whose specs say what
    requires gradients, has one for all.
    """
    if not needs_tape(inputs):
        return executor
    noted = "" if executor.many_plans else "".join("1" if is_noted(x) else "0" for x in inputs)
    tape_executor = executor.noted.get(noted)
    if tape_executor is None:
        with executor._lock:
            tape_executor = executor.noted.get(noted)
            if tape_executor is None:
                tape_executor = _made(executor, noted)
    return tape_executor


def _made(executor: BaseExecutor, noted: str) -> BaseExecutor:
    """A new executor for calls that are noted; the caller holds the lock."""
    if len(executor.noted) >= MOST_PATTERNS:
        dropped = executor.noted.pop(next(iter(executor.noted)))
        kept = set(map(id, executor.chain()))
        for member in dropped.chain():
            if id(member) not in kept:  # a half that others share stays
                member._cancel()
                absorb(executor.counters, member.counters)
        PLANS.count += 1
        reason = f"plans for {MOST_PATTERNS} patterns of arguments that require gradients are kept"
        log("dropped", dropped.options.name, reason)
    options = executor.options.on_tape(noted, executor.noted_made)
    executor.noted_made += 1
    tape_executor: BaseExecutor = executor.made(executor.module, options)
    executor.noted[noted] = tape_executor
    return tape_executor


def run_any(executor: BaseExecutor, inputs: list) -> list:
    """Run a graph on values any of which may be on the tape; one that is not is given arrays."""
    runner = serving(executor, inputs)
    return runner.run([plain(x) for x in inputs] if runner is executor else inputs)


def halved(executor: BaseExecutor, module: Module) -> tuple[dict[str, Any], dict[str, Any]]:
    """The ops that run the differentiable subgraphs of an optimised graph, made once (R2.19).

    Returns a `DiffOp` for each, by the name of its forward half, and the executors of all halves.
    """
    diff_ops: dict[str, Any] = {}
    halves: dict[str, Any] = {}
    for instr in module.main.body.walk():
        if instr.op is not DiffGraph:
            continue
        gradient = Gradient.of(instr, module)
        for program in (gradient.forward, gradient.reverse):
            halves[program.name] = _half(executor, module.part(program.name), program.name)
        forward, reverse = (halves[p.name] for p in (gradient.forward, gradient.reverse))
        name = f"{executor.options.name}/{gradient.forward.name.removesuffix('_forward')}"
        diff_ops[gradient.forward.name] = DiffOp(gradient, name, forward, reverse)
    return diff_ops, halves


def _half(executor: BaseExecutor, part: Module, name: str) -> Any:
    """The executor of a half; equal ones of a function have one, which compiles once.

    The forward half is often the same whichever of the inputs require gradients.
    """
    text = part.to_mlir()
    half = executor.shared.get(text)
    if half is None:
        half = executor.made(part, executor.options.of_half(name))
        executor.shared[text] = half
    return half
