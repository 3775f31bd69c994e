"""What is read of a method or function of TorchScript: its graph as plain data, and what it asks of its module."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from ....dataclass import dataclass
from ....errors import TraceError
from ..foreign_graph import ForeignBlock, ForeignGraph, ForeignNode, ValueRef


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
        grad_mode: torch's gradient mode, for which the graph holds; None = for both.
        requires: which parameters and buffers require gradients, as far as the function asks.
        compares: it asks whether one tensor is the other.
        written: the numbers of the parameters to whose memory in-place operators write.
    """

    graph: ForeignGraph
    parameters: tuple[Parameter, ...]
    attributes: dict[str, Any]
    buffers: tuple[str, ...]
    state: tuple[str, ...]
    tensors: dict[str, int]
    result: Any = None
    grad_mode: bool | None = None
    requires: dict[str, bool] = field(default_factory=dict)
    compares: bool = False
    written: tuple[int, ...] = ()

    def with_arguments(self, names: tuple[str, ...], same: tuple[int, ...] = ()) -> ForeignGraph:
        """The graph with these parameters and buffers as further inputs, behind all others.

        ``same``: the number of the first argument, for each, that is the same object, which is an input once.
        """
        graph = self.graph.with_inputs([self.tensors[name] for name in names]) if names else self.graph
        again = {k: first for k, first in enumerate(same) if first != k}
        if not again:
            return graph
        inputs = graph.body.inputs
        casts = [
            ForeignNode("prim::unchecked_cast", (ValueRef(inputs[first]),), {}, (inputs[k],))
            for k, first in again.items()
        ]
        kept = [k for k in range(len(inputs)) if k not in again]
        body = ForeignBlock(tuple(inputs[k] for k in kept), [*casts, *graph.body.nodes], graph.body.outputs)
        names = tuple(graph.parameters[k] for k in kept)
        return ForeignGraph(graph.name, body, names, graph.constants, graph.source)


def parameters_of(schema: Any, is_method: bool, count: int) -> tuple[Parameter, ...]:
    """The parameters of a function by its schema; raises TraceError where these are not those of its graph."""
    arguments = list(schema.arguments)[is_method:]
    if len(arguments) != count:
        raise TraceError(f"the graph has {count} inputs, its schema {len(arguments)}")
    return tuple(
        Parameter(
            a.name, a.type.annotation_str, a.has_default_value(), a.default_value if a.has_default_value() else None
        )
        for a in arguments
    )


def attribute(module: Any, path: str) -> Any:
    """An attribute of a module or of one within it."""
    for name in path.split("."):
        module = getattr(module, name)
    return module
