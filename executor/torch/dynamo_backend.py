"""`torch.compile(model, backend="profuse")`: the graphs that Dynamo takes out of a program.

Dynamo guards structure, sizes and modes, and calls a graph with its inputs: parameters and other tensors, and sizes.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from torch._guards import TracingContext, detect_fake_mode
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from ...dialect.errors import ArgumentError, ProfuseError
from ..functions.function import GraphFunction
from ..settings.events import log
from .exported_call import ExportedCall, traced

_REASONS = 8
_OPTIONS = frozenset(("background", "strategy", "profile"))
_graphs: weakref.WeakSet[DynamoGraph] = weakref.WeakSet()


def compile_graph(
    module: torch.fx.GraphModule, example_inputs: Sequence[Any], *, options: dict[str, Any] | None = None, **_: Any
) -> DynamoGraph:
    """The backend, as torch calls it.

    Args:
        module: a graph of Dynamo.
        example_inputs: its inputs.
        options: ``background``, ``strategy`` and ``profile``, as of `jit`.

    A graph that cannot be exported is run by torch, which an event says, and `DynamoGraph.explain`.
    """
    unknown = sorted((options or {}).keys() - _OPTIONS)
    if unknown:
        raise ArgumentError(
            f"the backend profuse has no option {unknown[0]!r}", hint=f"it has {', '.join(sorted(_OPTIONS))}"
        )
    graph = DynamoGraph(module, example_inputs, options or {})
    _graphs.add(graph)
    return graph


class FewReasons(Counter[str]):
    """Why something has not been done here, in words, each with how often; those beyond the first few are one."""

    def note(self, reason: str) -> None:
        """Count a reason."""
        self[reason if reason in self or len(self) < _REASONS else "other reasons"] += 1


class DynamoGraph:
    """One graph of Dynamo, exported, or left to torch as a whole.

    Args:
        module: the graph.
        example_inputs: its inputs.
        options: of `jit`.

    Attributes:
        call: the export; None = there is none.
        torch_calls: how many calls torch has run, as there is no export, or this package raised an error.
        reasons: why, each with the number of calls.
    """

    def __init__(self, module: torch.fx.GraphModule, example_inputs: Sequence[Any], options: dict[str, Any]) -> None:
        self._module = module
        self.torch_calls = 0
        self.reasons = FewReasons()
        self.call: ExportedCall | None = None
        self._refusal = ""
        needs = [isinstance(x, torch.Tensor) and x.requires_grad for x in example_inputs]
        self._differentiates = torch.is_grad_enabled() and any(needs)
        try:
            self.call = self._exported(example_inputs, options)
        except Exception as error:  # torch raises errors of many kinds
            self._refusal = f"{type(error).__name__}: {error}".splitlines()[0]
            count = len(module.graph.nodes)
            log("slower", "torch.compile", f"torch runs a graph of {count} nodes itself: {self._refusal}")

    def _exported(self, example_inputs: Sequence[Any], options: dict[str, Any]) -> ExportedCall:
        mode = detect_fake_mode(list(example_inputs))
        if mode is None:
            raise ArgumentError("the graph has no tensor among its inputs")
        module, fakes = self._module, [_fake(x, mode) for x in example_inputs]
        return traced(
            lambda *values: list(torch.fx.Interpreter(module).run(*values)),  # which tells the places of its nodes
            example_inputs,
            fakes,
            None,
            0,
            "graph",
            "a graph of torch.compile",
            self._differentiates,
            options,
            mode,
        )

    def __call__(self, *inputs: Any) -> Sequence[Any]:
        """The results, in a list."""
        if self.call is None:
            return self._in_torch(self._refusal, inputs)
        try:
            return self.call((), inputs, self._differentiates)
        except ProfuseError as error:
            if not self.torch_calls:
                log("slower", "torch.compile", f"torch runs calls of a graph itself: {error}")
            return self._in_torch(str(error).splitlines()[0], inputs)

    def _in_torch(self, reason: str, inputs: Sequence[Any]) -> Sequence[Any]:
        self.torch_calls += 1
        self.reasons.note(reason)
        return self._module(*inputs)

    def functions(self) -> list[GraphFunction]:
        """The jitted functions that there are."""
        return [] if self.call is None else self.call.parts.functions()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for compiles under way."""
        ended = [f.wait(timeout) for f in self.functions()]
        return all(ended)

    def explain(self) -> str:
        """Text that says what runs as native code, and what torch runs."""
        lines = [f"A graph of torch.compile: {self.torch_calls} calls run by torch."]
        if self.call is None:
            lines.append(f"  torch runs it itself: {self._refusal}")
        else:
            lines += [f"  torch ran {count} calls: {reason}" for reason, count in self.reasons.items()]
        if self.call is not None and self.call.parts.left:
            lines.append(f"  torch runs between the kernels: {self.call.parts.says()}")
        return "\n".join(lines + [f.explain() for f in self.functions()])


def _fake(x: Any, mode: FakeTensorMode) -> Any:
    """An input of a graph as a fake tensor with Dynamo's own symbols for its sizes."""
    if not isinstance(x, torch.Tensor) or isinstance(x, FakeTensor):
        return x
    tracing = TracingContext.try_get()
    context = None if tracing is None else tracing.tensor_to_context.get(x)
    source = None if context is None else context.tensor_source
    return mode.from_tensor(x, symbolic_context=context, source=source, trace=context is None)


def dynamo_graphs() -> list[DynamoGraph]:
    """The graphs that torch.compile has handed to this package and that are alive, for `explain` and `wait`."""
    return list(_graphs)


__all__ = ["DynamoGraph", "FewReasons", "compile_graph", "dynamo_graphs"]
