"""Values that a loop carries twice: made one, so that each array has one name in a loop.

`functional` hands the contents of written memory through a loop beside the values that the loop
carried before, which then name the same arrays.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ..ir.program import Block, Instr, Program
from ..ops.control_flow.control import For, While


def merge_carried(program: Program) -> int:
    """Drop carried values that equal another one in every round, in place; returns how many."""
    return _block(program, program.body)


def _block(program: Program, block: Block) -> int:
    count = 0
    for instr in block.instrs:
        count += sum(_block(program, inner) for inner in instr.blocks)
        if instr.op is For:
            count += _merge_for(program, instr)
        elif instr.op is While:
            count += _merge_while(program, instr)
    return count


def _merge_for(program: Program, loop: Instr) -> int:
    (body,) = loop.blocks
    inits = loop.operands[3:]
    index, *args = body.args
    representatives = _kept(inits, lambda same: [same.get(v, v) for v in body.outputs], args)
    if len(set(representatives)) == len(args):
        return 0
    first = sorted(set(representatives))
    _rename(program, args, representatives)
    _rename(program, loop.results, representatives)
    loop.operands = (*loop.operands[:3], *(inits[k] for k in first))
    body.args = (index, *(args[k] for k in first))
    body.outputs = tuple(body.outputs[k] for k in first)
    loop.results = tuple(loop.results[k] for k in first)
    return len(args) - len(first)


def _merge_while(program: Program, loop: Instr) -> int:
    before, after = loop.blocks
    passed = before.outputs[1:]

    def outputs(same: dict[int, int]) -> list[int]:
        groups: dict[int, int] = {}
        inner = {}
        for arg, value in zip(after.args, passed, strict=True):
            inner[arg] = groups.setdefault(same.get(value, value), arg)
        return [inner.get(v, v) for v in after.outputs]

    representatives = _kept(loop.operands, outputs, before.args)
    _rename(program, before.args, representatives)
    first = sorted(set(representatives))
    count = len(representatives) - len(first)
    loop.operands = tuple(loop.operands[k] for k in first)
    before.args = tuple(before.args[k] for k in first)
    after.outputs = tuple(after.outputs[k] for k in first)
    # What is passed on, by the names that are left.
    passed = before.outputs[1:]
    places = [passed.index(v) for v in passed]
    _rename(program, after.args, places)
    _rename(program, loop.results, places)
    first = sorted(set(places))
    before.outputs = (before.outputs[0], *(passed[k] for k in first))
    after.args = tuple(after.args[k] for k in first)
    loop.results = tuple(loop.results[k] for k in first)
    return count


def _kept(inits: Sequence[int], outputs: object, args: Sequence[int]) -> list[int]:
    """For each carried value, the first one that it equals in all rounds.

    They are taken to be equal that begin equal, until a round makes them differ.
    """
    classes: list[Hashable] = list(inits)
    while True:
        first = [classes.index(c) for c in classes]
        same = {arg: args[k] for arg, k in zip(args, first, strict=True)}
        pairs = list(zip(first, outputs(same), strict=True))  # type: ignore[operator]
        refined = [pairs.index(pair) for pair in pairs]
        if refined == first:
            return first
        classes = list(refined)


def _rename(program: Program, values: Sequence[int], kept: Sequence[int]) -> None:
    program.body.replace({v: values[k] for v, k in zip(values, kept, strict=True) if v != values[k]})
