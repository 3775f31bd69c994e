"""`torch.compile(model, backend="profuse")`: the graphs that Dynamo takes out of a program.

Dynamo guards structure, sizes and modes, and calls a graph with its inputs: parameters and other tensors, and sizes.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._guards import TracingContext, detect_fake_mode, tracing
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from ...dialect.errors import ArgumentError, ProfuseError, TraceError
from ...dialect.importers.foreign.fx.torch_state import state_kept
from ..functions.function import GraphFunction
from ..settings.events import log
from .exported_call import ExportedCall, exported, traced
from .module_state import kept_value
from .tensor_function import tensors_of
from .torch_runs import FixedExports, TorchRuns, first_line

_OPTIONS = frozenset(("background", "strategy", "profile"))
_MOST_EXPORTS = 16
_graphs: weakref.WeakSet[DynamoGraph] = weakref.WeakSet()


def compile_graph(
    module: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: dict[str, Any] | None = None,
    runs: TorchRuns | None = None,
    **_: Any,
) -> DynamoGraph:
    """The backend, as torch calls it.

    Args:
        module: a graph of Dynamo.
        example_inputs: its inputs.
        options: ``background``, ``strategy`` and ``profile``, as of `jit`.
        runs: counts what torch runs, for `profuse.torch.compile`.

    A graph that cannot be exported is run by torch, which an event says, and `DynamoGraph.explain`.
    """
    unknown = sorted((options or {}).keys() - _OPTIONS)
    if unknown:
        raise ArgumentError(
            f"the backend profuse has no option {unknown[0]!r}", hint=f"it has {', '.join(sorted(_OPTIONS))}"
        )
    graph = DynamoGraph(module, example_inputs, options or {}, runs or TorchRuns())
    _graphs.add(graph)
    return graph


class DynamoGraph:
    """One graph of Dynamo, exported, or left to torch as a whole.

    Dynamo passes numbers of Python that may change as tensors without axes, which the graph reads. A graph of this
    package holds for one value of each, so there is an export for each combination that calls have. Sizes are symbols
    of Dynamo's, which guards them; where no export has symbols, there is one for each combination of sizes.

    Args:
        module: the graph.
        example_inputs: its inputs.
        options: of `jit`.
        runs: counts what torch runs.

    Attributes:
        torch_calls: how many calls torch has run, as there is no export, or this package raised an error.
        fixed: why exports hold for one combination of sizes.
    """

    def __init__(
        self, module: torch.fx.GraphModule, example_inputs: Sequence[Any], options: dict[str, Any], runs: TorchRuns
    ) -> None:
        self._module, self._options, self._runs = module, options, runs
        self.torch_calls = 0
        self.fixed = FixedExports("torch.compile", runs)
        self._differentiates = torch.is_grad_enabled() and any(
            isinstance(x, torch.Tensor) and x.requires_grad for x in example_inputs
        )
        self._read = _numbers_read(module)
        self._exports: dict[tuple, ExportedCall | str] = {}  # by numbers and sizes; a text says why there is none
        self._no_symbols = ""  # why sizes are no symbols
        self._only: GraphFunction | None = None  # gives the results of all calls
        self._mode = detect_fake_mode(list(example_inputs))
        self._fakes: list[Any] = []
        if self._mode is None:
            self._no_symbols = "the graph has no tensor among its inputs"
            return
        self._fakes = [_fake(x, self._mode) for x in example_inputs]
        if not any(isinstance(example_inputs[k], FakeTensor) for k in self._read.values()):
            self._export_with_symbols(example_inputs)

    def __call__(self, *inputs: Any) -> Sequence[Any]:
        """The results, one after another."""
        if self._only is not None:  # Dynamo's guards tell all that an export is chosen by
            try:
                return tensors_of((self._only.native or self._only)(*inputs))
            except ProfuseError as error:
                return self._failed(inputs, error)
        call = self._exports.get(self._key(inputs)) or self._export(inputs)
        if isinstance(call, str):
            return self._in_torch(inputs, call)
        self._runs.counters["torch_ops"] += len(call.parts.left)
        try:
            results = call((), inputs if call.count == len(inputs) else _tensors(inputs), self._differentiates)
        except ProfuseError as error:
            return self._failed(inputs, error)
        if not (self._read or self._no_symbols or self._differentiates) and call.count == len(inputs):
            self._only = call.only_function()
        return results

    def _failed(self, inputs: Sequence[Any], error: ProfuseError) -> Sequence[Any]:
        if self.torch_calls == 0:
            log("slower", "torch.compile", f"torch runs calls of a graph itself: {error}")
        return self._in_torch(inputs, str(error))

    def _in_torch(self, inputs: Sequence[Any], reason: str) -> Sequence[Any]:
        self.torch_calls += 1
        self._runs.counters["torch_calls"] += 1
        self._runs.reasons.note(reason)
        with state_kept():
            return self._module(*inputs)

    def _key(self, inputs: Sequence[Any]) -> tuple:
        """What an export holds for: the numbers that the graph reads, and all sizes if these are no symbols."""
        numbers = tuple([kept_value(inputs[k].item()) for k in self._read.values()])
        if not self._no_symbols:
            return numbers
        return numbers, tuple([(x.shape, x.stride()) if isinstance(x, torch.Tensor) else x for x in inputs])

    def _export(self, inputs: Sequence[Any]) -> ExportedCall | str:
        """The export for a call, or why there is none."""
        if len(self._exports) >= _MOST_EXPORTS:
            return f"a graph of torch.compile has {_MOST_EXPORTS} exports for other numbers and sizes"
        if not self._no_symbols:
            self._export_with_symbols(inputs)
            if not self._no_symbols:
                return self._exports[self._key(inputs)]
        try:
            with tracing(None):
                graph, places = self._with_numbers(inputs), [isinstance(x, torch.Tensor) for x in inputs]

                def of_tensors(*tensors: Any) -> list[Any]:
                    rest = iter(tensors)
                    return graph(*(next(rest) if place else x for place, x in zip(places, inputs, strict=True)))

                call: ExportedCall | str = exported(
                    of_tensors,
                    (),
                    _tensors(inputs),
                    name="graph",
                    source="a graph of torch.compile",
                    differentiates=self._differentiates,
                    dynamic=False,
                    options=self._options,
                )
        except Exception as error:  # torch raises errors of many kinds
            call = first_line(error)
            count = len(self._module.graph.nodes)
            log("slower", "torch.compile", f"torch runs a graph of {count} nodes itself: {call}")
        else:
            self.fixed.note(self._no_symbols)
        self._exports[self._key(inputs)] = call
        return call

    def _export_with_symbols(self, inputs: Sequence[Any]) -> None:
        """Add an export whose sizes are Dynamo's symbols; if there is none, no later one has any."""
        assert self._mode is not None
        env = self._mode.shape_env
        count = len(env.guards) if self._exports and env is not None else None
        try:
            call = traced(
                self._with_numbers(inputs),
                inputs,
                self._fakes,
                None,
                0,
                "graph",
                "a graph of torch.compile",
                self._differentiates,
                self._options,
                self._mode,
            )
            if count is not None and env is not None and len(env.guards) != count:
                raise TraceError("another number makes the graph decide by sizes, which Dynamo does not guard any more")
        except Exception as error:  # torch raises errors of many kinds
            self._no_symbols = first_line(error)
        else:
            self._exports[self._key(inputs)] = call
        if self._no_symbols or not self._read:
            self._fakes, self._mode = [], None  # this was the last one

    def _with_numbers(self, inputs: Sequence[Any]) -> Callable[..., list[Any]]:
        """The graph as a function, with the numbers that it reads of inputs."""
        values = {node: inputs[k].item() for node, k in self._read.items()}
        return lambda *args: list(_Reading(self._module, values).run(*args))

    def calls(self) -> list[ExportedCall]:
        """The exports."""
        return [call for call in tuple(self._exports.values()) if isinstance(call, ExportedCall)]

    def functions(self) -> list[GraphFunction]:
        """The jitted functions that there are."""
        return [f for call in self.calls() for f in call.parts.functions()]

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for compiles under way."""
        ended = [f.wait(timeout) for f in self.functions()]
        return all(ended)

    def explain(self) -> str:
        """Text that says what runs as native code, and what torch runs."""
        lines = [f"A graph of torch.compile: {self.torch_calls} calls run by torch."]
        lines += self.fixed.lines()
        refusals = [why for why in self._exports.values() if isinstance(why, str)]
        lines += [f"  torch runs it as a whole: {why}" for why in dict.fromkeys(refusals)]
        for call in self.calls():
            if call.parts.left:
                lines.append(f"  torch runs between the kernels: {call.parts.says()}")
        return "\n".join(lines + [f.explain() for f in self.functions()])


class _Reading(torch.fx.Interpreter):
    """Runs a graph, which tells the places of its nodes; some of them are known numbers."""

    def __init__(self, module: torch.fx.GraphModule, numbers: dict[torch.fx.Node, Any]) -> None:
        super().__init__(module)
        self._numbers = numbers

    def run_node(self, n: torch.fx.Node) -> Any:
        """The result of a node."""
        return self._numbers[n] if n in self._numbers else super().run_node(n)


def _tensors(inputs: Sequence[Any]) -> list[torch.Tensor]:
    return [x for x in inputs if isinstance(x, torch.Tensor)]


def _numbers_read(module: torch.fx.GraphModule) -> dict[torch.fx.Node, int]:
    """The nodes that read a number which Dynamo has made a tensor of, each with the input that this is.

    Nobody writes to such a tensor, as the program that Dynamo runs does not have it.
    """
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    numbers = {
        node: k for k, node in enumerate(inputs) if getattr(node.meta.get("grapharg"), "pass_arg_as_tensor", False)
    }
    return {
        user: k
        for node, k in numbers.items()
        for user in node.users
        if user.op == "call_method" and user.target == "item"
    }


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
