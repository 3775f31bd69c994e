"""A graph of TorchScript as a callable, whose arguments and results are Python's lists, tuples and dicts."""

from __future__ import annotations

from typing import Any

from ..foreign_graph import ForeignGraph
from ..imported_function import ImportedFunction
from .all_torchscript import TORCHSCRIPT
from .script_containers import argument, result


class ImportedScript(ImportedFunction):
    """A graph that was read from TorchScript; see `ImportedFunction`.

    Args:
        graph: the graph.
    """

    shares_memory = True
    are_changed = True  # they are parameters and buffers

    def __init__(self, graph: ForeignGraph) -> None:
        super().__init__(graph, TORCHSCRIPT)

    def _run(self, values: tuple) -> Any:
        return result(super()._run(tuple(map(argument, values))))
