"""Functions with a single graph: loaded from ``.mlir`` text, or from a file that such one saved."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...dialect.errors import ArgumentError
from ...dialect.importers.numpy.capture.inline import inline_program
from ...dialect.importers.numpy.capture.tracer import is_tracing
from ...dialect.importers.numpy.tracing.operators import as_value, recorder_of, wrap
from ...dialect.importers.numpy.tracing.pytree import TreeDef, flatten, flatten_call
from ...dialect.importers.numpy.tracing.traced import is_on_tape
from ...dialect.ir.device import HOST
from ...dialect.ir.program import Module
from ...dialect.ir.serialize import module_to_json
from ..arguments.checks import check_numbers, numbers_of
from ..memory.output_pool import readable
from ..observe import registry
from ..plans.processor import Processor
from ..tiers.choice import AnyExecutor, make_executor
from ..tiers.profiling import Options
from .base import GraphFunction

if TYPE_CHECKING:
    from .saved.file import StoredGraph


@registry.kind
class LoadedFunction(GraphFunction):
    """A function with a single graph; it takes arrays and numbers by position."""

    def __init__(self, module: Module, options: Options) -> None:
        super().__init__(options.name, options)
        self._executor = make_executor(module, options)
        self._by_device: dict[str, AnyExecutor] = {HOST: self._executor}
        self._arity = len(module.main.inputs)
        self._numbers = numbers_of(module.main)
        self._enter()

    def __reduce__(self) -> tuple:
        """Pickle and copy the graph only, without profiles and plans."""
        return LoadedFunction, (self.module, self._options)

    @property
    def module(self) -> Module:
        """The graph, as loaded."""
        return self._executor.module

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves = self._checked(args, kwargs)
        if is_tracing(leaves):
            return self._call_traced(leaves)
        if is_on_tape(leaves):
            from .on_tape import as_arrays, taped_inputs

            inputs = taped_inputs(leaves, self._executor.counters)
            outputs = as_arrays(self._run_on_tape(self._executor, inputs))
            return outputs[0] if len(outputs) == 1 else tuple(outputs)
        leaves, home = self._placed([readable(leaf, self._executor.counters) for leaf in leaves])
        outputs = self._run_at_home(self._executor_on(home), leaves)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _resolved(self, args: tuple, kwargs: dict[str, Any]) -> tuple[AnyExecutor, list, TreeDef]:
        leaves = self._host_leaves(self._checked(args, kwargs), self._executor.counters)
        count = len(self.module.main.outputs)
        _, tree = flatten(0 if count == 1 else (0,) * count)
        return self._executor, leaves, tree

    def _checked(self, args: tuple, kwargs: dict[str, Any]) -> list:
        """The leaves of a call; raises ArgumentError for wrong arguments."""
        if kwargs:
            raise ArgumentError(f"@{self._name} takes positional arguments only")
        expected = self._arity
        if len(args) != expected:
            raise ArgumentError(f"@{self._name} takes {expected} arguments, {len(args)} given")
        leaves = self._leaves(args)
        check_numbers(self._name, self._numbers, leaves)
        return leaves

    def _leaves(self, args: tuple) -> list:
        """Arguments as inputs; for a spec-keyed executor, None is an undefined tensor (R2.7)."""
        given = args
        if self._executor.takes_undefined:
            given = tuple(arg for arg in args if arg is not None)
        leaves, _ = flatten_call(self.__call__, given, {})
        if len(leaves) != len(given):
            raise ArgumentError(f"@{self._name} takes arrays and numbers, not containers of them")
        found = iter(leaves)
        return [None if arg is None else next(found) for arg in args]

    def _call_traced(self, leaves: list) -> Any:
        """A call from within a function's trace: the graph joins it (R2.14)."""
        self._executor.count_invocation()
        rec = recorder_of(leaf for leaf in leaves if is_tracing([leaf]))
        values = inline_program(rec, self.module.main, [as_value(rec, leaf) for leaf in leaves])
        outputs = tuple(wrap(rec, value) for value in values)
        return outputs[0] if len(outputs) == 1 else outputs

    def _executor_on(self, device: str) -> AnyExecutor:
        """The executor for calls on arrays of a device."""
        with self._lock:
            if device not in self._by_device:
                options = replace(self._options, processor=Processor(device))
                self._by_device[device] = make_executor(self.module, options)
            return self._by_device[device]

    def _executors(self) -> list[AnyExecutor]:
        return list(self._by_device.values())

    def _graphs(self) -> list[StoredGraph]:
        from .saved.file import StoredGraph

        return [StoredGraph({"module": module_to_json(self.module)})]
