"""Loops in checks of kernels: what rounding does to them, and how long they may take.

Generated inputs decide how often a loop runs, and whether it ends. The reference is evaluated
first, for a limited time; a kernel runs only where the reference has ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ....dialect.ir.program import Block, Instr, Program
from ....dialect.ir.types import ScalarType
from ....dialect.ops.control_flow.control import For, If, While
from ....dialect.ops.create import Constant
from ....dialect.ops.elementwise.binary import Add, FloorDiv, Maximum, Minimum, Mul, Sub
from ....dialect.ops.elementwise.unary import Neg
from ....dialect.ops.queries import Dim, Size

_ROUNDS = 16  # of a loop of which nothing is known
_OF_SIZES = (Constant, Dim, Size)
_ARITHMETIC = (Add, Sub, Mul, FloorDiv, Neg, Maximum, Minimum)


def pass_on(instr: Instr, values: set[int]) -> None:
    """Add to ``values`` what control flow makes of them, or decides by them."""
    operands = instr.operands
    if instr.op is If:
        sides = zip(instr.results, *(b.outputs for b in instr.blocks), strict=True)
        decided = operands[0] in values
        values.update(r for r, *outputs in sides if decided or values.intersection(outputs))
        return
    if instr.op is For:
        (body,) = instr.blocks
        decided = not values.isdisjoint(operands[:3])
        rows = zip(operands[3:], body.outputs, body.args[1:], instr.results, strict=True)
        for init, output, arg, result in rows:
            if decided or init in values or output in values:
                values.update((arg, result))
        if decided:
            values.add(body.args[0])
        return
    if instr.op is While:
        before, after = instr.blocks
        decided = before.outputs[0] in values
        for init, output, arg in zip(operands, after.outputs, before.args, strict=True):
            if decided or init in values or output in values:
                values.add(arg)
        for output, arg, result in zip(before.outputs[1:], after.args, instr.results, strict=True):
            if decided or output in values:
                values.update((arg, result))


def has_loops(function: Program) -> bool:
    """True for a function with control flow."""
    return any(instr.blocks for instr in function.body.instrs)


def may_not_end(function: Program) -> bool:
    """True for a function whose inputs decide how often its loops run: others might run too long.

    Bounds of loops that end follow from sizes, constants and the indices of such loops.
    """
    bounded: set[int] = set()
    return not _ends(function.body, bounded)


def _ends(block: Block, bounded: set[int]) -> bool:
    for instr in block.instrs:
        if instr.op is While:
            return False
        if instr.op is For:
            if not bounded.issuperset(instr.operands[:3]):
                return False
            bounded.add(instr.blocks[0].args[0])
        if not all(_ends(inner, bounded) for inner in instr.blocks):
            return False
        if instr.op in _OF_SIZES or (instr.op in _ARITHMETIC and bounded.issuperset(instr.operands)):
            bounded.update(instr.results)
    return True


def weighted(function: Program) -> Iterator[tuple[Instr, int]]:
    """Every instruction without blocks, with an estimate of how often it runs."""
    constants = {
        instr.results[0]: instr.attrs["value"]
        for instr in function.body.walk()
        if instr.op is Constant and isinstance(function.type_of(instr.results[0]), ScalarType)
    }
    return _weighted(function.body, 1, constants)


def _weighted(block: Block, times: int, known: dict[int, Any]) -> Iterator[tuple[Instr, int]]:
    for instr in block.instrs:
        if not instr.blocks:
            yield instr, times
            continue
        rounds = 1
        if instr.op is For:
            rounds = _rounds(instr, known)
        elif instr.op is While:
            rounds = _ROUNDS
        for inner in instr.blocks:
            yield from _weighted(inner, times * rounds, known)


def _rounds(instr: Instr, known: dict[int, Any]) -> int:
    lower, upper, step = (known.get(v) for v in instr.operands[:3])
    if not isinstance(upper, int):
        return _ROUNDS
    if not isinstance(lower, int):
        return max(upper // 2, 1)  # it follows from the index of another loop, as a rule
    return len(range(lower, upper, step or 1)) if isinstance(step, int) else _ROUNDS
