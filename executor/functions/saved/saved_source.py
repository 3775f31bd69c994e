"""Functions that are loaded from saved files."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn, SupportsIndex

import numpy as np

from ....dialect import ops  # noqa: F401  (fills the op table)
from ....dialect.errors import ArgumentError, FileError
from ....dialect.importers.numpy.capture.inline import example_of, inline_trace
from ....dialect.importers.numpy.capture.stored_trace import trace_from_json
from ....dialect.importers.numpy.capture.trace import Trace
from ....dialect.ir.serialize import module_from_json
from ....dialect.trees.leaves import leaf_kind
from ....dialect.trees.pytree import TreeDef
from ...plans.plan_options import Options
from ..function import GraphFunction
from ..graphs import Graphs, kinds_of
from ..mlir_source import loaded_function
from ..numpy_source import NumPySource
from ..variants import Key
from .file import SavedFile


class SavedSource(NumPySource):
    """A traced function without its Python code; it has only the traces that were saved."""

    raises = True  # there is no Python code

    def __init__(self, saved: SavedFile) -> None:
        super().__init__(_no_code(saved.name))
        self.has_code = False
        self.saved = saved
        self.traces = [trace_from_json(graph.data["trace"], graph.arrays) for graph in saved.graphs]

    def graph(self, graphs: Graphs, key: Key, leaves: list, args: tuple, kwargs: dict[str, Any], home: str) -> NoReturn:
        """Raise ArgumentError, which tells the arguments of the saved graphs."""
        kinds = ", ".join(_described(leaf_kind(leaf)) for leaf in leaves)
        raise ArgumentError(
            f"{graphs.name} was saved for other arguments than ({kinds}): "
            + "; ".join(_signature(v.trace) for v in graphs.every()),
            hint="pass such arguments, by position or name as then, or save the function after a call with these",
        )

    def inline(self, graphs: Graphs, leaves: list, tree: TreeDef, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The results of a call within another function's trace: the saved graph is inlined into it."""
        examples = [example_of(leaf) for leaf in leaves]
        if any(example is None for example in examples):
            raise ArgumentError(f"{graphs.name} is called with arrays of unknown rank")
        # A trace does not distinguish arrays of rank 0 and NumPy scalars, so both keys are tried.
        scalars = [e[()] if isinstance(e, np.ndarray) and not e.ndim else e for e in examples]
        for inputs in (examples, scalars):
            key = (tree, kinds_of(inputs))
            variant = graphs.find(graphs.variants.get(key, ()), inputs, plain=True)
            if variant is not None:
                return inline_trace(variant.trace, leaves)
        return self.graph(graphs, key, examples, args, kwargs, "")

    def reduced(self, function: GraphFunction, protocol: SupportsIndex) -> tuple:
        """Pickle and copy the saved content, without profiles and plans made since."""
        return _function, (self.saved, function._options)

    def __repr__(self) -> str:
        return f"profuse function {self.saved.name} of {self.saved.path}"


def saved_function(path: str | os.PathLike, options: Options) -> GraphFunction:
    """The function in a saved file; raises FileError."""
    saved = SavedFile.read(path)
    try:
        return _function(saved, replace(options, name=saved.name, saved=saved))
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise FileError(
            f"{path} holds a graph that this version cannot read: {error}",
            hint="save the function anew, with this version of profuse",
        ) from error


def _function(saved: SavedFile, options: Options) -> GraphFunction:
    if saved.graphs and "module" in saved.graphs[0].data:
        return loaded_function(module_from_json(saved.graphs[0].data["module"]), options)
    source = SavedSource(saved)
    function = GraphFunction(source, options)
    for trace in source.traces:
        function._graphs.admit((trace.in_tree, trace.kinds), trace)
    return function


def _no_code(name: str) -> Callable[..., Any]:
    def saved(*args: Any, **kwargs: Any) -> Any:
        raise ArgumentError("a saved function has no Python code to trace")

    saved.__name__ = saved.__qualname__ = name
    return saved


def _signature(trace: Trace) -> str:
    names = (name.replace("'", "", 2) for name in trace.names)
    kinds = map(_described, trace.kinds)
    said = ", ".join(f"{name}: {kind}" for name, kind in zip(names, kinds, strict=True))
    return " with ".join([f"({said})", *trace.explain()])


def _described(kind: Any) -> str:
    """A result of `pytree.leaf_kind`, in words."""
    if isinstance(kind, tuple):
        text = f"{kind[0]} of rank {kind[1]}"
        return f"{text} on {kind[2]}" if kind[2:] else text
    return kind.__name__
