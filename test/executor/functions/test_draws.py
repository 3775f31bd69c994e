"""Draws from generators happen at each call, once and in order, whatever runs the rest."""

import copy
import operator
import threading
import time

import numpy as np
import profuse as pf
import pytest
from internals import emitted_hits
from profuse.dialect.errors import ProfuseError, TraceError

SIZES = (4, 4, 4, 7, 7, 3, 9, 9, 1, 50)
GLOBAL = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def python():
    """The default, which the other tests turn off."""
    with pf.knobs.override(unsupported="python"):
        yield


def pair(seed=5, bits=np.random.PCG64):
    return np.random.Generator(bits(seed)), np.random.Generator(bits(seed))


def same_state(a, b):
    return repr(a.bit_generator.state) == repr(b.bit_generator.state)


def check(fn, calls=None, *, bits=np.random.PCG64, **options):
    """Compare calls with plain Python's; returns the jitted function."""
    jitted = pf.jit(fn, **options)
    ours, theirs = pair(bits=bits)
    for k, args in enumerate(calls or [(np.linspace(0.1, 1, n),) for n in SIZES]):
        assert_same(jitted(ours, *args), fn(theirs, *args))
        assert same_state(ours, theirs), k
    if not options.get("background"):  # else Python draws while code is under way
        assert jitted.state().counters["python_calls"] == 0
    assert jitted.state().tier != "python"
    return jitted


def assert_same(found, expected):
    assert isinstance(found, np.ndarray) == isinstance(expected, np.ndarray)
    if isinstance(expected, tuple):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            assert_same(a, b)
        return
    assert np.shape(found) == np.shape(expected)
    assert np.asarray(found).dtype == np.asarray(expected).dtype
    np.testing.assert_array_equal(found, expected)


_METHODS = [  # no dict: no line of one could be compiled alone
    ("random", lambda g, x: g.random(x.shape) + x),
    ("random, float32", lambda g, x: g.random(x.shape[0], dtype=np.float32) * 2),
    ("random, one", lambda g, x: x + g.random()),
    ("standard_normal", lambda g, x: g.standard_normal(len(x)) * x),
    ("normal", lambda g, x: x + g.normal(size=x.shape)),
    ("normal of arrays", lambda g, x: x + g.normal(x, 2.0)),
    ("normal, one", lambda g, x: x * g.normal(0.5, 2.0)),
    ("uniform", lambda g, x: x - g.uniform(-1, 1, (3, x.shape[0]))),
    ("integers", lambda g, x: x * g.integers(0, 10, size=x.shape[0])),
    ("integers below a size", lambda g, x: x[g.integers(x.shape[0], size=6)] * 2),
    ("integers, one", lambda g, x: (x.astype("f4") * g.integers(5), g.integers(3, dtype=np.int8) + x)),
    ("integers, one returned", lambda g, x: (x * 2, g.integers(9), g.integers(9) * 2)),
    ("exponential", lambda g, x: x * g.exponential(2.0, x.shape)),
    ("standard_exponential", lambda g, x: x * g.standard_exponential(x.shape[0] * 2)[::2]),
    ("gamma", lambda g, x: g.gamma(x, 2.0) + x),
    ("beta", lambda g, x: g.beta(x, x, size=(2, x.shape[0])) + x),
    ("poisson", lambda g, x: g.poisson(3.0, x.shape) + x),
    ("poisson of gamma", lambda g, x: g.poisson(g.gamma(2.0, 1.0, x.shape)) + x),
    ("binomial", lambda g, x: g.binomial(5, 0.5, x.shape) * x),
    ("choice", lambda g, x: g.choice(x, size=5) * 2),
    ("choice of a size", lambda g, x: x[g.choice(x.shape[0], 4, p=None)] + 1),
    ("permutation", lambda g, x: g.permutation(x) + x),
    ("permutation of a size", lambda g, x: x[g.permutation(x.shape[0])] * 2),
]
METHODS = dict(_METHODS)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("background", [False, True])
def test_methods(name, background):
    check(METHODS[name], background=background)


@pytest.mark.parametrize("bits", [np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_bit_generators(bits):
    check(lambda g, x: g.random(x.shape, np.float32) + x.astype("f4"), bits=bits)


def test_native_plans_are_not_recompiled_for_draws():
    f = check(lambda g, x: (x + g.normal(size=x.shape)) * 2, background=False)
    counters = f.state().counters
    assert f.state().tier == "optimized" and counters["traces"] == 1
    assert emitted_hits(f) > 2


def test_draws_stay_in_order_and_unused_ones_happen():
    def fn(g, x):
        a = g.random(x.shape)
        g.integers(0, 100, size=x.shape[0])
        g.standard_normal()
        b = g.random(x.shape)
        return b * 2, a + x

    check(fn, background=False)
    check(fn, strategy=[])


def test_two_draws_of_the_same_kind_are_two():
    check(lambda g, x: g.random(x.shape) - g.random(x.shape) + x, background=False)


def test_draws_may_be_written_and_returned():
    def fn(g, x):
        a = g.normal(size=x.shape)
        first = a.copy()
        a *= 2
        a[0] = 5
        return a, first, g.random(3), g.random()

    check(fn, background=False)


def test_two_generators_and_one_under_two_names():
    def fn(a, b, x):
        return a.random(x.shape) + b.random(x.shape) * 2 + a.random(x.shape) * x

    f, (ours, theirs), (more, plain) = pf.jit(fn, background=False), pair(1), pair(2)
    for n in SIZES:
        x = np.ones(n)
        np.testing.assert_array_equal(f(ours, more, x), fn(theirs, plain, x))
        np.testing.assert_array_equal(f(ours, b=ours, x=x), fn(theirs, theirs, x))
        assert same_state(ours, theirs) and same_state(more, plain)
    assert f.state().counters["python_calls"] == 0


class Noise:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.scale = 2.0

    @pf.jit(background=False)
    def __call__(self, x):
        return x + self.rng.normal(0.0, self.scale, x.shape)

    def plain(self, x):
        return x + self.rng.normal(0.0, self.scale, x.shape)


def test_generators_in_attributes_globals_and_cells():
    rng, other = pair(3)

    @pf.jit(background=False)
    def of_a_cell(x):
        return rng.random(x.shape) + x

    @pf.jit(background=False)
    def of_a_global(x):
        return GLOBAL.random(x.shape) * x

    noise, plain = Noise(4), Noise(4)
    before = GLOBAL.bit_generator.state
    found = []
    for n in SIZES:
        x = np.ones(n)
        np.testing.assert_array_equal(of_a_cell(x), other.random(n) + x)
        np.testing.assert_array_equal(noise(x), plain.plain(x))
        found.append(of_a_global(x))
        assert same_state(rng, other) and same_state(noise.rng, plain.rng)
    GLOBAL.bit_generator.state = before
    for n, made in zip(SIZES, found, strict=True):
        np.testing.assert_array_equal(made, GLOBAL.random(n) * 1.0)
    for f in (of_a_cell, of_a_global, Noise.__dict__["__call__"]):
        assert f.state().counters["python_calls"] == 0
    noise.rng, plain.rng = pair(9)  # another generator of the same name
    np.testing.assert_array_equal(noise(x), plain.plain(x))
    assert same_state(noise.rng, plain.rng)


def test_generators_that_are_defaults():
    rng, other = pair(3)

    def fn(x, g=rng):
        return g.random(x.shape) + x

    f = pf.jit(fn, background=False)
    for n in SIZES:
        np.testing.assert_array_equal(f(np.ones(n)), fn(np.ones(n), other))
        assert same_state(rng, other)
        np.testing.assert_array_equal(f(np.ones(n), other), fn(np.ones(n)))
        assert same_state(rng, other)
    assert f.state().counters["python_calls"] == 0


def test_generators_that_are_compared():
    f = pf.jit(lambda g, x: g.random(3) * 0 + x + (g is GLOBAL))
    for g in (np.random.default_rng(1), GLOBAL, np.random.default_rng(1)):
        np.testing.assert_array_equal(f(g, np.ones(3)), np.ones(3) + (g is GLOBAL))


def test_arrays_from_outside_are_read_anew():
    means = {"m": np.zeros(3)}
    f, (ours, theirs) = pf.jit(lambda g: g.normal(means["m"], 1.0) * 2, background=False), pair()
    for k in range(6):
        np.testing.assert_array_equal(f(ours), theirs.normal(means["m"], 1.0) * 2)
        assert same_state(ours, theirs)
        if k == 3:
            means["m"] = np.full(5, 9.0)
        else:
            means["m"] += k


def test_a_global_that_is_also_the_argument_runs_in_python():
    def fn(g, x):
        return g.random(x.shape) + GLOBAL.random(x.shape) * 2 + (g is GLOBAL)

    f = pf.jit(fn, background=False)
    start = GLOBAL.bit_generator.state
    for generator in (np.random.default_rng(1), GLOBAL, np.random.default_rng(2)):
        state = generator.bit_generator.state
        GLOBAL.bit_generator.state = start
        found, after = f(generator, np.ones(3)), GLOBAL.bit_generator.state
        generator.bit_generator.state, GLOBAL.bit_generator.state = state, start
        np.testing.assert_array_equal(found, fn(generator, np.ones(3)))
        assert repr(GLOBAL.bit_generator.state) == repr(after)


def test_sizes_from_numbers_and_attributes_that_are_assigned():
    def fn(g, n, scale):
        return g.normal(0.0, scale, (n, n + 1)).sum() * 0 + g.random(2 * n).shape[0]

    check(fn, [(n, 1.5 + n) for n in (2, 3, 4, 5, 6, 7)], background=False)


def test_sizes_that_python_needs_are_guarded():
    def fn(g, x):
        drawn, total = g.random(x.shape[0]), 0.0
        for k in range(drawn.shape[0]):
            total = total + drawn[k]
        return total

    check(fn, [(np.ones(n),) for n in (2, 3, 2, 3, 4)], background=False)


def test_sizes_of_draws_follow_from_the_arguments():
    def fn(g, x, n):
        a = g.random((x.shape[0], n))
        b = g.normal(size=a.shape)
        return (a * b).reshape(a.shape[0] * a.shape[1]), g.random(2 * b.shape[1])

    f = check(fn, [(np.ones(k), k + 1) for k in (2, 3, 3, 3, 4, 5, 6)], background=False)
    assert f.state().counters["traces"] == 2  # for one n, then for all


def test_writes_to_arguments_beside_draws():
    def fn(g, x):
        x += g.random(x.shape)
        return g.random(x.shape) * 2

    f, (ours, theirs) = pf.jit(fn, background=False), pair()
    for n in SIZES:
        x, y = np.ones(n), np.ones(n)
        np.testing.assert_array_equal(f(ours, x), fn(theirs, y))
        np.testing.assert_array_equal(x, y)
        assert same_state(ours, theirs)
    assert f.state().counters["python_calls"] == 0


class State:
    pass


def test_effects_on_containers_and_attributes_beside_draws():
    """What calls assign is numbered behind the draws."""

    def fn(g, x, d, state):
        d["n"] += 1
        d["a"] = g.normal(0.0, state.scale, d["n"])
        state.scale *= 1.5
        state.w[state.i] = g.random()
        state.i = (state.i + 1) % 4
        d["a"][0] = x[0]
        return d, d["a"] + g.random(d["n"]), g.random()

    def made():
        state = State()
        state.scale, state.w, state.i = 1.0, np.ones(4), 0
        return np.random.default_rng(3), {"n": 2, "a": None}, state

    for options in ({}, {"strategy": []}):
        (g, d, ours), (h, e, theirs) = made(), made()
        f = pf.jit(lambda g, x, d: fn(g, x, d, ours), background=False, **options)  # noqa: B023
        for k in range(7):
            x = np.arange(3.0) + k
            found, expected = f(g, x, d), fn(h, x, e, theirs)
            assert found[0] is d and d["n"] == e["n"]
            assert_same((d["a"], *found[1:]), (e["a"], *expected[1:]))
            assert_same(ours.w, theirs.w)
            assert (ours.scale, ours.i) == (theirs.scale, theirs.i) and same_state(g, h)
        assert f.state().counters["python_calls"] == 0


def test_misses_and_fallbacks_draw_once():
    def fn(g, x):
        return np.tanh(x + g.normal(size=x.shape)).astype(x.dtype)

    calls = [(np.ones((k % 3 + 1, n)),) for k, n in enumerate(SIZES)]
    strided = [(np.ones((6, 8))[::2, ::2],), (np.ones((6, 8)).T,)]
    f = pf.jit(fn, background=False)
    ours, theirs = pair()
    for args in calls + strided:
        np.testing.assert_allclose(f(ours, *args), fn(theirs, *args), rtol=1e-12)
        assert same_state(ours, theirs)
    assert f.state().counters["guard_misses"] > 0 and f.state().counters["python_calls"] == 0


# --- errors -------------------------------------------------------------------------------------


def both_raise(fn, f, ours, theirs, *args):
    with pytest.raises(Exception) as plain:
        fn(theirs, *args)
    with pytest.raises(plain.type):
        f(ours, *args)
    assert same_state(ours, theirs)


@pytest.mark.parametrize("unsupported", ["python", "raise"])
def test_calls_that_raise_leave_what_numpy_leaves(unsupported):
    def between(g, x, w):
        a = g.random(x.shape)
        b = np.linalg.inv(w)  # fails for some contents
        return a + x, b, g.random(x.shape)

    def shapes(g, x, w):
        a = g.random(x.shape)
        return a @ w + g.random()

    def scale(g, x, w):
        return g.random(x.shape) + g.normal(0.0, w, 2).sum()

    good, bad = np.eye(2), np.zeros((2, 2))
    for fn, fits, fails in (
        (between, (np.ones(3), good), (np.ones(3), bad)),
        (shapes, (np.ones(2), good), (np.ones(3), good)),
        (scale, (np.ones(3), np.ones(2)), (np.ones(3), -np.ones(2))),
    ):
        for first in (False, True):  # the first call of all, and later ones
            f = pf.jit(fn, background=False, unsupported=unsupported)
            ours, theirs = pair()
            if first:
                both_raise(fn, f, ours, theirs, *fails)
            for _ in range(4):
                assert_same_nearly(f(ours, *fits), fn(theirs, *fits))
                assert same_state(ours, theirs)
            for _ in range(3):
                both_raise(fn, f, ours, theirs, *fails)


def assert_same_nearly(found, expected):
    for a, b in zip(
        np.atleast_1d(found) if not isinstance(found, tuple) else found,
        np.atleast_1d(expected) if not isinstance(expected, tuple) else expected,
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=1e-12)


# --- what stays in Python -----------------------------------------------------------------------


def _caught(g, x):
    try:
        return g.normal(0.0, x[:1].sum() * 0 + 1, x.shape)
    except ValueError:
        return x


def _chosen(g, x):
    return pf.cond(x.sum() > 0, lambda: g.random(3), lambda: np.zeros(3))


_LEFT = [  # no dict: no line of one could be compiled alone
    ("shuffle", lambda g, x: (g.shuffle(x), x)[1]),
    ("out=", lambda g, x: g.random(out=x) + 1),
    ("out", lambda g, x: g.standard_normal(x.shape, np.float64, x) + 1),
    ("other methods", lambda g, x: g.laplace(size=x.shape) + x),
    ("computed arguments", lambda g, x: g.normal(np.exp(x)) + x),
    ("a size that is drawn", lambda g, x: g.random(int(g.poisson(5))) * 2),
    ("a size in an array", lambda g, x: g.random(np.array([2, 3])[: x.ndim + 1]) * 2),
    ("contents that decide", lambda g, x: x if g.random() > 0.5 else x * 2),
    ("the state", lambda g, x: x + g.bit_generator.state["has_uint32"] + g.random()),
    ("spawn", lambda g, x: g.spawn(1)[0].random(x.shape) + x),
    ("a copy", lambda g, x: x + copy.deepcopy(g).random(x.shape) + g.random()),
    ("after a write", lambda g, x: (x.__iadd__(1), g.normal(x))[1]),
    ("caught", _caught),
    ("a branch", _chosen),
]
LEFT = dict(_LEFT)


@pytest.mark.parametrize("name", LEFT)
def test_what_stays_in_python(name):
    fn = LEFT[name]
    f, (ours, theirs) = pf.jit(fn), pair()
    for n in SIZES[:7]:
        np.testing.assert_array_equal(f(ours, np.ones(n)), fn(theirs, np.ones(n)))
        assert same_state(ours, theirs)
    assert f.state().counters["python_calls"] == 7 and f.state().tier == "python"
    ours, theirs = pair()
    with pytest.raises(TraceError):
        pf.jit(fn, unsupported="raise")(ours, np.ones(3))
    assert same_state(ours, theirs)


def test_sizes_in_arrays_that_are_arguments():
    f, (ours, theirs) = pf.jit(lambda g, n: g.random(n) + 1), pair()
    for k in (2, 3, 4):
        for n in (np.int64(k), np.array([k, 2])):
            np.testing.assert_array_equal(f(ours, n), theirs.random(n) + 1)


def test_graphs_are_made_where_others_would_raise():
    f, (ours, theirs) = pf.jit(METHODS["normal"], unsupported="raise", background=False), pair()
    for n in SIZES:
        assert_same(f(ours, np.ones(n)), METHODS["normal"](theirs, np.ones(n)))
        assert same_state(ours, theirs)


def test_gradients_of_what_is_drawn():
    """A function that is differentiated runs once for each call, and so draws once."""
    (ours, theirs), x = pair(), np.ones(3)
    of_argument = pf.grad(lambda x, g: (x * g.random(x.shape)).sum(), background=False)
    of_name = pf.grad(lambda x: (x * ours.random(x.shape)).sum(), background=False)
    inside = pf.jit(lambda g, x: pf.grad(lambda y: (y * g.random(3)).sum())(x), unsupported="raise", background=False)
    for _ in range(4):
        for grad, args in ((of_argument, (x, ours)), (of_name, (x,)), (inside, (ours, x))):
            np.testing.assert_array_equal(grad(*args), theirs.random(3))
            assert same_state(ours, theirs)


def test_what_checkpoint_would_draw_again_is_refused():
    (ours, theirs), x = pair(), np.ones(3)
    for fn in (lambda x, g: (x * g.random(x.shape)).sum(), lambda x, g: (np.sin(x) * ours.random(3)).sum()):
        with pytest.raises(ProfuseError):
            pf.grad(pf.checkpoint(fn))(x, ours)
    assert same_state(ours, theirs)


def test_jitted_functions_that_call_each_other():
    inner = pf.jit(lambda g, x: x + g.random(x.shape), background=False)
    check(lambda g, x: inner(g, x * 2) + g.random(), background=False)


def test_generators_that_nobody_draws_from(tmp_path):
    f, (ours, theirs) = pf.jit(lambda g, x: x * 2, background=False), pair()
    for n in SIZES:
        np.testing.assert_array_equal(f(ours, np.ones(n)), np.full(n, 2.0))
    assert f.state().counters["python_calls"] == 0 and same_state(ours, theirs)
    f.save(tmp_path / "f")


def test_hidden_draws_are_seen():
    hidden = [operator.methodcaller("permutation", 3), operator.methodcaller("random", 3)]
    for draw in hidden:
        f, (ours, theirs) = pf.jit(lambda g, x, draw=draw: draw(g) + x), pair()
        for _ in range(3):
            np.testing.assert_array_equal(f(ours, np.ones(3)), draw(theirs) + 1)
            assert same_state(ours, theirs)
        assert f.state().tier == "python"


def test_without_profiling_and_under_stress():
    def fn(g, x):
        return (x + g.random(x.shape)) * g.random()

    with pf.knobs.override(profiling_mode=False):
        check(fn, background=False)
    with pf.knobs.override(stress="guards:k=2,seed=1"):
        check(fn, background=False)


def test_draws_while_others_draw_during_traces():
    """No number is drawn twice where graphs are made while other threads draw."""
    ours, theirs = pair()
    found, done = [], threading.Event()

    def work():
        while not done.is_set():
            found.extend(ours.random(4).tolist())
            time.sleep(1e-4)

    thread = threading.Thread(target=work)
    thread.start()
    for _ in range(20):
        found.extend((pf.jit(lambda g, x: g.random(x.shape) + x * 0)(ours, np.ones(3))).tolist())
    done.set()
    thread.join()
    assert sorted(found) == sorted(theirs.random(len(found)).tolist()) and same_state(ours, theirs)


def test_calls_on_the_tape_run_in_python():
    def fn(g, x):
        return (x * g.random(x.shape)).sum()

    f, (ours, theirs) = pf.jit(fn, background=False), pair()
    for _ in range(4):
        x = pf.array(np.ones(3), requires_grad=True)
        f(ours, x).backward()
        np.testing.assert_array_equal(x.grad, theirs.random(3))
        assert same_state(ours, theirs)
        np.testing.assert_allclose(f(ours, np.ones(3)), fn(theirs, np.ones(3)), rtol=1e-12)
        assert same_state(ours, theirs)


def test_generators_that_share_their_bits():
    bits, plain = np.random.PCG64(1), np.random.PCG64(1)

    def fn(a, b, x):
        return a.random(x.shape) + b.random(x.shape) * 2 + a.random(3)[x]

    f = pf.jit(fn, background=False)
    ours, theirs = [[np.random.Generator(b) for _ in range(2)] for b in (bits, plain)]
    for _ in range(4):
        assert_same(f(*ours, np.arange(3)), fn(*theirs, np.arange(3)))
    with pytest.raises(IndexError):
        fn(*theirs, np.arange(4))
    with pytest.raises(IndexError):
        f(*ours, np.arange(4))
    assert same_state(ours[0], theirs[0])


def test_threads_share_a_generator():
    f, (ours, theirs) = pf.jit(lambda g, x: g.random(x.shape) * 2.0, background=False), pair()
    x, rows = np.ones(8), []
    f(ours, x), f(ours, x), theirs.random(16)

    def work():
        rows.extend([f(ours, x) for _ in range(100)])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = sorted(map(tuple, theirs.random((400, 8)) * 2.0))
    assert sorted(map(tuple, rows)) == expected and same_state(ours, theirs)
