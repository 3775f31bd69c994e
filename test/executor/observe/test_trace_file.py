"""Traces for Perfetto: what is in them, what they cost, where they go."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
import time

import numpy as np
import profuse as pf
import pytest
from profuse.executor.functions.function import GraphFunction
from profuse.executor.observe import live_functions, timeline
from profuse.executor.observe.perfetto import as_json
from profuse.executor.observe.timeline import Timeline
from profuse.executor.settings.events import Event
from profuse.executor.settings.knobs import knobs

X = np.ones((4, 8), np.float32)
GRAPH = "func.func @g(%x: !profuse.tensor) -> !profuse.tensor { return %x : !profuse.tensor }"


def spans(found: dict, lane: str, phase: str = "X") -> list[dict]:
    return [e for e in found["traceEvents"] if e.get("cat") == lane and e["ph"] == phase]


def nested(found: dict) -> bool:
    """Whether spans of a lane lie apart or inside one another, as the format wants it."""
    for tid in {e["tid"] for e in found["traceEvents"]}:
        open_until: list[float] = []
        for span in (e for e in found["traceEvents"] if e["tid"] == tid and e["ph"] == "X"):
            while open_until and open_until[-1] <= span["ts"] + 0.002:
                open_until.pop()
            end = span["ts"] + span["dur"]
            if open_until and end > open_until[-1] + 0.002:
                return False
            open_until.append(end)
    return True


def test_a_trace(tmp_path):
    path = tmp_path / "trace.json"
    f = pf.jit(lambda x: np.tanh(x) * 2.0, name="traced")
    with pf.trace(path):
        f(X), f(X), f(X[:2])
    found = json.loads(path.read_text("utf-8"))
    first, second, third = spans(found, "calls")
    assert [s["name"] for s in (first, second, third)] == ["traced"] * 3
    assert first["args"] == {"tier": "profiling", "profiled_runs": 1, "evaluated_ops": 2}
    assert second["args"] == {"tier": "optimized", "compiles": 1, "guard_hits": 1, "kernel_launches": 1}
    assert third["args"]["guard_misses"] == third["args"]["fallback_calls"] == 1
    assert second["ts"] >= first["ts"] + first["dur"]

    compiles = {s["name"]: s for s in spans(found, "compiles")}
    compiled = compiles["compile traced"]
    assert second["ts"] < compiled["ts"] < compiled["ts"] + compiled["dur"]
    assert compiled["ts"] + compiled["dur"] < second["ts"] + second["dur"]
    assert {"trace traced", "parse", "passes", "lowering", "LLVM", "load"} <= set(compiles)
    points = [e["name"] for e in spans(found, "calls", "i")]
    assert points == ["tier traced", "tier traced/fallback_0", "tier traced"]
    assert nested(found)

    names = [e["args"]["name"] for e in found["traceEvents"] if e["name"] == "thread_name"]
    assert names == ["calls · MainThread", "compiles · MainThread"]
    assert found["otherData"]["numpy"] == np.__version__


def test_compiles_that_overlap_have_rows_of_their_own():
    recorded = Timeline()
    stages = {"parse": 0.5, "LLVM": 1.0}
    for end, kind in ((3, "compile"), (4, "compile"), (5, "trace"), (9, "refused")):
        seconds = None if kind == "refused" else 2.0
        details = {"stages": stages} if kind == "compile" else {}
        event = Event(kind, f"f{end}", "", seconds, details, 0.0, 7)
        recorded.events.append((recorded.began + end * 10**9, event))
    recorded.threads[7] = "pool"
    found = as_json(recorded)
    assert nested(found)
    rows = {e["tid"]: e["args"]["name"] for e in found["traceEvents"] if e["name"] == "thread_name"}
    assert {e["name"]: rows[e["tid"]] for e in spans(found, "compiles") if "f" in e["name"]} == {
        "compile f3": "compiles · pool",
        "compile f4": "compiles 2 · pool",
        "trace f5": "compiles · pool",
    }
    # Whatever a compile had to wait for comes before its stages.
    parse, llvm = [e for e in spans(found, "compiles") if e["name"] in stages][:2]
    assert (parse["ts"], parse["dur"], llvm["ts"]) == (1.5e6, 0.5e6, 2e6)


def test_the_cache_has_a_lane(tmp_path, folder):
    path = tmp_path / "trace.json"
    with pf.trace(path):
        for _ in range(2):
            f = pf.jit(lambda x: np.tanh(x) * 3.0, name="kept")
            f(X), f(X)
    found = json.loads(path.read_text("utf-8"))
    names = [s["name"] for s in spans(found, "cache")]
    misses = ["disk-miss kept", "disk-store kept", "disk-store kept"]
    assert names == [*misses, "disk-hit kept", "disk-hit kept"], "its profile, and its compile"
    assert all(s["dur"] > 0 for s in spans(found, "cache"))


def test_errors_and_threads(tmp_path):
    path = tmp_path / "trace.json"
    f = pf.jit(lambda x, y: x + y)
    with pf.trace(path) as recorded:
        f(X, X)
        worker = threading.Thread(target=lambda: f(X, X), name="worker")
        worker.start()
        worker.join()
        with pytest.raises(ValueError):
            f(X, np.ones((3, 3), np.float32))
    found = json.loads(path.read_text("utf-8"))
    errors = [s["args"].get("error", "") for s in spans(found, "calls")]
    assert errors[:2] == ["", ""]
    assert errors[2].startswith("profuse.dialect.errors.ShapeError: ")
    names = [e["args"]["name"] for e in found["traceEvents"] if e["name"] == "thread_name"]
    assert "calls · worker" in names
    assert recorded.calls[0].thread != recorded.calls[1].thread
    assert nested(found)


def test_calls_are_as_ever_when_nobody_records():
    """There is no branch for it: the method itself is put in and taken out."""
    plain = GraphFunction.__call__, GraphFunction.into
    with pf.trace() as outer:
        with pf.trace() as inner:
            assert GraphFunction.__call__ is not plain[0]
            pf.jit(np.tanh)(X)
        pf.jit(np.tanh)(X)
    assert (GraphFunction.__call__, GraphFunction.into) == plain
    assert timeline.recording() == ()
    assert (len(inner.calls), len(outer.calls)) == (1, 2)


def test_history_does_not_count_as_gained():
    f = pf.jit(lambda x: np.tanh(x) + 1.0)
    f(X), f(X)
    with pf.trace() as recorded:
        f(X)
    assert recorded.calls[0].gained == {"guard_hits": 1, "kernel_launches": 1}


def test_a_trace_is_bounded():
    f = pf.jit(lambda x: np.tanh(x) + 1.0)
    with knobs.override(trace_calls=3), pf.trace() as recorded:
        for _ in range(5):
            f(X)
    assert (len(recorded.calls), recorded.lost) == (3, 2)


def test_functions_are_kept_for_as_long_as_the_timeline():
    with pf.trace() as recorded:
        number = live_functions.number_of(pf.jit(np.tanh))
    assert [live_functions.number_of(f) for f in recorded.functions] == [number]
    assert number in map(live_functions.number_of, live_functions.functions())
    del recorded
    gc.collect()
    assert number not in map(live_functions.number_of, live_functions.functions())


def test_a_path_that_cannot_be_written_is_told_before_the_work(tmp_path):
    for path in (tmp_path, tmp_path / "no" / "trace.json"):
        with pytest.raises(pf.FileError, match="cannot write a trace to"), pf.trace(path):
            raise AssertionError
    assert timeline.recording() == ()


def test_a_trace_that_is_lost_costs_a_warning(tmp_path, capfd):
    folder = tmp_path / "folder"
    folder.mkdir()
    f = pf.jit(lambda x: np.tanh(x) + 1.0)
    with pf.trace(folder / "trace.json"):
        f(X)
        folder.rmdir()
    assert capfd.readouterr().err.startswith("profuse: the trace is lost, ")
    assert pf.events()[-1].kind == "trace-lost"


def test_nothing_is_left_of_a_trace_that_finds_no_room(capfd):
    with pf.trace("/dev/full"):
        pf.jit(np.tanh)(X)
    assert "No space left on device" in capfd.readouterr().err


def test_names_may_hold_what_is_no_letter():
    """Surrogates, as in file names of no encoding; also where the trace goes to a device."""
    f = pf.jit(np.tanh)
    with pf.trace("/dev/null") as recorded:
        thread = threading.Thread(target=lambda: f(X), name="\ud800")
        thread.start()
        thread.join()
    assert "\ud800" in recorded.threads.values()


PROGRAM = """
import multiprocessing, os, sys
import numpy as np, profuse as pf
f = pf.jit(lambda x: np.tanh(x) + 1.0, name="f")
def work(n=3):
    for _ in range(n):
        f(np.ones(5))
if __name__ == "__main__":
    work()
    for method in ("fork", "spawn"):
        child = multiprocessing.get_context(method).Process(target=work, args=(2,))
        child.start()
        child.join()
    if not os.fork():
        work(1)
        sys.exit()
    os.wait()
    if not os.fork():
        sys.exit()  # does nothing: writes nothing
    os.wait()
    work(1)
"""


def test_a_process_and_its_children_write_traces_of_their_own(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM, "utf-8")
    subprocess.run(
        [sys.executable, str(script)],
        check=True,
        timeout=120,
        cwd=tmp_path,
        env=os.environ | {"PROFUSE_TRACE": "trace.json"},
    )
    calls = {
        path.name: len(spans(json.loads(path.read_text("utf-8")), "calls")) for path in tmp_path.glob("trace*.json")
    }
    assert calls.pop("trace.json") == 4
    assert sorted(calls.values()) == [1, 2, 2]


FORK = """
import os
import numpy as np, profuse as pf
f = pf.jit(np.tanh, name="f")
with pf.trace("t.json"):
    f(np.ones(3))
    if os.fork():
        os.wait()
    else:
        f(np.ones(3)), f(np.ones(3))
"""


def test_a_child_inside_of_the_block_leaves_the_parents_trace_alone(tmp_path):
    subprocess.run([sys.executable, "-c", FORK], check=True, timeout=60, cwd=tmp_path)
    parent = json.loads((tmp_path / "t.json").read_text("utf-8"))
    (child,) = tmp_path.glob("t-*.json")
    assert len(spans(parent, "calls")) == 1
    assert len(spans(json.loads(child.read_text("utf-8")), "calls")) == 2


def test_a_bad_path_in_the_environment_costs_one_line(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", "import numpy, profuse as pf\nprint(pf.jit(numpy.tanh)(0.0))"],
        env=os.environ | {"PROFUSE_TRACE": str(tmp_path / "no" / "t.json")},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == "0.0\n"
    assert done.stderr.startswith("profuse: the trace is lost, ")
    assert len(done.stderr.splitlines()) == 1


def test_a_function_costs_no_import_of_what_records():
    code = "import sys, profuse as pf\npf.jit(abs)\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    names = ("perfetto", "timeline", "files")
    assert not {f"profuse.executor.observe.{n}" for n in names} & set(done.stdout.split())


def test_recording_does_not_slow_down_calls_much():
    f = pf.jit(lambda x: np.tanh(x) + 1.0)
    for _ in range(3):
        f(X)
    start = time.perf_counter()
    with pf.trace() as recorded:
        for _ in range(1000):
            f(X)
    assert len(recorded.calls) == 1000
    assert time.perf_counter() - start < 0.5  # 500 microseconds each would be absurd
