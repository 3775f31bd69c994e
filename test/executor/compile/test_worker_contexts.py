"""Compile workers in every kind of process: forked, spawned, ending, detached, without stdin."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import profuse as pf
import pytest
from internals import FOLDER
from processes import is_gone
from worker_requests import request_for

PARENT = str(Path(pf.__file__).parents[1])
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)

# No guard around the main module: a worker that ran it would start workers without end.
HEAD = """
import os, signal, sys, threading, time
from dataclasses import replace
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs of a shell
from profuse.executor.compile.request import CompileRequest
from internals import is_running, worker_process
from profuse.executor.compile.worker import shared_pool, protocol
with open(os.environ["REQUEST"], "rb") as file:
    request = protocol.decode_request(file.read())
def pid():
    return worker_process(shared_pool()).pid
def check(name="f"):
    assert shared_pool().compile(replace(request, name=name)).kernels
    assert "mlir" not in sys.modules, "the compiler is in the user's process"
def say(*words):
    print(*words, flush=True)
"""


@pytest.fixture(scope="module")
def request_file(tmp_path_factory):
    from profuse.executor.compile.worker import protocol

    path = tmp_path_factory.mktemp("request") / "request"
    path.write_bytes(protocol.encode_request(request_for(lambda x: np.tanh(x) + 1, X)))
    return path


@pytest.fixture
def start(tmp_path, request_file):
    """Start a script: its source -> a Popen with pipes."""
    started = []

    def run(code: str, **options):
        script = tmp_path / "main.py"
        script.write_text(HEAD + textwrap.dedent(code))
        env = {**os.environ, "REQUEST": str(request_file), "PYTHONPATH": f"{PARENT}:{FOLDER}"}
        env |= options.pop("env", {})
        options.setdefault("stdin", subprocess.DEVNULL)
        process = subprocess.Popen(
            [sys.executable, str(script)],
            env=env,
            cwd=tmp_path,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def words_of(process, timeout=30) -> list[str]:
    out, err = process.communicate(timeout=timeout)
    assert process.returncode == 0, err
    assert "Traceback" not in err, err
    return out.split()


def test_a_script_without_a_main_guard_ends_and_so_does_its_worker(start):
    """Also: a file named like the compiler, another folder by then, and warnings as errors."""
    process = start(
        """
        with open("mlir.py", "w") as file: file.write("1 / 0")
        check("f")
        os.chdir("/")
        check("g")
        say(pid())
    """,
        env={"PYTHONWARNINGS": "error"},
    )
    begun = time.monotonic()
    (worker,) = words_of(process)
    assert is_gone(int(worker), 1)
    assert time.monotonic() - begun < 20


def test_the_end_of_the_interpreter_waits_for_no_compile(start):
    process = start(
        """
        check()
        ticket = shared_pool().submit(replace(request, name="hang"))
        while not is_running(ticket): time.sleep(0.01)
        time.sleep(0.2)
        say(pid(), time.time())
        """,
        env={"PROFUSE_WORKER_FAULT": "hang@hang"},
    )
    worker, begun = words_of(process)
    assert time.time() - float(begun) < 3
    assert is_gone(int(worker), 1)


@pytest.mark.parametrize("graph", ["hang", "f"])
def test_a_worker_does_not_outlive_a_killed_parent(start, graph):
    """Idle, or in a compile that holds its locks; a forked child keeps the pipe open."""
    process = start(
        f"""
        check()
        child = os.fork()
        if not child:
            os.close(1); os.close(2)
            time.sleep(60); os._exit(0)
        shared_pool().submit(replace(request, name={graph!r}))
        time.sleep(0.3)
        say(pid(), child)
        time.sleep(60)
        """,
        env={"PROFUSE_WORKER_FAULT": "hang@hang"},
    )
    worker, child = map(int, process.stdout.readline().split())
    assert not is_gone(worker, 0.1)
    process.kill()
    try:
        assert is_gone(worker, 3)
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_forked_child_gets_workers_of_its_own(start):
    """While the parent's compiles go on, and those the child has inherited are dropped."""
    process = start(
        """
        check()
        mine = pid()
        ticket = shared_pool().submit(replace(request, name="slow"))
        child = os.fork()
        if not child:
            assert ticket.wait(0) and ticket.outcome.dropped
            check("in-child")
            assert pid() != mine
            say("child", pid())
            os._exit(0)
        assert ticket.result().kernels
        check("in-parent")
        assert pid() == mine, "the parent's worker went on"
        assert os.waitpid(child, 0)[1] == 0
        say("parent", mine)
        """,
        env={"PROFUSE_WORKER_FAULT": "slow@slow"},
    )
    words = words_of(process)
    assert words[::2] == ["child", "parent"]
    assert all(is_gone(int(pid), 2) for pid in words[1::2])


def test_forks_amid_compiles_leave_no_lock_behind(start):
    process = start("""
        pool = shared_pool()
        stop = threading.Event()
        def work(k):
            n = 0
            while not stop.is_set():
                pool.compile(replace(request, name=f"{k}-{n}")); n += 1
        threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
        for t in threads: t.start()
        check()
        import profuse as pf
        for k in range(8):
            child = os.fork()
            if not child:
                import profuse as pf
                pf.events(); shared_pool().warm()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        stop.set()
        for t in threads: t.join()
        say(pool.counts.lost)
    """)
    assert words_of(process) == ["0"]


def test_in_spawned_processes_and_pools_of_them(start, tmp_path):
    """Whose main module is imported again, under another name; their daemons may have workers."""
    process = start("""
        import multiprocessing as mp
        def work(name):
            check(name)
            return pid()
        if __name__ == "__main__":
            with mp.get_context("spawn").Pool(2) as p:
                say(*p.map(work, ["a"], chunksize=1))
    """)
    (worker,) = words_of(process)
    assert is_gone(int(worker), 3)


def test_in_a_thread_that_ends(start):
    """The worker belongs to the pool's thread, not to the one that asked first."""
    process = start("""
        thread = threading.Thread(target=check)
        thread.start(); thread.join()
        first = pid()
        time.sleep(0.2)
        check("g")
        assert pid() == first
        say(first)
    """)
    assert len(words_of(process)) == 1


def test_in_a_daemon_with_no_streams_and_other_signals(start, tmp_path):
    process = start("""
        import signal
        if os.fork(): os._exit(0)
        os.setsid()
        if os.fork(): os._exit(0)
        for fd in (0, 1, 2): os.close(fd)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGALRM})
        check("in-daemon")
        os.kill(pid(), 9)
        time.sleep(0.1)
        check("again")
        with open("said.tmp", "w") as file: print(pid(), file=file)
        os.rename("said.tmp", "said")
    """)
    words_of(process)
    deadline = time.monotonic() + 30
    while not (tmp_path / "said").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert is_gone(int((tmp_path / "said").read_text()), 3)


def test_ctrl_c_is_not_for_workers(start):
    process = start(
        """
        check()
        first = pid()
        try:
            say(first)
            time.sleep(60)
        except KeyboardInterrupt: pass
        check("g")
        assert pid() == first
        say("done")
    """,
        start_new_session=True,
    )
    process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)
    assert words_of(process) == ["done"]


def test_ctrl_c_is_not_for_workers_that_are_starting(start):
    """It comes before the worker, which has to load the compiler, can say that it ignores it."""
    process = start(
        """
        ticket = shared_pool().submit(request)
        def children():
            tasks = os.listdir("/proc/self/task")
            return [c for t in tasks for c in open(f"/proc/self/task/{t}/children").read().split()]
        try:
            while not children(): time.sleep(0.001)
            say("starting")
            while True: time.sleep(0.01)  # one long sleep may begin after its interruption
        except KeyboardInterrupt: pass
        assert ticket.result().kernels
        say(shared_pool().counts.lost)
    """,
        start_new_session=True,
    )
    process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)
    assert words_of(process) == ["0"]
