"""What compiles spent their time on, wherever it is told."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import profuse as pf
from internals import any_running
from profuse.dialect.ir.program import Module, Program
from profuse.executor.compile.request import CompileResult
from profuse.executor.compile.timings import grouped, pass_seconds, sentence

X = np.ones((4, 8), np.float32)
STAGES = ["parse", "passes", "decode", "lowering", "LLVM", "check", "load", "link"]


def result(trace, **seconds) -> CompileResult:
    return CompileResult(Module(Program("main")), "", trace=list(trace), seconds=seconds)


def adds_up(stages, seconds):
    """The stages that have a name account for all of a compile but a few percent."""
    named = sum(s for stage, s in stages.items() if stage != "other")
    assert named <= seconds
    assert named >= 0.95 * seconds - 1e-3, (stages, seconds)


def test_groups():
    found = result(["cse", "dce"], parse=1.0, cse=2.0, dce=3.0, object=4.0, optimise=5.0, odd=6.0)
    assert grouped(found) == {"parse": 1.0, "passes": 5.0, "LLVM": 9.0, "other": 6.0}
    assert list(pass_seconds(found)) == ["dce", "cse"]
    assert sentence(result(["cse"], parse=0.001, cse=0.0204)) == ("parse 1.0 ms, passes 20.4 ms (cse 20.4)")
    assert sentence(result([])) == ""


def test_state_and_explain_tell_them():
    f = pf.jit(lambda x: np.tanh(x) * 2.0)
    f(X), f(X)
    (made,) = f.state().specializations
    assert [s for s in made.stages if s != "startup"] == ["request", *STAGES]
    assert all(seconds > 0 for seconds in made.stages.values())
    adds_up(made.stages, made.seconds)
    for stage, seconds in made.stages.items():
        assert f"{stage} {seconds * 1e3:.1f} ms" in f.explain()


def test_the_spec_keyed_executor_tells_them(profiling_off):
    f = pf.jit(lambda x: np.tanh(x) * 2.0)
    f(X)
    (made,) = f.state().specializations
    assert [s for s in made.stages if s != "startup"] == ["request", *STAGES]
    adds_up(made.stages, made.seconds)
    assert "compiled 1 kernel in " in f.explain()
    assert "load " in f.explain()


def test_what_the_disk_cache_had_was_not_compiled(folder):
    for _ in range(2):
        f = pf.jit(lambda x: np.tanh(x) * 2.0)
        f(X), f(X)
    (made,) = f.state().specializations
    assert list(made.stages) == ["request", "disk cache", "load", "link"]
    adds_up(made.stages, made.seconds)
    assert "from the disk cache in " in f.explain()


def test_stages_of_a_background_compile_add_up(pool):
    """What it waits for has names too: the pool's only worker is at something else."""
    functions = [pf.jit(fn) for fn in (lambda x: np.tanh(x) * 2.0, lambda x: np.exp(x) - x)]
    for _ in range(2):
        for f in functions:
            f(X)
    waits = []
    for f in functions:
        assert f.wait(60)
        (made,) = f.state().specializations
        adds_up(made.stages, made.seconds)
        waited = "queue", "worker", "startup"
        assert [s for s in made.stages if s not in waited] == ["transfer", *STAGES]
        waits.append(made.stages["queue"])
    assert waits[1] > waits[0]


def test_who_joins_a_compile_under_way_has_only_waited(pool):
    """The stages of a compile that somebody else had asked for are that one's."""
    slow = [pf.jit(fn, name="slow") for fn in 2 * (lambda x: np.tanh(x) * 2.0,)]
    slow[0](X), slow[1](X), slow[0](X)
    while not any_running(pool):
        time.sleep(0.01)
    time.sleep(0.05)  # `slow` takes half a second
    merged = pool.counts.merged
    slow[1](X)
    assert pool.counts.merged == merged + 1
    for f in slow:
        assert f.wait(60)
        (made,) = f.state().specializations
        adds_up(made.stages, made.seconds)
    assert list(made.stages) == ["queue", "load", "link"]


FIRST = """
import sys, numpy as np, profuse as pf
x = np.ones((4, 8), np.float32)
for background in (True, False):
    f = pf.jit(lambda x: np.tanh(x) * 2.0, background=background)
    f(x), f(x)
    f.wait()
    (made,) = f.state().specializations
    print(repr((dict(made.stages), made.seconds)))
"""


def test_stages_of_the_first_compiles_of_a_process_add_up():
    """In a worker that has to start, which is most of it, and in the process itself."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(Path(pf.__file__).parents[1])},
    )
    assert done.returncode == 0, done.stderr
    (waiting, first), (loading, second) = map(ast.literal_eval, done.stdout.splitlines())
    adds_up(waiting, first)
    adds_up(loading, second)
    assert waiting["worker"] > 0.5 * first
    assert loading["startup"] > 0.1 * second
    assert "startup" not in waiting, "the worker had loaded everything before it took a request"
