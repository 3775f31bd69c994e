"""Repeats a check from a file that `kept.keep` has written."""

from __future__ import annotations

import json
from dataclasses import replace

from ....dialect.errors import FileError
from ..compiler import compile_graph
from ..request import CompileRequest
from .check_verdict import FAILED, CheckVerdict
from .kept import MARK
from .prove import prove_program


def replay(path: str) -> CheckVerdict:
    """Compile the graph in a file of `kept.keep`, and check its kernel on all inputs.

    Raises FileError for other files, and what the compiler raises. If the kernel had crashed the
    worker, it crashes this process.
    """
    try:
        with open(path, encoding="utf-8") as file:
            first, _, text = file.read().partition("\n")
        if not first.startswith(MARK):
            raise ValueError(f"its first line does not begin with {MARK!r}")
        about = json.loads(first.removeprefix(MARK))
    except (OSError, ValueError) as error:
        raise FileError(f"{path} is no file of a check: {error}") from error
    request = CompileRequest(
        text, about["pipeline"], None, in_place=about["in_place"], exact=about["exact"], check="all"
    )
    if not about["made"]:
        result = compile_graph(request)
        return result.checks.get(about["function"], CheckVerdict(FAILED, "there is no such function"))
    from ....dialect.mlir.decode import decode_module
    from ....dialect.mlir.parse import parse_module

    function = decode_module(parse_module(text)).main
    return prove_program(function, replace(request, ir=""))
