"""The pool of threads: every chunk runs once, nobody waits for absent threads, forks and exits."""

import ctypes
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from every_case import EVERY_CASE
from graphs import Graph, tensor
from native import Kernel
from pools import needs_pool, one_thread_around  # noqa: F401
from profuse.lowering.cpu import kernel_threads
from profuse.lowering.cpu.cpu_stages import compile_program
from profuse.lowering.target import host_target
from profuse.lowering.thread_pool import supports
from profuse.lowering.thread_pool.text import pool_text

pytestmark = needs_pool


@pytest.fixture(scope="module")
def kernel():
    g = Graph(tensor("n", 500))
    (x,) = g.inputs
    return Kernel(compile_program(g.returning(g.tanh(g.mul(x, x))), host_target()))


def expected(x):
    return np.tanh(x * x)


def check(kernel, x):
    np.testing.assert_allclose(kernel(x)[0], expected(x), rtol=1e-5)


@pytest.mark.parametrize("helpers", [1, 3, 7])
def test_many_launches_from_many_threads(kernel, helpers):
    """64 threads launch at once: one at a time has the pool, the others run alone."""
    kernel_threads.use_threads(helpers + 1)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((200 + k, 500)).astype(np.float32) for k in range(64)]
    faults = []

    def launch(x):
        try:
            for _ in range(20 if EVERY_CASE else 5):
                check(kernel, x)
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=launch, args=(x,)) for x in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    assert kernel_threads.started() >= helpers


def test_threads_come_with_the_first_launch_and_are_never_more_than_wanted():
    text = """
import ctypes, os
import numpy as np
from test_pool import Graph, Kernel, check, compile_program, host_target, kernel_threads, tensor
g = Graph(tensor("n", 500))
(x,) = g.inputs
kernel = Kernel(compile_program(g.returning(g.tanh(g.mul(x, x))), host_target()))
count = lambda: len(os.listdir("/proc/self/task"))
before = count()
kernel_threads.use_threads(3)
small, large = np.ones((2, 500), np.float32), np.ones((2000, 500), np.float32)
check(kernel, small)
assert (count() - before, kernel_threads.started()) == (0, 0)
check(kernel, large)
assert (count() - before, kernel_threads.started()) == (2, 2)
kernel_threads.use_threads(2)
check(kernel, large)
kernel_threads.use_threads(3)
check(kernel, large)
assert (count() - before, kernel_threads.started()) == (2, 2)
"""
    run(text)


def test_a_forked_child_starts_threads_of_its_own():
    text = """
import os
import numpy as np
from test_pool import Graph, Kernel, check, compile_program, host_target, kernel_threads, tensor
g = Graph(tensor("n", 500))
(x,) = g.inputs
kernel = Kernel(compile_program(g.returning(g.tanh(g.mul(x, x))), host_target()))
kernel_threads.use_threads(3)
x = np.random.default_rng(0).standard_normal((2000, 500)).astype(np.float32)
check(kernel, x)
for _ in range(5):
    child = os.fork()
    if not child:
        assert kernel_threads.started() == 0
        check(kernel, x)
        assert len(os.listdir("/proc/self/task")) == 3
        grandchild = os.fork()
        if not grandchild:
            check(kernel, x)
            os._exit(kernel_threads.started())
        assert os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]) == 2
        os._exit(0)
    check(kernel, x)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    run(text)


def test_exit_while_threads_spin_and_another_thread_launches():
    text = """
import threading
import numpy as np
from test_pool import Graph, Kernel, check, compile_program, host_target, kernel_threads, tensor
g = Graph(tensor("n", 500))
(x,) = g.inputs
kernel = Kernel(compile_program(g.returning(g.tanh(g.mul(x, x))), host_target()))
kernel_threads.use_threads(4)
x = np.ones((2000, 500), np.float32)
started = threading.Event()
def forever():
    while True:
        kernel(x)
        started.set()
threading.Thread(target=forever, daemon=True).start()
started.wait()
"""
    for _ in range(3):
        run(text)


def test_exit_while_threads_of_the_pool_wait():
    """They outlive the interpreter, so the end of it must not free what they run and read."""
    text = """
import numpy as np
from test_pool import Graph, Kernel, check, compile_program, host_target, kernel_threads, tensor
from profuse.lowering.thread_pool import SPIN
g = Graph(tensor("n", 500))
(x,) = g.inputs
kernel = Kernel(compile_program(g.returning(g.tanh(g.mul(x, x))), host_target()))
kernel_threads.use_threads(8)
kernel_threads.block()[SPIN] = 1 << 40
check(kernel, np.ones((2000, 500), np.float32))
"""
    for _ in range(3 if EVERY_CASE else 1):
        run(text)


def run(text):
    done = subprocess.run(
        [sys.executable, "-c", text],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, Path(__file__).parents[:3]))},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="no idle scheduling on this system")
def test_launching_thread_waits_for_nobody_who_has_not_come():
    """The others may run when nothing else does: waiting for one of them would take seconds."""
    text = """
import os
import threading
import time
import numpy as np
from test_pool import Graph, Kernel, check, compile_program, host_target, kernel_threads, tensor
g = Graph(tensor("n", 500))
(x,) = g.inputs
kernel = Kernel(compile_program(g.returning(g.tanh(g.mul(x, x))), host_target()))
x = np.ones((3000, 500), np.float32)
kernel_threads.use_threads(8)
check(kernel, x)
core = {min(os.sched_getaffinity(0))}
main = threading.get_native_id()
threads = [int(t) for t in os.listdir("/proc/self/task")]
assert len(threads) >= 8, threads
for thread in threads:
    os.sched_setaffinity(thread, core)
    if thread != main:
        os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0))

def least():
    times = []
    for _ in range(30):
        start = time.perf_counter()
        kernel(x)
        times.append(time.perf_counter() - start)
    return min(times)

several = min(least() for _ in range(3))
kernel_threads.use_threads(1)
alone = least()
assert several < 10 * alone, (several, alone)
"""
    run(text)


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="one CPU, or no affinity on this system",
)
def test_threads_of_the_pool_avoid_the_cpu_of_the_launching_thread():
    """They follow it when it moves, in a forked child too; who has been pinned is left alone."""
    text = """
import os
import time
import numpy as np
from test_pool import Graph, Kernel, check, compile_program, host_target, kernel_threads, tensor
g = Graph(tensor("n", 500))
(x,) = g.inputs
kernel = Kernel(compile_program(g.returning(g.tanh(g.mul(x, x))), host_target()))
x = np.ones((2000, 500), np.float32)
cpus = os.sched_getaffinity(0)

def others():
    return [int(t) for t in os.listdir("/proc/self/task") if int(t) not in before]

def use(threads, wanted):
    # The system may not have run all of them yet.
    end = time.monotonic() + 60
    while [os.sched_getaffinity(t) for t in threads] != [wanted] * len(threads):
        assert time.monotonic() < end, [os.sched_getaffinity(t) for t in threads]
        time.sleep(0.01)

def launch_on(cpu):
    os.sched_setaffinity(0, {cpu})
    for _ in range(3):
        check(kernel, x)

before = {int(t) for t in os.listdir("/proc/self/task")}
kernel_threads.use_threads(4)
check(kernel, x)
for cpu in (*cpus, *cpus):
    launch_on(cpu)
    use(others(), cpus - {cpu})
first, second, *_ = sorted(cpus)
launch_on(first)
pinned, *rest = others()
os.sched_setaffinity(pinned, {first})
launch_on(second)
use(rest, cpus - {second})
assert os.sched_getaffinity(pinned) == {first}
child = os.fork()
if not child:
    before = {os.getpid()}
    os.sched_setaffinity(0, cpus)
    check(kernel, x)
    launch_on(first)
    use(others(), cpus - {first})
    assert len(others()) == 3
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    run(text)


def test_launches_within_chunks_run_alone():
    """A chunk may launch: the inner launch does all of its chunks in the thread that makes it."""
    kernel_threads.use_threads(3)
    block = kernel_threads.block()
    part = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    whole = ctypes.CFUNCTYPE(None, ctypes.c_void_p, part, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    launch = whole(kernel_threads.launch_address())
    inner_seen, outer_seen = [], []

    @part
    def inner(_array, begin, end):
        inner_seen.append((begin, end))

    @part
    def outer(_array, begin, end):
        outer_seen.append((begin, end))
        launch(ctypes.addressof(block), inner, None, 5, 2)

    launch(ctypes.addressof(block), outer, None, 7, 3)
    assert sorted(outer_seen) == [(0, 3), (3, 6), (6, 7)]
    assert sorted(inner_seen) == sorted([(0, 2), (2, 4), (4, 5)] * 3)


def test_the_text_is_complete_on_each_architecture():
    for machine in ("x86_64", "aarch64"):
        text = pool_text(f"{machine}-unknown-linux-gnu")
        assert "@at(" not in text and "$" not in text
    assert not supports("arm64-apple-darwin23")
