"""What the engine does, `profuse-opt -p` can do: same strings, same IR."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import profuse as pf
from internals import last_executor
from profuse.dialect.pipeline.options import PipelineOptions

LIT = Path(__file__).parents[1] / "dialect" / "passes" / "engine-pipeline.mlir"


def test_lit_runs_the_strings_of_the_engine():
    text = LIT.read_text()
    for dynamic in (False, True):
        assert f"'{PipelineOptions(dynamic=dynamic).optimizing()}'" in text


def test_replaying_the_request_gives_the_optimised_graph(tmp_path):
    f = pf.jit(lambda x, b: np.tanh(x + b).sum(axis=1) * 0.5, strategy=[("static", 1), ("dynamic", 1)])
    for rows in (4, 4, 6, 6):
        f(np.ones((rows, 8), np.float32), np.ones(8, np.float32))
    for level, executor in enumerate(list(last_executor(f).chain())[:2]):
        graph = tmp_path / f"{level}.mlir"
        graph.write_text(executor.request.ir)
        done = subprocess.run(
            [sys.executable, "-m", "profuse.tools.opt", "-p", executor.request.pipeline, graph],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == executor.result.ir.strip()
    assert "stable-sizes=8" in executor.request.pipeline
