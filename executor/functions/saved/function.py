"""Functions that are loaded from saved files."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, NoReturn, SupportsIndex

import numpy as np

from ....dialect import ops  # noqa: F401  (fills the op table)
from ....dialect.errors import ArgumentError, FileError
from ....dialect.importers.numpy.capture.inline import example_of, inline_trace
from ....dialect.importers.numpy.capture.stored_trace import trace_from_json
from ....dialect.importers.numpy.capture.tracer import Trace
from ....dialect.importers.numpy.tracing.leaves import leaf_kind
from ....dialect.importers.numpy.tracing.pytree import TreeDef
from ....dialect.ir.device import HOST
from ....dialect.ir.serialize import module_from_json
from ...plans.options import Options
from ..base import GraphFunction
from ..graph_function import LoadedFunction
from ..jit import JitFunction
from ..variants import Key
from .file import SavedFile


class SavedFunction(JitFunction):
    """A traced function without its Python code; it has only the traces that were saved."""

    def __init__(self, saved: SavedFile, options: Options) -> None:
        super().__init__(_no_code, replace(options, name=saved.name, saved=saved))
        self._saved = saved
        self._has_code = False
        self.__name__ = self.__qualname__ = saved.name
        for graph in saved.graphs:
            made = trace_from_json(graph.data["trace"], graph.arrays)
            self._admit((made.in_tree, made.kinds), made)

    @property
    def _raises(self) -> bool:
        return True  # there is no Python code

    def _trace(
        self, key: Key, leaves: list, args: tuple, kwargs: dict, home: str = HOST, *,
        plain: bool = True,
    ) -> NoReturn:  # fmt: skip
        with self._lock:
            known = [v.trace for traces in self._variants.values() for v in traces]
        given = ", ".join(_described(leaf_kind(leaf)) for leaf in leaves)
        raise ArgumentError(
            f"{self._name} was saved for other arguments than ({given}): "
            + "; ".join(map(_signature, known)),
            hint="pass such arguments, or save the function after a call with these",
        )

    def _call_traced(self, leaves: list, tree: TreeDef, args: tuple, kwargs: dict) -> Any:
        """Handle a call within another function's trace: the saved graph is inlined into it."""
        examples = [example_of(leaf) for leaf in leaves]
        if any(example is None for example in examples):
            raise ArgumentError(f"{self._name} is called with arrays of unknown rank")
        # A trace does not distinguish arrays of rank 0 and NumPy scalars, so both keys are tried.
        scalars = [e[()] if isinstance(e, np.ndarray) and not e.ndim else e for e in examples]
        for given in (examples, scalars):
            key = (tree, tuple(map(leaf_kind, given)))
            variant = self._find(self._variants.get(key, ()), given, plain=True)
            if variant is not None:
                return inline_trace(variant.trace, leaves)
        return self._trace(key, examples, args, kwargs)

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple:
        """Pickle and copy the saved content, without profiles and plans made since."""
        return SavedFunction, (self._saved, self._options)

    def __repr__(self) -> str:
        return f"<profuse function {self._name} of {self._saved.path}>"


def saved_function(path: str | os.PathLike, options: Options) -> GraphFunction:
    """The function in a saved file; raises FileError."""
    saved = SavedFile.read(path)
    try:
        if saved.graphs and "module" in saved.graphs[0].data:
            module = module_from_json(saved.graphs[0].data["module"])
            return LoadedFunction(module, replace(options, name=saved.name, saved=saved))
        return SavedFunction(saved, options)
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise FileError(
            f"{path} holds a graph that this version cannot read: {error}",
            hint="save the function anew, with this version of profuse",
        ) from error


def _no_code(*args: Any, **kwargs: Any) -> Any:
    raise ArgumentError("a saved function has no Python code to trace")


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
