"""Results that share memory with what the caller holds: arguments themselves, and views of them.

A graph makes arrays of its own, so that the caller may do with its inputs what it likes. What
NumPy's function gives of an argument that it returns, or of a view of one, is that array or its
memory, to which the caller may write. Such results are taken from the caller's arrays, by the ops
that lead there, once the graph has run; where the graph gives nothing else, Python runs the calls.

Results that may be an argument because contents decide so, in a branch or loop, are copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dialect.dataclass import dataclass
from ...dialect.importers.tracing.tracer import Trace
from ...dialect.ir.program import Block, Instr, Module, Program
from ...dialect.ir.types import ScalarType
from ...dialect.ops.queries import Dim, Size
from ..interpret.evaluate import Evaluator


@dataclass(eq=False)
class SharedResults:
    """What the results of a graph share with its inputs.

    Attributes:
        positions: of these results among the outputs of the graph.
        are_inputs: of each whether it is an input as it is.
        is_all: the graph gives nothing else.
        views: from the inputs to these results.
    """

    positions: tuple[int, ...]
    are_inputs: tuple[bool, ...]
    is_all: bool
    views: Evaluator

    def put(self, outputs: Sequence[Any], given: Sequence[Any]) -> list[Any]:
        """The results, with those of the caller's memory; ``given``: the inputs as it has them."""
        found = list(outputs)
        for k, view in zip(self.positions, self.views(given), strict=True):
            found[k] = view
        return found


def shared_results(trace: Trace, leaves: Sequence[Any]) -> SharedResults | None:
    """The results of a trace that share memory with its inputs; None if there are none.

    ``leaves``: the arguments that were traced, of the ranks that the graph is for.
    """
    program = trace.module.main
    found = _shared(program, tuple(program.outputs))
    if found is None:
        return None
    given = [*leaves, *trace.captured]
    # What is taken out of an array without any axes is a number in NumPy.
    wanted = {
        program.outputs[k]
        for k, is_input, view in zip(
            found.positions, found.are_inputs, found.views(given), strict=True
        )
        if type(view) is np.ndarray and (is_input or view.ndim)
    }
    return _shared(program, tuple(wanted))


def _shared(program: Program, wanted: Sequence[int]) -> SharedResults | None:
    """`shared_results`, of some outputs of any rank."""
    made = {result: instr for instr in program.body.instrs for result in instr.results}
    needed: dict[int, None] = {}  # instructions, by identity
    positions = []
    for k, value in enumerate(program.outputs):
        chain = _views(program, made, value) if value in wanted else None
        if chain is not None:
            positions.append(k)
            needed |= dict.fromkeys(map(id, chain))
    if not positions:
        return None
    kept = [instr for instr in program.body.instrs if id(instr) in needed]
    found = tuple(program.outputs[k] for k in positions)
    views = Program("views", Block(program.inputs, kept, found), program.types, program.count)
    inputs = frozenset(program.inputs)
    return SharedResults(
        tuple(positions), tuple(v in inputs for v in found),
        len(positions) == len(program.outputs), Evaluator(views, Module(views)),
    )  # fmt: skip


def _views(program: Program, made: dict[int, Instr], value: int) -> list[Instr] | None:
    """The instructions that take a value out of an input; None if it is no view of one."""
    chain: list[Instr] = []
    inputs = frozenset(program.inputs)
    while value not in inputs:
        instr = made.get(value)
        if instr is None or instr.blocks or instr.op.writes:
            return None
        shared = instr.op.shared_operands(instr.results.index(value), len(instr.operands))
        if len(shared) != 1:
            return None
        chain.append(instr)
        for k, operand in enumerate(instr.operands):
            numbers = [] if k in shared else _numbers(program, made, operand)
            if numbers is None:
                return None
            chain += numbers
        value = instr.operands[shared[0]]
    return None if isinstance(program.type_of(value), ScalarType) else chain


def _numbers(program: Program, made: dict[int, Instr], value: int) -> list[Instr] | None:
    """The instructions that compute a number of sizes and numbers; None if it is anything else."""
    found: list[Instr] = []
    left = [value]
    while left:
        v = left.pop()
        if not isinstance(program.type_of(v), ScalarType):
            return None
        instr = made.get(v)
        if instr is None:
            if v not in program.inputs:
                return None
            continue
        if instr.blocks:
            return None
        found.append(instr)
        if instr.op not in (Dim, Size):
            left += instr.operands
            continue
        for operand in instr.operands:
            chain = _views(program, made, operand)
            if chain is None:
                return None
            found += chain
    return found


__all__ = ["SharedResults", "shared_results"]
