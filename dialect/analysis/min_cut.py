"""Minimum cuts of directed graphs, by Dinic's algorithm (1970). Plain integers, no IR."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

UNCUT = 1 << 62
"""The capacity of an edge that no cut may contain."""


def minimum_cut(edges: Iterable[tuple[int, int, int]], source: int, sink: int) -> set[int]:
    """The nodes on the sink's side of a minimum cut; of several cuts, the one nearest to the sink.

    ``edges``: (from, to, capacity) with integers. Raises ValueError if every cut has an `UNCUT`
    edge.
    """
    flow = _Flow()
    for start, end, capacity in edges:
        flow.add(start, end, capacity)
    total = 0
    while levels := flow.levels(source, sink):
        total += flow.block(source, sink, levels)
        if total >= UNCUT:
            raise ValueError("source and sink are connected by edges that no cut may contain")
    return flow.reaching(sink)


class _Flow:
    """A residual graph: edge ``e`` and its reverse ``e ^ 1`` share what is left of a capacity."""

    def __init__(self) -> None:
        self.ends: list[int] = []
        self.left: list[int] = []
        self.edges: dict[int, list[int]] = {}

    def add(self, start: int, end: int, capacity: int) -> None:
        for a, b, c in ((start, end, capacity), (end, start, 0)):
            self.edges.setdefault(a, []).append(len(self.ends))
            self.ends.append(b)
            self.left.append(c)

    def levels(self, source: int, sink: int) -> dict[int, int]:
        """Distances from the source; empty if the sink cannot be reached."""
        levels, waiting = {source: 0}, deque([source])
        while waiting:
            node = waiting.popleft()
            for e in self.edges.get(node, ()):
                if self.left[e] and self.ends[e] not in levels:
                    levels[self.ends[e]] = levels[node] + 1
                    waiting.append(self.ends[e])
        return levels if sink in levels else {}

    def block(self, source: int, sink: int, levels: dict[int, int]) -> int:
        """Push flow along shortest paths until none is left; returns how much."""
        total = 0
        tried = dict.fromkeys(self.edges, 0)  # edges of a node that lead nowhere any more
        path: list[int] = []
        node = source
        while True:
            if node == sink:
                least = min(self.left[e] for e in path)
                total += least
                for e in path:
                    self.left[e] -= least
                    self.left[e ^ 1] += least
                full = next(k for k, e in enumerate(path) if not self.left[e])
                node = self.ends[path[full] ^ 1]
                del path[full:]
            step = self._step(node, tried, levels)
            if step is not None:
                path.append(step)
                node = self.ends[step]
            elif node == source:
                return total
            else:
                levels[node] = -1
                node = self.ends[path.pop() ^ 1]

    def _step(self, node: int, tried: dict[int, int], levels: dict[int, int]) -> int | None:
        """An edge with capacity left that leads one level further."""
        edges = self.edges[node]
        for k in range(tried[node], len(edges)):
            tried[node] = k
            e = edges[k]
            if self.left[e] and levels.get(self.ends[e]) == levels[node] + 1:
                return e
        tried[node] = len(edges)
        return None

    def reaching(self, sink: int) -> set[int]:
        """The nodes from which the sink can be reached."""
        nodes, waiting = {sink}, [sink]
        while waiting:
            for e in self.edges.get(waiting.pop(), ()):
                start = self.ends[e]
                if self.left[e ^ 1] and start not in nodes:
                    nodes.add(start)
                    waiting.append(start)
        return nodes
