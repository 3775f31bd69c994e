"""What a function assigns to items and attributes of containers among its arguments."""

import copy
import dataclasses
import gc
import types
from collections import OrderedDict, defaultdict

import numpy as np
import profuse as pf
import pytest
from internals import same
from profuse.dialect.importers.numpy.tracing.operators import Recording


@pytest.fixture(autouse=True)
def python():
    """The default, which the other tests turn off."""
    with pf.knobs.override(unsupported="python"):
        yield


@dataclasses.dataclass
class Layer:
    w: np.ndarray
    b: np.ndarray
    steps: int = 0


@dataclasses.dataclass
class Slotted:
    __slots__ = ("n", "x")
    x: np.ndarray
    n: float


def params():
    rng = np.random.default_rng(0)
    return {"w": rng.random((3, 3)), "b": rng.random(3), "t": 0}


def descends(p, g, rate):
    p["w"] = p["w"] - rate * g["w"]
    p["b"] -= rate * g["b"]
    p["t"] += 1
    return p


def scales(p, g, rate):
    p["w"] *= rate
    return p, [p["w"], p["b"]]


def adam(p, m, v, g):
    t = p["t"] + 1
    for k in ("w", "b"):
        m[k] = 0.9 * m[k] + 0.1 * g[k]
        v[k] = 0.99 * v[k] + 0.01 * g[k] ** 2
        p[k] = p[k] - 0.1 * (m[k] / (1 - 0.9**t)) / (np.sqrt(v[k] / (1 - 0.99**t)) + 1e-8)
    p["t"] = t
    return sum(np.sum(x**2) for x in (p["w"], p["b"]))


def trains(layer, x):
    layer.w = layer.w - 0.1 * np.outer(x, x)
    layer.b[1:] += x[1:]
    layer.steps += 1
    return layer.w @ x + layer.b


def slots(s, x):
    s.x = s.x * s.n + x
    s.n *= 0.5
    return s.x.sum()


def swaps(cache, i, x):
    cache[i], cache[-1] = cache[-1], x * 2
    return cache[0] + cache[i]


def below(model, x):
    layer = model["layers"][1]
    layer["w"] = layer["w"] + x
    model["layers"][0], model["last"] = {"w": x * 2, "kind": "new"}, layer
    model["state"].x = x.sum()
    return [model["state"], layer["w"]]


def grows(found, names, x):
    found.append(x * 2)
    found.insert(0, found[-1])
    names["mean"] = x.mean()
    names.setdefault("std", x.std())
    return len(found)


def shrinks(found, names, x):
    y = found.pop(0) + names.pop("a")
    del names["b"]
    names["b"] = y
    found.reverse()
    return y


def rebinds_what_it_keeps(d, x):
    d["old"] = d["x"]
    d["x"] = x
    d["y"] = x + 1
    return d["y"]


def adds_up(d, x):
    d["sum"] += x
    d["n"] = d["n"] + 1
    return d["sum"] / d["n"]


def unpacked(x, **named):
    named["x"] = x
    named["p"]["w"] = named["x"] * 2
    return named["p"]["w"]


def pair_of(p):
    return (p, {"w": np.ones((3, 3)), "b": np.arange(3.0)}, 0.1)


def zeros(p):
    return {k: np.zeros_like(p[k]) for k in ("w", "b")}


X = np.linspace(0.1, 1.0, 3)
PROGRAMS = [
    (descends, lambda: pair_of(params())),
    (scales, lambda: pair_of(params())),
    (adam, lambda: (params(), zeros(params()), zeros(params()), zeros(params()) | {"b": X})),
    (trains, lambda: (Layer(np.eye(3), np.ones(3)), X)),
    (slots, lambda: (Slotted(np.ones(3), 2.0), X)),
    (swaps, lambda: ([X + 1, X + 2, X + 3], 1, X)),
    (below, lambda: ({"layers": [{"w": X}, {"w": X * 3}], "last": None, "state": types.SimpleNamespace(x=0.0)}, X)),
    (grows, lambda: ([X + 1], {"a": 1}, X)),
    (shrinks, lambda: ([X + 1, X + 2], {"a": 1.5, "b": X, "c": 3}, X)),
    (rebinds_what_it_keeps, lambda: ({"old": X, "x": X + 1, "y": X + 2}, X * 2)),
    (adds_up, lambda: (OrderedDict(sum=X * 0, n=0), X)),
]


@pytest.mark.parametrize(("function", "make"), PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_calls_assign_what_numpy_assigns(function, make):
    f = pf.jit(function)
    for _ in range(4):
        ours, theirs = make(), copy.deepcopy(make())
        before = [id(x) for x in ours]
        same(f(*ours), function(*theirs))
        same(ours, theirs)
        assert [id(x) for x in ours] == before
    state = f.state()
    assert (state.counters["python_calls"], state.tier) == (0, "optimized")
    assert state.counters["traces"] == 1


def test_a_run_of_calls_gives_what_numpy_gives():
    ours, theirs, f = params(), params(), pf.jit(descends)
    kept = ours["b"]
    for k in range(12):
        g = {"w": np.full((3, 3), k), "b": np.arange(3.0)}
        assert f(ours, g, 0.1) is ours
        same(descends(theirs, copy.deepcopy(g), 0.1), ours)
    assert ours["b"] is kept and f.state().counters["traces"] == 1
    assert f.state().counters["python_calls"] == 0


def test_what_is_stored_is_the_object_that_was_given():
    f = pf.jit(rebinds_what_it_keeps)
    for _ in range(4):
        d, x = {"old": X, "x": X + 1, "y": X + 2}, X * 3
        was = d["x"]
        result = f(d, x)
        assert d["old"] is was and d["x"] is x and d["y"] is result
    assert f.state().counters["python_calls"] == 0


def test_arguments_by_keyword_are_assigned_to():
    f = pf.jit(unpacked)
    for _ in range(4):
        p = {"w": 0.0}
        result = f(X, p=p, q=1)
        assert p["w"] is result and result.tolist() == (X * 2).tolist()
    assert f.state().counters["python_calls"] == 0


def test_one_container_in_two_places_is_left_to_python():
    def f(a, b, x):
        a["x"] = a["x"] + x
        return b["x"] * 2

    jitted = pf.jit(f)
    for _ in range(3):  # a graph is there, and does not serve these
        one, other = {"x": X}, {"x": X}
        assert jitted(one, other, X).tolist() == (X * 2).tolist()
        assert jitted(one, one, X).tolist() == (X * 6).tolist()
        assert one["x"].tolist() == (X * 3).tolist()
    assert jitted.state().counters["python_calls"] == 3

    def inner(outer, x):
        outer["b"][0] = x + 1
        return outer["a"][0]

    jitted, shared = pf.jit(inner), [X]
    for _ in range(3):
        assert jitted({"a": shared, "b": shared}, X).tolist() == (X + 1).tolist()


def test_a_container_that_is_read_twice_needs_no_python():
    def f(a, b, out):
        out[0] = a["x"] + b["x"]

    jitted, shared = pf.jit(f), {"x": X}
    for _ in range(3):
        out = [None]
        assert jitted(shared, shared, out) is None
        assert out[0].tolist() == (X * 2).tolist()
    assert jitted.state().counters["python_calls"] == 0


CONFIG = {"x": X}


def test_an_argument_that_is_read_by_name_too_is_left_to_python():
    holder = types.SimpleNamespace(inner=CONFIG)

    def by_global(p, x):
        p["x"] = p["x"] + x
        return CONFIG["x"] * 2

    def by_attribute(p, x):
        p["x"] = p["x"] + x
        return holder.inner["x"] * 2

    def by_instance(p, x):
        p["inner"] = {"x": x + 1}
        return holder.inner["x"] * 2

    def by_other_side(p, x):
        CONFIG["x"] = CONFIG["x"] + x
        return p["x"] * 2

    for function in (by_global, by_attribute, by_other_side):
        jitted = pf.jit(function)
        for _ in range(3):
            CONFIG["x"] = X
            expected = function(CONFIG, X)
            CONFIG["x"] = X
            assert jitted({"x": X + 5}, X).shape == X.shape
            CONFIG["x"] = X
            assert jitted(CONFIG, X).tolist() == expected.tolist()
            assert CONFIG["x"].tolist() == (X * 2).tolist()
        assert jitted.state().counters["python_calls"] == 3
    jitted = pf.jit(by_instance)
    for _ in range(3):
        holder.inner = CONFIG
        CONFIG["x"] = X
        assert jitted({"inner": CONFIG}, X).tolist() == (X * 2).tolist()
        assert jitted(vars(holder), X).tolist() == ((X + 1) * 2).tolist()


def test_a_call_that_fails_leaves_what_numpy_leaves():
    def f(p, log, x, i):
        p["w"] = p["w"] + 1
        log.append(i)
        p["b"] = x[i]
        log[0] = x[i + 1]
        return p["b"]

    jitted = pf.jit(f)
    for i in (0, 1, 2, 9, 0):
        told = []
        for function in (jitted, f):
            p, log = {"w": X, "b": X}, [X]
            try:
                result = function(p, log, np.arange(4.0), i)
            except IndexError as error:
                result = type(error).__mro__[-4:]
            told.append((result, p, log))
        same(*told)


def test_a_number_that_is_assigned_and_decides_runs_in_python():
    def f(p, x):
        p["n"] += 1
        return sum(x[0] for _ in range(p["n"]))

    p, jitted = {"n": 0}, pf.jit(f)
    np.testing.assert_allclose([jitted(p, X) for _ in range(3)], [0.1, 0.2, 0.3])
    assert jitted.state().counters["python_calls"] == 3

    def g(p, x):
        p["n"] = p["n"] + 1
        if p["n"] > 5:
            return x * 2
        return x

    p, jitted = {"n": 3}, pf.jit(g)
    assert [jitted(p, X)[2] for _ in range(4)] == [1.0, 1.0, 2.0, 2.0]


def test_other_kinds_of_containers_are_left_to_python():
    class Named(dict):
        def __getattr__(self, name):
            return self[name]

        def __setattr__(self, name, value):
            self[name] = value

    def by_attribute(p, x):
        p.w = p.w + x
        return p.w.sum()

    def by_item(p, x):
        p["w"] = p["w"] + x
        return p["w"].sum()

    def deletes(p, x):
        del p.w
        return x

    cases = [
        (by_attribute, lambda: Named(w=X)),
        (by_item, lambda: defaultdict(list, w=X)),
        (deletes, lambda: types.SimpleNamespace(w=X, b=1)),
    ]
    for function, make in cases:
        jitted = pf.jit(function)
        for _ in range(3):
            ours, theirs = make(), make()
            same(jitted(ours, X), function(theirs, X))
            same(ours, theirs)
        assert jitted.state().counters["python_calls"] == 3


def notes(table, x):
    table.note, table["a"] = x * 2, x
    return x + 1


def reorders(layer, x):
    b = layer.b
    del layer.b
    layer.b = b + x
    return x * 2


def test_attributes_of_dicts_and_the_order_of_attributes():
    f, g = pf.jit(notes), pf.jit(reorders)
    for call in range(4):
        x = np.full(3, call + 1.0)
        table, layer = OrderedDict(a=np.zeros(3), b=np.ones(3)), Layer(np.ones(3), np.zeros(3))
        same(f(table, x), x + 1)
        f.wait()
        same((table["a"], table.note), (x, x * 2))
        assert table["a"] is x
        same(g(layer, x), x * 2)
        g.wait()
        same(layer.b, x)
        assert list(vars(layer)) == ["w", "steps", "b"]
    assert f.state().counters["python_calls"] <= 1  # while the kernel compiles
    assert g.state().counters["python_calls"] == 4


def test_where_errors_are_wanted_the_line_is_told():
    with pf.knobs.override(unsupported="raise"):
        f = pf.jit(lambda p, x: p.update(x=x))
        with pytest.raises(pf.TraceError, match="the dict p is changed by the function"):
            f({"x": X}, X)


def test_no_traced_value_outlives_a_trace():
    def traced():
        gc.collect()
        return [x for x in gc.get_objects() if issubclass(type(x), Recording)]

    before = set(map(id, kept := traced()))  # what errors of other tests hold
    jitted, p = pf.jit(lambda p, x: (p.update(y=[x * 2]), p)[1]), {"y": 0}
    jitted(p, X)
    assert not [x for x in traced() if id(x) not in before], kept
    assert p["y"][0].tolist() == (X * 2).tolist()


def test_user_code_runs_on_assignment():
    @dataclasses.dataclass
    class Checked:
        x: np.ndarray
        writes: int = 0

        def __setattr__(self, name, value):
            object.__setattr__(self, name, value)
            if name == "x":
                object.__setattr__(self, "writes", getattr(self, "writes", 0) + 1)

        @property
        def double(self):
            return self.x * 2

        @double.setter
        def double(self, value):
            self.x = value / 2

    def f(c, x):
        c.x = c.x + x
        c.double = c.double * 3
        return c.double

    jitted, ours, theirs = pf.jit(f), Checked(X), Checked(X)
    for _ in range(4):
        same(jitted(ours, X), f(theirs, X))
        same(ours, theirs)
    assert jitted.state().counters["python_calls"] == 0
