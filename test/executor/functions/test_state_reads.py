"""What a function reads of globals, cells, attributes and items is compared at each call."""

import sys
import threading
import types

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.importers.numpy.capture import outer_state
from profuse.dialect.importers.numpy.capture.tracer import trace

SCALE = 2.0
WEIGHTS = np.arange(3.0)
TABLE = {"first": 1.0, "inner": [1.0, 2.0]}


def helper(x):
    return x * SCALE


@pytest.fixture(autouse=True)
def globals_are_given_back(monkeypatch):
    for name in ("SCALE", "WEIGHTS", "TABLE", "helper"):
        monkeypatch.setitem(globals(), name, globals()[name])
    monkeypatch.setitem(globals(), "TABLE", {"first": 1.0, "inner": [1.0, 2.0]})


def settled(f, *args):
    """The result of a call that emitted code could serve, where plans have settled."""
    for _ in range(3):
        f(*args)
        f.wait()
    return f(*args)


def counts(f, *names):
    return tuple(f.state().counters[name] for name in names)


def test_globals_and_functions_bound_anew():
    f = pf.jit(lambda x: np.tanh(helper(x)) + SCALE)
    x = np.ones(3)
    np.testing.assert_allclose(settled(f, x), np.tanh(x * 2) + 2)
    assert f.state().emitted
    globals()["SCALE"] = 3.0
    np.testing.assert_allclose(f(x), np.tanh(x * 3) + 3)
    np.testing.assert_allclose(settled(f, x), np.tanh(x * 3) + 3)
    assert f.state().emitted
    globals()["helper"] = lambda x: x - 1
    np.testing.assert_allclose(settled(f, x), np.tanh(x - 1) + 3)
    assert counts(f, "traces", "python_calls") == (3, 0)
    globals()["SCALE"] = 2.0
    globals()["helper"] = test_globals_and_functions_bound_anew.__globals__["helper"]
    np.testing.assert_allclose(f(x), np.tanh(x - 1) + 2)


def test_a_value_that_comes_back_finds_its_graph():
    f = pf.jit(lambda x: x * SCALE + 1)
    for value in (2.0, 3.0, 2.0, 3.0, 2.0):
        globals()["SCALE"] = value
        np.testing.assert_allclose(settled(f, np.ones(3)), value + 1)
    assert counts(f, "traces", "compiles") == (2, 2)


def test_an_equal_number_is_as_good_but_not_another_zero():
    f = pf.jit(lambda x: x / SCALE)
    globals()["SCALE"] = 0.0
    with np.errstate(divide="ignore"):
        assert f(np.ones(1)) == np.inf
        globals()["SCALE"] = float("-0.0")
        assert f(np.ones(1)) == -np.inf
        globals()["SCALE"] = float("0.0")
        assert f(np.ones(1)) == np.inf
    assert counts(f, "traces") == (2,)


def test_arrays_bound_anew_keep_their_kernels():
    f = pf.jit(lambda x: np.tanh(x + WEIGHTS))
    np.testing.assert_allclose(settled(f, np.ones(3)), np.tanh(np.arange(3.0) + 1))
    for k in range(6):
        globals()["WEIGHTS"] = np.full(3, float(k))
        np.testing.assert_allclose(f(np.ones(3)), np.tanh(np.full(3, k + 1.0)))
    assert counts(f, "traces", "compiles", "python_calls") == (7, 1, 0)
    WEIGHTS[:] = 9  # in place: the graph reads it anew
    np.testing.assert_allclose(f(np.ones(3)), np.tanh(np.full(3, 10.0)))
    globals()["WEIGHTS"] = np.ones((2, 3))
    assert f(np.ones(3)).shape == (2, 3)
    assert counts(f, "traces") == (8,)


class Layer:
    factor = 3.0

    def __init__(self):
        self.w, self.rate, self.parts, self.unused = np.ones(3), 0.5, [{"b": np.ones(3)}], 0

    @property
    def twice(self):
        return self.rate * 2

    def inner(self, x):
        return x * self.rate

    @pf.jit
    def call(self, x):
        return np.tanh(self.inner(x) * self.w) + self.parts[0]["b"] + self.twice * self.factor

    def expected(self, x):
        return np.tanh(x * self.rate * self.w) + self.parts[0]["b"] + self.twice * self.factor


@pytest.mark.parametrize(
    ("change", "traces"),
    [
        (lambda m: setattr(m, "w", np.zeros(3)), 2),
        (lambda m: setattr(m, "rate", 2.0), 2),
        (lambda m: m.parts[0].update(b=np.full(3, 4.0)), 2),
        (lambda m: m.parts.insert(0, {"b": np.full(3, 5.0)}), 2),
        (lambda m: setattr(m, "factor", 1.0), 2),  # hides that of the class
        (lambda m: setattr(m, "parts", [{"b": 7.0}]), 2),
        (lambda m: setattr(m, "inner", lambda x: x), 2),
        (lambda m: setattr(m, "unused", 5), 1),
        (lambda m: m.w.fill(8.0), 1),
    ],
)
def test_attributes_items_properties_and_what_hides_them(change, traces):
    model, x = Layer(), np.ones(3)
    Layer.call.flush()
    before = counts(Layer.call, "traces")[0]
    np.testing.assert_allclose(settled(Layer.call, model, x), model.expected(x))
    change(model)
    if "inner" in vars(model):
        wanted = np.tanh(x * model.w) + model.parts[0]["b"] + model.twice * model.factor
    else:
        wanted = model.expected(x)
    np.testing.assert_allclose(model.call(x), wanted)
    np.testing.assert_allclose(settled(Layer.call, model, x), wanted)
    assert counts(Layer.call, "traces")[0] - before == traces


def test_cells_defaults_sets_and_absent_attributes():
    rate, names = 2.0, {"a"}
    holder = types.SimpleNamespace()

    @pf.jit
    def f(x, *, extra=[1.0]):  # noqa: B006
        if "b" in names:
            x = x + 1
        return x * rate * getattr(holder, "factor", 1.0) + extra[0]

    assert settled(f, np.ones(1)) == 3.0
    rate = 3.0
    assert f(np.ones(1)) == 4.0
    names.add("b")
    assert f(np.ones(1)) == 7.0
    holder.factor = 2.0
    assert f(np.ones(1)) == 13.0
    f.__wrapped__.__kwdefaults__["extra"][0] = 0.0
    assert f(np.ones(1)) == 12.0
    assert counts(f, "python_calls") == (0,)


class Filter:
    def __init__(self, gain):
        self.gain = gain

    def apply(self, x):
        return x * self.gain

    @classmethod
    def halve(cls, x):
        return x / 2


class Chain:
    def __init__(self, step):
        self.step = step


CHAIN = Chain(Filter(2.0).apply)


def test_methods_of_other_objects():
    f, x = pf.jit(lambda x: CHAIN.step(x) + 1), np.ones(3)
    np.testing.assert_allclose(settled(f, x), 3.0)
    assert f.state().emitted
    first = CHAIN.step.__self__
    CHAIN.step = first.apply  # another object, but the same method
    np.testing.assert_allclose(f(x), 3.0)
    assert counts(f, "traces") == (1,) and f.state().emitted
    CHAIN.step = Filter(5.0).apply
    np.testing.assert_allclose(f(x), 6.0)
    CHAIN.step.__self__.gain = 7.0
    np.testing.assert_allclose(settled(f, x), 8.0)
    assert f.state().emitted
    CHAIN.step = Filter.halve
    np.testing.assert_allclose(settled(f, x), 1.5)
    CHAIN.step = first.apply
    np.testing.assert_allclose(f(x), 3.0)
    assert counts(f, "python_calls") == (0,)


class Mode:
    def __init__(self, mode):
        self.__dict__["mode"] = mode

    @property
    def mode(self):
        return "-".join(("of", vars(self)["mode"]))  # a new text each time


def test_texts_that_are_made_anew():
    holder, x = Mode("sum"), np.arange(3.0)
    f = pf.jit(lambda x: x.sum() if holder.mode == "of-sum" else x.max())
    assert settled(f, x) == 3.0 and f.state().emitted
    for _ in range(1000):
        assert f(x) == 3.0
    vars(holder)["mode"] = "max"
    assert settled(f, x) == 2.0 and f.state().emitted
    assert counts(f, "traces", "python_calls") == (2, 0)


class Base:
    pass


class Derived(Base):
    __slots__ = ("shift",)


def test_what_an_object_does_not_have_yet():
    held, x = Derived(), np.ones(1)

    @pf.jit
    def f(x):
        return x * getattr(held, "gain", 1.0) + getattr(held, "shift", 0.0)

    assert settled(f, x) == 1.0
    held.shift = 1.0
    assert f(x) == 2.0
    Base.gain = 3.0
    assert f(x) == 4.0
    Derived.gain = 4.0
    assert f(x) == 5.0
    held.gain = 5.0
    assert f(x) == 6.0
    del held.gain, Derived.gain, Base.gain, held.shift
    assert f(x) == 1.0
    assert counts(f, "traces", "python_calls") == (5, 0)


def test_attributes_of_modules_of_the_users_own(tmp_path, monkeypatch):
    (tmp_path / "settings_of_a_user.py").write_text("RATE = 2.0\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    import settings_of_a_user as settings

    f = pf.jit(lambda x: x * settings.RATE)
    assert settled(f, np.ones(1)) == 2.0
    settings.RATE = 5.0
    assert settled(f, np.ones(1)) == 5.0
    assert f.state().emitted
    del sys.modules["settings_of_a_user"]


def test_graphs_that_join_a_trace_bring_what_they_have_read():
    with pf.knobs.override(profiling_mode=False):
        inner = pf.jit(lambda x: x * SCALE)
        inner(np.ones(2))
        outer = pf.jit(lambda x: inner(x) + 1)
        assert outer(np.ones(2)).tolist() == [3.0, 3.0]
        globals()["SCALE"] = 4.0
        assert outer(np.ones(2)).tolist() == [5.0, 5.0]


def test_what_changes_from_call_to_call_is_left_to_python():
    holder = types.SimpleNamespace(t=0.0)
    f = pf.jit(lambda x: x * holder.t)
    with pf.knobs.override(unsupported="python"):
        for _ in range(20):
            holder.t += 1
            assert f(np.ones(1)) == holder.t
    assert counts(f, "traces", "python_calls") == (8, 12)
    assert "holder.t is read by the function and changes" in f.explain()
    assert "pass it as an argument" in f.explain()


def test_objects_replaced_again_and_again_are_told():
    f = pf.jit(lambda x: np.tanh(x + WEIGHTS))
    for k in range(8):
        globals()["WEIGHTS"] = np.full(3, float(k))
        settled(f, np.ones(3))
    assert not f.state().emitted
    assert "replaced again and again" in f.explain()


def test_more_reads_than_calls_can_compare(monkeypatch):
    monkeypatch.setattr(outer_state, "MOST_READS", 10)
    with pytest.raises(pf.TraceError, match="more than 10 values"):
        trace(lambda x: x + sum(TABLE["inner"]) + len(numbers), (np.ones(2),))
    assert pf.jit(lambda x: x * SCALE)(np.ones(1)) == 2.0


numbers = list(range(30))


def test_another_thread_that_binds_a_global_is_seen():
    f, stop, seen = pf.jit(lambda x: x * SCALE), threading.Event(), set()

    def bind():
        k = 0
        while not stop.is_set():
            k += 1
            globals()["SCALE"] = float(k % 2 + 1)

    thread = threading.Thread(target=bind)
    thread.start()
    try:
        for _ in range(300):
            seen.add(float(f(np.ones(1))[0]))
    finally:
        stop.set()
        thread.join()
    assert seen <= {1.0, 2.0}
    value = globals()["SCALE"]
    assert f(np.ones(1)) == value
