"""Compiling in the background: what calls run on meanwhile, and how plans come and go."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import profuse as pf
import pytest
from internals import shared_pool_now
from profuse.dialect.passes.base import PASSES, Pass, register_pass
from profuse.executor.compile import pending, worker
from profuse.executor.dispatch.dispatcher import Dispatcher
from profuse.executor.plans import link

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def fn(x):
    return np.tanh(x) + 1


def jitted(**options):
    return pf.jit(fn, **options)


def right(f, x=X):
    np.testing.assert_allclose(f(x), fn(x), rtol=1e-6)


pytestmark = pytest.mark.usefixtures("pool")


def test_calls_run_op_by_op_until_the_plan_is_swapped_in():
    """Nothing is profiled twice, and no call waits."""
    f = jitted(name="slow")
    right(f)
    assert f.state().tier == "profiling"
    for k in range(3):
        right(f)
        state = f.state()
        assert state.tier == "compiling"
        assert state.counters["evaluated_ops"] == 2 * (k + 2)
        assert state.counters["compiles"] == 0
    assert "compiled in the background" in f.explain()
    assert f.wait()
    state = f.state()
    assert state.tier == "optimized"
    right(f)
    counters = f.state().counters
    assert (counters["compiles"], counters["profiled_runs"]) == (1, 1)
    assert (counters["kernel_launches"], counters["guard_hits"]) == (1, 1)
    assert counters["evaluated_ops"] == 8
    assert counters["in_process_compiles"] == 0
    assert f.ir("optimized").count("fusion_group") == 1


def test_no_call_waits_for_a_compile_that_hangs():
    """It costs the timeout, in the background, and pins the graph with reason and replay line."""
    f = jitted(name="hang")
    right(f)
    begun = time.monotonic()
    right(f)
    assert not f.wait(0.2)
    assert time.monotonic() - begun < 1.5
    assert f.wait(10)
    right(f)
    state = f.state()
    assert state.tier == "simple"
    assert state.counters["compile_failures"] == 1
    (reason,) = state.reasons
    assert "the compile worker took more than 5 seconds" in reason
    assert "replay with: profuse-opt -p " in reason
    assert "could not be compiled" in f.explain()


def test_a_crash_pins_one_graph_and_no_other():
    f, g = jitted(name="segv"), jitted(name="g")
    for h in (f, g, f, g):
        right(h)
    assert f.wait()
    assert g.wait()
    assert (f.state().tier, g.state().tier) == ("simple", "optimized")
    assert any("SIGSEGV" in reason for reason in f.state().reasons)
    right(f), right(g)
    f.flush()
    right(f)
    assert f.state().tier == "profiling", "a flush tries again"


def test_a_flush_drops_what_is_compiled(pool):
    f, other = jitted(name="slow"), jitted(name="queued")
    for g in (f, other, f, other):
        right(g)
    dropped = pool.counts.dropped
    other.flush()
    assert pool.counts.dropped == dropped + 1, "no worker had begun it"
    f.flush()
    right(f)
    assert f.state().tier == "profiling"
    time.sleep(0.8)
    state = f.state()
    assert (state.tier, state.counters["compiles"]) == ("profiling", 0), "what came was obsolete"
    right(f)
    assert f.wait()
    assert f.state().tier == "optimized"


def test_a_full_queue_means_another_call_asks_again(pool, monkeypatch):
    refused = pool.counts.refused
    f = jitted(name="late")
    right(f)
    monkeypatch.setattr(pool, "queue", 0)
    right(f), right(f)
    assert pool.counts.refused == refused + 2
    assert f.wait(0), "nothing is under way"
    monkeypatch.setattr(pool, "queue", 8)
    right(f)
    assert f.wait()
    assert f.state().tier == "optimized"


def test_fallbacks_compile_in_the_background_too():
    f = jitted(name="slow")
    f.warmup(X)
    right(f, X[:2])
    right(f, X[:2])
    assert not f.wait(0), "the fallback compiles"
    right(f, X[:2])
    right(f)
    assert f.wait()
    before = f.state().counters
    right(f, X[:2])
    after = f.state().counters
    assert after["compiles"] == 2
    assert after["evaluated_ops"] == before["evaluated_ops"]
    assert after["kernel_launches"] == before["kernel_launches"] + 1


def test_warmup_ends_with_an_optimised_plan():
    f = pf.jit(fn, profiled_runs=3)
    f.warmup(X)
    assert f.state().tier == "optimized"
    assert f.state().counters["calls"] == 4
    g = pf.jit(fn, background=False)
    g.warmup(X)
    assert g.state().tier == "optimized"
    assert g.wait(0)


def test_threads_share_one_compile():
    f = jitted(name="slow")
    errors: list = []

    def work():
        try:
            for _ in range(300):
                right(f)
                time.sleep(0.002)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert errors == []
    assert f.wait()
    counters = f.state().counters
    assert (counters["compiles"], counters["calls"]) == (1, 1200)
    assert counters["guard_misses"] == 0
    assert f.state().tier == "optimized"


def test_what_cannot_be_linked_is_pinned(monkeypatch):
    def fail(*args, **options):
        raise RuntimeError("no memory to map")

    monkeypatch.setattr(link, "build_plan", fail)
    f = jitted()
    right(f), right(f)
    assert f.wait()
    right(f)
    assert f.state().tier == "simple"
    (reason,) = f.state().reasons
    assert "linking the compiled graph failed: RuntimeError: no memory to map" in reason


def test_strict_fusion_raises_on_the_call():
    f = pf.jit(lambda x: (np.exp(x) + 1, np.arcsin(x * 1j)))
    f(X)
    with pf.strict_fusion(), pytest.raises(pf.StrictFusionError):
        f(X)
    assert f.state().tier == "profiling"


@pytest.mark.parametrize("profiling", [True, False])
def test_a_call_that_waits_overtakes_the_background(profiling):
    """Strict fusion has to say on the call what it finds; what comes later is obsolete."""
    before = pf.set_profiling_mode(profiling)
    f = jitted(name="slow")
    right(f), right(f)
    assert not f.wait(0)
    with pf.strict_fusion():
        right(f)
    assert f.state().tier == "optimized"
    assert f.wait(30)
    time.sleep(0.8)
    counters = f.state().counters
    assert (counters["compiles"], counters["cache_misses"]) == (1, int(not profiling))
    pf.set_profiling_mode(before)


@pytest.fixture
def my_pass():
    @register_pass
    @dataclass(frozen=True)
    class Mine(Pass):
        """Do nothing."""

        name: ClassVar[str] = "mine-in-background"

        def run(self, module):
            pass

    with pf.register_pass_before_fusion(Mine.name):
        yield Mine.name
    del PASSES[Mine.name]


def test_a_users_pass_is_run_in_this_process_and_said_so(my_pass):
    f = jitted()
    right(f), right(f)
    assert f.wait()
    state = f.state()
    assert (state.tier, state.counters["in_process_compiles"]) == ("optimized", 1)
    why = f"pass {my_pass} is registered in this process only"
    assert state.reasons == (f"compiled in this process: {why}",)


def test_without_profiling(profiling_off):
    f = jitted(name="slow")
    for _ in range(3):
        right(f)
    state = f.state()
    assert (state.counters["compiles"], state.counters["cache_misses"]) == (0, 0)
    assert state.counters["evaluated_ops"] == 6
    assert "It is compiled in the background" in f.explain()
    assert f.wait()
    assert "background" not in f.explain()
    right(f), right(f, X[:2])
    counters = f.state().counters
    assert (counters["compiles"], counters["cache_misses"], counters["cache_hits"]) == (1, 1, 2)
    assert (counters["kernel_launches"], counters["evaluated_ops"]) == (2, 6)
    f.flush()
    right(f)
    f.flush()
    assert f.wait(0)
    time.sleep(0.8)
    assert f.state().counters["compiles"] == 1, "what came after the flush was obsolete"


def test_without_profiling_a_crash_is_remembered(profiling_off):
    f = jitted(name="segv")
    right(f)
    assert f.wait()
    right(f), right(f)
    state = f.state()
    assert (state.tier, state.counters["compile_failures"]) == ("no-opt", 1)
    assert any("SIGSEGV" in reason for reason in state.reasons)


def test_a_forked_child_compiles_on_its_own(pool):
    f = jitted(name="slow")
    right(f), right(f)
    child = os.fork()
    if not child:
        try:
            assert f.wait(0), "the parent's compile is not the child's"
            right(f)
            assert f.wait(30)
            right(f)
            ok = f.state().tier == "optimized" and shared_pool_now() is not pool
        except BaseException:
            ok = False
        worker.shared_pool().close()
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert f.wait()
    assert f.state().tier == "optimized"


def test_the_knob_sends_waiting_compiles_to_workers(tmp_path):
    """And MLIR stays out of the process, with and without profiling."""
    script = tmp_path / "main.py"
    script.write_text(
        "import sys, numpy as np, profuse as pf\n"
        "from profuse.executor.compile.worker import shared_pool\n"
        "def fn(x): return np.tanh(x) + 1\n"
        "x = np.ones((3, 4), np.float32)\n"
        "f = pf.jit(fn); f(x)\n"
        "assert f.state().tier == 'profiling'\n"
        "np.testing.assert_allclose(f(x), fn(x), rtol=1e-6)\n"
        "assert f.state().tier == 'optimized'\n"
        "pf.set_profiling_mode(False)\n"
        "g = pf.jit(fn); g(x)\n"
        "assert g.state().tier == 'optimized'\n"
        "pf.set_optimize(False); pf.jit(fn)(x)\n"
        "assert shared_pool().counts.completed == 3\n"
        "assert 'mlir' not in sys.modules\n"
    )
    env = {**os.environ, "PROFUSE_WORKERS": "1", "PYTHONPATH": str(Path(pf.__file__).parents[1])}
    done = subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_no_call_waits_for_the_dispatcher(monkeypatch):
    """Its code is emitted on another thread; until it is there, calls are dispatched in Python."""
    emitting, go_on = threading.Event(), threading.Event()
    refresh = Dispatcher.refresh

    def slow(self, variants):
        emitting.set()
        assert go_on.wait(30)
        refresh(self, variants)

    monkeypatch.setattr(Dispatcher, "refresh", slow)
    f = jitted(name="emitted")
    right(f), right(f)
    while f.state().tier != "optimized":
        time.sleep(0.01)
    right(f)
    assert emitting.wait(30)
    right(f), right(f)
    assert not f.state().emitted
    assert not f.wait(0)
    go_on.set()
    assert f.wait(30)
    assert f.state().emitted
    right(f)


def test_a_dispatcher_that_gets_no_thread_is_told(monkeypatch):
    f = jitted(name="threadless")
    right(f), right(f)
    assert f.wait(30)
    seen = len(pf.events())

    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    right(f)
    monkeypatch.undo()
    (event,) = [e for e in pf.events()[seen:] if e.kind == "dispatch-refused"]
    assert event.reason == "no thread to emit code on: can't start new thread"
    assert not f.state().emitted
    right(f)


@pytest.mark.parametrize("cache", [True, False])
def test_the_first_profiled_run_starts_a_worker(monkeypatch, tmp_path, cache):
    """Not the second call: the worker starts while the program goes on."""
    started = []
    pool = SimpleNamespace(warm=lambda: started.append(1))
    monkeypatch.setattr(pending, "_pool", lambda: pool)
    with pf.knobs.override(cache=cache, cache_dir=str(tmp_path)):
        f = pf.jit(lambda x: np.tanh(x) * 3, background=True)
        assert not started
        f(np.ones(3))
    assert started == [1]


def transformed(x):
    """A Fourier transform by Stockham, in whose loop arrays have other sizes in each round."""
    y, length, stride = x.astype(np.complex128), x.size, 1
    while length > 1:
        half = length // 2
        w = np.exp(-2j * np.pi * np.arange(half) / length)
        z = y.reshape(length, stride)
        a, b = z[:half], z[half:]
        out = np.empty((half, 2, stride), dtype=np.complex128)
        out[:, 0] = a + b
        out[:, 1] = (a - b) * w[:, None]
        y = out.reshape(x.size)
        length, stride = half, 2 * stride
    return y


def test_a_loop_is_pythons_that_python_has_run_sooner_meanwhile(python_wins):
    """Behind a compile nobody tries how long Python takes for a loop; while code is under way it is known."""
    x = np.arange(8192.0)
    with pf.knobs.override(unsupported="python", demote=1.25):
        f = pf.jit(transformed, name="slow")
        for _ in range(4):
            np.testing.assert_allclose(f(x), transformed(x))
        assert f.state().tier == "compiling"
        meanwhile = f.state().counters["python_calls"]
        assert meanwhile == 3
        for _ in range(4):
            assert f.wait()  # for the plan, then for the code that calls it
            np.testing.assert_allclose(f(x), transformed(x))
        for _ in range(40):
            f(x)
        assert f.state().tier == "python"
        assert f.state().counters["python_calls"] > meanwhile + 20
