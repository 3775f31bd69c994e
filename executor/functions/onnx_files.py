"""ONNX models as functions."""

from __future__ import annotations

import os
from typing import Any

from ...dialect.importers.foreign.foreign_graph import ForeignGraph
from ...dialect.importers.foreign.imported_function import ImportedFunction
from ...dialect.importers.foreign.onnx.all_onnx import ONNX
from ...dialect.importers.foreign.onnx.model_reader import graph_of, read_model
from ..plans.plan_options import Options
from .foreign_files import function_of
from .function import GraphFunction
from .text_function import TextFunction


def read(path: str | os.PathLike, options: Options) -> GraphFunction | TextFunction:
    """The function of a model in a file: it takes the model's inputs, by position or by name.

    Raises what `read_model` raises, and TraceError, which names them all, where operators are not supported.
    """
    return _function(read_model(path, ONNX), options, single=True)


def model_function(
    model: Any, options: Options, name: str = "model.onnx", *, single: bool = True
) -> GraphFunction | TextFunction:
    """The function of an ``onnx.ModelProto``; ``single``: one output is itself, and no tuple of one.

    Raises what `graph_of` raises, and TraceError as `read`.
    """
    return _function(graph_of(model, ONNX, name), options, single=single)


def _function(graph: ForeignGraph, options: Options, *, single: bool) -> GraphFunction | TextFunction:
    function = function_of(ImportedFunction(graph, ONNX, single=single), options)
    if graph.texts is None or graph.texts.is_inside:
        return function
    return TextFunction(function, graph, ONNX, single=single)
