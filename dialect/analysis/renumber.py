"""Copies of ops on other values."""

from __future__ import annotations

from collections.abc import Callable

from ..ir.program import Block, Instr

Renamed = Callable[[int], int]


def renumbered(instr: Instr, known: Renamed, fresh: Renamed, without: str = "") -> Instr:
    """A copy of an op, with all in it.

    Args:
        known: what stands for a value that is read.
        fresh: makes what stands for a value that the op, or a block of it, makes.
        without: an attribute that copies do not have.
    """
    operands = tuple(map(known, instr.operands))
    blocks = []
    for block in instr.blocks:
        args = tuple(map(fresh, block.args))
        inner = [renumbered(i, known, fresh, without) for i in block.instrs]
        blocks.append(Block(args, inner, tuple(map(known, block.outputs))))
    attrs = {name: value for name, value in instr.attrs.items() if name != without}
    results = tuple(map(fresh, instr.results))
    return Instr(instr.op, operands, results, attrs, tuple(blocks), instr.loc)
