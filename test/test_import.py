"""What `import profuse`, tracing and tier 0 may load."""

from __future__ import annotations

import subprocess
import sys

import pytest

LLVM = "profuse.lowering.libllvm"
pytestmark = pytest.mark.each_run


def loaded_after(code: str) -> set[str]:
    script = f"{code}\nimport sys\nprint(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_is_light():
    loaded = loaded_after("import profuse as pf; pf.jit")
    assert not {"mlir", LLVM, "scipy", "hypothesis"} & loaded


def test_tracing_profiling_and_tier_0_need_no_mlir():
    loaded = loaded_after(
        "import numpy as np, profuse as pf\n"
        "f = pf.jit(lambda x: np.tanh(x @ x) + x.sum())\n"
        "f(np.ones((3, 3)))\n"
        "assert f.state().counters['profiled_runs'] == 1\n"
        "f.ir('graph'), f.ir('profiled'), f.explain()"
    )
    assert not {"mlir", LLVM} & loaded


@pytest.mark.parametrize("collects", [True, False])
def test_nobody_looks_for_garbage_while_modules_are_loaded(collects):
    loaded_after(
        "import gc, numpy, profuse as pf\n"
        f"gc.enable() if {collects} else gc.disable()\n"
        "seen = []\n"
        "gc.callbacks.append(lambda phase, info: seen.append(phase))\n"
        "pf.jit\n"
        f"assert gc.isenabled() is {collects}\n"
        "assert len(seen) <= 4, seen\n"  # those of the objects that are there in the end
        "try:\n"
        "    pf.nothing\n"
        "except AttributeError:\n"
        f"    assert gc.isenabled() is {collects}"
    )


def test_in_place_forms_are_loaded_when_asked_for():
    loaded_after(
        "from profuse.dialect import ops\n"
        "from profuse.dialect.ir.op import OPS, find_op\n"
        "from profuse.dialect.ops.elementwise.families import Unary\n"
        "class Own(Unary, name='own'):\n"
        "    numpy = abs\n"
        "assert 'profuse.add_' not in OPS and 'profuse.linear' not in OPS\n"
        "assert find_op('add_') and find_op('erf_') and find_op('linear')\n"
        "assert find_op('own_') is None"  # only the ops of the package have one
    )


def test_a_warm_process_loads_no_pool(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # other folders have kernels checked
    monkeypatch.setenv("PROFUSE_CACHE", "on")
    monkeypatch.setenv("PROFUSE_BACKGROUND", "on")
    call = "import numpy as np, profuse as pf\nf = pf.jit(lambda x: np.tanh(x) * 2)\n{}(np.ones(4))"
    cold = loaded_after(call.format("f"))
    assert {"profuse.executor.compile.worker.pool", "subprocess"} <= cold  # the next call wants them
    loaded_after(call.format("f.warmup"))
    warm = loaded_after(call.format("f") + "\nassert f.state().tier == 'optimized'")
    unneeded = {"profuse.executor.compile.worker", "subprocess", "numpy.ma", "mlir", LLVM}
    assert not unneeded & warm
    ours = {name.removeprefix("profuse.") for name in warm if name.startswith("profuse")}
    assert len(ours) <= 260, "each costs 0.3 ms: what the first call does not need is loaded later"
    allowed = {
        "executor.dispatch.dispatcher",
        "executor.dispatch.debounce",
        "executor.explain.state",  # this test asked for the state
    }
    later = ("executor.dispatch.", "executor.explain.", "executor.cuda", "lowering.gpu")
    assert not {name for name in ours if name.startswith(later)} - allowed
