"""Graphs written as MLIR text."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import FileError, IRError, PipelineError
from ..ir.program import Module
from ..mlir.decode import decode_module
from ..mlir.parse import parse_module
from ..mlir.rewrite import walk
from ..ops.gradient_ops import GradOf
from ..pipeline.execution import run_pipeline

_LOWERED_FIRST = {"func.call", GradOf.full_name()}


def read_text(path: str | os.PathLike[str]) -> str:
    """Text of a UTF-8 file; raises FileError, naming the file."""
    try:
        return Path(path).read_bytes().decode("utf-8")
    except OSError as error:
        raise FileError(f"cannot read {os.fspath(path)}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise FileError(
            f"{os.fspath(path)} is not UTF-8 text (byte {error.start})", hint="save the file as UTF-8"
        ) from None


def load_mlir(path: str | os.PathLike[str]) -> Module:
    """The graph of a ``.mlir`` file: of its first function that is not private.

    Raises FileError, and IRError for text that does not parse, verify or decode, located in the file.
    """
    return import_mlir(read_text(path), filename=os.fspath(path))


def import_mlir(text: str, name: str | None = None, *, filename: str = "-") -> Module:
    """The graph of MLIR text; messages call the text ``filename``. Raises IRError.

    Calls are inlined and gradient blocks are lowered: evaluation knows neither (R1.8, R1.24).
    """
    module = parse_module(text, filename)
    if any(op.name in _LOWERED_FIRST for op in walk(module)):
        try:
            run_pipeline(module, "inline-calls,lower-grad-blocks", repro_dir="")
        except PipelineError as error:
            raise IRError(error.what, loc=error.loc) from error
    return decode_module(module, name)
