"""Functions of models that take or give texts: a graph of arrays, with the model's vocabulary around it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ...dialect.errors import ArgumentError, TraceError
from ...dialect.importers.foreign.foreign_graph import ForeignGraph
from ...dialect.importers.foreign.interpreter import Interpreter
from ...dialect.importers.foreign.operator_table import OperatorTable
from ...dialect.importers.numpy.tracing.current import current
from ..settings.dynamo import unseen_by_dynamo
from .function import GraphFunction
from .outer_function import OuterFunction


class TextFunction(OuterFunction):
    """A function whose graph has integers in the place of texts.

    Args:
        function: of the graph.
        graph: the graph, with texts around it.
        table: of its operators, by which Python runs what looks into texts.
        single: a function with one result gives that, and no tuple.
    """

    def __init__(self, function: GraphFunction, graph: ForeignGraph, table: OperatorTable, *, single: bool) -> None:
        assert graph.texts is not None
        self._function, self._texts, self._table = function, graph.texts, table
        self._parameters = graph.parameters[: len(graph.parameters) - len(graph.texts.handed)]
        texts = graph.texts
        self._is_single = single and len(texts.results) == 1
        self.__name__, self.__qualname__, self.__doc__ = graph.name, graph.name, function.__doc__

    @unseen_by_dynamo
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call with arrays, which are of texts where the model's inputs are, and give arrays likewise.

        Texts come in arrays of objects, and numbers by names as a list of dictionaries. Raises ArgumentError for
        arguments that are no arrays of texts where the model has them, TraceError within another function's trace.
        """
        if current() is not None:
            raise TraceError(
                f"{self.__name__} takes or gives texts, and is called while tracing",
                hint="call it outside of jitted and differentiated functions",
            )
        others: dict[str, int] = {}
        texts = self._texts
        if texts.arguments:
            names = self._names(args)
            values = dict(zip(names, args, strict=True)) | kwargs
            args = tuple(self._argument(name, x, others) for name, x in zip(names, args, strict=True))
            kwargs = {name: self._argument(name, x, others) for name, x in kwargs.items()}
            kwargs |= self._handed(values, others)
        results = self._function(*args, **kwargs)
        outputs = texts.decoded((results,) if self._is_single else results, others)
        return outputs[0] if self._is_single else outputs

    def _names(self, args: tuple) -> tuple[str, ...]:
        """The names of arguments by position; those that are too many have none."""
        return (*self._parameters, *("",) * (len(args) - len(self._parameters)))[: len(args)]

    def _handed(self, values: Mapping[str, Any], others: dict[str, int]) -> dict[str, Any]:
        """The arguments of the graph that Python computes of texts."""
        prologue = self._texts.prologue
        if prologue is None:
            return {}
        missing = [name for name in prologue.parameters if name not in values]
        if missing:
            raise ArgumentError(f"{self.__name__} needs an argument {missing[0]}")
        outputs = Interpreter(self._table, prologue).run(prologue.body, [values[name] for name in prologue.parameters])
        results = zip(self._texts.handed, outputs, strict=True)
        return {name: self._texts.encoded(name, x, others) if x.dtype == object else x for name, x in results}

    def _argument(self, name: str, x: Any, others: dict[str, int]) -> Any:
        return self._texts.encoded(name, x, others) if name in self._texts.arguments else x

    def warmup(self, *args: Any, **kwargs: Any) -> None:
        """Call with these arguments until their optimised plan exists; drops the results."""
        for _ in range(self._function._options.recorded_runs + 1):
            self(*args, **kwargs)
            self.wait()

    def save(self, path: str | os.PathLike) -> None:
        """Raise ArgumentError: files hold graphs, and no vocabulary around them."""
        raise ArgumentError(
            f"{self.__name__} takes or gives texts, which no file of a function holds",
            hint="keep the model; what has been compiled is in the disk cache",
        )

    def __repr__(self) -> str:
        return repr(self._function)
