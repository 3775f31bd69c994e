"""The log: events as lines, and what happens where they cannot be written."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading

import numpy as np
import profuse as pf
import pytest
from profuse.executor.settings.events import Event, log
from profuse.executor.settings.knobs import KNOBS, knobs

X = np.ones((4, 8), np.float32)


def lines(path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def run_function():
    f = pf.jit(lambda x: np.tanh(x) * 2.0, name="logged")
    f(X), f(X), f(X)
    return f


@pytest.mark.parametrize(
    ("text", "value"), [("1", "stderr"), ("stderr", "stderr"), ("off", ""), ("", ""), ("a/b", os.path.abspath("a/b"))]
)
def test_where_the_knob_says(text, value):
    parse = KNOBS["log"].parse
    assert parse(text) == parse(value) == value


def test_json_lines(tmp_path):
    path = tmp_path / "run.jsonl"
    with knobs.override(log=str(path)):
        run_function()
    head, *rest = lines(path)
    assert head["kind"] == "process"
    assert head["details"]["versions"]["numpy"] == np.__version__
    assert set(head["details"]["knobs"]) == set(KNOBS)
    assert [r["kind"] for r in rest if r["function"] == "logged"] == ["trace", "tier", "compile", "tier", "dispatch"]
    compiled = next(r for r in rest if r["kind"] == "compile")
    stages = compiled["details"]["stages"]
    assert {"parse", "passes", "decode", "lowering", "LLVM"} <= set(stages)
    assert 0.5 * compiled["seconds"] < sum(stages.values()) <= compiled["seconds"]
    assert {r["pid"] for r in rest} == {os.getpid()}
    assert {r["thread"] for r in rest} == {threading.get_ident()}


def test_levels(tmp_path):
    for level, kinds in {
        "debug": ["load", "tier", "disk-off"],
        "info": ["tier", "disk-off"],
        "warning": ["disk-off"],
    }.items():
        path = tmp_path / level
        with knobs.override(log=str(path), log_level=level):
            for kind in ("load", "tier", "disk-off"):
                log(kind)
        assert [r["kind"] for r in lines(path)[1:]] == kinds
    with pytest.raises(pf.KnobError, match="expected one of debug, info, warning"):
        knobs.log_level = "loud"


def test_what_json_lacks_is_text(tmp_path):
    path = tmp_path / "odd"
    with knobs.override(log=str(path)):
        log("tier", "f", "a\nline \udc80", shapes=[(1, 2)], dtype=np.dtype("f4"))
    (_, found) = lines(path)
    assert found["reason"] == "a\nline \udc80"
    assert found["details"] == {"shapes": [[1, 2]], "dtype": "float32"}


def test_stderr_has_no_stages(capfd):
    with knobs.override(log="1"):
        log("compile", "f", "why", 0.5, kernels=1, stages={"parse": 0.1})
    assert capfd.readouterr().err == "profuse: compile f 500.00 ms kernels=1 (why)\n"


def test_a_closed_stderr_is_no_error(monkeypatch):
    with knobs.override(log="1"):
        closed = io.StringIO()
        closed.close()
        for stream in (None, closed):
            monkeypatch.setattr(sys, "stderr", stream)
            assert log("tier").kind == "tier"


@pytest.mark.parametrize("case", ["full", "folder", "missing", "unread pipe"])
def test_a_log_that_cannot_be_written_costs_one_warning(case, tmp_path, capfd):
    path = {
        "full": "/dev/full",
        "folder": tmp_path,
        "missing": tmp_path / "no" / "log",
        "unread pipe": tmp_path / "pipe",
    }[case]
    if case == "unread pipe":
        os.mkfifo(path)
    seen = len(pf.events())
    with knobs.override(log=f"{path}{'' if case != 'full' else '/../full'}"):
        f = run_function()
    assert f.state().counters["kernel_launches"] == 2
    told = capfd.readouterr().err.splitlines()
    assert len(told) == 1
    assert told[0].startswith("profuse: this process logs nothing more to ")
    new = [e for e in pf.events()[seen:] if e.kind == "log-off"]
    assert [e.level for e in new] == ["warning"]


def test_threads_do_not_mix_their_lines(tmp_path):
    path = tmp_path / "log"
    together = threading.Barrier(4)

    def work():
        together.wait()
        for _ in range(100):
            log("tier", "f", "x" * 3000)
        together.wait()  # an identifier may be another thread's once its own has ended

    with knobs.override(log=str(path)):
        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    rest = [r for r in lines(path) if r["kind"] == "tier"]
    assert len(lines(path)) == 1 + len(rest) == 401  # one line says what the process is
    assert len({r["thread"] for r in rest}) == 4


FORKS = """
import json, os, sys, threading
import profuse as pf
from profuse.executor.settings.events import log
stop = False
def busy():
    while not stop:
        log("tier", "parent", "x" * 100)
threads = [threading.Thread(target=busy) for _ in range(2)]
for t in threads: t.start()
children = []
for k in range(20):
    child = os.fork()
    if not child:
        log("tier", f"child {k}")
        os._exit(0)
    children.append(child)
codes = [os.waitpid(child, 0)[1] for child in children]
stop = True
for t in threads: t.join()
print(codes)
"""


def test_forks_in_the_midst_of_logging(tmp_path):
    """No child hangs on a lock, and every line of every process is whole."""
    path = tmp_path / "log"
    done = subprocess.run(
        [sys.executable, "-c", FORKS],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"PROFUSE_LOG": str(path)},
    )
    assert done.stdout == f"{[0] * 20}\n", done.stderr
    found = lines(path)
    heads = [r for r in found if r["kind"] == "process"]
    assert len({r["pid"] for r in heads}) == len(heads) == 21
    told = {r["function"] for r in found if r["kind"] == "tier"}
    assert told == {"parent", *(f"child {k}" for k in range(20))}


def test_levels_of_events():
    assert Event("compile").level == "info"
    assert Event("compile-failed").level == "warning"
    assert Event("disk-hit").level == "debug"
