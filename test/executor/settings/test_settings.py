"""Settings (R1.1 - R1.6): knobs, switches, warnings, the fusion strategy."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import profuse as pf
import pytest
from internals import forget_printed, forget_strategy
from profuse.executor.settings.knobs import KNOBS, Knobs, knobs
from profuse.executor.settings.strategy import behavior_at, normalize, parse_strategy, total_depth
from profuse.executor.tiers.profiling import Executor, Options
from small_graphs import add_graph

DEFAULT = (("static", 2), ("dynamic", 10))


def test_behavior_at_depth():
    """R1.6: entries are counted from the last one; beyond the total it warns and is static."""
    expected = {12: "static", 11: "static", **dict.fromkeys(range(1, 11), "dynamic")}
    assert {d: behavior_at(DEFAULT, d) for d in expected} == expected
    seen = len(pf.events())
    assert behavior_at(DEFAULT, 13) == "static"
    assert pf.events()[seen:][-1].kind == "strategy-exceeded"


def test_total_depth():
    """R1.5"""
    assert total_depth(DEFAULT) == 12
    assert total_depth(()) == 0


@pytest.mark.parametrize("bad", [[("fast", 1)], [("static", -1)], [("static",)], 3, [("static", "x")]])
def test_malformed_strategy(bad):
    with pytest.raises(pf.KnobError, match="fusion strategy"):
        normalize(bad)


def test_environment(monkeypatch):
    monkeypatch.setenv("PROFUSE_PROFILED_RUNS", "4")
    monkeypatch.setenv("PROFUSE_VERIFY_EACH", "yes")
    fresh = Knobs()
    assert fresh.profiled_runs == 4
    assert fresh.verify_each is True
    # R1.2: the variable is read once, on first access
    monkeypatch.setenv("PROFUSE_PROFILED_RUNS", "9")
    assert fresh.profiled_runs == 4


def test_bad_environment(monkeypatch):
    monkeypatch.setenv("PROFUSE_PROFILED_RUNS", "many")
    with pytest.raises(pf.KnobError, match="PROFUSE_PROFILED_RUNS='many'"):
        _ = Knobs().profiled_runs


def test_override_restores():
    before = knobs.min_fusion_size
    with knobs.override(min_fusion_size=5):
        assert knobs.min_fusion_size == 5
    assert knobs.min_fusion_size == before
    with pytest.raises(pf.KnobError):
        knobs.exchange("min_fusion_size", 0)
    with pytest.raises(pf.KnobError):
        knobs.exchange("no_such_knob", 0)


# --- flags (R1.1) ------------------------------------------------------------------------------


def test_defaults(monkeypatch):
    """R1.1"""
    for name in KNOBS:
        monkeypatch.delenv(f"PROFUSE_{name.upper()}", raising=False)
    fresh = Knobs()
    expected = {
        "executor_mode": True,
        "profiling_mode": True,
        "optimize": True,
        "disable_warning_prints": False,
        "static_then_dynamic": False,
        "always_dynamic": False,
        "profiled_runs": 1,
        "bailout_depth": 20,
        "release_profiling_graph": False,
        "release_delay_seconds": 60,
        "general_fuser": True,
    }
    assert {name: getattr(fresh, name) for name in expected} == expected


def test_the_bailout_depth_knob_is_never_read():
    """R1.1: set to 3, the default depth is still the strategy's total."""
    with knobs.override(bailout_depth=3):
        assert Executor(add_graph(), Options()).depth == 12


@pytest.fixture
def nothing_printed(monkeypatch):
    forget_printed(monkeypatch)


@pytest.mark.usefixtures("nothing_printed")
def test_a_warning_in_a_loop_prints_once(capsys):
    """R1.1: over trips, calls and tiers; and it does not keep anything from fusing."""

    def body(k, y):
        pf.warn("getting warm")
        return np.exp(y) * 0.5

    f = pf.jit(lambda x: pf.fori_loop(0, 4, body, x))
    x = np.zeros((2, 3), np.float32)
    for _ in range(3):
        f(x)
    assert '"profuse.warn"' in f.ir("optimized")
    assert f.state().counters["kernel_launches"] == 2, "the loop is unrolled: one kernel a call"
    found = capsys.readouterr().err.splitlines()
    assert len(found) == 1
    assert found[0].endswith("warning: getting warm")
    assert "test_settings.py:" in found[0]


@pytest.mark.usefixtures("nothing_printed")
def test_a_warning_in_a_branch_prints_when_it_is_taken(capsys):
    """R1.1"""

    def negative(y):
        pf.warn("negative")
        return y * 2

    f = pf.jit(lambda x: pf.cond(x.sum() < 0, negative, lambda y: y + 1, x))
    f(np.ones(3)), f(np.ones(3))
    assert capsys.readouterr().err == ""
    f(-np.ones(3))
    assert "negative" in capsys.readouterr().err


@pytest.mark.usefixtures("nothing_printed")
def test_warnings_count_apart_by_text(capsys):
    """R1.1: outside of graphs as well."""
    for text in ("one", "two", "one"):
        pf.warn(text)
    assert [line.rpartition(" ")[2] for line in capsys.readouterr().err.split("\n")[:-1]] == ["one", "two"]


@pytest.mark.usefixtures("nothing_printed")
def test_with_warning_prints_disabled_there_is_no_op(capsys):
    """R1.1"""

    def fn(x):
        pf.warn("never")
        return x + 1

    with knobs.override(disable_warning_prints=True):
        f = pf.jit(fn)
        f(np.ones(3))
        pf.warn("neither")
    assert "warn" not in f.ir("graph")
    assert capsys.readouterr().err == ""


# --- switches (R1.2) ---------------------------------------------------------------------------

SWITCHES = [
    (pf.get_executor_mode, pf.set_executor_mode),
    (pf.get_profiling_mode, pf.set_profiling_mode),
    (pf.get_optimize, pf.set_optimize),
]


@pytest.mark.parametrize(("get", "put"), SWITCHES, ids=["executor", "profiling", "optimize"])
def test_switches_default_to_true_and_return_the_old_value(get, put):
    """R1.2: read, flip, read."""
    assert get() is True
    assert put(False) is True
    try:
        assert get() is False
    finally:
        assert put(True) is False
    assert get() is True


def test_profiled_runs_can_be_assigned():
    """R1.2, A4: takes effect for records made from then on."""
    older, newer = (Executor(add_graph(), Options()) for _ in range(2))
    older.plan()
    assert pf.set_num_profiled_runs(3) == 1
    try:
        assert pf.get_num_profiled_runs() == 3
        newer.plan(), older.plan()
        assert (newer.record.runs, older.record.runs) == (3, 1)
    finally:
        assert pf.set_num_profiled_runs(1) == 3
    with pytest.raises(pf.KnobError, match="profiled_runs"):
        pf.set_num_profiled_runs(-1)


def test_racing_setters_each_see_another_value():
    """R1.2: atomic: what the setters return, and what is left, are all the values ever set."""
    returned = []

    def work(base):
        returned.extend(shared.exchange("profiled_runs", base + k) for k in range(300))

    shared = Knobs()
    first = shared.profiled_runs
    threads = [threading.Thread(target=work, args=(1000 * (t + 1),)) for t in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    values = {first, *(1000 * (t + 1) + k for t in range(4) for k in range(300))}
    assert sorted([*returned, shared.profiled_runs]) == sorted(values)


def test_executor_mode_counts_when_a_graph_is_made():
    """R1.2: made with it off, a graph runs op by op for good; others do not notice."""
    before = pf.jit(lambda x: np.exp(x) + 1)
    x = np.ones(3, np.float32)
    before(x)
    pf.set_executor_mode(False)
    try:
        before(x)
        inside = pf.jit(lambda x: np.exp(x) + 1)
        inside(x)
    finally:
        pf.set_executor_mode(True)
    for _ in range(3):
        inside(x)
    assert before.state().tier == "optimized"
    assert inside.state().tier == "no-opt"
    assert inside.state().counters["profiled_runs"] == 0


# --- the strategy (R1.3 - R1.6) ----------------------------------------------------------------


@pytest.fixture
def unread(monkeypatch):
    """The process-wide strategy as it is before anybody has asked for it."""
    forget_strategy(monkeypatch)


@pytest.mark.usefixtures("unread")
@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({}, DEFAULT),
        ({"static_then_dynamic": True}, DEFAULT),
        ({"always_dynamic": True}, (("dynamic", 12),)),
        ({"always_dynamic": True, "static_then_dynamic": True}, (("dynamic", 12),)),
        ({"fusion_strategy": "static:1, dynamic:3"}, (("static", 1), ("dynamic", 3))),
        ({"fusion_strategy": "static:1", "static_then_dynamic": True}, DEFAULT),
        ({"fusion_strategy": "static:1", "always_dynamic": True}, (("dynamic", 12),)),
    ],
)
def test_initial_strategy(flags, expected):
    """R1.3"""
    with knobs.override(**flags):
        assert pf.get_fusion_strategy() == expected


@pytest.mark.parametrize("text", ["static", "static:x", "static:-1", "fast:2", "static:1,,", ":"])
def test_malformed_strategy_text(text):
    with pytest.raises(pf.KnobError):
        parse_strategy(text)


@pytest.mark.usefixtures("unread")
def test_the_first_set_returns_the_initial_default():
    """R1.4: flags are read at the first use, not before, and not again."""
    with knobs.override(always_dynamic=True):
        assert pf.set_fusion_strategy([("STATIC", 3)]) == (("dynamic", 12),)
        assert pf.get_fusion_strategy() == (("static", 3),)
        assert pf.set_fusion_strategy(DEFAULT) == (("static", 3),)


@pytest.mark.usefixtures("unread")
def test_executors_built_around_a_set_differ_in_depth():
    """R1.5"""
    older = Executor(add_graph(), Options())
    pf.set_fusion_strategy([("static", 1), ("dynamic", 3)])
    newer = Executor(add_graph(), Options())
    assert (older.depth, newer.depth) == (12, 4)
    assert Executor(add_graph(), Options(strategy=(("static", 7),))).depth == 7


@pytest.mark.parametrize("depth", [12, 11, 10, 1])
def test_behavior_of_a_real_specialisation(depth):
    """R1.6: the guard in the IR is that of the depth."""
    x = np.ones((2, 3), np.float32)
    executor = Executor(add_graph(), Options())
    executor.plan(depth)
    for _ in range(2):
        executor.run([x, x])
    word = "type_check" if depth > 10 else "dynamic_guard"
    assert f"profuse.{word}" in executor.result.ir


@pytest.mark.usefixtures("unread")
def test_a_depth_beyond_the_total_warns_and_is_static():
    """R1.6: 13 under the default list."""
    x = np.ones((2, 3), np.float32)
    executor = Executor(add_graph(), Options())
    executor.plan(13)
    seen = len(pf.events())
    for _ in range(2):
        executor.run([x, x])
    assert "profuse.type_check" in executor.result.ir
    assert "strategy-exceeded" in [e.kind for e in pf.events()[seen:]]


def first_function(**variables):
    code = "import profuse as pf\npf.jit(abs), pf.jit(abs)\nprint([e.kind for e in pf.events()])"
    env = {**os.environ, **{f"PROFUSE_{name}": text for name, text in variables.items()}}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)


def test_a_variable_that_is_no_setting_is_told_once():
    done = first_function(CAHCE="off", ZZZ="1", WORKER_FAULT="")
    told = done.stderr.splitlines()
    assert told[0] == ("profuse: PROFUSE_CAHCE is set, but is no setting; did you mean PROFUSE_CACHE?")
    assert told[1].startswith("profuse: PROFUSE_ZZZ is set, but is no setting; settings: PROFUSE_")
    assert (len(told), done.stdout) == (2, "['setting-unknown', 'setting-unknown']\n")
    assert len(first_function(CAHCE="off", LOG="1").stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["OUTPUT_POOL_BYTES", "CACHE_BYTES", "RELEASE_GIL_NS"])
def test_a_bad_value_that_only_threads_would_read_is_refused_at_the_first_function(name):
    done = first_function(**{name: "maybe"})
    assert done.returncode == 1
    assert f"KnobError: PROFUSE_{name}='maybe': " in done.stderr
