"""What a function assigns to attributes and items, and writes into arrays from outside."""

import copy
import functools
import gc
import threading
import types

import numpy as np
import profuse as pf
import pytest
from internals import same


@pytest.fixture(autouse=True)
def python():
    """The default, which the other tests turn off."""
    with pf.knobs.override(unsupported="python"):
        yield


class Model:
    def __init__(self):
        rng = np.random.default_rng(0)
        self.x, self.w = rng.random(4), rng.random((4, 4))
        self.t, self.rate, self.last, self.kind = 0, 0.5, None, "a"
        self.pair = (rng.random(2), 3)
        self.moments = [rng.random(4), rng.random(4)]
        self.cache = {"k": rng.random(3), "n": 1}
        self.child = types.SimpleNamespace(bias=rng.random(4), parent=self)


def assigns(m, x):
    m.x = m.w @ m.x + x
    return m.x.sum()


def counts(m, x):
    m.t += 1
    return x * (1 - 0.9**m.t)


def writes(m, x):
    m.w *= 0.5
    m.w[0] += x
    m.moments[1][1:] = x[1:]
    return m.w @ x


def fills(m, x):
    if m.last is None:
        m.last = np.zeros_like(x)
    m.last = 0.9 * m.last + x
    return m.last * 2


def swaps(m, x):
    m.x, m.moments[0] = m.moments[0], m.x
    return x + m.x


def items(m, x):
    m.cache["k"] = m.cache["k"] * 2
    m.cache["n"] += 2
    m.moments[0] = m.moments[0] + x
    return m.cache["k"].sum() + m.cache["n"]


def below(m, x):
    m.child.bias = m.child.bias - x
    m.child.parent.rate *= 0.5
    return m.child.bias * m.rate


def through_views(m, x):
    row = m.w[1]
    row += x
    m.w.T[2] = x
    return m.w.sum(axis=0), row.copy()


def new_names(m, x):
    m.made = x + 1
    m.label = "b"
    return m.made


def returns_what_it_keeps(m, x):
    m.x = x * 2
    return m.x


def keeps_what_was(m, x):
    m.last = m.x
    m.x = x + 1
    return m.last + m.x


def methods(m, x):
    Model.bump(m, 2)
    return m.rate * x


def bump(self, by):
    self.rate += by


Model.bump = bump
FUNCTIONS = [
    assigns,
    counts,
    writes,
    fills,
    swaps,
    items,
    below,
    through_views,
    new_names,
    returns_what_it_keeps,
    keeps_what_was,
    methods,
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_calls_write_what_numpy_writes(function):
    ours = Model()
    theirs = copy.deepcopy(ours)
    f = pf.jit(function)
    for k in range(8):
        x = np.linspace(0.1, k + 1.0, 4)
        same(f(ours, x), function(theirs, x))
        same(ours, theirs)
        f.wait()
    counters = f.state().counters
    assert (counters["python_calls"], f.state().tier) == (0, "optimized")
    # These find an array in the place of None, or of nothing, at their second call.
    again = (fills, keeps_what_was, new_names)
    assert counters["traces"] == (2 if function in again else 1)


def test_arrays_that_are_written_stay_the_same_objects():
    m, f = Model(), pf.jit(writes)
    w = m.w
    for _ in range(4):
        f(m, np.ones(4))
    assert m.w is w


def test_an_object_that_is_kept_is_the_one_that_was_there():
    m, f = Model(), pf.jit(keeps_what_was)
    for _ in range(4):
        before = m.x
        f(m, np.ones(4))
        assert m.last is before
    g = pf.jit(returns_what_it_keeps)
    for _ in range(4):
        assert g(m, np.ones(4)) is m.x


def test_what_others_bind_anew_is_seen():
    m, f = Model(), pf.jit(assigns)
    for k in range(4):
        m.x = np.full(4, float(k))
        expected = m.w @ m.x + 1
        f(m, np.ones(4))
        np.testing.assert_allclose(m.x, expected)
    assert f.state().counters["traces"] == 1
    m.x = np.ones(4, dtype=np.float32)  # a graph of its own
    expected = m.w @ m.x + 1
    f(m, np.ones(4))
    np.testing.assert_allclose(m.x, expected)
    m.w = np.eye(4)
    f(m, np.zeros(4))
    np.testing.assert_allclose(m.x, expected)


def test_arrays_that_plain_code_computes_with_are_read_at_each_call():
    held, m = np.ones(3), Model()

    @pf.jit
    def f(x):
        doubled = held * 2
        return x + doubled + m.x[:3] * 3

    for k in range(5):
        held[:], m.x[:] = k, 2 * k
        assert f(np.zeros(3)).tolist() == [8.0 * k] * 3
    assert f.state().counters["traces"] == 1


def test_captured_arrays_are_written():
    total = np.zeros(3)

    @pf.jit
    def add(x):
        total[...] += x
        return total.sum()

    for k in range(1, 6):
        assert add(np.ones(3)) == 3.0 * k
    assert total.tolist() == [5.0] * 3
    assert add.state().counters["python_calls"] == 0


def test_arrays_that_share_memory_are_left_to_python():
    m = Model()
    m.x = m.w[0]
    theirs = copy.deepcopy(m)
    theirs.x = theirs.w[0]

    def f(m, x):
        m.w += x
        return m.x * 2

    jitted = pf.jit(f)
    for _ in range(4):
        np.testing.assert_allclose(jitted(m, np.ones(4)), f(theirs, np.ones(4)))
    np.testing.assert_allclose(m.w, theirs.w)
    assert jitted.state().counters["python_calls"] == 4


def test_a_call_that_fails_leaves_what_numpy_leaves():
    def f(m, x, i):
        m.t += 1
        m.x = m.x + x[i]
        m.last = x[i + 1]
        return m.x

    ours, theirs, jitted = Model(), Model(), pf.jit(f)
    for i in (0, 1, 3, 2, 9, 0):
        results = []
        for function, m in ((jitted, ours), (f, theirs)):
            try:
                results.append(function(m, np.arange(4.0), i))
            except IndexError as error:
                results.append(type(error).__mro__[-4:])
        same(*results)
        same(ours, theirs)
        jitted.wait()


def test_what_is_cached_is_computed_once():
    class Cached:
        def __init__(self):
            self.w, self.table = np.ones(2), {}

        @functools.cached_property
        def total(self):
            return self.w.sum()

        def step(self, x):
            if "first" not in self.table:
                self.table["first"] = x * 2
            return x * self.total + self.table["first"]

    ours, theirs, f = Cached(), Cached(), pf.jit(Cached.step)
    for k in range(5):
        ours.w[:] = theirs.w[:] = k
        x = np.full(2, k + 1.0)
        np.testing.assert_allclose(f(ours, x), theirs.step(x))
        same(ours, theirs)


def test_no_shadow_is_finalised_and_sentinels_are_themselves():
    closed = []

    class Handle:
        def __init__(self):
            self.number, self.w = 3, np.ones(2)

        def __del__(self):
            closed.append(self.number)

    class Mode:
        def __init__(self, name):
            self.name = name

    Mode.FAST = Mode("fast")
    model = types.SimpleNamespace(handle=Handle(), mode=Mode.FAST, x=np.ones(2))

    @pf.jit
    def f(m, x):
        m.x = m.x + m.handle.w * x
        return m.x if m.mode is Mode.FAST else x

    for k in range(1, 4):
        assert f(model, np.ones(2)).tolist() == [k + 1.0] * 2
    gc.collect()
    assert not closed


def test_what_no_graph_can_repeat_runs_in_python():
    def f(m, x):
        m.moments.append(x)
        del m.kind
        m.kind = "c"
        return x

    ours, theirs, jitted = Model(), Model(), pf.jit(f)
    for _ in range(3):
        same(jitted(ours, np.ones(2)), f(theirs, np.ones(2)))
    same(ours.moments, theirs.moments)
    assert ours.kind == "c" and jitted.state().counters["python_calls"] == 3


def reorders(m, x):
    last = m.x
    del m.x
    m.x = last + x
    return x * 2


def test_the_order_of_attributes_is_that_of_python():
    model, f = Model(), pf.jit(lambda x: reorders(model, x))
    start, x = model.x, np.ones(4)
    for call in range(1, 5):
        same(f(x), x * 2)
        f.wait()
        same(model.x, start + call)
        assert list(vars(model))[-1] == "x"
    assert f.state().counters["python_calls"] == 4


def test_a_number_that_decides_and_changes_runs_in_python():
    def f(m, x):
        m.t += 1
        return x[: m.t] if m.t % 2 else x

    m, jitted = Model(), pf.jit(f)
    assert [len(jitted(m, np.ones(4))) for _ in range(4)] == [1, 4, 3, 4]
    assert jitted.state().counters["python_calls"] == 4


def test_other_threads_never_see_a_traced_value():
    m, seen, done = Model(), [], threading.Event()

    def look():
        while not done.is_set():
            seen.extend(v for v in (m.x, m.t, m.w, m.cache["k"]) if type(v) not in (np.ndarray, int))

    thread = threading.Thread(target=look)
    thread.start()
    for k in range(1, 12):
        x = np.ones((4,) * (k % 3 + 1))
        pf.jit(lambda m, x: (counts(m, x), items(m, np.ones(4))))(m, x)
    done.set()
    thread.join()
    assert not seen and m.t == 11


def test_threads_with_objects_of_their_own():
    f, failures = pf.jit(assigns), []

    def run(k):
        ours, theirs = Model(), Model()
        for n in range(12):
            x = np.full(4, float(n + k))
            if not np.allclose(f(ours, x), assigns(theirs, x)) or not np.allclose(ours.x, theirs.x):
                failures.append((k, n))

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_classes_of_code_that_runs_in_globals_without_a_name():
    """Their module is "builtins", as that of built-in classes is."""
    scope = {"np": np}
    exec(
        "class State:\n    pass\nS = State()\nS.w, S.n = np.ones(3), 0\n"
        "def f(x):\n    S.w = S.w + x\n    S.n += 1\n    return x * 2\n",
        scope,
    )
    f, state = pf.jit(scope["f"]), scope["S"]
    assert type(state).__module__ == "builtins"
    for k in range(1, 5):
        f(np.ones(3))
        f.wait()
        assert (state.w.tolist(), state.n) == ([1.0 + k] * 3, k)


class Decoder:
    """Keys of earlier steps are kept in an array that is filled row by row."""

    def __init__(self):
        self.keys, self.n, self.w = np.zeros((2, 16, 3)), 2, np.eye(3)

    def step(self, x, row):
        self.keys[0, self.n] = x @ self.w
        self.keys[1, row] *= 2
        self.keys[1, row] += x
        seen = self.keys[:, : self.n + 1]
        self.n += 1
        return np.tanh(seen).sum(axis=1), self.keys[0]


def test_rows_are_written_where_they_are():
    ours, theirs, f = Decoder(), Decoder(), pf.jit(Decoder.step)
    kept = ours.keys
    for k in range(10):
        x = np.full(3, k + 1.0)
        same(f(ours, x, k), theirs.step(x, k))
        same(ours, theirs)
        f.wait()
    assert ours.keys is kept
    assert (f.state().counters["python_calls"], f.state().tier) == (0, "optimized")
    assert '"profuse.borrow"' in f.ir("graph")
    for k in (3, 99, 4):  # a row that is not there: by then one has been written
        told = []
        for step, decoder in ((f, ours), (Decoder.step, theirs)):
            try:
                step(decoder, np.ones(3), k)
            except IndexError:
                told.append(k)
        assert len(told) == (2 if k == 99 else 0)
        same(ours, theirs)


def test_an_error_gives_rows_back_what_they_held():
    ours, theirs, f = Decoder(), Decoder(), pf.jit(lambda d, x, i: fails_late(d, x, i))
    for i in (0, 1, 2, 7, 1):
        for function, decoder in ((f, ours), (fails_late, theirs)):
            try:
                function(decoder, np.arange(3.0), i)
            except IndexError:
                assert i == 7
        same(ours, theirs)


def fails_late(d, x, i):
    d.keys[0, d.n] += 1
    d.keys[0, d.n] *= 3
    d.keys[0, i] += d.keys[0, d.n]
    return x[i]


def test_a_result_is_a_view_of_rows_that_are_written_where_numpy_gives_one():
    d, f = Decoder(), pf.jit(Decoder.step)
    results = [f(d, np.ones(3), 1) for _ in range(5)]
    assert not any(np.shares_memory(d.keys, computed) for computed, _ in results)
    assert all(np.shares_memory(d.keys[0], rows) for _, rows in results)
