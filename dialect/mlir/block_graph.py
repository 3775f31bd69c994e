"""The ops of a block as a graph of groups, which passes merge and then move next to each other."""

from __future__ import annotations

from mlir import ir

from ..analysis.grouping import Groups, chain
from .memory import Memory
from .rewrite import is_pure, is_terminator, ops_in, terminator_of, walk


class BlockGraph:
    """What must stay before what in a block of a function, as the block is now.

    Attributes:
        ops: the ops, the terminator included; groups name them by their numbers.
        home: result -> the number of its op.
        users: value -> the numbers of the ops that read it, also inside of their blocks.
        groups: each op alone, at first.
    """

    def __init__(self, func: ir.Operation, block: ir.Block) -> None:
        self.block = block
        self.ops = ops_in(block)
        self.home = {r: n for n, op in enumerate(self.ops) for r in op.results}
        self.users: dict[ir.Value, set[int]] = {}
        edges: set[tuple[int, int]] = set()
        for n, op in enumerate(self.ops):
            for user in (op, *walk(op)):
                for value in user.operands:
                    self.users.setdefault(value, set()).add(n)
                    if value in self.home and self.home[value] != n:
                        edges.add((self.home[value], n))
        # The reads of memory and its writes keep their order (R3.17).
        edges.update(Memory(func).order(block))
        edges.update(chain([n for n, op in enumerate(self.ops) if is_ordered(op)]))
        last = len(self.ops) - 1
        edges.update((n, last) for n in range(last))
        self.groups = Groups(len(self.ops), edges)

    def arrange(self) -> list[int]:
        """Move the ops of each group next to each other; returns the groups in their new order."""
        order, end = self.groups.order(), terminator_of(self.block)
        for g in order:
            for n in self.groups.members[g]:
                if self.ops[n] != end:
                    self.ops[n].move_before(end)
        return order


def is_ordered(op: ir.Operation) -> bool:
    """True for an op that has an effect, and keeps its place among such."""
    return not is_terminator(op) and not is_pure(op)


__all__ = ["BlockGraph", "is_ordered"]
