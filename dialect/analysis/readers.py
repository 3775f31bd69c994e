"""The instructions and blocks that read each value of a program."""

from __future__ import annotations

from collections.abc import Iterable

from ..ir.program import Block, Instr
from .tidy import is_pure


def readers(body: Block) -> dict[int, list[Instr | Block]]:
    """Of each value that is read, the instructions that have it as an operand and the blocks that yield it.

    Nested blocks count. There is one entry per reader, in the order of the program.
    """
    by_value: dict[int, list[Instr | Block]] = {}
    _collect(body, by_value)
    return by_value


def _collect(block: Block, by_value: dict[int, list[Instr | Block]]) -> None:
    for instr in block.instrs:
        for value in dict.fromkeys(instr.operands):
            by_value.setdefault(value, []).append(instr)
        for inner in instr.blocks:
            _collect(inner, by_value)
    for value in dict.fromkeys(block.outputs):
        by_value.setdefault(value, []).append(block)


def makers(body: Block) -> dict[int, Instr]:
    """Of each value that an instruction makes, nested blocks included, that instruction."""
    return {result: instr for instr in body.walk() for result in instr.results}


def drop_unread(body: Block, values: Iterable[int]) -> int:
    """Remove the pure instructions that make these values if nothing reads any of their results.

    What only those have read goes as well. Returns how many instructions were removed.
    """
    sources, read = makers(body), readers(body)
    waiting, gone = list(values), set[int]()
    while waiting:
        instr = sources.get(waiting.pop())
        if instr is None or id(instr) in gone or not is_pure(instr) or any(read.get(r) for r in instr.results):
            continue
        gone.add(id(instr))
        for inner in (instr, *(i for block in instr.blocks for i in block.walk())):
            for operand in inner.operands:
                read[operand] = [r for r in read.get(operand, ()) if r is not inner]
            waiting += inner.operands
    _filter(body, gone)
    return len(gone)


def _filter(block: Block, gone: set[int]) -> None:
    block.instrs[:] = [i for i in block.instrs if id(i) not in gone]
    for instr in block.instrs:
        for inner in instr.blocks:
            _filter(inner, gone)
