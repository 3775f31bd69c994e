"""Repeated sequences of launches, replayed as CUDA graphs.

The key of a sequence consists of its kernels, grids and blocks. Its first run launches kernel by
kernel, because these sizes may never occur again. The second run makes a graph; later runs replay
it and update only the arguments that have changed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from ...settings.events import Counters
from ...settings.knobs import knobs
from ..nvidia.driver import driver
from ..nvidia.driver_api import Driver, LaunchNode


class _Replayed:
    """A graph (None before the second run), and the arguments of its latest replay."""

    def __init__(self, nodes: Sequence[LaunchNode]) -> None:
        self.functions = [node.function for node in nodes]  # kept alive: their ids are in the key
        self.graph: Any = None
        self.values: list[tuple[int, ...]] = []


class _Graphs:
    """The most recently used graphs of a driver; the ``cuda_graphs`` knob bounds their number."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple, _Replayed] = OrderedDict()

    def launch(self, device: int, nodes: Sequence[LaunchNode], stream: int) -> bool:
        """Replay a graph of these launches; False if this is the sequence's first run."""
        key = (device, *(node.shape for node in nodes))
        # A graph holds one set of arguments, so no other thread may come between writing them and
        # starting the graph.
        with self._lock:
            entry = self._known.get(key)
            if entry is None:
                self._known[key] = _Replayed(nodes)
                self._make_room()
                return False
            self._known.move_to_end(key)
            if entry.graph is None:
                entry.graph = self.driver.graph(device, nodes)
                entry.values = [tuple(node.arguments.values) for node in nodes]
            else:
                self._update(entry, nodes)
            self.driver.replay(device, entry.graph, stream)
            return True

    def _update(self, known: _Replayed, nodes: Sequence[LaunchNode]) -> None:
        for index, node in enumerate(nodes):
            values = tuple(node.arguments.values)
            if values != known.values[index]:
                self.driver.update(known.graph, index, node)
                known.values[index] = values

    def _make_room(self) -> None:
        while len(self._known) > knobs.cuda_graphs:
            _, oldest = self._known.popitem(last=False)
            if oldest.graph is not None:
                self.driver.drop(oldest.graph)


_lock = threading.Lock()
_graphs: _Graphs | None = None


def launch_all(device: int, nodes: Sequence[LaunchNode], stream: int, counters: Counters) -> None:
    """Start kernels in order: as one CUDA graph if the sequence has run before, else one by one.

    Counts ``kernel_launches`` and ``graph_replays``, and returns the argument blocks for reuse.
    """
    current = driver()
    if len(nodes) > 1 and knobs.cuda_graphs and _graphs_of(current).launch(device, nodes, stream):
        counters.graph_replays += 1
    else:
        for node in nodes:
            current.launch(device, node, stream)
    counters.kernel_launches += len(nodes)
    for node in nodes:
        node.free.append(node.arguments)


def _graphs_of(current: Driver) -> _Graphs:
    global _graphs
    graphs = _graphs
    if graphs is None or graphs.driver is not current:
        with _lock:
            if _graphs is None or _graphs.driver is not current:
                _graphs = _Graphs(current)
            graphs = _graphs
    return graphs
