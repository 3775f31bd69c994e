"""What is read of a method or function of TorchScript: its graph as plain data, and what it asks of its module."""

from __future__ import annotations

from typing import Any

from ....dataclass import dataclass
from ..foreign_graph import ForeignGraph


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of a function of TorchScript.

    Attributes:
        name: as users write it.
        type: its type in TorchScript's notation.
        has_default: whether calls may leave it out.
        default: its value then.
    """

    name: str
    type: str
    has_default: bool = False
    default: Any = None


@dataclass(slots=True)
class ScriptGraph:
    """A function of TorchScript, or a method of a module.

    Attributes:
        graph: its inputs are the parameters, then the buffers, then the state; its outputs are the
            result, then the attributes of ``state`` behind the call.
        parameters: without the module.
        attributes: what the function reads of its module besides tensors, by paths: constants of the graph,
            which holds as long as they do.
        buffers: paths of tensors to which in-place operators write.
        state: paths of what it assigns.
        tensors: the numbers of the graph's constants that are parameters and buffers, by their paths.
        result: how the results of torch are made of plain tuples: see `result_shapes`.
    """

    graph: ForeignGraph
    parameters: tuple[Parameter, ...]
    attributes: dict[str, Any]
    buffers: tuple[str, ...]
    state: tuple[str, ...]
    tensors: dict[str, int]
    result: Any = None

    def with_arguments(self, names: tuple[str, ...]) -> ForeignGraph:
        """The graph with these parameters and buffers as further inputs, behind all others."""
        return self.graph.with_inputs([self.tensors[name] for name in names])


__all__ = ["Parameter", "ScriptGraph"]
