"""Functions that draw random numbers, in emitted code: each call draws once, also where Python repeats it."""

import gc
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import profuse as pf
import pytest
from internals import emitted_hits, variants_of
from profuse.dialect.importers.numpy.python.generators import own_generator
from profuse.executor.functions.graph_calls import GraphCalls
from profuse.executor.memory.offsets import Refused
from profuse.executor.settings.events import subscribe

SIZES = (4, 4, 4, 7, 7, 3, 9, 9, 2, 50, 4, 11)
OURS, THEIRS = np.random.default_rng(3), np.random.default_rng(3)


@pytest.fixture(autouse=True)
def python():
    """The default, which the other tests turn off."""
    with pf.knobs.override(unsupported="python"):
        yield


def state(generator=None):
    return repr((generator or own_generator()).bit_generator.state)


def droppings(fn, calls):
    """The results of calls from one seed, and what the generator keeps then."""
    pf.manual_seed(5)
    return [fn(*args) for args in calls], state()


@pytest.mark.parametrize("device_fusion", ["off", "host"])
def test_dropout_is_dispatched_in_emitted_code(device_fusion):
    """The plans for other sizes draw as well, behind the guards that have missed."""

    def fn(x, w):
        return pf.nn.dropout(np.tanh(x * w), 0.5) + pf.nn.dropout(x, 0.25)

    calls = [(np.linspace(0.1, 1, 3 * n).reshape(3, n), np.full(n, 2.0)) for n in SIZES]
    with pf.knobs.override(device_fusion=device_fusion):
        f = pf.jit(fn, background=False)
        found, after = droppings(f, calls)
        hits = emitted_hits(f)
        again, _ = droppings(f, calls)
        assert emitted_hits(f) - hits == len(SIZES) and f.state().counters["python_calls"] == 0
    assert "dispatched in Python" not in f.explain()
    expected, end = droppings(fn, calls)
    assert after == end
    for one, other, theirs in zip(found, again, expected, strict=True):
        np.testing.assert_allclose(one, theirs, rtol=1e-6)
        np.testing.assert_array_equal(other != 0, theirs != 0)
        np.testing.assert_allclose(other, theirs, rtol=1e-6)


def test_draws_of_sizes_and_contents_of_arguments():
    def fn(x, mean, rng):
        drawn = rng.normal(mean, 1.0, x.shape) * x
        return drawn, rng.integers(0, 5, size=x.shape[0] + 1) * 2

    def ours(x, mean):
        return fn(x, mean, OURS)

    f = pf.jit(ours, background=False)
    for n in SIZES:
        x, mean = np.linspace(0, 1, n), np.full(n, float(n))
        for found, expected in zip(f(x, mean), fn(x, mean, THEIRS), strict=True):
            np.testing.assert_array_equal(found, expected)
        assert state(OURS) == state(THEIRS)
    assert emitted_hits(f) > 3


def test_what_python_repeats_is_drawn_once():
    """A void run: the generator gets its state back, and Python draws the same numbers before it raises."""

    def fn(table, index):
        noise = pf.nn.dropout(table, 0.5)
        return noise[index] * 2

    f, table = pf.jit(fn, background=False), np.arange(1.0, 9.0)
    inside, outside = np.array([3, 1]), np.array([3, 99])
    calls = [(table, inside)] * 5
    droppings(f, calls)
    hits = emitted_hits(f)
    found, after = droppings(f, calls)
    assert emitted_hits(f) - hits == len(calls)
    with pytest.raises(IndexError):
        f(table, outside)
    raised = state()
    assert emitted_hits(f) - hits == len(calls)
    expected, end = droppings(fn, calls)
    with pytest.raises(IndexError):
        fn(table, outside)
    np.testing.assert_array_equal(found, expected)
    assert (after, raised) == (end, state())


def test_draws_beside_writes():
    def fn(x, out):
        out[...] = pf.nn.dropout(x, 0.5)
        return out.sum()

    f, x = pf.jit(fn, background=False), np.arange(1.0, 9.0)
    ours, theirs = np.zeros(8), np.zeros(8)
    calls = 6
    found, after = droppings(lambda: f(x, ours), [()] * calls)
    expected, end = droppings(lambda: fn(x, theirs), [()] * calls)
    np.testing.assert_allclose(found, expected)
    np.testing.assert_array_equal(ours, theirs)
    assert after == end
    assert emitted_hits(f) > 2


def test_a_draw_that_another_thread_has_followed_is_told():
    """The state cannot be restored then: it would take back what the other one has drawn."""
    events = []
    pf.manual_seed(1)
    f = pf.jit(lambda x: pf.nn.dropout(x, 0.5) * 2, background=False)
    f(np.ones(3))
    (variant,) = variants_of(f)
    step = variant.arguments().drawing
    before = state()
    results = step.function(np.ones(3))
    step.undo(results)
    assert state() == before
    results = step.function(np.ones(3))
    own_generator().integers(5)
    now = state()
    unsubscribe = subscribe(events.append)
    step.undo(results)
    unsubscribe()
    assert state() == now
    assert [event.kind for event in events] == ["draws-lost"]
    assert f.state().counters["lost_draws"] == 1
    assert "1 call failed when another thread had drawn from the same generator since" in f.explain()


def test_a_call_that_raises_when_another_thread_has_drawn_is_counted(monkeypatch):
    def fn(x, k):
        return (x + OURS.normal(size=3))[k]

    f, x = pf.jit(fn, background=False), np.ones(3)
    for k in range(3):
        f(x, np.array([k]))
    run = GraphCalls.run

    def followed(calls, *given):
        OURS.normal()  # as another thread may do meanwhile
        return run(calls, *given)

    with pytest.raises(IndexError):
        f(x, np.array([7]))
    assert f.state().counters["lost_draws"] == 0
    f._emission.come_to_python()
    monkeypatch.setattr(GraphCalls, "run", followed)
    with pytest.raises(IndexError):
        f(x, np.array([7]))
    assert f.state().counters["lost_draws"] == 1


def test_draws_that_are_python_numbers_stay_in_python():
    def fn(x):
        return x * OURS.random()

    f = pf.jit(fn, background=False)
    for _ in range(4):
        f(np.ones(3))
    assert "Calls are dispatched in Python: a draw is a Python number" in f.explain()
    (variant,) = variants_of(f)
    with pytest.raises(Refused, match="a Python number"):
        variant.arguments()


def test_threads_draw_each_number_once():
    """Whoever comes first draws first: together the calls draw what they would draw one after the other."""
    f, x = pf.jit(lambda x: pf.nn.dropout(x, 0.5) * 2, background=False), np.ones(64)
    calls = 40
    droppings(f, [(x,)] * 5)
    hits = emitted_hits(f)
    pf.manual_seed(8)
    with ThreadPoolExecutor(4) as pool:
        found = sorted(result.tobytes() for result in pool.map(lambda _: f(x), range(calls)))
    assert emitted_hits(f) - hits == calls
    after = state()
    pf.manual_seed(8)
    assert found == sorted(f(x).tobytes() for _ in range(calls))
    assert state() == after and len(set(found)) == calls


def test_calls_that_python_repeats_leave_no_objects():
    f, table = pf.jit(lambda table, index: pf.nn.dropout(table, 0.5)[index] * 2, background=False), np.arange(1.0, 9.0)
    outside = np.array([3, 99])

    def calls(count):
        for _ in range(count):
            f(table, np.array([3, 1]))
            with pytest.raises(IndexError):
                f(table, outside)
        gc.collect()
        return sys.getallocatedblocks()

    calls(20)
    before = calls(20)
    assert calls(200) - before < 200
