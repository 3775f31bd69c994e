"""Compile workers, real ones, and what they survive."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import profuse as pf
import pytest
from internals import is_running, worker_count, worker_process
from profuse.dialect.passes.base import PASSES, Pass, register_pass
from profuse.executor.compile.compiler import compile_graph
from profuse.executor.compile.request import CompileRequest
from profuse.executor.compile.worker import Limits, Pool
from profuse.executor.compile.worker.faults import VARIABLE
from worker_requests import request_for

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
FAULTS = ["segv", "abort", "kill", "exit", "hang", "hog", "noise", "wrong", "close", "slow", "raise"]


@pytest.fixture(scope="module")
def request_f() -> CompileRequest:
    return request_for(lambda x: np.tanh(x) + 1, X)


@pytest.fixture(scope="module")
def pool():
    """One worker, whose graphs named after a fault meet that fault."""
    os.environ[VARIABLE] = ",".join(f"{fault}@{fault}" for fault in FAULTS)
    made = Pool(limits=Limits(timeout=8.0, memory=256 << 20))
    yield made
    del os.environ[VARIABLE]
    made.close()


def events_since(start: int, kind: str) -> list:
    return [e for e in pf.events()[start:] if e.kind == kind]


@pytest.mark.optimised  # as the worker makes it
def test_a_worker_makes_what_this_process_would(pool, request_f):
    made, here = pool.compile(request_f), compile_graph(request_f)
    assert made.ir == here.ir
    assert made.module == here.module
    assert made.trace == here.trace
    assert {n: k.object for n, k in made.kernels.items()} == {n: k.object for n, k in here.kernels.items()}
    assert pool.counts.started == 1


def test_what_the_compiler_refuses_is_raised_here(pool, request_f, tmp_path):
    lost = pool.counts.lost
    with pytest.raises(pf.IRError, match="unknown op"):
        pool.compile(replace(request_f, ir='"profuse.nothing"() : () -> ()'))
    with pytest.raises(pf.PipelineError, match="no-such-pass"):
        pool.compile(replace(request_f, pipeline="no-such-pass"))
    assert pool.counts.lost == lost, "the worker goes on"


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("segv", "was killed by SIGSEGV"),
        ("abort", "was killed by SIGABRT"),
        ("kill", "was killed by SIGKILL"),
        ("exit", "exited with status 1: gave up"),
        ("hang", "took more than 8 seconds"),
        ("hog", "took more than 256 MiB of memory"),
        ("noise", "sent what is not a reply: b'this is no f' is not the start"),
        ("wrong", "sent what is not a reply: CorruptEntry: KeyError"),
        ("close", "stopped answering"),
    ],
)
def test_a_fault_costs_one_event_and_one_result(pool, request_f, tmp_path, fault, reason):
    lost, seen = pool.counts.lost, len(pf.events())
    bad = replace(request_f, name=fault, repro_dir=str(tmp_path))
    good = pool.submit(replace(request_f, name=f"after-{fault}"))
    with pytest.raises(pf.WorkerError) as caught:
        pool.compile(bad)
    assert reason in caught.value.what
    (repro,) = tmp_path.iterdir()
    assert repro.read_text() == request_f.ir
    assert caught.value.hint.startswith("replay with: profuse-opt -p ")
    assert str(repro) in caught.value.hint
    assert pool.counts.lost == lost + 1
    (event,) = events_since(seen, "worker-lost")
    assert (event.function, reason in event.reason) == (fault, True)
    assert good.result().kernels
    assert pool.compile(replace(request_f, name=f"once-more-{fault}")).kernels


def test_an_assertion_of_mlir_is_one_of_these_faults(pool, request_f):
    text = """
      #odd = affine_map<(i, j) -> (i mod 2, j)>
      func.func @main(%m: memref<4x4xf32, #odd>) {
        %c = arith.constant 0 : index
        %v = memref.load %m[%c, %c] : memref<4x4xf32, #odd>
        return
      }"""
    with pytest.raises(pf.WorkerError, match=r"SIGABRT: .*unhandled captured errors"):
        pool.compile(replace(request_f, ir=text, pipeline="finalize-memref-to-llvm"))
    assert pool.compile(request_f).kernels


def test_what_nobody_foresaw_replaces_the_worker(pool, request_f):
    seen = len(pf.events())
    with pytest.raises(pf.InternalError, match="ZeroDivisionError"):
        pool.compile(replace(request_f, name="raise"))
    assert len(events_since(seen, "worker-replaced")) == 1
    assert events_since(seen, "worker-lost") == []
    assert pool.compile(request_f).kernels


def test_a_worker_killed_while_idle_costs_no_result(pool, request_f):
    pool.compile(request_f)
    process = worker_process(pool)
    os.kill(process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    seen = len(pf.events())
    assert pool.compile(request_f).kernels
    (event,) = events_since(seen, "worker-lost")
    assert "SIGKILL" in event.reason


def test_identical_requests_are_compiled_once(pool, request_f):
    before = replace(pool.counts)
    slow = replace(request_f, name="slow")
    done: list = []
    tickets = [pool.submit(slow, done.append) for _ in range(3)]
    tickets.append(pool.submit(replace(slow)))
    results = [t.result() for t in tickets]
    assert all(r is results[0] for r in results)
    assert pool.counts.submitted == before.submitted + 4
    assert pool.counts.merged == before.merged + 3
    assert pool.counts.completed == before.completed + 1
    deadline = time.monotonic() + 5
    while len(done) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert done == tickets[:3], "each is called back once, with its own ticket"
    again = pool.submit(slow)
    assert again.result() is not results[0], "what is finished is not kept"


def test_what_nobody_wants_any_more_is_dropped(pool, request_f):
    before, called = replace(pool.counts), []
    first = pool.submit(replace(request_f, name="slow"))
    unwanted = pool.submit(replace(request_f, name="u"), called.append)
    shared = [pool.submit(replace(request_f, name="v"), called.append) for _ in range(2)]
    unwanted.cancel()
    shared[0].cancel()
    unwanted.cancel()
    assert unwanted.wait(0)
    with pytest.raises(pf.WorkerError, match="cancelled"):
        unwanted.result()
    assert shared[1].result().kernels, "somebody still wants it"
    assert first.result().kernels
    assert called == [shared[1]]
    assert pool.counts.dropped == before.dropped + 1
    assert pool.counts.completed == before.completed + 2


def test_the_queue_is_bounded(pool, request_f, monkeypatch):
    monkeypatch.setattr(pool, "queue", 2)
    running = pool.submit(replace(request_f, name="slow"))
    while not is_running(running):
        time.sleep(0.001)
    waiting = [pool.submit(replace(request_f, name=f"q{k}")) for k in range(2)]
    with pytest.raises(pf.WorkerError, match="2 compiles are waiting already"):
        pool.submit(replace(request_f, name="q2"))
    assert pool.counts.refused == 1
    assert pool.submit(replace(request_f, name="q1")), "a request that waits already is let in"
    assert pool.compile(replace(request_f, name="q2")).kernels, "who waits, waits for room too"
    assert all(t.done for t in waiting)


def test_a_callback_that_raises_costs_an_event(pool, request_f):
    seen = len(pf.events())

    def fail(ticket):
        raise RuntimeError("mine")

    ticket = pool.submit(request_f, fail)
    assert ticket.result().kernels
    assert pool.compile(replace(request_f, name="next")).kernels
    assert [e.reason for e in events_since(seen, "callback-failed")] == ["RuntimeError: mine"]


def test_collections_in_workers_leave_out_what_is_loaded():
    code = (
        "import gc; from profuse.executor.compile.worker import __main__ as w; w._warm(); print(gc.get_freeze_count())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(run.stdout) > 10_000


def test_workers_stand_back(pool, request_f):
    pool.compile(request_f)
    pid = worker_process(pool).pid
    assert os.getpriority(os.PRIO_PROCESS, pid) == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)
    assert Path(f"/proc/{pid}/oom_score_adj").read_text().strip() == "1000"


def test_what_a_worker_prints_becomes_an_event_not_a_reply(pool, request_f):
    seen = len(pf.events())
    assert pool.compile(replace(request_f, pipeline=f"print-ir,{request_f.pipeline}")).kernels
    (event,) = events_since(seen, "worker-said")
    assert "profuse.tanh" in event.reason


def test_an_idle_worker_is_ended_and_another_one_started(request_f):
    pool, seen = Pool(limits=Limits(idle=0.1)), len(pf.events())
    assert pool.compile(request_f).kernels
    pid = worker_process(pool).pid
    deadline = time.monotonic() + 5
    while not events_since(seen, "worker-ended") and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not Path(f"/proc/{pid}").exists()
    assert events_since(seen, "worker-lost") == []
    assert pool.compile(request_f).kernels
    pool.close()


def test_a_full_disk_is_a_worker_that_does_not_start(request_f, monkeypatch):
    def full(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    pool = Pool()
    ticket = pool.submit(request_f)
    assert ticket.result().kernels
    assert "No space left" in ticket.outcome.in_process
    pool.close()


def test_what_cannot_start_workers_does_not_try(request_f, monkeypatch):
    """In a frozen program the executable is the program, and would run all over again."""
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    frozen = Pool()
    frozen.warm()
    ticket = frozen.submit(request_f)
    assert ticket.result().kernels
    assert "frozen" in ticket.outcome.in_process
    assert (frozen.counts.started, frozen.counts.lost) == (0, 0)
    monkeypatch.undo()
    monkeypatch.setattr(sys, "executable", "")
    assert "sys.executable" in Pool().unusable


@pytest.fixture
def my_pass():
    @register_pass
    @dataclass(frozen=True)
    class Mine(Pass):
        """Do nothing."""

        name: ClassVar[str] = "mine-alone"

        def run(self, module):
            pass

    yield Mine.name
    del PASSES[Mine.name]


def test_passes_of_this_process_run_in_this_process(pool, request_f, my_pass):
    before, seen = pool.counts.in_process, len(pf.events())
    mine = replace(request_f, pipeline=f"{my_pass},{request_f.pipeline}")
    assert pool.compile(mine).trace[0] == my_pass
    ticket = pool.submit(mine)
    assert ticket.result().trace[0] == my_pass
    assert "mine-alone is registered in this process only" in ticket.outcome.in_process
    assert pool.counts.in_process == before + 2
    reasons = [e.reason for e in events_since(seen, "compiled-in-process")]
    assert reasons == ["pass mine-alone is registered in this process only"] * 2


def test_without_workers_everything_is_compiled_here(request_f, monkeypatch):
    """After three starts in a row that fail."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    pool = Pool()
    seen = len(pf.events())
    ticket = pool.submit(request_f)
    assert ticket.result().kernels
    assert "no compile worker starts: exited with status 1" in ticket.outcome.in_process
    assert pool.compile(request_f).kernels
    assert (pool.counts.in_process, pool.counts.lost, pool.counts.started) == (2, 3, 0)
    assert len(events_since(seen, "workers-given-up")) == 1
    pool.close()


def test_a_closed_pool_drops_what_waits_and_compiles_here(request_f):
    pool = Pool()
    waiting = [pool.submit(replace(request_f, name=f"w{k}")) for k in range(3)]
    waiter: list = []
    thread = threading.Thread(target=lambda: waiter.append(pool.compile(request_f)))
    thread.start()
    pool.close()
    thread.join(10)
    assert waiter[0].kernels, "who waits for a result gets it all the same"
    assert all(t.wait(0) for t in waiting)
    with pytest.raises(pf.WorkerError, match="ending"):
        pool.submit(request_f)
    assert pool.compile(request_f).kernels


def test_two_workers_compile_at_once(request_f, monkeypatch):
    monkeypatch.setenv(VARIABLE, "hang@hang")
    pool = Pool(size=2)
    hanging = pool.submit(replace(request_f, name="hang"))
    assert pool.compile(replace(request_f, name="other")).kernels
    assert not hanging.done
    assert worker_count(pool) == 2
    pool.close()
    assert hanging.outcome.dropped
