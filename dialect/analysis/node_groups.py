"""Merging nodes of an acyclic graph into groups without making a cycle. Plain integers, no IR.

Nodes are numbered in an order in which every edge goes up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from itertools import pairwise


class Groups:
    """A partition of nodes, kept such that the graph of its groups has no cycle.

    A group is named by one of its nodes.  ``reach`` holds, per group, the set of groups that can
    be reached from it, as the bits of an integer.
    """

    def __init__(self, count: int, edges: Iterable[tuple[int, int]]) -> None:
        self.members: dict[int, list[int]] = {n: [n] for n in range(count)}
        self.succ: list[set[int]] = [set() for _ in range(count)]
        self.pred: list[set[int]] = [set() for _ in range(count)]
        self._group = list(range(count))
        for a, b in edges:
            self.succ[a].add(b)
            self.pred[b].add(a)
        self.reach = [0] * count
        for n in reversed(range(count)):
            for s in self.succ[n]:
                self.reach[n] |= self.reach[s] | 1 << s

    def group(self, node: int) -> int:
        """The group that a node is in."""
        return self._group[node]

    def can_merge(self, a: int, b: int) -> bool:
        """True if no path leads from one group to the other through a third."""
        return not any(
            self.reach[s] >> end & 1 for start, end in ((a, b), (b, a)) for s in self.succ[start] if s != end
        )

    def merge(self, a: int, b: int) -> int:
        """Make one group of two (which `can_merge`), and return its name."""
        for node in self.members[b]:
            self._group[node] = a
        self.members[a] = sorted(self.members[a] + self.members.pop(b))
        for forward, back in ((self.succ, self.pred), (self.pred, self.succ)):
            for other in forward[b] - {a}:
                back[other].discard(b)
                back[other].add(a)
            forward[a] = (forward[a] | forward[b]) - {a, b}
        bits = 1 << a | 1 << b
        self.reach[a] = (self.reach[a] | self.reach[b]) & ~bits
        above = self.reach[a] | 1 << a
        # Only what leads here changes: asking every group would take quadratic time.
        before, waiting = set(self.pred[a]), list(self.pred[a])
        while waiting:
            g = waiting.pop()
            self.reach[g] = (self.reach[g] | above) & ~(1 << b)
            fresh = self.pred[g] - before
            before |= fresh
            waiting += fresh
        return a

    def order(self) -> list[int]:
        """Groups in an order in which every edge goes up, close to that of their first nodes."""
        waiting = {g: len(self.pred[g]) for g in self.members}
        ready: list[tuple[int, int]] = []
        for g, missing in waiting.items():
            if not missing:
                heappush(ready, (self.members[g][0], g))
        out = []
        while ready:
            _, g = heappop(ready)
            out.append(g)
            for s in self.succ[g]:
                waiting[s] -= 1
                if not waiting[s]:
                    heappush(ready, (self.members[s][0], s))
        return out


def chain(nodes: Sequence[int]) -> list[tuple[int, int]]:
    """Edges that keep nodes in their order."""
    return list(pairwise(nodes))
