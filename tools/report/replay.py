"""Compiling once more what a run has compiled, with all that a compile can tell."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...dialect.errors import ProfuseError
from ...executor.compile.compiler import compile_graph
from ...executor.compile.proof.check_verdict import CheckVerdict
from ...executor.compile.request import CompileRequest
from .model import KernelReport, Step


class _Steps:
    """Keeps the IR at each pass boundary, and the time between two of them."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._text = ""
        self._start = 0.0

    def __call__(self, before: str, after: str, module: Any) -> None:
        seconds = time.perf_counter() - self._start
        text = str(module)
        if before:
            self.steps.append(Step(before, seconds, self._text, text))
        self._text = text
        self._start = time.perf_counter()


def replay(
    request: CompileRequest, checks: Mapping[str, CheckVerdict]
) -> tuple[tuple[Step, ...], tuple[KernelReport, ...], str]:
    """Every run of a pass, every kernel with its stages, and what went wrong, if anything did.

    The disk cache is left alone: it knows nothing of passes. Kernels are not run; ``checks`` is
    what running them has found in the compile that is replayed.
    """
    steps = _Steps()
    try:
        result = compile_graph(replace(request, keep_stages=True, dump="", check="off", measure=False), boundary=steps)
    except ProfuseError as error:
        return tuple(steps.steps), (), f"Compiling it again failed: {error}"
    kernels = tuple(
        KernelReport(
            name, len(k.object), k.library_calls, k.seconds, k.stages, str(checks.get(name, "")), k.shared_steps
        )
        for name, k in result.kernels.items()
    )
    failed = [f"@{name} has no kernel: {why}" for name, why in result.failures.items()]
    return tuple(steps.steps), kernels, "\n".join(failed)
