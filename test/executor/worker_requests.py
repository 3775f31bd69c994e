"""Compile requests for the tests of workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import profuse as pf
from profuse.dialect.pipeline.options import PipelineOptions
from profuse.executor.compile.request import CompileRequest
from profuse.lowering.target import host_target


def request_for(fn: Callable[..., Any], *args: Any, name: str = "f") -> CompileRequest:
    """What the executor would have compiled on the second call of ``fn``."""
    f = pf.jit(fn, profiled_runs=1, background=False)
    f(*args)
    return CompileRequest(f.ir("profiled"), PipelineOptions().optimizing(), host_target(), name=name)
