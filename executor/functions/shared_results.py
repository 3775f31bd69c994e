"""Results that share memory with what the caller holds: arguments themselves, and views of them.

A graph makes arrays of its own, so that the caller may do with its inputs what it likes. What
NumPy's function gives of an argument that it returns, or of a view of one, is that array or its
memory, to which the caller may write. Such results are taken from the caller's arrays, by the ops
that lead there, once the graph has run; where the graph gives nothing else, Python runs the calls.

An array that the function writes to is one of its inputs, read through a copy, in the graph
(`write_back`): a view of the copy is a view of the array. Results that may be an argument because
contents decide so, in a branch or loop, are copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dialect.dataclass import dataclass
from ...dialect.importers.tracing.tracer import Trace
from ...dialect.ir.program import Block, Instr, Module, Program
from ...dialect.ir.types import ScalarType
from ...dialect.ops.indexing.inplace import Borrow
from ...dialect.ops.indexing.scatter import Copy
from ...dialect.ops.queries import Dim, Size
from ..interpret.evaluate import Evaluator


@dataclass(eq=False)
class SharedResults:
    """What the results of a graph share with its inputs.

    Attributes:
        positions: of these results among the outputs of the graph.
        are_inputs: of each whether it is an input as it is.
        roots: of each, the number of the input.
        is_all: the graph gives nothing else.
        views: from the inputs to these results.
    """

    positions: tuple[int, ...]
    are_inputs: tuple[bool, ...]
    roots: tuple[int, ...]
    is_all: bool
    views: Evaluator

    def put(self, outputs: Sequence[Any], given: Sequence[Any]) -> list[Any]:
        """The results, with those of the caller's memory; ``given``: the inputs as it has them."""
        found = list(outputs)
        for k, root, view in zip(self.positions, self.roots, self.views(given), strict=True):
            # What NumPy copies has the contents of its time, not of now.
            if view is given[root] or np.may_share_memory(view, given[root]):
                found[k] = view
        return found


def shared_results(trace: Trace, inputs: Sequence[Any]) -> SharedResults | None:
    """The results of a trace that share memory with its inputs; None if there are none.

    ``inputs``: those of the call that was traced, of the ranks that the graph is for.
    """
    program = _without_copies(trace)
    found = _shared(program, program.outputs)
    if found is None:
        return None
    of_each = zip(found.positions, found.are_inputs, found.views(inputs), strict=True)
    # What is taken out of an array without any axes is a number in NumPy.
    wanted = [
        program.outputs[k]
        for k, is_input, view in of_each
        if type(view) is np.ndarray and (is_input or view.ndim)
    ]
    return _shared(program, wanted)


def _without_copies(trace: Trace) -> Program:
    """The graph without writes, its results alone: the copies of what is written are the inputs."""
    main = trace.module.main
    count = len(main.outputs) - len(trace.writes)
    finals = {v: main.inputs[k] for k, v in zip(trace.writes, main.outputs[count:], strict=True)}
    same: dict[int, int] = {}
    instrs = []
    for instr in main.body.instrs:
        operands = tuple([same.get(v, v) for v in instr.operands])
        if instr.op in (Copy, Borrow) and finals.get(instr.results[0]) == operands[0]:
            same[instr.results[0]] = operands[0]
        elif instr.op.writes and not instr.blocks:
            for k, result in enumerate(instr.results):
                shared = instr.op.shared_operands(k, len(operands))
                if len(shared) == 1:
                    same[result] = operands[shared[0]]
        else:
            instrs.append(Instr(instr.op, operands, instr.results, instr.attrs, instr.blocks))
    outputs = tuple([same.get(v, v) for v in main.outputs[:count]])
    return Program("views", Block(main.inputs, instrs, outputs), main.types, main.count)


def _shared(program: Program, wanted: Sequence[int]) -> SharedResults | None:
    """`shared_results`, of some outputs of any rank."""
    made = {result: instr for instr in program.body.instrs for result in instr.results}
    needed: set[int] = set()  # instructions, by identity
    positions, roots = [], []
    for k, value in enumerate(program.outputs):
        found = _views(program, made, value) if value in wanted else None
        if found is not None:
            chain, root = found
            positions.append(k)
            roots.append(program.inputs.index(root))
            needed.update(map(id, chain))
    if not positions:
        return None
    kept = [instr for instr in program.body.instrs if id(instr) in needed]
    values = tuple(program.outputs[k] for k in positions)
    views = Program("views", Block(program.inputs, kept, values), program.types, program.count)
    return SharedResults(
        tuple(positions), tuple(v in program.inputs for v in values), tuple(roots),
        len(positions) == len(program.outputs), Evaluator(views, Module(views)),
    )  # fmt: skip


def _views(
    program: Program, made: dict[int, Instr], value: int
) -> tuple[list[Instr], int] | None:  # fmt: skip
    """The instructions that take a value out of an input, and that; None if it is no view."""
    chain: list[Instr] = []
    inputs = frozenset(program.inputs)
    while value not in inputs:
        instr = made.get(value)
        if instr is None or instr.blocks:
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
    return None if isinstance(program.type_of(value), ScalarType) else (chain, value)


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
            views = _views(program, made, operand)
            if views is None:
                return None
            found += views[0]
    return found


__all__ = ["SharedResults", "shared_results"]
