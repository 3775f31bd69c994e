"""Calls that no graph can hold run in Python: NumPy's results and effects, counted, explained."""

import builtins
import logging
import subprocess
import sys
import threading
import types

import numpy as np
import profuse as pf
import pytest
from internals import executor_of
from profuse.dialect.errors import KnobError, ShapeError, TraceError
from profuse.executor.functions import numpy_source


@pytest.fixture(autouse=True)
def python(monkeypatch):
    """The default, which the other tests turn off."""
    with pf.knobs.override(unsupported="python"):
        yield


def counts(f, *names):
    counters = f.state().counters
    return tuple(counters[name] for name in names)


def halve(x):
    while f"{int(x.sum() > 1)}" == "1":  # a text needs the number itself
        x = x * 0.5
    return x


def test_the_default_is_python_in_a_new_process():
    code = (
        "import numpy as np, profuse as pf\n"
        "def f(x):\n    x[0] = 7\n    return x.sum()\n"
        "x = np.ones(3)\n"
        "print(pf.knobs.unsupported, float(pf.jit(f)(x)), x.tolist())\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PROFUSE_CACHE": "off", "PATH": ""},
    )
    assert ran.stdout == "python 9.0 [7.0, 1.0, 1.0]\n"


def test_calls_are_counted_and_explained_and_later_ones_are_not_traced_again():
    f = pf.jit(halve)
    for _ in range(3):
        np.testing.assert_array_equal(f(np.ones(4)), np.full(4, 0.25))
    assert counts(f, "calls", "python_calls", "traces") == (3, 3, 0)
    state = f.state()
    assert state.tier == "python"
    line = halve.__code__.co_firstlineno + 1
    assert f"test_in_python.py:{line}" in state.reasons[0]
    assert f.explain().startswith("halve runs in Python, as no graph can hold it: ")
    assert "pf.while_loop" in f.explain()
    assert f.wait() and f.into(np.empty(4), np.ones(4)).tolist() == [0.25] * 4


def test_the_reason_is_one_event():
    f = pf.jit(halve)
    f(np.ones(4))
    f(np.ones(4))
    assert [e.function for e in pf.events() if e.kind == "python"] == ["halve"]


def test_raise_asks_for_the_error_instead():
    with pytest.raises(TraceError, match="number"):
        pf.jit(halve, unsupported="raise")(np.ones(4))
    with pf.knobs.override(unsupported="raise"), pytest.raises(TraceError, match="number"):
        pf.jit(halve)(np.ones(4))
    with pytest.raises(KnobError, match="python, raise"):
        pf.jit(halve, unsupported="ignore")


def test_only_the_numbers_that_led_to_the_refusal_are_left_to_python():
    @pf.jit
    def f(x, k):
        if k == 2:
            return halve(x)
        return np.tanh(x) * k

    for k in (1, 2, 3, 2, 1, 2):
        expected = halve(np.ones(3)) if k == 2 else np.tanh(np.ones(3)) * k
        np.testing.assert_allclose(f(np.ones(3), k), expected)
    assert counts(f, "python_calls", "traces") == (3, 1)
    assert f.state().tier == "python"
    f(np.ones(3), 5)
    assert f.state().tier == "optimized"


def test_a_kind_of_call_that_is_refused_again_and_again_is_traced_no_more():
    def walk(x, n):
        total = 0.0
        for _ in range(n):
            total += float(f"{x.sum()}")
        return total

    f = pf.jit(walk)
    for n in range(1, 20):
        assert f(np.ones(3), n) == 3.0 * n
    assert counts(f, "python_calls", "traces") == (19, 0)


def test_effects_are_those_of_numpy():
    class Model:
        def __init__(self):
            self.n, self.seen = 0, []

        @pf.jit
        def step(self, x):
            self.n += 1
            self.seen.append(float(x[0]))
            x *= 2
            if self.n == 3:
                raise KeyError("three")
            return x.sum()

    model, x = Model(), np.ones(2)
    assert [float(model.step(x)), float(model.step(x))] == [4.0, 8.0]
    with pytest.raises(KeyError, match="three"):
        model.step(x)
    assert (model.n, model.seen, x.tolist()) == (3, [1.0, 2.0, 4.0], [8.0, 8.0])


def test_an_exception_of_the_function_itself_leaves_its_effects():
    log = []

    @pf.jit
    def f(x):
        log.append(len(x))
        raise RuntimeError("always")

    for _ in range(2):
        with pytest.raises(RuntimeError, match="always"):
            f(np.ones(2))
    assert log == [2, 2]


def test_what_the_trace_alone_raises_is_told_and_not_tried_again(monkeypatch):
    tries = []
    trace = numpy_source.trace
    monkeypatch.setattr(numpy_source, "trace", lambda *a, **k: tries.append(a) or trace(*a, **k))

    def f(x):
        if builtins.type(x) is not np.ndarray:
            raise TypeError("no array")
        return np.tanh(x)

    jitted = pf.jit(f)
    for _ in range(4):
        np.testing.assert_array_equal(jitted(np.ones(3)), np.tanh(np.ones(3)))
    assert len(tries) == 1
    assert counts(jitted, "python_calls", "traces") == (4, 0)
    assert any(
        "the trace raised TypeError (no array), and Python did not" in reason for reason in jitted.state().reasons
    )


def test_errors_of_numpy_name_the_line_as_before():
    f = pf.jit(lambda a, b: a @ b)
    with pytest.raises(ShapeError, match="test_in_python"):
        f(np.ones((2, 3)), np.ones((2, 3)))
    assert f(np.ones((2, 3)), np.ones((3, 2))).shape == (2, 2)
    assert counts(f, "traces") == (1,)


def test_generators_draw_anew_at_each_call():
    def draw(rng, n):
        return rng.standard_normal(n) * 2

    f, ours, theirs = pf.jit(draw), np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(3):
        np.testing.assert_array_equal(f(ours, 4), draw(theirs, 4))


def test_prints_and_logs_happen_at_each_call(capsys, caplog):
    logger = logging.getLogger("profuse.test")

    @pf.jit
    def f(x):
        print("sum of", x.shape)
        logger.warning("called")
        sys.stdout.write("written\n")
        return x.sum()

    f(np.ones(3))
    f(np.ones(3))
    assert capsys.readouterr().out == "sum of (3,)\nwritten\n" * 2
    assert [r.message for r in caplog.records] == ["called"] * 2


def test_arguments_that_no_graph_can_take():
    f = pf.jit(lambda x, names: x if names is None else x[names["first"]])
    rows = np.array([(1, 2.0), (3, 4.0)], dtype=[("a", int), ("b", float)])
    np.testing.assert_array_equal(f(rows, {"first": "b"}), [2.0, 4.0])
    masked = np.ma.masked_array([1.0, 2.0], mask=[True, False])
    assert float(pf.jit(np.sum)(masked)) == 2.0
    g = pf.jit(lambda s, x: x * len(s.split()))
    assert g("a b", np.ones(1)).tolist() == [2.0]
    with pytest.raises(TypeError, match="called wrongly"):
        g()


def test_results_of_any_kind():
    f = pf.jit(lambda x: types.SimpleNamespace(kept=[x], gen=(i for i in range(3))))
    found = f(np.ones(2))
    assert found.kept[0].tolist() == [1.0, 1.0]
    assert list(found.gen) == [0, 1, 2]


def test_inner_functions_stay_native_where_the_outer_one_is_python():
    @pf.jit
    def body(x):
        return np.tanh(x) * 0.5

    @pf.jit
    def outer(x):
        while f"{x.max() > 0.2}" == "True":
            x = body(x)
        return x

    expected = np.ones(4)
    while expected.max() > 0.2:
        expected = np.tanh(expected) * 0.5
    for _ in range(3):
        np.testing.assert_allclose(outer(np.ones(4)), expected, rtol=1e-12)
    assert counts(outer, "python_calls") == (3,)
    assert counts(body, "python_calls") == (0,)
    assert body.state().tier == "optimized"


def test_calls_on_the_tape_have_their_gradients():
    f = pf.jit(halve)
    x = pf.array(np.ones(4), requires_grad=True)
    f(x * x).sum().backward()
    np.testing.assert_allclose(x.grad, np.full(4, 0.5))


def test_gradients_of_what_no_graph_can_hold_are_refused():
    with pytest.raises(TraceError, match="number"):
        pf.grad(lambda x: halve(x).sum())(np.ones(4))


def test_long_python_loops_are_not_unrolled_without_end():
    def f(x):
        kept = []
        for _ in range(10_000):
            x = x * 1.0
            kept.insert(0, x)
        return kept[0]

    jitted = pf.jit(f)
    with pf.knobs.override(trace_ops=200):
        np.testing.assert_array_equal(jitted(np.ones(2)), np.ones(2))
    assert "more than 200 ops" in jitted.explain()


def test_what_a_trace_cannot_undo_is_refused_and_not_run_twice():
    big = np.zeros((1 << 26) // 8 + 1)

    @pf.jit
    def f(x):
        big[0] += 1
        return x + big[0] if big[1] == 0 else x

    with pytest.raises(TraceError, match="big is changed"):
        f(np.ones(1))


def test_threads():
    f, failures = pf.jit(halve), []

    def run(k):
        same = [np.array_equal(f(np.ones(k)), halve(np.ones(k))) for _ in range(50)]
        failures.extend(k for ok in same if not ok)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert counts(f, "traces") == (0,)
    assert 0 < counts(f, "python_calls")[0] <= 400


# --- calls that are told by their outline ---------------------------------------------------------


def by_first(pair, scale=1.0):
    """Python's where the first is a list: it decides on values."""
    first, second = pair
    if isinstance(first, dict):
        return second * scale
    return second * scale if first.tolist()[0] > 0 else second


@pytest.fixture
def flattened(monkeypatch):
    """How many calls have been flattened."""
    met = []
    flatten = numpy_source.flatten_call
    monkeypatch.setattr(numpy_source, "flatten_call", lambda *a, **k: met.append(a) or flatten(*a, **k))
    return met


@pytest.mark.parametrize(
    "args", [((np.ones(2), np.ones(3)),), ([np.ones(2), np.ones(3)], 2.0), ((np.ones(2), np.ones(3)), np.float64(2))]
)
def test_calls_that_are_pythons_are_told_without_flattening(flattened, args):
    f = pf.jit(by_first)
    for k in range(200):
        np.testing.assert_array_equal(f(*args), by_first(*args))
        np.testing.assert_array_equal(f(pair=args[0]), by_first(args[0]))
        if k == 3:
            early = len(flattened)
    assert counts(f, "calls", "python_calls", "traces") == (400, 400, 0)
    assert len(flattened) - early < 20


def test_another_structure_of_the_same_outline_gets_its_graph():
    """Sooner or later, however calls alternate, and it keeps it."""
    f = pf.jit(by_first, background=False)
    pythons, graphs = (np.ones(2), np.ones(3)), ({"a": 1.0}, np.ones(3))
    same = [(x,) for x in (pythons, graphs)]  # outer tuples look alike
    nested = pf.jit(lambda t: by_first(t[0]), background=False)
    for k in range(400):
        pair = pythons if k % 2 and k < 200 else graphs
        np.testing.assert_array_equal(nested((pair,)), pair[1])
        np.testing.assert_array_equal(f(*same[k % 2]), np.ones(3))
    assert counts(nested, "traces") == (1,) and nested.state().tier == "optimized"
    python = counts(nested, "python_calls")[0]
    for _ in range(100):
        nested((pythons,)), nested((graphs,))
    assert counts(nested, "python_calls") == (python + 100,)


def test_traces_and_other_texts_and_types_are_looked_at():
    """A call in a trace is traced, and a text or a bool is part of the structure."""

    def chosen(xs, mode):
        if mode == "python" and xs[0].tolist()[0] > 0:
            return xs[0] + 1
        return xs[0] * 2

    f = pf.jit(chosen, background=False)
    for _ in range(5):
        np.testing.assert_array_equal(f([np.ones(2)], "python"), [2, 2])
    np.testing.assert_array_equal(f([np.ones(2)], "graph"), [2, 2])
    assert counts(f, "traces", "python_calls") == (1, 5)

    inner = pf.jit(lambda xs, n: xs[0] + (n if xs[0].tolist()[0] > 0 else np.zeros(2)))
    outer = pf.jit(lambda x: inner([x], 1) * 2)
    for _ in range(5):
        np.testing.assert_array_equal(inner([np.ones(2)], 1), [2, 2])
        np.testing.assert_array_equal(outer(np.ones(2)), [4, 4])
    strict = pf.jit(lambda x: inner([x], 1) * 2, unsupported="raise")
    with pytest.raises(TraceError):
        strict(np.ones(2))
    with pf.knobs.override(unsupported="raise"), pytest.raises(TraceError):
        inner([np.ones(2)], 1)


def test_objects_and_sets_that_are_pythons_are_not_kept_alive():
    import gc
    import weakref

    class Model:
        def __init__(self):
            self.w = np.ones(3)

        @pf.jit
        def step(self, x, seen):
            return x * self.w if x.tolist()[0] > 0 else x

    model = Model()
    for _ in range(80):
        np.testing.assert_array_equal(model.step(np.ones(3), {1, 2}), np.ones(3))
    known = weakref.ref(model)
    del model
    gc.collect()
    assert known() is None


def test_python_runs_graphs_until_there_is_code():
    """Op by op small arrays take several times what they take in Python, and so do many ops."""

    def steps(x, n, seen):
        for k in list(range(60)):
            x = x * 0.5 + k
            seen[0] += x[0]
        return x

    def short(x, n, seen):
        seen[1:] += n
        return x * 0.5 + 1

    def rounds(x, n, seen):
        for k in range(n):
            seen[0] += x[k % 3] * k
        return x + n

    for fn in (steps, short, rounds):
        f = pf.jit(fn, background=True)
        ours, theirs, x = np.zeros(2), np.zeros(2), np.ones(3)
        f(x, 60, ours), fn(x, 60, theirs)
        assert counts(f, "calls", "python_calls") == (1, 0)
        for k in range(3):
            np.testing.assert_array_equal(f(x, 60, ours), fn(x, 60, theirs))
            np.testing.assert_array_equal(ours, theirs)
            if f.state().tier != "optimized":
                assert counts(f, "calls", "python_calls") == (k + 2, k + 1)
                assert f.state().tier == "compiling" and f.ir("graph")
                assert "Python runs the calls meanwhile" in f.explain()
        before = counts(f, "python_calls")
        assert before != (0,)
        f.wait()
        for _ in range(3):
            np.testing.assert_allclose(f(x, 60, ours), fn(x, 60, theirs))
            np.testing.assert_allclose(ours, theirs)
        assert f.state().tier == "optimized" and counts(f, "python_calls") == before
        assert counts(f, "calls", "traces") == (7, 1)


def test_calls_that_python_runs_meanwhile_count_for_the_graph():
    """Else graphs would seem to serve hardly a call, and no more would be made."""
    f = pf.jit(lambda x: x * 2 + 1, background=True)
    for _ in range(10):
        f(np.ones(3))
    assert counts(f, "traces") == (1,)
    assert executor_of(f).counters.current().calls == 10


def test_graphs_that_must_not_run_in_python_do_not():
    with pf.knobs.override(unsupported="raise"):
        f = pf.jit(lambda x: sum(x * k + x for k in range(70)), background=True)
        g = pf.jit(lambda x: x * 2 + 1, background=True)
        h = pf.grad(lambda x: (x * x).sum(), background=True)
        for _ in range(4):
            f(np.ones(3)), g(np.ones(3)), h(np.ones(3))
        assert [counts(fn, "python_calls") for fn in (f, g, h)] == [(0,)] * 3
        for fn in (f, g, h):
            fn.wait()


def test_an_error_of_another_cause_is_told_as_python_tells_it():
    """The trace refuses dates by a TypeError, and so does NumPy, for another reason."""

    def weekdays(d):
        return np.is_busday(d)

    f = pf.jit(weekdays)
    days, seconds = np.arange("2024-01-01", "2024-01-04", dtype="M8[D]"), np.zeros(3, "M8[s]")
    for _ in range(2):
        np.testing.assert_array_equal(f(days), weekdays(days))
        with pytest.raises(TypeError, match="could not be cast from dtype"):
            f(seconds)
