"""Functions that draw random numbers, in emitted code: each call draws once, also where Python repeats it."""

import gc
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import profuse as pf
import pytest
from internals import emitted_hits, variants_of
from profuse.dialect.importers.numpy.python.generators import own_generator
from profuse.executor.functions.graph_runs import GraphRuns
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
    run = GraphRuns.run

    def followed(calls, *given):
        OURS.normal()  # as another thread may do meanwhile
        return run(calls, *given)

    with pytest.raises(IndexError):
        f(x, np.array([7]))
    assert f.state().counters["lost_draws"] == 0
    f._emission.come_to_python()
    monkeypatch.setattr(GraphRuns, "run", followed)
    with pytest.raises(IndexError):
        f(x, np.array([7]))
    assert f.state().counters["lost_draws"] == 1


_NUMBERS = [  # no dict: no line of one could be compiled alone
    ("a float", lambda g, x: x * g.random()),
    ("a float and an array", lambda g, x: x * g.normal(0.5, 2.0) + g.random(x.shape)),
    ("a float that is returned", lambda g, x: (x * 2, g.random())),
    ("what is computed of it", lambda g, x: x * (g.random() * 2 + 1) - 3 * g.normal()),
    ("one between bounds that are drawn", lambda g, x: x + g.uniform(g.random(), 2.0)),
    ("an int", lambda g, x: x * g.poisson(3.0)),
    ("an int that is returned", lambda g, x: (x - 1, g.poisson(3.0))),
    ("a bool", lambda g, x: x * g.integers(2, dtype=bool)),
    ("a NumPy scalar", lambda g, x: x.astype(np.float32) * g.integers(5)),
    ("NumPy scalars that are computed with", lambda g, x: (g.integers(5) + 1) * x + g.integers(3, dtype=np.int8)),
    ("an element at a place that is drawn", lambda g, x: x[g.integers(3)] * x),
]
NUMBERS = dict(_NUMBERS)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", NUMBERS)
def test_draws_of_single_numbers(name):
    fn, generators = NUMBERS[name], (np.random.default_rng(3), np.random.default_rng(3))
    f = pf.jit(fn, background=False)
    for n in (*SIZES, *SIZES):
        x = np.linspace(0, 1, n + 2)
        assert_same(f(generators[0], x), fn(generators[1], x))
        assert state(generators[0]) == state(generators[1])
    # Fallbacks behind a missed guard give what they compute, and no number that was there before.
    assert emitted_hits(f) > (3 if "returned" in name else 14) and f.state().counters["python_calls"] == 0
    assert "dispatched in Python" not in f.explain()


def assert_same(found, expected):
    if isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
        return
    assert type(found) is type(expected) and np.asarray(found).dtype == np.asarray(expected).dtype
    # Of a product that is added to, code as users get it rounds once what NumPy rounds twice.
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)


# --- generators that are arguments ---------------------------------------------------------------


def seeded(*seeds, bits=np.random.PCG64):
    return [np.random.Generator(bits(seed)) for seed in seeds]


def test_generators_among_the_arguments():
    """Any generator will do, at any place, as long as different ones are different ones."""

    def fn(x, a, b, scale=1.0):
        return a.random(x.shape) * scale + b.normal(size=len(x)) * x - a.random()

    f, ours, theirs = pf.jit(fn, background=False), seeded(1, 2), seeded(1, 2)
    x = np.ones(5)
    for _ in range(5):
        np.testing.assert_allclose(f(x, *ours), fn(x, *theirs), rtol=1e-12)
        np.testing.assert_allclose(f(x, b=ours[1], a=ours[0]), fn(x, b=theirs[1], a=theirs[0]), rtol=1e-12)
        np.testing.assert_allclose(f(x, ours[0], ours[0]), fn(x, theirs[0], theirs[0]), rtol=1e-12)
    hits, others = emitted_hits(f), seeded(7, 8)
    assert hits == 9 and "dispatched in Python" not in f.explain()
    f(x, *others), f(x, *ours), f(x, others[1], others[1])
    assert emitted_hits(f) - hits == 3
    copies = seeded(7, 8)
    fn(x, *copies), fn(x, *theirs), fn(x, copies[1], copies[1])
    assert list(map(state, [*ours, *others])) == list(map(state, [*theirs, *copies]))


def test_a_generator_that_the_graph_is_not_made_for_is_pythons():
    """The function draws from one by name, and in turn: the same one as an argument is another order of draws."""

    def fn(x, g):
        return OURS.random(x.shape) + g.random(x.shape) * x

    def numpys(x, g):
        return THEIRS.random(x.shape) + g.random(x.shape) * x

    THEIRS.bit_generator.state = OURS.bit_generator.state
    f, (ours, theirs), x = pf.jit(fn, background=False), seeded(4, 4), np.arange(4.0)
    for _ in range(5):
        np.testing.assert_array_equal(f(x, ours), numpys(x, theirs))
    hits = emitted_hits(f)
    np.testing.assert_array_equal(f(x, OURS), numpys(x, THEIRS))
    assert emitted_hits(f) == hits > 0 and state(OURS) == state(THEIRS)
    np.testing.assert_array_equal(f(x, ours), numpys(x, theirs))
    assert emitted_hits(f) == hits + 1


class Noting(np.random.PCG64):
    """A generator of bits that may keep more than NumPy's do."""


def test_generators_that_keep_more_than_a_state_are_pythons():
    def fn(x, g):
        return g.random(x.shape) * x

    f, (ours, theirs), x = pf.jit(fn, background=False), seeded(4, 4), np.arange(4.0)
    (other,), (same,) = seeded(6, bits=Noting), seeded(6, bits=Noting)
    for _ in range(5):
        np.testing.assert_array_equal(f(x, ours), fn(x, theirs))
    hits, calls = emitted_hits(f), f.state().counters["python_calls"]
    np.testing.assert_array_equal(f(x, other), fn(x, same))
    assert emitted_hits(f) == hits > 0 and f.state().counters["python_calls"] == calls + 1
    assert state(other) == state(same)


def test_what_is_no_generator_is_no_hit():
    class Fixed:
        def random(self, shape):
            return np.full(shape, 0.25)

    f, x = pf.jit(lambda x, g: g.random(x.shape) * x, background=False), np.arange(4.0)
    (ours,) = seeded(4)
    for _ in range(5):
        f(x, ours)
    hits = emitted_hits(f)
    np.testing.assert_array_equal(f(x, Fixed()), x * 0.25)
    assert emitted_hits(f) == hits > 0


def test_a_void_run_takes_back_what_an_argument_has_drawn():
    def fn(table, index, g):
        return (table * g.random(8))[index] * g.random()

    f, table, (ours, theirs) = pf.jit(fn, background=False), np.arange(1.0, 9.0), seeded(4, 4)
    inside, outside = np.array([3, 1]), np.array([3, 99])
    for _ in range(5):
        np.testing.assert_array_equal(f(table, inside, ours), fn(table, inside, theirs))
    hits = emitted_hits(f)
    for call, generator in ((f, ours), (fn, theirs)):
        with pytest.raises(IndexError):
            call(table, outside, generator)
    assert emitted_hits(f) == hits > 0 and state(ours) == state(theirs)


def test_generators_that_draw_nothing_and_writes_beside_draws():
    def unused(x, g):
        return x * 2 if g is not None else x

    def writes(x, out, g):
        out[...] = g.random(x.shape) * x
        return out.sum() + g.random()

    (ours, theirs), x = seeded(4, 4), np.arange(8.0)
    f, g = pf.jit(unused, background=False), pf.jit(writes, background=False)
    one, other = np.zeros(8), np.zeros(8)
    for _ in range(6):
        np.testing.assert_array_equal(f(x, ours), x * 2)
        np.testing.assert_allclose(g(x, one, ours), writes(x, other, theirs))
        np.testing.assert_array_equal(one, other)
    assert state(ours) == state(theirs)
    assert emitted_hits(f) > 3 and emitted_hits(g) > 2


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
