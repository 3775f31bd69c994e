"""Files that hold all it takes to run a check again, and running them."""

from __future__ import annotations

import json
import shlex
import tempfile
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from ....dialect.errors import FileError
from ....dialect.ir.program import Module
from .verdict import FAILED, Verdict

if TYPE_CHECKING:
    from ..request import CompileRequest
    from .inputs import Setting

_MARK = "// profuse-proof: "
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
            file.write(f"{_MARK}{json.dumps(about)}\n{text}")
    except (OSError, ValueError) as error:
        return f"its input is not kept for a replay: {error}"
    return f"replay with: python -m {MODULE} {shlex.quote(file.name)}"


def replay(path: str) -> Verdict:
    """Compile what a file of `keep` holds, and check its kernel on all inputs.

    Raises FileError for other files, and what the compiler raises. A kernel that crashed does so
    again.
    """
    from ..request import CompileRequest, compile_graph
    from .prove import prove_program

    try:
        with open(path, encoding="utf-8") as file:
            first, _, text = file.read().partition("\n")
        if not first.startswith(_MARK):
            raise ValueError(f"its first line does not begin with {_MARK!r}")
        about = json.loads(first.removeprefix(_MARK))
    except (OSError, ValueError) as error:
        raise FileError(f"{path} is no file of a check: {error}") from error
    request = CompileRequest(text, about["pipeline"], None, in_place=about["in_place"], check="all")
    if not about["made"]:
        result = compile_graph(request)
        return result.checks.get(about["function"], Verdict(FAILED, "there is no such function"))
    from ....dialect.mlir.context import parse_module
    from ....dialect.mlir.decode import decode_module

    function = decode_module(parse_module(text)).main
    return prove_program(function, replace(request, ir=""))
