"""Writes files from which a check can be repeated (by `replay`)."""

from __future__ import annotations

import json
import shlex
import tempfile
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ....dialect.ir.program import Module
    from ..request import CompileRequest
    from .inputs import InputSetting

MARK = "// profuse-proof: "  # the beginning of such a file's first line
MODULE = __package__


def keep(
    request: CompileRequest, name: str, function: Module | None = None, setting: InputSetting | None = None
) -> str:
    """Write a file from which the check can be repeated; returns the command for that, in words.

    The file has one line of JSON, then IR: the fusion function as it was compiled, or the graph
    that contains it, if the process that had the function has crashed (``function`` is None). If
    the file cannot be written, the returned text says why.
    """
    target = None if request.target is None else asdict(request.target)
    about: dict[str, Any] = {
        "function": name,
        "pipeline": request.pipeline,
        "made": function is not None,
        "target": target,
        "in_place": request.in_place,
        "exact": request.exact,
        "inputs": None if setting is None else asdict(setting),
    }
    try:
        text = request.ir if function is None else function.to_mlir()
        with tempfile.NamedTemporaryFile(
            "w",
            prefix="profuse-proof-",
            suffix=".mlir",
            dir=request.repro_dir or None,
            delete=False,
            encoding="utf-8",
            errors="surrogatepass",
        ) as file:
            file.write(f"{MARK}{json.dumps(about)}\n{text}")
    except (OSError, ValueError) as error:
        return f"its input is not kept for a replay: {error}"
    return f"replay with: python -m {MODULE} {shlex.quote(file.name)}"
