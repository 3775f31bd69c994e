"""Calls whose loops would run op by op are Python's, and their profile is a sample of rounds."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from profuse.executor.functions import graph_calls
from profuse.executor.functions.drawing import Drawing
from profuse.executor.interpret.loop_limit import LIMITS


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Every loop is too long, and calls without a graph are Python's."""
    monkeypatch.setattr(graph_calls, "_LOOP_SECONDS", 0.0)
    with pf.knobs.override(unsupported="python"):
        yield
        assert LIMITS.current is None


def smooth(x, steps):
    y = x.copy()
    for _ in range(steps):
        for i in range(1, y.shape[0] - 1):
            y[i] = 0.25 * y[i - 1] + 0.5 * y[i] + 0.25 * y[i + 1]
    return y


def counts(f, *names):
    return tuple(f.state().counters[name] for name in names)


def test_a_long_loop_is_profiled_by_its_first_rounds_and_run_in_python():
    f = pf.jit(smooth)
    x = np.linspace(0, 1, 60) ** 3
    np.testing.assert_array_equal(f(x, 200), smooth(x, 200))
    assert counts(f, "calls", "python_calls", "profiled_runs") == (1, 1, 1)
    assert counts(f, "evaluated_ops")[0] < 200
    np.testing.assert_allclose(f(x, 200), smooth(x, 200), rtol=1e-12)
    assert counts(f, "calls", "python_calls", "compiles", "kernel_launches") == (2, 1, 1, 1)
    assert f.state().tier == "optimized"


def noisy(rng, n):
    noise, x, out = rng.normal(size=n), 0.0, np.zeros(n)
    for i in range(n):
        x = 0.9 * x + noise[i]
        out[i] = x
    return out


def test_what_a_sample_of_rounds_has_drawn_is_taken_back():
    f, ours, theirs = pf.jit(noisy), np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(3):
        np.testing.assert_array_equal(f(ours, 300), noisy(theirs, 300))
        assert ours.bit_generator.state == theirs.bit_generator.state
    assert counts(f, "python_calls", "profiled_runs", "kernel_launches") == (1, 1, 2)
    assert counts(f, "evaluated_ops")[0] < 200


def test_where_others_have_drawn_since_the_graph_goes_on(monkeypatch):
    monkeypatch.setattr(Drawing, "undo", lambda self: False)
    f, ours, theirs = pf.jit(noisy), np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(3):
        np.testing.assert_array_equal(f(ours, 300), noisy(theirs, 300))
        assert ours.bit_generator.state == theirs.bit_generator.state
    assert counts(f, "python_calls", "profiled_runs", "kernel_launches") == (0, 1, 3)


def lu(a):
    a = a.copy()
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, a.shape[0]):
            a[i, j] -= a[i, :i] @ a[:i, j]
    return a


def test_a_loop_that_the_first_rounds_do_not_reach_is_in_the_kernel_as_well():
    f = pf.jit(lu)
    a = np.random.default_rng(0).random((30, 30)) + 30 * np.eye(30)
    for _ in range(3):
        np.testing.assert_allclose(f(a), lu(a), 1e-11)
    assert counts(f, "python_calls", "kernel_launches") == (1, 2)
    assert not any("round by round" in str(reason) for reason in f.state().reasons)


def test_a_miss_of_a_guard_is_profiled_likewise():
    f = pf.jit(smooth)
    for n in (20, 20, 20, 31, 31, 31):
        x = np.random.default_rng(n).random(n)
        np.testing.assert_allclose(f(x, 50), smooth(x, 50), rtol=1e-12)
    assert counts(f, "calls", "python_calls", "profiled_runs", "compiles") == (6, 2, 2, 2)


def test_calls_during_a_compile_are_pythons():
    f = pf.jit(smooth, background=True)
    x = np.linspace(0, 1, 40)
    f(x, 30)
    before = counts(f, "evaluated_ops")
    f(x, 30)
    if f.state().tier == "compiling":
        assert counts(f, "evaluated_ops") == before
    f.wait()
    np.testing.assert_allclose(f(x, 30), smooth(x, 30), rtol=1e-12)
    assert f.state().tier == "optimized"


def drain(levels, total, out):
    """Writes to an argument, whose writes a sample must not leave behind."""
    k = 0
    while total > 1e-3:
        levels[k % levels.shape[0]] *= 0.5
        total = total - levels[k % levels.shape[0]]
        out[k % out.shape[0]] += total
        k += 1
        if k >= 500:
            break
    return total, k


def test_a_sample_leaves_no_writes_behind():
    f = pf.jit(drain)
    for _ in range(3):
        mine = [np.arange(1.0, 9.0), np.zeros(5)]
        ours = [np.arange(1.0, 9.0), np.zeros(5)]
        assert f(ours[0], 30.0, ours[1]) == pytest.approx(drain(mine[0], 30.0, mine[1]))
        np.testing.assert_allclose(ours[0], mine[0], rtol=1e-12)
        np.testing.assert_allclose(ours[1], mine[1], rtol=1e-12)
    assert counts(f, "python_calls")[0] >= 1


def test_what_a_sample_raises_is_nobodys_error():
    def picks(x, n):
        total = x[0] * 0
        count = 0
        for k in range(n):
            total = total + x[k % 4]
            count = count + 1
        # After one round there is no such element.
        return total, x[:, np.newaxis][count - 40]

    f = pf.jit(picks)
    x = np.arange(1.0, 5.0)
    for _ in range(3):
        ours, theirs = f(x, 40), picks(x, 40)
        assert ours[0] == theirs[0]
        np.testing.assert_array_equal(ours[1], theirs[1])


def test_without_python_all_rounds_are_evaluated():
    f = pf.jit(smooth, unsupported="raise")
    x = np.linspace(0, 1, 20)
    np.testing.assert_allclose(f(x, 30), smooth(x, 30), rtol=1e-12)
    assert counts(f, "python_calls", "profiled_runs") == (0, 1)
    assert counts(f, "evaluated_ops")[0] > 30 * 18


def test_a_function_that_python_calls_has_no_limit_of_its_callers():
    inner = pf.jit(smooth, unsupported="raise")

    def outer(x, steps, log):
        y = x * 1.0
        for _ in range(steps):
            y = y + 0.5
            y[0] = y[-1]
        log.append(inner(y, 3))
        return y

    f = pf.jit(outer)
    x, ours, theirs = np.linspace(0, 1, 12), [], []
    for _ in range(3):
        f(x, 30, ours)
        y = x * 1.0
        for _ in range(30):
            y = y + 0.5
            y[0] = y[-1]
        theirs.append(smooth(y, 3))
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_a_plan_of_loops_without_a_kernel_is_pythons_at_once():
    def turned(x, n):
        for _ in range(n):
            x = np.sort(x)[::-1]
        return x

    f = pf.jit(turned, unsupported="python")
    x = np.random.default_rng(0).random(30)
    evaluated = []
    for _ in range(5):
        np.testing.assert_array_equal(f(x, 40), turned(x, 40))
        f.wait()
        evaluated.append(f.state().counters["evaluated_ops"])
    assert f.state().tier == "python"
    assert len(set(evaluated[1:])) == 1  # that of the profile: the plan has never run


def test_a_call_of_pythons_looks_at_few_numbers_of_a_trace_that_grew_too_long():
    namespace = {"np": np}
    exec(  # without a source the rounds are recorded one by one
        "def steps(n, z):\n"
        "    k = 0\n"
        "    while abs(z) <= 2 and k < n:\n"
        "        z, k = z * z + 0.1, k + 1\n"
        "    return k\n",
        namespace,
    )
    f = pf.jit(namespace["steps"], unsupported="python")
    with pf.knobs.override(trace_ops=1000):
        for n in (300, 300, 300):
            assert f(n, 0.1) == n
    (refusals,) = f._graphs.ledger._refused.values()
    assert all(len(refusal.guards) <= 8 for refusal in refusals)


def rarely_long(x):
    y = x / x.size
    total = (np.tanh(np.exp(-y) + y * 0.1) * np.sqrt(y + 1) - np.exp(y * y)).sum()
    if x[0] > 0.5:
        picked = np.zeros(x.size, dtype=np.int64)
        ends = np.sort(x)
        i = j = 0
        while i < x.size:
            if np.sort(ends[j : j + 2])[0] < i + 1:  # of which there is no kernel
                picked[i] = j
                i += 1
            else:
                j += 1
        x = x[picked]
    return total, x


def test_a_loop_that_no_profile_has_seen_is_pythons_once_it_goes_on_for_long():
    """A plan evaluates it op by op, many times as slowly as Python runs it."""
    x = np.arange(40000.0)
    rare = x + 0.75
    with pf.knobs.override(unsupported="python", demote=1.25):
        f = pf.jit(rarely_long)
        for _ in range(12):
            f(x)
            f.wait()
        assert f.state().tier == "optimized"
        for _ in range(3):
            found, expected = f(rare), rarely_long(rare)
            assert np.isclose(found[0], expected[0]) and np.array_equal(found[1], expected[1])
        before = f.state().counters["evaluated_ops"]
        for _ in range(3):
            f(rare)
        assert f.state().counters["evaluated_ops"] - before < 100
