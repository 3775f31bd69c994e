"""Functions that call themselves: as deep as in Python, and without a trace for each level."""

import functools
import gc
import sys
import threading
import time

import numpy as np
import profuse as pf
import pytest
from profuse.executor.functions import numpy_source

# As deep as the limit below lets Python's own calls go; Python 3.12 ends calls of objects at 500, whatever the limit.
DEEPEST = 400 if sys.version_info[:2] == (3, 12) else 600


@pytest.fixture(autouse=True)
def python():
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(700)
    with pf.knobs.override(unsupported="python"):
        yield
    assert sys.getrecursionlimit() == 700
    sys.setrecursionlimit(limit)


@pf.jit
def raised(x, n):
    return x if n == 0 else raised(x, n - 1) + 1


@pf.jit
def endless(x):
    return x + endless(x)


@pf.jit
def distance(cells, k):
    d = 0
    for c in cells[k + 1 :]:
        if c != -1:
            return d
        d += 1
    return d + distance(cells, -1)


def test_a_depth_that_only_python_reaches():
    for n in (5, 300, 400, DEEPEST, 5, DEEPEST):
        np.testing.assert_array_equal(raised(np.ones(2), n), np.full(2, n + 1.0))
    assert raised.state().counters["python_calls"] >= 3


@pytest.fixture
def uncollected():
    """Callbacks of the collector, such as Hypothesis's, fail where the stack ends."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("uncollected")
def test_recursion_without_end_ends():
    for f, args in ((endless, (np.ones(3),)), (distance, ([], -1))):
        before, counted = time.process_time(), 0
        for k in range(5):
            with pytest.raises(RecursionError):
                f(*args)
            found = f.state().counters["python_calls"]
            if k:  # one call is traced, and not one for each level
                assert found - counted <= 3
            counted = found
        assert time.process_time() - before < 60
    np.testing.assert_array_equal(distance([-1, -1, 5], 0), 1)


@pytest.fixture(params=[True, False], ids=["profiling", "keyed"])
def profiling_mode(request):
    """Without profiling, functions that are called in a trace have traces of their own."""
    with pf.knobs.override(profiling_mode=request.param):
        yield request.param


def test_no_level_is_traced_for_each_above_it(profiling_mode):
    @pf.jit
    def level(x, n):
        return x * 1.5 if n == 0 else level(x, n - 1) + 1

    x, start = np.ones(2), time.process_time()
    for n in (0, 6, 12, 20):
        np.testing.assert_array_equal(level(x, n), np.full(2, n + 1.5))
    assert level.state().counters["traces"] == 4
    for n in (400, 400, 399):
        np.testing.assert_array_equal(level(x, n), np.full(2, n + 1.5))
    assert level.state().counters["traces"] == 4
    assert time.process_time() - start < 20  # it did not end


def test_a_refusal_ends_the_traces_of_all_levels(profiling_mode, monkeypatch):
    """A level whose trace fails is recorded in the outer one, which must not try it again."""
    tries = []
    for name in ("trace", "trace_inline"):
        found = getattr(numpy_source, name)
        counting = functools.partial(lambda fn, *a, **k: tries.append(1) or fn(*a, **k), found)
        monkeypatch.setattr(numpy_source, name, counting)

    @pf.jit
    def level(x, n):
        return x * float(f"{x.sum()}") if n == 0 else level(x, n - 1) + 1

    outer = pf.jit(lambda x: level(x, 9) * 2)
    np.testing.assert_array_equal(outer(np.ones(2)), [22, 22])
    assert 2 <= len(tries) <= 120
    assert outer.state().counters["python_calls"] == 1


def test_functions_that_call_each_other(profiling_mode):
    @pf.jit
    def even(x, n):
        return x if n == 0 else odd(x, n - 1) * 1.0

    @pf.jit
    def odd(x, n):
        return x if n == 0 else even(x, n - 1) + 1

    @pf.jit
    def sums(x, n):
        return x if n < 2 else sums(x, n - 1) + sums(x, n - 2)

    x, start = np.ones(2), time.process_time()
    for n in (8, 9, 300, 301, 300):
        np.testing.assert_array_equal(even(x, n), np.full(2, 1.0 + n // 2))
    np.testing.assert_array_equal(sums(x, 12), x * 233)
    assert even.state().counters["traces"] == 2 and sums.state().counters["traces"] == 1
    assert time.process_time() - start < 30


def test_another_thread_traces_for_itself():
    """A trace that is under way elsewhere is none around this call."""
    with pf.knobs.override(profiling_mode=False):
        inside, done = threading.Event(), threading.Event()

        @pf.jit
        def slow(x, wait):
            if wait and not inside.is_set():
                inside.set()
                done.wait(5)
            return x + 1

        first = threading.Thread(target=lambda: slow(np.ones(2), True))
        first.start()
        inside.wait(5)
        outer = pf.jit(lambda x: slow(x, False) * 2)
        second = threading.Thread(target=lambda: outer(np.ones(2)))
        second.start()
        done.set()
        first.join(), second.join()
        np.testing.assert_array_equal(outer(np.ones(2)), [4, 4])
        np.testing.assert_array_equal(slow(np.ones(2), True), [2, 2])


def test_other_recursion_ends_as_early_as_in_python():
    """It may go through code of C: with a higher limit of frames its stack would overflow."""
    depths = []

    def deeper(v):
        depths[-1] += 1
        return v * sorted([1.0, 2.0], key=deeper)[0]

    plain = lambda x: x * deeper(1.0)  # noqa: E731
    f = pf.jit(plain)
    for function in (plain, f, f, f):
        depths.append(0)
        with pytest.raises(RecursionError):
            function(np.ones(2))
    assert f.state().counters["python_calls"] == 3
    assert max(depths) < depths[0] + 10  # not five times as deep


def test_the_limit_is_that_of_the_deepest_thread():
    from profuse.executor.routing.recursion import Recursion

    recursion, limit = Recursion(), sys.getrecursionlimit()

    def levels(n):
        return recursion.call(levels, (n - 1,), {}) if n else sys.getrecursionlimit()

    threads = [threading.Thread(target=levels, args=(n,)) for n in (50, 20)]
    for thread in threads:
        thread.start()
    assert levels(10) >= limit + 50
    for thread in threads:
        thread.join()
    assert levels(0) == sys.getrecursionlimit() == limit
