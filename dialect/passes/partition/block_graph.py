"""The ops of a block as a graph of groups, which passes merge and then move next to each other."""

from __future__ import annotations

from mlir import ir

from ...analysis.node_groups import Groups, chain
from ...mlir.aliases import WrittenMemory
from ...mlir.rewrite import is_pure, is_terminator, ops_in, terminator_of, walk


class BlockGraph:
    """The order that operations in a block of a function must keep, as the block is now.

    Attributes:
        ops: the ops, the terminator included; groups name them by their numbers.
        home: result -> the number of its op.
        reads: per op what it reads, also inside of its blocks, in order.
        users: value -> the numbers of the ops that read it, likewise.
        groups: each op alone, at first.
    """

    def __init__(self, func: ir.Operation, block: ir.Block) -> None:
        self.block = block
        self.ops = ops_in(block)
        self.home = {r: n for n, op in enumerate(self.ops) for r in op.results}
        self.users: dict[ir.Value, set[int]] = {}
        edges: set[tuple[int, int]] = set()
        self.reads = [[v for user in (op, *walk(op)) for v in user.operands] for op in self.ops]
        for n, values in enumerate(self.reads):
            for value in values:
                self.users.setdefault(value, set()).add(n)
                if value in self.home and self.home[value] != n:
                    edges.add((self.home[value], n))
        # The reads of memory and its writes keep their order (R3.17).
        edges.update(WrittenMemory(func).order(block))
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
