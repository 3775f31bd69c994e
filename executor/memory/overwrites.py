"""Finds arrays of loops that may be overwritten.

A loop that replaces a part of an array in each round would copy the whole array each time. Where a
round reads nothing of the array after it has replaced the part (`Overwrites`), the op that does so
writes into the array, which is the loop's own from the first round on.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from ...dialect.analysis.alias import NOTHING, Roots, result_roots, uses
from ...dialect.ir.program import Block, Instr, Program
from ...dialect.ops.control_flow.control import For, If
from ...dialect.ops.create import Full
from ...dialect.ops.speculation import Guard, Identity

_ELEMENT = bytes(16)  # one element of any dtype


class Overwrites:
    """The ops of a program's counted loops whose results may take the memory of an operand."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._ops: set[int] = set()
        self._owned: dict[int, tuple[int, ...]] = {}
        if any(instr.op is For for instr in program.body.walk()):
            self._used = Counter(uses_in(program.body))
            self._block(program.body)

    def _block(self, block: Block) -> None:
        fresh = set[int]()  # arrays that this run of the block has made, and nothing has read
        for instr in block.instrs:
            if instr.op is Full:
                fresh.update(r for r in instr.results if self._used[r] == 1)
            if instr.op is For:
                self._loop(instr, fresh)
            for inner in instr.blocks:
                self._block(inner)

    def _loop(self, loop: Instr, fresh: set[int]) -> None:
        (body,), inits = loop.blocks, loop.operands[3:]
        owned = []
        for k, (arg, out) in enumerate(zip(body.args[1:], body.outputs, strict=True)):
            ops = self._writers(body, arg, out)
            self._ops.update(map(id, ops))
            if ops and inits[k] not in fresh:
                owned.append(k)
        self._owned[id(loop)] = tuple(owned)

    def may(self, instr: Instr) -> bool:
        """True if an op may be evaluated by `Op.overwrite`."""
        return id(instr) in self._ops

    def owned(self, loop: Instr) -> tuple[int, ...]:
        """The carried values of a loop, counted from 0, of which it needs a copy of its own."""
        return self._owned.get(id(loop), ())

    def _writers(self, body: Block, arg: int, out: int) -> list[Instr]:
        """The ops that make of a carried value that of the next round, each in place of the last.

        None, unless nothing but the next of these ops reads what one has made or its views, and
        nothing hands these on.
        """
        current, views, dead = {arg}, set[int](), set[int]()
        writers = []
        for instr in body.instrs:
            if dead & uses(instr):
                return []
            if instr.op.can_overwrite() and instr.operands[0] in current:
                if (current | views).intersection(instr.operands[1:]):
                    return []
                writers.append(instr)
                dead |= current | views
                current, views = set(instr.results), set()
                continue
            if issubclass(instr.op, (Guard, Identity)):
                pairs = zip(instr.results, instr.operands, strict=False)
                current |= {alias for alias, value in pairs if value in current}
            views |= self._sharing(instr, current | views)
        handed = [v for v in body.outputs if v in current | views | dead]
        return writers if handed == [out] and out in current else []

    def _sharing(self, instr: Instr, values: set[int]) -> set[int]:
        """The results of an instruction that may share memory with one of some values."""
        if instr.op is If:
            sharing = set()
            for block in instr.blocks:
                inside = set(values)
                for inner in block.instrs:
                    inside |= self._sharing(inner, inside)
                pairs = zip(instr.results, block.outputs, strict=True)
                sharing |= {r for r, output in pairs if output in inside}
            return sharing
        if instr.blocks:
            return set(instr.results) if values & uses(instr) else set()
        mine: Roots = frozenset([self])
        roots = result_roots(instr, self._program.type_of, lambda v: mine if v in values else NOTHING)
        return {r for r, root in zip(instr.results, roots, strict=True) if root == mine}


def uses_in(block: Block) -> list[int]:
    """Every use of a value in a block and the blocks in it, with repetitions."""
    values = list(block.outputs)
    for instr in block.instrs:
        values += instr.operands
        for inner in instr.blocks:
            values += uses_in(inner)
    return values


def shape_alone(x: Any) -> Any:
    """An array of the shape and dtype of ``x`` that holds one element, and not the memory of ``x``.

    It stands for ``x`` where nothing but sizes is read, so that writes to ``x`` do not matter.
    """
    if type(x) is not np.ndarray or not x.ndim:
        return x
    return np.ndarray(x.shape, x.dtype, _ELEMENT, 0, (0,) * x.ndim)


def own_copy(value: Any) -> Any:
    """An array in memory of its own, for a loop that overwrites it."""
    return np.array(value) if type(value) is np.ndarray else value
