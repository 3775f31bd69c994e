"""What compiles spent their time on, wherever it is told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import profuse as pf
from profuse.dialect.program import Module, Program
from profuse.executor.compile import CompileResult, compile_graph
from profuse.executor.observe.stages import grouped, pass_seconds, sentence
from profuse.lowering.stages import compile_function
from profuse.lowering.target import host_target

X = np.ones((4, 8), np.float32)
STAGES = ["parse", "passes", "decode", "lowering", "LLVM", "check", "load"]


def result(trace, **seconds) -> CompileResult:
    return CompileResult(Module(Program("main")), "", trace=list(trace), seconds=seconds)


def test_groups():
    found = result(["cse", "dce"], parse=1.0, cse=2.0, dce=3.0, object=4.0, optimise=5.0, odd=6.0)
    assert grouped(found) == {"parse": 1.0, "passes": 5.0, "LLVM": 9.0, "other": 6.0}
    assert list(pass_seconds(found)) == ["dce", "cse"]
    assert sentence(result(["cse"], parse=0.001, cse=0.0204)) == (
        "parse 1.0 ms, passes 20.4 ms (cse 20.4)"
    )
    assert sentence(result([])) == ""


def test_state_and_explain_tell_them():
    f = pf.jit(lambda x: np.tanh(x) * 2.0)
    f(X), f(X)
    (made,) = f.state().specializations
    assert [s for s in made.stages if s != "startup"] == STAGES
    assert all(seconds > 0 for seconds in made.stages.values())
    assert sum(made.stages.values()) <= made.seconds
    for stage, seconds in made.stages.items():
        assert f"{stage} {seconds * 1e3:.1f} ms" in f.explain()


def test_the_spec_keyed_executor_tells_them(profiling_off):
    f = pf.jit(lambda x: np.tanh(x) * 2.0)
    f(X)
    (made,) = f.state().specializations
    assert [s for s in made.stages if s != "startup"] == STAGES
    assert "compiled 1 kernel in " in f.explain()
    assert "load " in f.explain()


def test_what_the_disk_cache_had_was_not_compiled(folder):
    for _ in range(2):
        f = pf.jit(lambda x: np.tanh(x) * 2.0)
        f(X), f(X)
    (made,) = f.state().specializations
    assert list(made.stages) == ["disk cache", "load"]
    assert "from the disk cache in " in f.explain()


def test_a_kernels_graph_can_be_compiled_again():
    f = pf.jit(lambda x: np.tanh(x) * 2.0)
    f(X), f(X)
    (executor,) = f._executors()
    (kernel,) = compile_graph(replace(executor.request, keep_stages=True)).kernels.values()
    again = compile_function(host_target(), from_stage="graph", text=kernel.stages["graph"])
    assert again.stages["asm"] == kernel.stages["asm"]
