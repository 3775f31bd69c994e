"""Loops in checks of kernels: whether they end, and how long evaluations of them may take."""

import numpy as np
import profuse as pf
import pytest
from profuse.executor.compile.proof.loop_rounding import may_not_end
from profuse.executor.interpret import loop_limit
from profuse.executor.interpret.evaluate import Evaluator
from profuse.executor.interpret.loop_limit import LIMITS, Limit, TooLong, has_rounds, within


def graph(fn, *args):
    from profuse.dialect.importers.numpy.capture.tracer import trace
    from profuse.dialect.importers.numpy.tracing.recorder import Policy

    return trace(fn, args, loops=Policy(elements=True)).module


def by_size(x):
    total = x[0] * 0
    for i in range(x.shape[0]):
        for j in range(i, x.shape[0] - 1):
            total = total + x[j] * x[i]
    return total


def by_contents(x, starts):
    total = x[0] * 0
    for i in range(starts.shape[0] - 1):
        for j in range(starts[i], starts[i + 1]):
            total = total + x[j]
    return total


def by_argument(x, n):
    for _ in range(n):
        x = x * 0.5
    return x


def until(x):
    while x[0] > 1:
        x = x * 0.5
    return x


X, STARTS = np.linspace(1, 9, 40), np.array([0, 3, 9, 40])


@pytest.mark.parametrize(
    "fn, args, ends",
    [
        (by_size, (X,), True),
        (by_contents, (X, STARTS), False),
        (by_argument, (X, 30), False),
        (until, (X,), False),
        (lambda x: x * 2, (X,), True),
    ],
)
def test_whose_inputs_decide_how_long_they_run(fn, args, ends):
    assert may_not_end(graph(fn, *args).main) is not ends


def test_a_kernel_whose_inputs_decide_is_not_launched_blindly():
    """On generated places, its loop would run for minutes."""
    f = pf.jit(by_contents)
    for _ in range(3):
        np.testing.assert_allclose(f(X, STARTS), by_contents(X, STARTS), rtol=1e-12)
    counters = f.state().counters
    assert counters["check_failures"] == counters["compile_failures"] == 0
    assert counters["kernel_launches"] == 2


def test_a_limit_raises_or_ends_loops():
    module = graph(by_argument, X, 30)
    assert has_rounds(module) and not has_rounds(graph(lambda x: x * 2, X))
    run = Evaluator(module.main, module)
    with within(Limit(60.0)):
        np.testing.assert_array_equal(run([X, 30])[0], by_argument(X, 30))
    with within(Limit(0.0)), pytest.raises(TooLong):
        run([X, 30])
    limit = Limit(0.0, truncates=True)
    with within(limit):
        np.testing.assert_array_equal(run([X, 30])[0], X * 0.5)
    assert limit.over and LIMITS.current is None
    np.testing.assert_array_equal(run([X, 30])[0], by_argument(X, 30))


def test_a_limit_rarely_asks_the_system_for_the_time_of_the_thread(monkeypatch):
    limit, asked = Limit(60.0), []
    monkeypatch.setattr(loop_limit.time, "thread_time", lambda: asked.append(1) or 0.0)
    assert not any(limit.passed() for _ in range(1000)) and not asked
    times = iter(range(100))
    monkeypatch.setattr(loop_limit.time, "perf_counter", lambda: 50.0 * next(times))  # of a busy machine
    limit = Limit(60.0)
    assert not any(limit.passed() for _ in range(4)) and 1 < len(asked) <= 4


def test_a_while_that_is_ended_has_run_a_round():
    module = graph(until, X)
    limit = Limit(0.0, truncates=True)
    with within(limit):
        found = Evaluator(module.main, module)([X * 8])[0]
    np.testing.assert_array_equal(found, X * 4)
    with within(None):
        np.testing.assert_array_equal(Evaluator(module.main, module)([X * 8])[0], until(X * 8))
