"""Compute equal things once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from operator import itemgetter
from typing import ClassVar

from mlir import ir

from ...mlir.aliases import WrittenMemory
from ...mlir.facts import behind_observers, escapes, is_conditional, sharing_matters
from ...mlir.rewrite import all_attributes, blocks_in, functions, is_pure, is_terminator, ops_in, replace, symbol_of
from ..base import Pass, register_pass

Scope = dict[Hashable, ir.Operation]


@register_pass
@dataclass(frozen=True)
class Cse(Pass):
    """Replace a pure op by an equal one before it: same operands, attributes, result types.

    Operands are the same if they are so behind their observers, the records of which merge.
    Two results that a graph returns stay two arrays: merging them would show when the caller
    writes to one. Ops on memory that the graph writes itself are left alone.
    """

    name: ClassVar[str] = "cse-profuse"
    counts_changes: ClassVar[bool] = True

    def run(self, module: ir.Module) -> None:
        shared = sharing_matters(module)
        for func in functions(module):
            self.function(func, shared[symbol_of(func)])

    def function(self, func: ir.Operation, careful: bool) -> None:
        """Do so in one function; ``careful``: its caller can see that two results share memory."""
        memory = WrittenMemory(func)
        for block in blocks_in(func):
            self._block(block, [], careful, memory)

    def _block(self, block: ir.Block, outer: list[Scope], careful: bool, memory: WrittenMemory) -> None:
        scope: Scope = {}
        scopes = [*outer, scope]
        for op in ops_in(block):
            if is_terminator(op):
                continue
            if len(op.regions):
                for inner in blocks_in(op):
                    self._block(inner, scopes, careful, memory)
                continue
            # What reads memory that is written reads another value at another place.
            if not is_pure(op) or memory.is_touched(op) or is_conditional(op):
                continue
            key = _key(op)
            leader = next((s[key] for s in reversed(scopes) if key in s), None)
            if leader is None:
                scope[key] = op
            elif not (careful and _both_escape(leader, op)):
                replace(op, list(leader.results))
                self.count("ops-merged")


def _key(op: ir.Operation) -> Hashable:
    return (
        op.name,
        tuple(map(behind_observers, op.operands)),
        tuple(sorted(all_attributes(op), key=itemgetter(0))),
        tuple(r.type for r in op.results),
    )


def _both_escape(one: ir.Operation, two: ir.Operation) -> bool:
    return any(escapes(a) and escapes(b) for a, b in zip(one.results, two.results, strict=True))
