"""`load`: functions from files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from ...dialect.errors import IRError
from ..arguments.user_input import check_device, check_path
from ..plans.plan_options import Options
from ..settings.knobs import knobs
from ..settings.strategy import normalize
from .foreign_files import foreign_reader
from .function import GraphFunction
from .mlir_source import loaded_function


def load(
    path: str | os.PathLike,
    *,
    strategy: Sequence[tuple[str, int]] | None = None,
    background: bool | None = None,
    device: str | None = None,
) -> GraphFunction:
    """Load a function from a file: a graph in ``.mlir`` text, or a file that ``save`` wrote.

    A saved function takes arguments of the structures, dtypes and ranks with which it was called
    before it was saved. It runs saved machine code, so load only files that you trust. If the code
    is for another CPU or other versions, the saved profile is compiled again.

    `jit` explains ``strategy``, ``background`` and ``device``.

    Raises FileError if the file cannot be read or is damaged, IRError if the text is no graph, and
    KnobError for a wrong device name.
    """
    from .saved.file import is_saved

    check_path("load", path)
    frozen = None if strategy is None else normalize(strategy)
    background = knobs.background if background is None else background
    check_device(device)
    options = Options(frozen, background=background, device=device)
    if is_saved(path):
        from .saved.saved_source import saved_function

        return saved_function(path, options)
    reader = foreign_reader(path)
    if reader is not None:
        return reader(path, options)
    from ...dialect.importers.mlir_text import load_mlir

    try:
        module = load_mlir(path)
    except IRError as error:
        if error.hint or os.fspath(path).endswith(".mlir"):
            raise
        hint = "it does not begin as what save() writes, so it was read as IR text"
        raise IRError(error.what, loc=error.loc, hint=hint) from error
    return loaded_function(module, replace(options, name=module.main.name))
