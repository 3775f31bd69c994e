"""One copy of each constant, at the top (R1.24)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...mlir.facts import escapes, is_constant_op, sharing_matters
from ...mlir.rewrite import body_of, functions, ops_in, replace, symbol_of, walk
from ..base import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class PoolConstants(Pass):
    """Merge equal constants of a function, nested blocks included, into one at its top.

    Two that a graph returns stay two arrays: merging them would show when the caller writes to
    one.
    """

    name: ClassVar[str] = "pool-constants"
    counts_changes: ClassVar[bool] = True

    def run(self, module: ir.Module) -> None:
        shared = sharing_matters(module)
        for func in functions(module):
            if func.regions[0].blocks:
                self.function(func, shared[symbol_of(func)])

    def function(self, func: ir.Operation, careful: bool) -> None:
        """Do so in one function; ``careful``: its caller can see that two results share memory."""
        constants = [op for op in walk(func) if is_constant_op(op)]
        pool: dict[Hashable, ir.Operation] = {}
        kept: list[ir.Operation] = []
        for op in constants:
            value = op.results[0]
            # As text: attributes of the same elements may be spelt (splat or not) in two ways.
            key = (str(op.attributes["value"]), value.type)
            leader = pool.setdefault(key, op)
            if leader == op or (careful and escapes(value) and escapes(leader.results[0])):
                kept.append(op)
                continue
            replace(op, [leader.results[0]])
            self.count("constants-merged")
        mine = {op.results[0] for op in kept}
        top = ops_in(body_of(func))
        if all(is_constant_op(op) for op in top[: len(kept)]):
            return
        anchor = next(op for op in top if not len(op.results) or op.results[0] not in mine)
        for op in kept:
            op.move_before(anchor)
        self.count("constants-hoisted", len(kept))
