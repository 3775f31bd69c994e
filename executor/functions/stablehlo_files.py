"""Files of StableHLO as functions: bytecode that `jax.export` makes, and text."""

from __future__ import annotations

import os
from pathlib import Path

from ...dialect.importers.foreign.imported_function import ImportedFunction
from ...dialect.importers.foreign.stablehlo.all_stablehlo import STABLEHLO
from ..plans.plan_options import Options
from .foreign_files import function_of
from .function import GraphFunction


def read(path: str | os.PathLike, options: Options) -> GraphFunction:
    """The function ``main`` of a module; it takes and gives arrays as the module's types say.

    Raises IRError for what is no module of one function, DTypeError for types that no array has, and
    TraceError for ops that are not supported.
    """
    from ...dialect.importers.foreign.stablehlo.stablehlo_reader import generic_text, read_stablehlo

    name = os.fspath(path)
    graph = read_stablehlo(generic_text(Path(path).read_bytes(), name), options.name, name)
    return function_of(ImportedFunction(graph, STABLEHLO), options)
