"""Sequences of launches that come again, replayed as CUDA graphs.

A sequence is known by its kernels, grids and blocks. Its first run launches one by one, as sizes
may never be the same again; from the second on there is a graph, of which only the arguments that
have changed are written anew.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from ...settings.events import Counters
from ...settings.knobs import knobs
from ..nvidia.driver import driver
from ..nvidia.driver_api import Driver, Node


class _Replayed:
    """A graph, and the arguments it was last given."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.functions = [node.function for node in nodes]  # their identities are in the key
        self.graph: Any = None
        self.values: list[tuple[int, ...]] = []


class _Graphs:
    """The graphs of a driver, those used last; bounded by the ``cuda_graphs`` knob."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple, _Replayed] = OrderedDict()

    def launch(self, device: int, nodes: Sequence[Node], stream: int) -> bool:
        """Replay a graph of these launches; False if there is none yet."""
        key = (device, *(node.shape for node in nodes))
        # A graph holds one set of arguments: writing them and starting it belong together.
        with self._lock:
            known = self._known.get(key)
            if known is None:
                self._known[key] = _Replayed(nodes)
                self._make_room()
                return False
            self._known.move_to_end(key)
            if known.graph is None:
                known.graph = self.driver.graph(device, nodes)
                known.values = [tuple(node.arguments.values) for node in nodes]
            else:
                self._update(known, nodes)
            self.driver.replay(device, known.graph, stream)
            return True

    def _update(self, known: _Replayed, nodes: Sequence[Node]) -> None:
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


def launch_all(device: int, nodes: Sequence[Node], stream: int, counters: Counters) -> None:
    """Start kernels one after the other, as one graph where that is known to pay."""
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
    found = _graphs
    if found is None or found.driver is not current:
        with _lock:
            if _graphs is None or _graphs.driver is not current:
                _graphs = _Graphs(current)
            found = _graphs
    return found
