"""Finishing: the steps between a capture and its compile, in order (R4.29)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...dialect.analysis.backward_order import STEPS
from ...dialect.ir.program import Block, Instr, Module, Program
from ..settings.events import log

if TYPE_CHECKING:
    from .backward import Backward


def finish(made: Backward) -> None:
    """Run the steps on a captured graph, which is kept as it was as a stage of its own."""
    module = made.module
    made.stages["captured"] = Module(_copy(module.main), module.functions)
    for name, step in STEPS.items():
        changed = step(module.main, True)
        if changed:
            made.changed[name] = changed
    made.stages["finished"] = module
    log("backward-graph", made.name, "; ".join(made.reasons), changed=dict(made.changed),
        instructions=len(module.main.body.instrs))  # fmt: skip


def _copy(program: Program) -> Program:
    body = program.body
    return Program(program.name, _copied(body), dict(program.types), program.count)


def _copied(block: Block) -> Block:
    instrs: list[Instr] = [
        replace(instr, attrs=dict(instr.attrs), blocks=tuple(map(_copied, instr.blocks)))
        for instr in block.instrs
    ]
    return Block(block.args, instrs, block.outputs)


__all__ = ["finish"]
