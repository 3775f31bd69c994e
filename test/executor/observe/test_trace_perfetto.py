"""Traces as Perfetto itself reads them: no error in its own statistics, each event as it was
written, in the lanes and at the depths that are meant."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import profuse as pf
import pytest
from internals import save_trace
from profuse.executor.observe import perfetto
from profuse.executor.observe.timeline import TimedCall, Timeline
from profuse.executor.settings.events import Event

pytestmark = pytest.mark.compiles

if TYPE_CHECKING:
    from trace_processor import Reader

trace_processor = pytest.importorskip("trace_processor", exc_type=ImportError)

X = np.ones((4, 8), np.float32)


@pytest.fixture(scope="module")
def engine(request, tmp_path_factory):
    """The engine's code, kept between runs where pytest keeps what it knows of tests."""
    cache = getattr(request.config, "cache", None)
    name = "trace_processor"
    try:
        return trace_processor.load_engine(cache.mkdir(name) if cache else tmp_path_factory.mktemp(name))
    except trace_processor.WasmtimeError as error:
        pytest.skip(f"Perfetto's engine cannot be compiled here: {error}")


@pytest.fixture
def read(engine):
    """Have Perfetto read a trace: its path -> a reader."""
    readers = []

    def load(path: Path) -> Reader:
        readers.append(trace_processor.Reader(engine, path))
        return readers[-1]

    yield load
    for reader in readers:
        reader.close()


def complaints(reader: Reader) -> list[tuple]:
    """What Perfetto has counted of events that it could not use."""
    return reader.rows("SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value != 0")


def slices(reader: Reader) -> list[tuple]:
    """Time and length in nanoseconds, name, lane and thread of all there are."""
    return sorted(
        reader.rows("""
            SELECT ts, dur, slice.name, category, tid, thread.name AS thread
            FROM slice JOIN thread_track ON slice.track_id = thread_track.id
            JOIN thread USING (utid)
        """)
    )


def check_read(reader: Reader, written: dict) -> None:
    """Perfetto complains of nothing, and shows all that was written and nothing else."""
    assert complaints(reader) == []
    events = written["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert slices(reader) == sorted(
        (round(e["ts"] * 1e3), round(e.get("dur", 0) * 1e3), e["name"], e["cat"], e["tid"], names[e["tid"]])
        for e in events
        if e["ph"] in "Xi"
    )
    (pid,) = {e["pid"] for e in events}
    assert reader.rows("SELECT name FROM process WHERE pid != 0") == [("profuse",)]
    assert reader.rows("SELECT pid FROM process WHERE pid != 0") == [(pid,)]


def test_calls_compiles_and_their_stages(read, tmp_path):
    """The documented way; arguments are of the types that they were."""
    path = tmp_path / "trace.json"
    f = pf.jit(lambda x: np.tanh(x) * 2.0, name="traced")
    with pf.trace(path):
        f(X), f(X), f(X[:2])
    reader = read(path)
    check_read(reader, json.loads(path.read_text("utf-8")))
    calls = reader.rows("""
        SELECT depth, extract_arg(arg_set_id, 'args.tier'),
            extract_arg(arg_set_id, 'args.kernel_launches'),
            extract_arg(arg_set_id, 'args.guard_misses')
        FROM slice WHERE category = 'calls' AND dur > 0 ORDER BY ts
    """)
    assert calls == [(0, "profiling", None, None), (0, "optimized", 1, None), (0, "optimized", None, 1)]
    stages = reader.rows("""
        SELECT stage.name, stage.depth, whole.name AS whole FROM slice AS stage
        JOIN slice AS whole ON stage.parent_id = whole.id
        WHERE stage.category = 'compiles' ORDER BY stage.ts
    """)
    assert {"parse", "passes", "lowering", "LLVM", "load"} <= {name for name, *_ in stages}
    assert {(depth, name) for _, depth, name in stages} == {(1, "compile traced")}
    lanes = {name.partition(" ")[0] for *_, name in slices(reader)}
    assert lanes == {"calls", "compiles"} < set(perfetto.LANES)
    assert [reader.rows(f"SELECT count() FROM {t}") for t in ("counter", "flow")] == [[(0,)]] * 2


PROGRAM = """
import os, threading
import numpy as np, profuse as pf

x = np.ones((4, 8), np.float32)
functions = [
    pf.jit(lambda x: np.tanh(x) * 2, name="f"), pf.jit(lambda x: np.exp(x) - 1, name="g"),
    pf.jit(lambda x: pf.cond(x.sum() > 0, np.sin, np.cos, x), name="h"),
]

def work():
    for rows in (4, 4, 3, 3, 2, 4):
        for f in functions:
            f(x[:rows])
    for f in functions:
        f.wait()
        f(x)

threads = [threading.Thread(target=work, name="fil é") for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
try:
    pf.jit(lambda x: x + np.ones((3, 3)), name="fails")(x)
except pf.ShapeError:
    pass
child = os.fork()
if child:
    os.waitpid(child, 0)
else:
    work()
"""


def test_threads_overlapping_compiles_and_children(read, tmp_path):
    """`PROFUSE_TRACE`, default settings otherwise: worker processes, and a disk cache."""
    settings = {"TRACE": "trace.json", "BACKGROUND": "on", "CACHE": "on", "CACHE_DIR": "cache"}
    subprocess.run(
        [sys.executable, "-c", PROGRAM],
        check=True,
        timeout=120,
        cwd=tmp_path,
        env=os.environ | {f"PROFUSE_{name}": value for name, value in settings.items()},
    )
    traces = sorted(tmp_path.glob("trace*.json"))
    assert len(traces) == 2, "the parent's and the child's"
    for path in traces:
        reader = read(path)
        check_read(reader, json.loads(path.read_text("utf-8")))
        found = slices(reader)
        assert {lane for *_, lane, _, _ in found} == set(perfetto.LANES)
        if path.name == "trace.json":
            assert len({tid for *_, lane, tid, _ in found if lane == "calls"}) >= 5
            assert any("fil é" in name for *_, name in found)
            errors = "SELECT extract_arg(arg_set_id, 'args.error') FROM slice WHERE name = 'fails'"
            assert any("ShapeError" in (error or "") for (error,) in reader.rows(errors))


def test_times_are_exact_and_any_text_is_read(read, tmp_path):
    """After days, where a double has few digits left below a microsecond."""
    rng = random.Random(5)
    recorded = Timeline()
    names = ("tanh", "größe", "日本", "\N{GRINNING FACE}", 'say "x"', "<b>", "a/b", "\ud800", "a\\")
    recorded.threads[7] = "worker"
    now = recorded.began + 5 * 86_400 * 10**9
    for k in range(2000):
        length = rng.randrange(1, 10 ** rng.randrange(1, 10))
        name = names[k % len(names)]
        if k % 3:
            recorded.calls.append(TimedCall(0, name, now, length, 7, "optimized", {"guard_hits": k}))
        else:
            parts = {"parse": length / 3e9, "LLVM": length / 2e9}
            event = Event("compile", name, "", length / 1e9, {"stages": parts}, 0.0, 7)
            recorded.events.append((now + length, event))
        now += length + rng.choice((0, 1, 1000))
    path = tmp_path / "trace.json"
    save_trace(recorded, path)
    reader = read(path)
    written = json.loads(path.read_text("utf-8"))
    for event in written["traceEvents"]:  # of these two Perfetto shows what JSON writes for them
        event["name"] = event["name"].replace("\\", r"\\").replace("\ud800", r"\ud800")
    check_read(reader, written)
    assert {name.removeprefix("compile ") for _, _, name, *_ in slices(reader)} == {
        *names[:-2],
        r"\ud800",
        r"a\\ ",
        "parse",
        "LLVM",
    }


def test_what_perfetto_cannot_use_is_noticed(read, tmp_path):
    """Two spans of one lane that overlap: the check that the other tests rely on sees it."""
    recorded = Timeline()
    recorded.threads[7] = "worker"
    written = perfetto.as_json(recorded)
    about = {"ph": "X", "name": "f", "cat": "calls", "pid": recorded.pid, "tid": 1, "args": {}}
    written["traceEvents"] += [about | {"ts": 0, "dur": 10}, about | {"ts": 5, "dur": 10}]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(written))
    assert complaints(read(path)) == [("slice_drop_overlapping_complete_event", 1)]
