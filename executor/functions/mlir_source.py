"""Graphs of MLIR text as a source: one graph for all calls, which take arrays and numbers by position."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Any, SupportsIndex

from ...dialect.errors import ArgumentError
from ...dialect.importers.numpy.capture.inline import inline_program
from ...dialect.importers.numpy.capture.trace import Trace
from ...dialect.importers.numpy.capture.tracer import is_tracing
from ...dialect.importers.numpy.tracing.operators import as_value, recorder_of, wrap
from ...dialect.ir.device import HOST
from ...dialect.ir.program import Module
from ...dialect.ir.serialize import module_to_json
from ...dialect.trees.containers import ARRAY
from ...dialect.trees.leaves import kind_text, leaf_kind
from ...dialect.trees.pytree import LEAF, TreeDef, flatten, flatten_call
from ..arguments.user_input import check_numbers, listed_argument, listed_inputs, numbers_of
from ..interpret.evaluate import evaluate
from ..plans.plan_options import Options
from ..plans.processor import Processor
from ..tiers.choice import AnyExecutor, make_executor
from .function import GraphFunction
from .graph_source import GraphSource, Leaves
from .graphs import Graphs
from .variants import Key

if TYPE_CHECKING:
    from .saved.file import StoredGraph


class MlirSource(GraphSource):
    """A graph; as a callable, it is the function that computes it op by op.

    Args:
        module: the graph.
        options: those of the function.
    """

    stands_for_python = False

    def __init__(self, module: Module, options: Options) -> None:
        self.module = module
        main = module.main
        types = [main.type_of(value) for value in main.inputs]
        parameters = [
            inspect.Parameter(f"arg{k}", inspect.Parameter.POSITIONAL_ONLY, annotation=str(type_))
            for k, type_ in enumerate(types)
        ]
        results = ", ".join(str(main.type_of(value)) for value in main.outputs)
        self.__signature__ = inspect.Signature(parameters, return_annotation=results)
        self.__name__ = self.__qualname__ = options.name
        self.__doc__ = f"The graph @{options.name}: it takes ({', '.join(map(str, types))}) and gives ({results})."
        self._numbers, self._listed = numbers_of(main), listed_inputs(main)
        count = len(main.outputs)
        self._results = flatten(0 if count == 1 else (0,) * count)[1]
        arguments = ("tuple", None, (LEAF,) * len(types))
        self._arguments = TreeDef(("tuple", None, (arguments, ("dict", (), ()))), len(types))
        self._by_device: dict[str, AnyExecutor] = {HOST: make_executor(module, options)}

    @property
    def fn(self) -> MlirSource:  # type: ignore[override]
        """The function that computes the graph; no attribute, which would keep this object alive."""
        return self

    def __call__(self, *args: Any) -> Any:
        """The results, op by op."""
        return self._results.unflatten(evaluate(self.module, list(args)))

    def graph(self, graphs: Graphs, key: Key, leaves: list, args: tuple, kwargs: dict[str, Any], home: str) -> Trace:
        """The graph, for arguments of these kinds."""
        names = tuple(f"'arg{k}'" for k in range(len(leaves)))
        return Trace(self.module, key[0], self._results, [], [], key[1], names)

    def flatten(self, graphs: Graphs, args: tuple, kwargs: dict[str, Any]) -> Leaves:
        """The arguments; for a spec-keyed executor, None is an undefined tensor (R2.7).

        Raises ArgumentError for wrong arguments.
        """
        if kwargs:
            raise ArgumentError(
                f"@{self.__name__} takes positional arguments only {self._taken()}, not {', '.join(kwargs)}"
            )
        undefined = self._by_device[HOST].takes_undefined
        listed = {
            k: listed_argument(self.__name__, k, type_, args[k]) for k, type_ in self._listed.items() if k < len(args)
        }
        present = {k: arg for k, arg in enumerate(args) if k not in listed and not (undefined and arg is None)}
        leaves, tree = flatten_call(self, tuple(present.values()), {})
        for (k, arg), (kind, *_) in zip(present.items(), tree.spec[2][0][2], strict=True):
            if kind not in ("leaf", ARRAY.kind):
                raise ArgumentError(
                    f"@{self.__name__} takes arrays and numbers {self._taken()}, and "
                    f"arg{k} is of type {type(arg).__name__}"
                )
        rest = iter(leaves)
        inputs = [next(rest) if k in present else listed.get(k) for k in range(len(args))]
        if len(args) != self._arguments.leaves:
            kinds = ", ".join(str(x) if x is None or is_tracing([x]) else kind_text(leaf_kind(x)) for x in inputs)
            raise ArgumentError(
                f"@{self.__name__} takes {self._arguments.leaves} arguments {self._taken()}, "
                f"{len(args)} given: ({kinds})"
            )
        check_numbers(self.__name__, self._numbers, inputs)
        return inputs, self._arguments

    def _taken(self) -> str:
        """The parameters in words: ``(arg0: f64, arg1: !profuse.tensor)``."""
        return f"({', '.join(f'{p.name}: {p.annotation}' for p in self.__signature__.parameters.values())})"

    def inline(self, graphs: Graphs, leaves: list, tree: TreeDef, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The results of a call from within a function's trace: the graph joins it (R2.14)."""
        self._by_device[HOST].count_invocation()
        rec = recorder_of(leaf for leaf in leaves if is_tracing([leaf]))
        listed = {k: leaves[k] for k in self._listed}
        operands = [None if k in listed else as_value(rec, leaf) for k, leaf in enumerate(leaves)]
        values = inline_program(rec, self.module.main, operands, listed)
        return self._results.unflatten([wrap(rec, value) for value in values])

    def executor(self, home: str, options: Options) -> AnyExecutor:
        """The executor for calls on arrays of a device."""
        if home not in self._by_device:
            self._by_device[home] = make_executor(self.module, replace(options, processor=Processor(home)))
        return self._by_device[home]

    def executors(self) -> list[AnyExecutor]:
        """The executors of all devices, that of the host first."""
        return list(self._by_device.values())

    def stored(self, graphs: Graphs) -> list[StoredGraph]:
        """The graph for a file."""
        from .saved.file import StoredGraph

        return [StoredGraph({"module": module_to_json(self.module)})]

    def reduced(self, function: GraphFunction, protocol: SupportsIndex) -> tuple:
        """Pickle and copy the graph only, without profiles and plans."""
        return loaded_function, (self.module, function._options)

    def __repr__(self) -> str:
        return f"profuse function {self.__name__}{self.__signature__}"


def loaded_function(module: Module, options: Options) -> GraphFunction:
    """The function that runs a graph."""
    return GraphFunction(MlirSource(module, options), options)
