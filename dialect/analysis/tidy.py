"""A program without pure ops that nobody reads, and without computing the same twice."""

from __future__ import annotations

from ..ir.attrs import DYNAMIC
from ..ir.op import Op
from ..ir.program import Block, Instr, Program
from ..ops.create import Constant, Full
from ..ops.queries import Dim


def tidied(program: Program) -> Program:
    """Remove, in place, pure ops whose results nobody reads; constants and sizes are made once.

    Graphs that rules have recorded are full of them. Writes to arrays stay.
    """
    _fold_sizes(program)
    _merge(program.body)
    _sweep(program.body, set(program.outputs))
    return program


def _fold_sizes(program: Program) -> None:
    """Read the sizes of arrays that are filled with a number from what these are made of."""
    fills = {r: i for i in program.body.instrs if i.op is Full for r in i.results}
    stands: dict[int, int] = {}
    for instr in program.body.instrs:
        instr.replace(stands)
        full = fills.get(instr.operands[0]) if instr.op is Dim else None
        if full is None:
            continue
        shape, sizes = full.attrs["shape"], list(full.operands[1:])
        size, axis = shape[instr.attrs["axis"]], instr.attrs["axis"] % len(shape)
        if size == DYNAMIC:
            stands[instr.results[0]] = sizes[shape[:axis].count(DYNAMIC)]
        else:
            instr.op, instr.operands, instr.attrs = Constant, (), {"value": size}
    program.body.outputs = tuple(stands.get(v, v) for v in program.body.outputs)


def _merge(block: Block) -> None:
    """Read the first of equal constants, and of equal sizes, of the top block."""
    firsts: dict[tuple[type[Op], object], int] = {}
    stands: dict[int, int] = {}
    for instr in block.instrs:
        instr.replace(stands)
        if instr.op in (Constant, Dim):
            key = instr.op, (instr.operands, repr(sorted(instr.attrs.items())))
            first = firsts.setdefault(key, instr.results[0])
            if first != instr.results[0]:
                stands[instr.results[0]] = first
    block.outputs = tuple(stands.get(v, v) for v in block.outputs)


def _sweep(block: Block, used: set[int]) -> None:
    used |= set(block.outputs)
    kept: list[Instr] = []
    for instr in reversed(block.instrs):
        if is_pure(instr) and used.isdisjoint(instr.results):
            continue
        for inner in instr.blocks:
            _sweep(inner, used)
        used.update(instr.operands)
        kept.append(instr)
    block.instrs[:] = reversed(kept)


def is_pure(instr: Instr) -> bool:
    """True if an op, with all in it, can be left out where nobody reads its results."""
    return instr.op.pure and all(is_pure(i) for block in instr.blocks for i in block.instrs)
