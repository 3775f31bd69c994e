"""Files that hold all it takes to run a check again (`replay` runs them)."""

from __future__ import annotations

import json
import shlex
import tempfile
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ....dialect.ir.program import Module
    from ..request import CompileRequest
    from .inputs import Setting

MARK = "// profuse-proof: "  # what the first line of such a file begins with
MODULE = __package__


def keep(
    request: CompileRequest,
    name: str,
    function: Module | None = None,
    setting: Setting | None = None,
) -> str:
    """How to run the check of a kernel again, from a new file; or why there is none.

    The file is IR under one line of JSON: the fusion function as it was compiled, or, where the
    process that had it is gone (``function`` is None), the graph it comes from.
    """
    target = None if request.target is None else asdict(request.target)
    about: dict[str, Any] = {
        "function": name, "pipeline": request.pipeline, "made": function is not None,
        "target": target, "in_place": request.in_place,
        "inputs": None if setting is None else asdict(setting),
    }  # fmt: skip
    try:
        text = request.ir if function is None else function.to_mlir()
        with tempfile.NamedTemporaryFile(
            "w", prefix="profuse-proof-", suffix=".mlir", dir=request.repro_dir or None,
            delete=False, encoding="utf-8", errors="surrogatepass",
        ) as file:  # fmt: skip
            file.write(f"{MARK}{json.dumps(about)}\n{text}")
    except (OSError, ValueError) as error:
        return f"its input is not kept for a replay: {error}"
    return f"replay with: python -m {MODULE} {shlex.quote(file.name)}"
