"""Calls that are plain Python's: functions that are switched off, and those that are debugged."""

from __future__ import annotations

import asyncio
import bdb
import contextvars
import inspect
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import profuse as pf
import pytest
from dispatched import X, Y, hits, is_native, warm
from internals import emitted_call, last_executor
from profuse.executor.dispatch.thread_state import THREAD, difference
from profuse.executor.settings import plain

pytestmark = pytest.mark.usefixtures("default_is_python")


@pytest.fixture
def default_is_python() -> Iterator[None]:
    with pf.knobs.override(unsupported="python"):
        yield


def scaled(x, k):
    y = x * k
    return y + 1


LINE = inspect.getsourcelines(scaled)[1] + 1  # that of y


class Stops(bdb.Bdb):
    """A debugger with one breakpoint, which notes what an argument is there."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def user_line(self, frame: types.FrameType) -> None:
        if frame.f_code is scaled.__code__ and frame.f_lineno == LINE:
            self.seen.append(frame.f_locals["x"])
        self.set_continue()


@contextmanager
def debugging() -> Iterator[list[Any]]:
    """A debugger is attached to this thread, as `pdb.set_trace` does it."""
    debugger, before = Stops(), sys.gettrace()
    debugger.set_break(__file__, LINE)
    debugger.reset()
    debugger.botframe = sys._getframe()
    sys.settrace(debugger.trace_dispatch)
    try:
        yield debugger.seen
    finally:
        sys.settrace(before)
        debugger.clear_all_breaks()


@contextmanager
def tracing(tracer: Callable[..., Any]) -> Iterator[None]:
    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        yield
    finally:
        sys.settrace(before)


def look_again(f: Any) -> None:
    """From Python 3.12 on, a call asks Python once after what is monitored has changed."""
    if sys.version_info >= (3, 12):
        f(X, 2)


def counts(f: Any, *names: str) -> tuple[int, ...]:
    counters = f.state().counters
    return tuple(counters[name] for name in names)


# --- debuggers ---------------------------------------------------------------------------------


def test_breakpoints_stop_at_each_call_and_show_arrays():
    f = pf.jit(scaled)
    with debugging() as seen:
        for _ in range(4):
            np.testing.assert_array_equal(f(X, 2), X * 2 + 1)
    assert [x is X for x in seen] == [True] * 4
    assert counts(f, "calls", "python_calls", "traces") == (4, 4, 0)
    assert f.state().tier == "python"
    assert f"scaled runs in Python where a debugger is at work: {__name__}.Stops" in f.explain()


def test_a_debugger_that_comes_late_stops_in_functions_that_run_natively():
    f = warm(scaled, X, 2)
    code = emitted_call(f)
    with debugging() as seen:
        for _ in range(3):
            np.testing.assert_array_equal(f(X, 2), X * 2 + 1)
        assert f.state().tier == "python"
    assert [type(x) for x in seen] == [np.ndarray] * 3
    assert counts(f, "python_calls") == (3,)
    look_again(f)
    before = hits(f)
    f(X, 2)
    assert hits(f) == before + 1 and emitted_call(f) is code and f.state().tier == "optimized"
    assert counts(f, "traces", "python_calls") == (1, 3)


def test_a_debugger_stops_in_functions_that_others_call():
    inner = pf.jit(scaled)
    outer = warm(lambda x: inner(x, 3) * 2, X)
    with debugging() as seen:
        np.testing.assert_array_equal(outer(X), (X * 3 + 1) * 2)
    assert len(seen) == 1 and seen[0] is X


def test_a_debugger_of_one_thread_leaves_others_alone():
    f = warm(scaled, X, 2)
    found: list[bool] = []
    with debugging():
        f(X, 2)

        def look() -> None:
            look_again(f)
            found.append(is_native(f, X, 2))

        other = threading.Thread(target=look)
        other.start()
        other.join()
        assert not is_native(f, X, 2)
    assert found == [True]


def test_results_go_where_the_caller_wants_them_beside_a_debugger():
    f = pf.jit(scaled)
    out = np.empty_like(X)
    f.into(out, X, 2)
    with debugging() as seen:
        assert f.into(out, X, 5) is out
    assert len(seen) == 1
    np.testing.assert_array_equal(out, X * 5 + 1)


def test_what_is_not_known_to_be_harmless_counts_as_a_debugger():
    f = warm(scaled, X, 2)
    with tracing(lambda frame, event, arg: None):
        assert not is_native(f, X, 2)
    assert counts(f, "python_calls") == (1,)
    look_again(f)
    assert is_native(f, X, 2)


def coverage_like(*, is_class: bool) -> Callable[..., Any]:
    """A trace function such as coverage.py has: an object of its own class, or a method."""

    def trace(self: Any, frame: Any, event: str, arg: Any) -> Any:
        return getattr(self, "_trace", self)

    name = "__call__" if is_class else "_trace"
    kind = type("Tracer", (), {name: trace, "__module__": "coverage.tracer"})
    made: Any = kind()
    return made if is_class else made._trace


@pytest.mark.parametrize("is_class", [True, False])
def test_coverage_is_no_debugger(is_class):
    f = warm(scaled, X, 2)
    with tracing(coverage_like(is_class=is_class)):
        for _ in range(3):
            f(X, 2)
        # Emitted code knows the class; a method may be anybody's, which Python has to look at.
        assert is_native(f, X, 2) == is_class
        assert f.state().tier == "optimized"
        g = pf.jit(scaled)
        g(X, 2)
        assert counts(g, "traces", "python_calls") == (1, 0)
    assert counts(f, "calls", "python_calls") == (7, 0)


def test_a_class_that_is_harmless_does_not_make_others_so():
    f = warm(scaled, X, 2)
    with tracing(coverage_like(is_class=True)):
        f(X, 2)
    with debugging() as seen:
        f(X, 2)
    assert len(seen) == 1


@pytest.mark.skipif(sys.version_info < (3, 12), reason="there is no sys.monitoring")
def test_tools_of_sys_monitoring_are_debuggers_if_they_say_so():
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined]
    f = warm(scaled, X, 2)
    lines: list[int] = []
    monitoring.use_tool_id(monitoring.COVERAGE_ID, "lines")
    monitoring.set_events(monitoring.COVERAGE_ID, monitoring.events.LINE)
    look_again(f)
    assert is_native(f, X, 2)
    monitoring.set_events(monitoring.COVERAGE_ID, 0)
    monitoring.free_tool_id(monitoring.COVERAGE_ID)

    def note(code: types.CodeType, line: int) -> Any:
        return lines.append(line) if code is scaled.__code__ else monitoring.DISABLE

    monitoring.use_tool_id(monitoring.DEBUGGER_ID, "stops")
    monitoring.register_callback(monitoring.DEBUGGER_ID, monitoring.events.LINE, note)
    monitoring.set_events(monitoring.DEBUGGER_ID, monitoring.events.LINE)
    for _ in range(3):
        f(X, 2)
    monitoring.set_events(monitoring.DEBUGGER_ID, 0)
    monitoring.free_tool_id(monitoring.DEBUGGER_ID)
    assert lines == [LINE, LINE + 1] * 3
    assert counts(f, "python_calls") == (3,)
    look_again(f)
    assert is_native(f, X, 2)


def test_profilers_are_no_debuggers():
    f = warm(scaled, X, 2)
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, arg: None)
    try:
        look_again(f)
        assert is_native(f, X, 2)
    finally:
        sys.setprofile(before)


def test_a_knob_keeps_functions_native_beside_a_debugger():
    f = warm(scaled, X, 2)
    with pf.knobs.override(debugger=False), debugging() as seen:
        assert is_native(f, X, 2)
    assert seen == []
    with debugging():
        assert not is_native(f, X, 2)


def test_breakpoint_is_pythons(monkeypatch):
    seen: list[Any] = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: seen.append(sys._getframe(1).f_locals["y"]))

    def stops(x):
        y = x * 2
        breakpoint()
        return y

    f = pf.jit(stops)
    for _ in range(3):
        f(X)
    assert [type(y) for y in seen] == [np.ndarray] * 3
    assert counts(f, "python_calls", "traces") == (3, 0)
    assert "breakpoint() stops where Python runs the call" in f.explain()


def test_gradients_are_those_of_the_graph_beside_a_debugger():
    f = pf.value_and_grad(lambda x: (x * x).sum())
    with debugging():
        value, gradient = f(X)
    np.testing.assert_array_equal(gradient, 2 * X)
    assert value == (X * X).sum()


def test_wrong_offsets_of_threads_are_refused():
    assert difference(THREAD) is None
    for layout in (
        replace(THREAD, profiler=THREAD.profiler + 8),
        replace(THREAD, profiler=THREAD.profiler - 8),
        replace(THREAD, interpreter=8),
    ):
        assert difference(layout) is not None
    if THREAD.version is not None:
        assert difference(replace(THREAD, version=THREAD.version + 24)) is not None


def test_the_probe_of_threads_leaves_profilers_in_place():
    def profiler(frame: Any, event: str, arg: Any) -> None:
        pass

    before = sys.getprofile()
    sys.setprofile(profiler)
    try:
        assert difference(THREAD) is None
        assert sys.getprofile() is profiler
        assert difference(replace(THREAD, profiler=THREAD.profiler + 8)) is not None
    finally:
        sys.setprofile(before)


# --- switches ----------------------------------------------------------------------------------


def told(x):
    print("called")
    return x + 1


def test_a_block_calls_the_function_itself_and_counts_nothing(capsys):
    f = pf.jit(told)
    with pf.disable_jit():
        for _ in range(3):
            f(X)
        assert "told is switched off" in f.explain()
    assert capsys.readouterr().out == "called\n" * 3
    assert counts(f, "calls", "python_calls", "traces") == (0, 0, 0)
    assert "switched off" not in f.explain()


def test_native_code_is_there_again_behind_a_block():
    f = warm(scaled, X, 2)
    code, before = emitted_call(f), counts(f, "calls", "traces", "compiles")
    made: list[Any] = []
    with pf.disable_jit():
        with pf.disable_jit():
            made.append(f(X, 2))
        assert not is_native(f, X, 2)
    assert counts(f, "calls", "traces", "compiles") == before
    assert is_native(f, X, 2) and emitted_call(f) is code
    np.testing.assert_array_equal(made[0], X * 2 + 1)


def test_a_block_that_raises_ends_as_well():
    f = warm(scaled, X, 2)
    with pytest.raises(ValueError, match="operands"), pf.disable_jit():
        f(X, np.ones(3))
    assert is_native(f, X, 2)


def test_results_of_a_block_are_the_functions_own():
    f = pf.jit(lambda x: x)
    with pf.disable_jit():
        assert f(X) is X
        assert f.into(np.empty_like(X), X) is not X


def test_a_decorator_is_a_block_of_each_call():
    f = warm(scaled, X, 2)

    @pf.disable_jit()
    def call() -> bool:
        return is_native(f, X, 2)

    assert (call(), call(), is_native(f, X, 2)) == (False, False, True)


def test_a_block_holds_for_its_thread():
    f = warm(scaled, X, 2)
    found: list[int] = []

    def call() -> None:
        before = counts(f, "calls")[0]
        f(X, 2)
        found.append(counts(f, "calls")[0] - before)

    with pf.disable_jit():
        other = threading.Thread(target=call)
        other.start()
        other.join()
        call()
    assert found == [1, 0]


def test_a_block_holds_for_tasks_that_are_made_in_it_until_it_ends():
    f = warm(scaled, X, 2)

    async def call(opened: asyncio.Event) -> bool:
        await opened.wait()
        before = counts(f, "calls")
        f(X, 2)
        return counts(f, "calls") != before

    async def calls() -> list[bool]:
        now, later = asyncio.Event(), asyncio.Event()
        with pf.disable_jit():
            inside, outlives = asyncio.create_task(call(now)), asyncio.create_task(call(later))
            now.set()
            found = [await inside]
        later.set()
        other, elsewhere = pf.disable_jit(), contextvars.copy_context()
        elsewhere.run(other.__enter__)  # so that calls are asked about
        found.append(await outlives)
        elsewhere.run(other.__exit__, None, None, None)
        return found

    assert asyncio.run(calls()) == [False, True]


def test_a_context_from_outside_is_not_in_the_block():
    f = warm(scaled, X, 2)
    outside = contextvars.copy_context()
    with pf.disable_jit():
        before = counts(f, "calls")
        outside.run(f, X, 2)
        assert counts(f, "calls") == (before[0] + 1,)


def test_the_knob_holds_for_all_threads():
    f = warm(scaled, X, 2)
    found: list[bool] = []
    with pf.knobs.override(disable=True):
        other = threading.Thread(target=lambda: found.append(is_native(f, X, 2)))
        other.start()
        other.join()
        found.append(is_native(f, X, 2))
    assert [*found, is_native(f, X, 2)] == [False, False, True]


def test_the_variable_switches_a_process_off():
    code = (
        "import sys, numpy as np, profuse as pf\n"
        "f = pf.jit(lambda x: (x, print('called')), name='told')\n"
        "x = np.ones(3)\n"
        "print([f(x)[0] is x for _ in range(3)], f.state().counters['calls'], f.explain())\n"
        "print(sorted(m for m in sys.modules if 'mlir' in m.partition('.')[0]))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PROFUSE_DISABLE": "1", "PROFUSE_CACHE": "off", "PATH": ""},
    )
    assert ran.stdout == (
        "called\n" * 3 + "[True, True, True] 0 told is switched off: each call is that of the function.\n[]\n"
    )


def test_what_python_cannot_compute_runs_as_ever(tmp_path):
    f = warm(scaled, X, 2)
    f.save(str(tmp_path / "saved"))
    loaded = pf.load(str(tmp_path / "saved"))
    with pf.disable_jit():
        gradient = pf.grad(lambda x: (x * x).sum())(Y)
        value, pull = pf.vjp(lambda x: x * x, Y)
        (pulled,) = pull(np.ones_like(Y))
        np.testing.assert_array_equal(loaded(X, 2), X * 2 + 1)
    np.testing.assert_array_equal(gradient, 2 * Y)
    np.testing.assert_array_equal(value, Y * Y)
    np.testing.assert_array_equal(pulled, 2 * Y)


def test_functions_on_the_tape_are_switched_off_as_well():
    f = pf.jit(lambda x: (x * x).sum())
    x = pf.array(X, requires_grad=True)
    with pf.disable_jit():
        f(x).backward()
    np.testing.assert_allclose(np.asarray(x.grad), 2 * X)
    assert counts(f, "calls", "traces") == (0, 0)


def test_a_block_within_a_traced_function_changes_nothing():
    inner = pf.jit(scaled)

    def outer(x):
        with pf.disable_jit():
            return inner(x, 3) * 2

    f = pf.jit(outer)
    for _ in range(3):
        np.testing.assert_allclose(f(X), (X * 3 + 1) * 2, rtol=1e-6, atol=1e-6)


def test_no_block_stays_open():
    assert not plain.is_disabled()
    assert plain.WORDS[plain.SWITCH] == 0
    assert last_executor(pf.jit(scaled)) is None
