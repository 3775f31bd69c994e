"""A traced graph in parts: those of operators that this package has, and between them those that torch runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx.passes.split_module import split_module

from ...dialect.errors import Loc, TraceError
from ...dialect.importers.foreign.fx.backward_halves import backward_halves
from ...dialect.importers.foreign.fx.fx_reader import operator_name, read, reads_memory
from ...dialect.importers.foreign.fx.fx_sizes import FX
from ...dialect.importers.foreign.torch_values import users_place
from ..functions.function import GraphFunction
from .tensor_function import ImportedTensors, detached

_MOST_PARTS = 64


class GraphParts:
    """Runs a traced graph.

    Args:
        module: the graph; its first inputs are what a user's module holds.
        held: these.
        name: of the function.
        source: what it is, for users.
        options: of `jit`.
        reaches: of each output, the numbers of the inputs that its gradient flows to.

    Attributes:
        left: the operators that torch runs, with their places in the user's model.

    Raises TraceError where nothing of the graph, or too many small parts of it, could be run here.
    """

    def __init__(
        self,
        module: torch.fx.GraphModule,
        held: Sequence[torch.Tensor],
        name: str,
        source: str,
        options: dict[str, Any],
        reaches: Sequence[frozenset[int]],
    ) -> None:
        calls = [node for node in module.graph.nodes if node.op == "call_function"]
        self.left: list[tuple[str, Loc | None]] = [
            (operator_name(node), users_place(node.meta.get("stack_trace")))
            for node in calls
            if operator_name(node) not in FX
        ]
        if any(map(reads_memory, calls)):  # results of a part may lie otherwise than torch's do
            raise TraceError(f"{source} reads memory as it lies, where that is not known")
        if self.left and backward_halves(module.graph):
            raise TraceError(f"{source} has a gradient of the user's own, and operators that torch runs: {self.says()}")
        self._whole: ImportedTensors | None = None
        self._parts: torch.fx.GraphModule | None = None
        self._imported: list[ImportedTensors] = []
        if not self.left:
            self._whole = ImportedTensors(read(module, name, source, len(held)), held, options, reaches)
            self._imported = [self._whole]
            return
        if len(self.left) == len(calls):
            raise TraceError(f"{source} has no operator that is supported: {self.says()}", loc=self.left[0][1])
        self._parts = _split(module)
        for child_name, child in list(self._parts.named_children()):
            nodes = [node for node in child.graph.nodes if node.op == "call_function"]
            if any(operator_name(node) not in FX for node in nodes):
                continue
            part = _PartHere(ImportedTensors(read(child, f"{name}_{child_name}", source), (), options))
            self._imported.append(part.imported)
            setattr(self._parts, child_name, part)
        if len(self._imported) > _MOST_PARTS:
            raise TraceError(f"{source} falls into {len(self._imported)} parts: {self.says()}", loc=self.left[0][1])

    def __call__(self, held: Sequence[torch.Tensor], inputs: Sequence[Any], differentiates: bool) -> Sequence[Any]:
        """The outputs of the graph."""
        if self._whole is None:
            assert self._parts is not None
            outputs = self._parts(*held, *inputs)
            return outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        if not differentiates:
            # Those that require gradients are plain data here: the gradient mode is off, or there are none.
            return self._whole([x if type(x) is torch.Tensor else detached(x) for x in inputs])
        return self._whole.function.apply((*held, *inputs))

    def only_function(self) -> GraphFunction | None:
        """The function that is the whole graph for calls without gradients; None = there are parts, or none yet."""
        return None if self._whole is None else self._whole.plain

    def says(self) -> str:
        """The operators that torch runs, with their counts and the places where they come from."""
        counts = Counter(name for name, _ in self.left)
        places = dict(reversed(self.left))
        return ", ".join(
            f"{name} ({count}, at {places[name]})" if places[name] else f"{name} ({count})"
            for name, count in counts.most_common()
        )

    def functions(self) -> list[GraphFunction]:
        """The jitted functions that there are."""
        return [f for imported in self._imported for f in imported.functions()]


class _PartHere(torch.nn.Module):
    """A part of a graph that is run here, in the place of its module."""

    def __init__(self, imported: ImportedTensors) -> None:
        super().__init__()
        self.imported = imported

    def forward(self, *inputs: Any) -> Any:
        if torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in inputs):
            outputs = self.imported.function.apply(inputs)
        else:
            outputs = self.imported([detached(x) for x in inputs])
        return outputs if len(outputs) != 1 else outputs[0]


def _split(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The graph in parts, each of which torch runs, or this package."""
    number, is_ours = 0, True
    numbers: dict[torch.fx.Node, int] = {}
    for node in module.graph.nodes:
        if node.op == "call_function":
            ours = operator_name(node) in FX
            if operator_name(node) == "python.getitem" and isinstance(node.args[0], torch.fx.Node):
                numbers[node] = numbers.get(node.args[0], number)  # beside what gives the tuple
                continue
            number += ours != is_ours
            is_ours = ours
        numbers[node] = number
    return split_module(module, module, lambda node: numbers[node])
