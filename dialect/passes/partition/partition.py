"""Cut a block into groups: what all fusers do, by a policy that each of them states."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from mlir import ir

from .block_graph import BlockGraph
from .outline import Outliner

G = TypeVar("G")


class Partition(Outliner, Generic[G]):
    """The ops of a block, merged into groups as long as no cycle arises (R1.48).

    A policy is a subclass. It says which ops take part (`may_join`), which groups become one
    (`joins`), in which order merges are tried (``run``), which groups are worth a function
    (`is_worth`), and what that is like (see `Outliner`).

    Attributes:
        graph: what must stay before what in the block.
        facts: number of an op that takes part -> what the policy knows of the group of that name.
    """

    def __init__(self, module: ir.Module, func: ir.Operation, block: ir.Block) -> None:
        super().__init__(module)
        self.func, self.block = func, block

    def may_join(self, n: int, op: ir.Operation) -> G | None:
        """Give the facts of an op as a group of its own; None = it stays outside."""
        raise NotImplementedError

    def joins(self, a: int, b: int) -> G | None:
        """Give the facts of two groups as one; None = they stay apart."""
        raise NotImplementedError

    def is_worth(self, group: int) -> bool:
        """Tell whether a group becomes a function."""
        raise NotImplementedError

    # --- what policies are written with ---------------------------------------------------------

    def analyse(self) -> None:
        """Begin with each op alone, as the block is now."""
        self.graph = BlockGraph(self.func, self.block)
        self.groups = self.graph.groups
        facts = ((n, self.may_join(n, op)) for n, op in enumerate(self.graph.ops))
        self.facts = {n: fact for n, fact in facts if fact is not None}

    def merge(self, a: int, b: int) -> None:
        """Make one group of those of two ops, if that makes no cycle and the policy joins them."""
        a, b = self.groups.group(a), self.groups.group(b)
        if a != b and self.groups.can_merge(a, b) and (both := self.joins(a, b)) is not None:
            self.facts[self.groups.merge(a, b)] = both

    def merge_along_values(self, nodes: Iterable[int]) -> bool:
        """Merge ops with those that make what they read, wherever that can be; True if any were."""
        count = len(self.groups.members)
        for n in nodes:
            for value in self.graph.reads[n]:
                producer = self.graph.home.get(value)
                if producer in self.facts:
                    self.merge(producer, n)
        return len(self.groups.members) < count

    def is_read_outside(self, value: ir.Value, *groups: int) -> bool:
        """Tell whether an op of the block that is in none of these groups reads a value."""
        return any(self.groups.group(n) not in groups for n in self.graph.users.get(value, ()))

    def worthy(self) -> list[int]:
        """The groups that become functions."""
        return [g for g in self.groups.members if g in self.facts and self.is_worth(g)]

    def outline_groups(self, chosen: Iterable[int]) -> None:
        """Outline groups, in the order in which the block can run them."""
        numbers = set(chosen)
        for g in self.graph.arrange() if numbers else ():
            if g in numbers:
                members = [self.graph.ops[n] for n in self.groups.members[g]]
                outputs = [v for op in members for v in op.results if self.is_read_outside(v, g)]
                self.outline(members, outputs, members[-1])
