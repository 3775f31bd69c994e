"""Finishing: the steps between a capture and its compile, in order (R4.29)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...dialect.analysis.backward_order import STEPS
from ...dialect.ir.program import Block, Instr, Module, Program
from ..settings.events import log

if TYPE_CHECKING:
    from .captured_backward import Backward


def finish(graph: Backward) -> None:
    """Run the steps on a captured graph, which is kept as it was as a stage of its own."""
    module = graph.module
    graph.stages["captured"] = Module(_copy(module.main), module.functions)
    for name, step in STEPS.items():
        changed = step(module.main, True)
        if changed:
            graph.changed[name] = changed
    graph.stages["finished"] = module
    log(
        "backward-graph",
        graph.name,
        "; ".join(graph.reasons),
        changed=dict(graph.changed),
        instructions=len(module.main.body.instrs),
    )


def _copy(program: Program) -> Program:
    body = program.body
    return Program(program.name, _copied(body), dict(program.types), program.count)


def _copied(block: Block) -> Block:
    instrs: list[Instr] = [
        replace(instr, attrs=dict(instr.attrs), blocks=tuple(map(_copied, instr.blocks))) for instr in block.instrs
    ]
    return Block(block.args, instrs, block.outputs)
