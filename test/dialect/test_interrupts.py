"""Signals wait where an exception of their handlers would do lasting damage."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import profuse as pf
import pytest
from profuse.dialect.interrupts import interrupts_held_back

# A timer sends the signal, since no thread of this process runs while extension modules start.
LOADS = """
import signal, sys
signal.signal(signal.SIGALRM, signal.default_int_handler)
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "mlir._mlir_libs._mlir":
            signal.setitimer(signal.ITIMER_REAL, 0.005)
sys.meta_path.insert(0, Finder())
import numpy as np, profuse as pf
x = np.ones((3, 4), np.float32)
f = pf.jit(lambda x: np.tanh(x) + 1, background=False)
f(x)
with open("graph.mlir", "w") as file:
    file.write(f.ir("graph"))
try:
    FIRST
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted")
f.warmup(x)
f(x)
print(f.state().counters["kernel_launches"] > 0)
"""


@pytest.fixture
def default_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.default_int_handler
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    "first",
    ["f.warmup(x)", "g = pf.jit(f, background=True); g.warmup(x); g.ir('asm')", "pf.load('graph.mlir')"],
    ids=["warmup", "ir", "load"],
)
def test_ctrl_c_while_mlir_is_imported(first, tmp_path):
    """KeyboardInterrupt comes when it is imported, and the next compile finds it whole."""
    ended = subprocess.run(
        [sys.executable, "-c", LOADS.replace("FIRST", first)],
        text=True,
        capture_output=True,
        env=os.environ | {"PROFUSE_CACHE": "off"},
        cwd=tmp_path,
        timeout=120,
    )
    assert (ended.returncode, ended.stdout.split()) == (0, ["interrupted", "True"]), ended.stderr


def test_ctrl_c_while_passes_are_registered():
    """Half of them could not be registered again: all are, before it comes."""
    program = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "profuse.dialect.passes.cleanup.fold":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Finder())
from profuse.executor.compile.compiler import load_compiler
try:
    load_compiler()
except KeyboardInterrupt:
    from profuse.dialect.passes.base import PASSES
    met = len(PASSES)
    load_compiler()
    print(met == len(PASSES) > 10)
"""
    ended = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True)
    assert (ended.returncode, ended.stdout) == (0, "True\n"), ended.stderr


def test_handlers_run_behind_the_block(default_handler):
    done = []
    with pytest.raises(KeyboardInterrupt):
        with interrupts_held_back():
            signal.raise_signal(signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
            done.append("to the end")
        done.append("behind")
    assert done == ["to the end"]
    assert signal.getsignal(signal.SIGINT) is default_handler
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_handlers_of_other_signals_wait_too_and_none_is_lost(default_handler):
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
    try:
        with pytest.raises(KeyboardInterrupt), interrupts_held_back():
            for number in (signal.SIGINT, signal.SIGUSR1, signal.SIGUSR1):
                signal.raise_signal(number)
            assert seen == []
        assert seen == [signal.SIGUSR1]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_signal_that_another_thread_gets_waits_as_well(default_handler):
    """A mask of the main thread does not hold it back."""
    inside = threading.Event()

    def interrupt():
        inside.wait(10)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    ended = False
    with pytest.raises(KeyboardInterrupt), interrupts_held_back():
        inside.set()
        thread.join()
        ended = True
    assert ended


def test_an_error_in_the_block_puts_the_handlers_back(default_handler):
    with pytest.raises(ZeroDivisionError), interrupts_held_back():
        1 / 0  # noqa: B018
    assert signal.getsignal(signal.SIGINT) is default_handler


def test_other_threads_may_hold_back_what_never_reaches_them(default_handler):
    found = []

    def work():
        with interrupts_held_back():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [default_handler]
    assert signal.getsignal(signal.SIGINT) is default_handler


def test_nothing_of_mlir_is_imported_behind_the_block():
    """What the bindings would import in the middle of their work could be interrupted there."""
    program = """
import sys
from profuse.executor.compile.compiler import load_compiler
load_compiler()
import numpy as np, profuse as pf
known = set(sys.modules) | {"mlir.dialects.profuse"}
x = np.ones((40, 40), np.float32)
def loop(x):
    for _ in range(3):
        x = np.tanh(x @ x.T)
    return x[x[:, 0] > 0].sum(axis=0) + np.cumsum(x, axis=1)
gradient = pf.grad(lambda x: np.tanh(x @ x).sum(), background=False)
for f in (pf.jit(loop, background=False), gradient):
    f.warmup(x)
    f.ir("asm")
print(sorted(name for name in set(sys.modules) - known if name.startswith("mlir")))

load_compiler(gpu=True)
known = set(sys.modules) | {"mlir.dialects.profuse"}
from dataclasses import replace
from cached_graphs import compile_graph, host_target, request
graph = request().ir.replace('strides = ', 'device = "cuda:0", strides = ')
target = replace(host_target(), gpu="sm_90", gpu_image="ptx")
assert compile_graph(request(ir=graph, target=target)).kernels
print(sorted(name for name in set(sys.modules) - known if name.startswith("mlir")))
"""
    tests = Path(__file__).parents[1]
    path = os.pathsep.join(map(str, (Path(pf.__file__).parents[1], tests, tests / "executor")))
    ended = subprocess.run(
        [sys.executable, "-c", program],
        text=True,
        capture_output=True,
        env=os.environ | {"PROFUSE_CACHE": "off", "PYTHONPATH": path},
        timeout=120,
    )
    assert (ended.returncode, ended.stdout) == (0, "[]\n[]\n"), ended.stderr
