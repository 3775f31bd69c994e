"""`profuse.torch.compile`: modules and functions of torch that are exported once, and dispatched here."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ...dialect.errors import ArgumentError, ProfuseError, TraceError
from ..functions.function import GraphFunction
from ..settings.fork_lock import ForkLock
from .call_arguments import flat, kinds_of_names, modes_are_on, strange_containers, structure
from .closed_code import ClosedCode, OpenCodeError
from .compiled_module import METHODS, CompiledModule
from .dynamo_backend import DynamoGraph, compile_graph
from .exported_call import ExportedCall, exporting
from .known_calls import UNSERVED, KnownCalls
from .model_export import Entry, ModelExport
from .module_state import PLAIN_TENSORS, ModuleState, kept_value
from .torch_runs import FixedExports, TorchRuns, first_line

_STATIC = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.memory_format)
_compiler, _is_dynamo_compiling = torch.compiler, torch.compiler.is_dynamo_compiling
_transforms = torch._C._functorch.peek_interpreter_stack
_MOST_SHAPES = 4096
_MOST_EXPORTS = 64


def compile(
    model: Any = None,
    *,
    dynamic: bool = True,
    name: str | None = None,
    background: bool | None = None,
    strategy: Sequence[tuple[str, int]] | None = None,
    profile: Any = None,
) -> Any:
    """A module or function of torch, compiled by this package, without Dynamo.

    Args:
        model: a `torch.nn.Module`, or a function of tensors; absent in the form ``@compile(...)``.
        dynamic: sizes of arguments are symbols, so that one export serves tensors of all sizes of a rank, where the
            model does not decide by them. False = each combination of sizes has an export.
        name: in messages and in IR; default: that of the model.
        background: as of `jit`: compile in a worker process while calls are served.
        strategy: as of `jit`.
        profile: as of `jit`: a file that `save` wrote.

    An export serves later calls, so it is made only of code that reads and changes nothing but its arguments, the
    module's tensors, and plain values, which are compared at each call (`closed_code`). Calls of any other model go
    through Dynamo, which guards what its code reads; `explain` says why.

    The result is called as the model is, with CPU tensors, and gives what the model gives: dtypes, shapes, order in
    memory, arguments and views of these where the model returns such, and gradients, also of gradients. The module's
    own parameters are used; running statistics are written to. One export is made per structure of arguments, rank,
    dtype, mode of the module (train, eval), and set of tensors that require gradients. What no graph holds is run by
    torch, as `explain` says.

    Raises ArgumentError for what is neither.
    """
    if model is None:
        return functools.partial(
            compile, dynamic=dynamic, name=name, background=background, strategy=strategy, profile=profile
        )
    if not callable(model):
        raise ArgumentError(f"torch.compile takes a module or a function, not {type(model).__name__}")
    options = {"background": background, "strategy": strategy, "profile": profile}
    label = name or getattr(model, "__name__", None) or type(model).__name__
    if isinstance(model, torch.nn.Module):
        return CompiledModule(model, CompiledCalls(model, model, label, dynamic, options))
    calls = CompiledCalls(model, None, label, dynamic, options)
    call = calls.__call__

    @functools.wraps(model)
    def compiled(*args: Any, **kwargs: Any) -> Any:
        return call(args, kwargs)

    vars(compiled).update(calls=calls, **{name: getattr(calls, name) for name in METHODS})
    return compiled


def _compiled_again(model: torch.nn.Module, settings: dict[str, Any]) -> Any:
    """A copy of a compiled module, or one that has been in a pickle: it has exports of its own."""
    return compile(model, **settings)


class CompiledCalls:
    """Dispatches the calls of one model.

    Args:
        model: what is called.
        module: the module whose state it reads; None = there is none.
        name: of the model.
        dynamic: see `compile`.
        options: of `jit`.

    Attributes:
        counters: those of `TorchRuns`, with what graphs of Dynamo have counted, ``exports`` and ``dynamo_calls``.
        reasons: why calls have been left to torch, each with the number of calls.
        fixed: why exports hold for one combination of sizes, each with their number.
    """

    def __init__(
        self,
        model: Callable[..., Any],
        module: torch.nn.Module | None,
        name: str,
        dynamic: bool,
        options: dict[str, Any],
    ) -> None:
        self._model, self._module, self._name, self._dynamic, self._options = model, module, name, dynamic, options
        self._state = ModuleState(module)
        self._graphs: list[DynamoGraph] = []
        self._through_dynamo: Callable[..., Any] | None = None
        self._look_at_code()
        self._exports: dict[tuple, list[Entry]] = {}
        self._by_shapes: dict[tuple, Entry] = {}
        self._refused: dict[tuple, str] = {}
        self._known_calls = KnownCalls()
        self._last: Any = None
        self._lock = ForkLock()
        self._runs = TorchRuns()
        self.counters, self.reasons = self._runs.counters, self._runs.reasons
        self.fixed = FixedExports(name, self._runs)
        self._export = ModelExport(model, self._state, self.fixed, name, dynamic, options)

    def reduced(self, model: Any) -> tuple[Callable[..., Any], tuple]:
        """What pickles of a compiled module hold: the module, and what `compile` was given besides it."""
        return _compiled_again, (model, {"dynamic": self._dynamic, "name": self._name, **self._options})

    def __call__(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result of a call."""
        if _is_dynamo_compiling() or _transforms() is not None:
            return self._model(*args, **kwargs)  # within another trace of torch's
        if _compiler._is_compiling_flag:
            with exporting:  # in which all threads are told so
                is_traced = torch.compiler.is_compiling()
            if is_traced:
                return self._model(*args, **kwargs)
        if not kwargs:
            try:
                serve = self._known_calls.serve
                if serve is not None and (result := serve(args)) is not UNSERVED:
                    return result
                served = self._known_calls.find(args)
                if served is not None:
                    self.counters["torch_ops"] += served.left
                    return served.results(args)
            except ProfuseError:
                self._known_calls.clear()  # below, it is raised again, and noted
        if self._closed is not None and not self._closed.is_current():
            self._reset()
        if self._closed is None:
            return self._left(args, kwargs)
        leaves, tree = flat(args, kwargs)
        if not self._state.is_current():
            self._reset()
        key = self._key(leaves, tree)
        if key is None:
            return self._in_torch(args, kwargs)
        differentiates = key[-1]
        shapes = (key, tuple([x.shape for x in leaves if isinstance(x, torch.Tensor)]))
        entry = self._by_shapes.get(shapes)
        if entry is None:
            entry = self._entry(key, shapes, leaves, args, kwargs)
            if entry is None:
                if self._closed is None:
                    return self._left(args, kwargs)
                return self._in_torch(args, kwargs)
        call, out_tree = entry
        inputs = [x for x in leaves if isinstance(x, torch.Tensor)]
        self.counters["torch_ops"] += len(call.parts.left)
        try:
            results = call(self._state.tensors, inputs, differentiates)
        except ProfuseError as error:
            self.reasons.note(str(error))
            if isinstance(error, TraceError):
                self._refused[shapes] = str(error)
                self._by_shapes.pop(shapes, None)
            return self._in_torch(args, kwargs)
        if not kwargs and leaves is args and not call.written:
            self._remember(args, tree, shapes, entry)
        return out_tree(results)

    def _remember(self, args: tuple, tree: Any, shapes: tuple, entry: Entry) -> None:
        """Keep the export of a call for those that are like it, where two in a row have had it."""
        if self._last is not entry:
            self._last = entry
            return
        with self._lock:
            if self._closed is None or self._by_shapes.get(shapes) is not entry:
                return
            key = shapes[0]
            comparison = self._known_calls.comparison_of(self._closed, self._state)
            # What has changed since the call looked at it is not what the export is for.
            if self._closed.is_current() and self._state.is_current() and self._key(args, tree) == key:
                self._known_calls.add(args, comparison, entry, self._state.tensors, key[-1])

    def _key(self, leaves: Sequence[Any], tree: Any) -> tuple | None:
        """What an export holds for besides sizes; None = no export holds for the call."""
        if modes_are_on():
            self.reasons.note("a mode of torch is on, which sees or changes each operation")
            return None
        strange = self._state.strange()
        if strange:
            self.reasons.note(strange)
            return None
        kinds: list[Any] = []
        needs = False
        grad = torch.is_grad_enabled()
        for x in leaves:
            if isinstance(x, torch.Tensor):
                if type(x) not in PLAIN_TENSORS or x.device.type != "cpu":
                    place = f" on {x.device}" if type(x) in PLAIN_TENSORS else ""
                    self.reasons.note(f"an argument is a {type(x).__name__}{place}")
                    return None
                if x.layout != torch.strided or x.is_conj() or x.is_neg():
                    self.reasons.note(f"an argument has the layout {x.layout}, or a pending conjugation")
                    return None
                requires = grad and x.requires_grad
                needs |= requires
                fixed = tuple([d if d < 2 else 2 for d in x.shape])
                kinds.append((x.dtype, fixed, True if x.is_contiguous() else x.stride(), requires))
            elif type(x) in _STATIC:
                kinds.append((type(x), kept_value(x)))
            else:
                self.reasons.note(f"an argument is a {type(x).__name__}")
                return None
        own = tuple([x.requires_grad for x in self._state.tensors]) if grad else ()
        needs |= any(own)
        cast = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None
        return (
            tree,
            kinds_of_names(tree),
            tuple(kinds),
            self._state.values(),
            own,
            cast,
            torch.get_default_dtype(),
            needs,
        )

    def _entry(
        self, key: tuple, shapes: tuple, leaves: Sequence[Any], args: tuple, kwargs: dict[str, Any]
    ) -> Entry | None:
        """The export for a call, which is made if there is none; None = torch runs the call, as is noted."""
        if shapes in self._refused:
            self.reasons.note(self._refused[shapes])
            return None
        with self._lock:
            inputs = [x for x in leaves if isinstance(x, torch.Tensor)]
            every = (*self._state.tensors, *inputs)
            candidates = self._exports.setdefault(key, [])
            entry = next((e for e in candidates if e[0].accepts(every)), None)
            if entry is None and len(candidates) >= _MOST_EXPORTS:
                self.reasons.note(f"there are {_MOST_EXPORTS} exports for other sizes")
                return None
            if entry is None:
                strange = strange_containers(tree=key[0])
                if strange:
                    self.reasons.note(f"an argument is held by a {strange[0].__name__}")
                    return None
                self._look_at_code()  # what the key tells from other keys may be other code
                if self._closed is None:
                    return None
                asks = self._closed.asks_for_numbers
                try:
                    entry = self._export(leaves, structure(args, kwargs), key[-1], asks_for_numbers=asks)
                except Exception as error:  # torch raises errors of many kinds; the model's own come again in torch
                    self._refused[shapes] = first_line(error)
                    self.reasons.note(self._refused[shapes])
                    return None
                candidates.append(entry)
                self.counters["exports"] += 1
            if len(self._by_shapes) > _MOST_SHAPES:
                self._by_shapes.clear()
            self._by_shapes[shapes] = entry
            return entry

    def _look_at_code(self) -> None:
        self._closed: ClosedCode | None = None
        self._open, self._is_dynamos = "", True
        try:
            self._closed = ClosedCode(self._model)
        except OpenCodeError as error:
            self._open, self._is_dynamos = str(error), error.is_dynamos

    def _left(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result of a call of code that is not closed."""
        if not self._is_dynamos:
            self.reasons.note(self._open)
            return self._in_torch(args, kwargs)
        if self._through_dynamo is None:
            dynamic = True if self._dynamic else None
            self._through_dynamo = torch.compile(self._model, backend=self._backend, dynamic=dynamic)
        self.counters["dynamo_calls"] += 1
        return self._through_dynamo(*args, **kwargs)

    def _backend(self, module: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        graph = compile_graph(module, example_inputs, options=self._options, runs=self._runs)
        self._graphs.append(graph)
        return graph

    def _in_torch(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        self.counters["torch_calls"] += 1
        return self._model(*args, **kwargs)

    def _reset(self) -> None:
        """Drop everything: the module holds other tensors than before, or its code reads other things."""
        with self._lock:
            self._look_at_code()
            self._state = ModuleState(self._module)
            self._export = self._export.of(self._state)
            self._exports, self._by_shapes, self._refused = {}, {}, {}
            self._known_calls = KnownCalls()

    def entries(self) -> list[Entry]:
        """The exports, each with what makes its results of a flat list."""
        with self._lock:
            return [entry for entries in self._exports.values() for entry in entries]

    def exports(self) -> list[ExportedCall]:
        """The exports, those of Dynamo's graphs included."""
        return [call for call, _ in self.entries()] + [call for graph in self._graphs for call in graph.calls()]

    def functions(self) -> list[GraphFunction]:
        """The jitted functions of all exports."""
        return [f for call in self.exports() for f in call.parts.functions()]

    def state(self) -> list[Any]:
        """The states of the jitted functions (see `jit`)."""
        return [f.state() for f in self.functions()]

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for compiles under way, at most ``timeout`` seconds each; returns whether all have ended."""
        ended = [f.wait(timeout) for f in self.functions()]
        return all(ended)

    def save(self, path: Any) -> None:
        """Write the graph of the calls so far, with profile and code, to a file; see `jit`.

        Raises ArgumentError unless there is one jitted function.
        """
        functions = self.functions()
        if len(functions) != 1:
            raise ArgumentError(
                f"{self._name} has {len(functions)} compiled functions, of which a file holds one",
                hint="call it without gradients, with arguments of one structure",
            )
        functions[0].save(path)

    def explain(self) -> str:
        """Text that says what runs as native code, what torch runs, at which line of the model, and why."""
        entries = [call for call, _ in self.entries()]
        lines = [f"{self._name}: {len(entries)} exports, {self.counters['torch_calls']} calls run by torch."]
        if self._open and self._is_dynamos:
            none = "" if self._graphs else " Dynamo has found no graph in it, so torch runs it."
            lines.append(f"  {self.counters['dynamo_calls']} calls went through Dynamo: {self._open}.{none}")
        lines += [graph.explain() for graph in self._graphs]
        lines += [f"  torch ran {count} calls: {reason}" for reason, count in self.reasons.items()]
        lines += self.fixed.lines()
        for call in entries:
            if call.parts.left:
                lines.append(f"  torch runs between the kernels: {call.parts.says()}")
            lines += [f.explain() for f in call.parts.functions()]
        return "\n".join(lines)
