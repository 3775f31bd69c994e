"""Plans that Python surely computes sooner: of numbers alone, or of loops op by op.

What calls a function with one number at a time, as root finders and quadratures do, pays for each
call. A plan that computes Python numbers is dispatched in Python, and each of its operations is a
call of its own: only what is fused can make up for that, and on single numbers it is little.
"""

from __future__ import annotations

from ...dialect.ir.program import Module
from ...dialect.ir.types import ScalarType, TensorType
from ...dialect.ops.speculation import FusionGroup
from ..interpret.loop_limit import has_rounds
from .plan import Plan

_FUSED = 8  # operations of NumPy on single numbers that take as long as a kernel and its dispatch


def python_is_faster(plan: Plan) -> bool:
    """True if a plan takes nothing but numbers, needs Python, and fuses too little to gain by it.

    Also if it has a loop, and no kernel at all: each round would cost more than Python's.
    A plan that emitted code can run does not need Python: that costs less than any operation.
    """
    graph = plan.graph
    if plan.kind != "optimized" or graph is None:
        return False
    main = graph.main
    if has_rounds(graph) and not any(issubclass(i.op, FusionGroup) for i in main.body.walk()):
        return True
    if not all(isinstance(main.type_of(v), ScalarType) for v in main.inputs):
        return False
    if any(instr.blocks for instr in main.body.instrs):
        return False  # a loop, a branch, or a guard of arrays
    fused = [i for i in main.body.instrs if issubclass(i.op, FusionGroup)]
    if len(fused) == len(main.body.instrs) and main.body.instrs:
        return False
    sizes = [_operations(graph, instr.attrs["callee"]) for instr in fused]
    return None not in sizes and sum(filter(None, sizes)) <= _FUSED


def _operations(graph: Module, name: str) -> int | None:
    """The number of operations of a fusion function; None if it may be any, or of arrays."""
    program = graph.functions[name]
    instrs = list(program.body.walk())
    if any(instr.blocks for instr in instrs):
        return None
    for value in (r for instr in instrs for r in instr.results):
        type_ = program.type_of(value)
        if not (isinstance(type_, ScalarType) or _is_single(type_)):
            return None
    return len(instrs)


def _is_single(type_: object) -> bool:
    return isinstance(type_, TensorType) and type_.shape == ()
