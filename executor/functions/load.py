"""`load`: functions from files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from ...dialect.errors import IRError
from ..arguments.checks import check_device, check_path
from ..plans.options import Options
from ..settings.knobs import knobs
from ..settings.strategy import normalize
from .base import GraphFunction
from .graph_function import LoadedFunction


def load(
    path: str | os.PathLike,
    *,
    strategy: Sequence[tuple[str, int]] | None = None,
    background: bool | None = None,
    device: str | None = None,
) -> GraphFunction:
    """A function from a file: a graph in ``.mlir`` text, or what ``save`` wrote.

    A saved function takes the arguments that it was called with when it was saved, as to structure,
    dtypes and ranks. It runs saved code, so load only files that you trust; code for another CPU or
    other versions is compiled anew from the saved profile.

    ``strategy``, ``background`` and ``device`` are those of `jit`.

    Raises FileError for a file that cannot be read or is damaged, IRError for text that is no
    graph, KnobError for a device that is none.
    """
    from .saved.file import is_saved

    check_path("load", path)
    frozen = None if strategy is None else normalize(strategy)
    background = knobs.background if background is None else background
    check_device(device)
    options = Options(frozen, background=background, device=device)
    if is_saved(path):
        from .saved.function import saved_function

        return saved_function(path, options)
    from ...dialect.importers.mlir_text import load_mlir

    try:
        module = load_mlir(path)
    except IRError as error:
        if error.hint or os.fspath(path).endswith(".mlir"):
            raise
        hint = "it does not begin as what save() writes, so it was read as IR text"
        raise IRError(error.what, loc=error.loc, hint=hint) from error
    return LoadedFunction(module, replace(options, name=module.main.name))
