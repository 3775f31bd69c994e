"""The inputs on which values of a program depend, and those through which gradients may flow to them."""

from __future__ import annotations

from ..ir.program import Instr, Program


def inputs_reaching(program: Program) -> dict[int, int]:
    """For each value the inputs that it is computed of, as a mask: bit k is set for input k.

    A write reaches all that shares the memory of its target. Where that is not known, and in
    branches and loops, there are more inputs than need be.
    """
    return _reached(program, by_gradients=False)


def gradients_reaching(program: Program) -> dict[int, int]:
    """The same of the inputs through which a gradient of the value flows.

    Holds for programs whose writes were recorded under ``no_grad``, so that arrays keep the
    gradients that they had before them.
    """
    return _reached(program, by_gradients=True)


def _reached(program: Program, *, by_gradients: bool) -> dict[int, int]:
    masks = {v: 1 << k for k, v in enumerate(program.inputs)}
    roots: dict[int, int] = {}
    instrs = list(program.body.walk())
    before = None
    while before != masks:  # loops carry values to their blocks again
        before = dict(masks)
        for instr in instrs:
            _pass(instr, masks, roots, by_gradients)
    return masks


def _pass(instr: Instr, masks: dict[int, int], roots: dict[int, int], by_gradients: bool) -> None:
    """Add what the results of an instruction depend on."""
    op = instr.op
    writes = bool(op.writes) and not instr.blocks
    if by_gradients and op.no_gradient:
        return
    sources = (
        [instr.operands[k] for k in op.writes]
        if writes and by_gradients
        else [*instr.operands, *(v for block in instr.blocks for v in block.outputs)]
    )
    mask = 0
    for v in sources:
        mask |= masks.get(v, 0) | (0 if by_gradients else masks.get(roots.get(v, v), 0))
    into = [*instr.results, *(v for block in instr.blocks for v in block.args)]
    if not by_gradients:
        for k, result in enumerate(instr.results):
            shared = op.shared_operands(k, len(instr.operands))
            if len(shared) == 1:
                v = instr.operands[shared[0]]
                roots[result] = roots.get(v, v)
        if writes:
            into += [roots.get(v, v) for v in (instr.operands[k] for k in op.writes)]
    for v in into:
        masks[v] = masks.get(v, 0) | mask
