"""Foreign graphs as callables, which `jit` takes like a function in NumPy."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from ...errors import ArgumentError
from ..numpy.python.pausing import apart
from ..numpy.tracing.traced import TracedArray
from .foreign_arguments import check_array
from .foreign_graph import ForeignGraph, ForeignType
from .interpreter import Interpreter
from .operator_table import OperatorTable


class ImportedFunction:
    """A foreign graph as a callable.

    Args:
        graph: the graph.
        table: the operators of its source.
        single: a graph with one output gives that, and no tuple.

    Raises TraceError, which names them all, where operators of the graph are not in the table.
    """

    only_traced = True
    shares_memory = False  # results have memory of their own
    are_changed = False  # nobody writes to the graph's constants

    def __init__(self, graph: ForeignGraph, table: OperatorTable, *, single: bool = True) -> None:
        table.check(graph.body, graph.source)
        self._graph, self._table, self._single = graph, table, single
        self.__name__ = self.__qualname__ = graph.name
        self.__doc__ = f"The function of {graph.source}."
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        optional = dict.fromkeys(graph.defaults)
        self.__signature__ = inspect.Signature(
            [inspect.Parameter(x, kind, default=optional.get(x, inspect.Parameter.empty)) for x in graph.parameters]
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            bound = self.__signature__.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise ArgumentError(f"{self.__name__}{self.__signature__} was called wrongly: {error}") from None
        # What is read from the graph does not change, so a trace has nothing to watch here.
        return apart(self._run, tuple(bound.get(name) for name in self._graph.parameters))

    def _run(self, values: tuple) -> Any:
        graph = self._graph
        if graph.defaults:
            values = tuple(
                graph.constants[graph.defaults[name]] if value is None and name in graph.defaults else value
                for name, value in zip(graph.parameters, values, strict=True)
            )
        for name, value, type_ in zip(self._graph.parameters, values, self._graph.input_types, strict=False):
            if type_ is not None:
                _check_argument(name, value, type_)
        interpreter = Interpreter(self._table, self._graph, are_changed=self.are_changed)
        interpreter.arguments = values
        outputs = interpreter.run(self._graph.body, values)
        return outputs[0] if self._single and len(outputs) == 1 else outputs

    def __repr__(self) -> str:
        return f"<{self._graph.source}>"


def _check_argument(name: str, value: Any, type_: ForeignType) -> None:
    """Raise for an argument that is not what the source asks for: its operators would mean something else."""
    if not isinstance(value, (np.ndarray, TracedArray)):
        raise ArgumentError(
            f"{name} is of type {value.__class__.__name__}, and the model takes an array",
            hint=f"pass np.asarray(x, {type_.dtype})",
        )
    check_array(name, value, type_)
