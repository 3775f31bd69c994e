"""Files of other systems: what a file is, is told by its content, not by its name."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...dialect.errors import FileError
from ...dialect.importers.foreign.file_kinds import guessed_kind, is_archive, is_onnx, is_stablehlo, is_text
from ..plans.plan_options import Options
from .function import GraphFunction
from .numpy_source import NumPySource

if TYPE_CHECKING:
    from ...dialect.importers.foreign.imported_function import ImportedFunction

# Makes a function of a file, with options of `load`; the result has the methods of a `GraphFunction`.
Reader = Callable[[str | os.PathLike, Options], Any]
_HEAD_BYTES = 4096

# Whether a file that begins with these bytes, or is the text of them, is of a kind, and the module beside this one
# whose `read` is the `Reader` of such files. These modules are imported when such a file is there: they import what
# other systems need.
_KINDS: tuple[tuple[Callable[[bytes], bool], str], ...] = (
    (is_archive, ".script_files"),
    (is_onnx, ".onnx_files"),
    (is_stablehlo, ".stablehlo_files"),
)


def function_of(imported: ImportedFunction, options: Options) -> GraphFunction:
    """A foreign graph as a function of the graph's name.

    Python has no code for it, so what no graph holds is an error.
    """
    return GraphFunction(NumPySource(imported), replace(options, name=imported.__name__, unsupported="raise"))


def foreign_reader(path: str | os.PathLike) -> Reader | None:
    """The reader of a file that another system has written; None = it is none of these.

    Raises FileError if the file cannot be read, is empty, or is neither text nor of a known kind.
    """
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD_BYTES)
            of_text = is_text(head, is_whole=len(head) < _HEAD_BYTES)
            if of_text:  # whose ops may stand behind many arguments
                head += file.read()
    except OSError as error:
        raise FileError(f"cannot read {os.fspath(path)}: {error.strerror or error}") from None
    for is_of_kind, module in _KINDS:
        if is_of_kind(head):
            return import_module(module, __package__).read
    name = os.fspath(path)
    if not head:
        raise FileError(f"{name} is empty", hint="write the file anew")
    if not of_text:
        kinds = "a saved function, IR as text in UTF-8, an ONNX model, StableHLO, an archive of TorchScript"
        raise FileError(f"{name} is none of what can be loaded: {kinds}", hint=guessed_kind(name, head))
    return None
