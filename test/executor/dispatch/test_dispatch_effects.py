"""Functions that assign attributes and items, dispatched in emitted code."""

import copy
import gc
import sys
import types

import numpy as np
import profuse as pf
import pytest
from dispatched import hits, is_native
from internals import same


@pytest.fixture(autouse=True)
def python():
    with pf.knobs.override(unsupported="python"):
        yield


class Model:
    __slots__ = ("__dict__", "kept")
    rate = 0.5

    def __init__(self):
        self.t, self.w, self.kept = 0, np.ones(4), np.zeros(4)
        self.cache, self.items = {"k": np.ones(3), 3: 1.5}, [1.0, np.zeros(2)]


def step(m, x):
    m.t += 1
    m.w = m.w * m.rate + x
    m.kept = m.kept - m.w
    m.cache["k"], m.cache[3] = m.cache["k"] + m.t, m.cache[3] * 2.0
    m.items[0], m.items[1] = m.items[0] + 1.0, m.items[1] + m.items[0]
    return m.w.sum(), m.kept


def descends(p, g, rate):
    p["w"] = p["w"] - rate * g["w"]
    p["layers"][1]["b"] = p["layers"][1]["b"] - rate * g["b"]
    p["t"] += 1
    p["last"] = p["layers"][0]
    return p, p["w"]


def params():
    layers = [{"b": np.zeros(2)}, {"b": np.ones(2)}]
    return {"w": np.ones(3), "layers": layers, "t": 0, "last": None}


GRADIENTS = {"w": np.arange(3.0), "b": np.arange(2.0)}
X = np.arange(4.0)


def test_what_is_assigned_is_what_python_assigns():
    ours, theirs, f = Model(), Model(), pf.jit(step)
    for k in range(20):
        same(f(ours, X + k), step(theirs, X + k))
        same((ours.__dict__, ours.kept), (theirs.__dict__, theirs.kept))
    assert hits(f) >= 16 and f.state().counters["python_calls"] == 0
    assert f.state().counters["calls"] == 20


def test_containers_among_the_arguments_are_assigned_to():
    f = pf.jit(descends)
    for _ in range(8):
        ours, theirs = params(), params()
        before = ours["layers"][0]
        given, w = f(ours, GRADIENTS, 0.1)
        descends(theirs, GRADIENTS, 0.1)
        assert given is ours and ours["last"] is before and ours["w"] is w
        same(ours, theirs)
    assert hits(f) >= 4 and f.state().counters["python_calls"] == 0


def test_what_is_stored_keeps_its_identity():
    def f(d, x):
        d["old"], d["new"] = d["new"], x
        return d["old"]

    jitted = pf.jit(f)
    for _ in range(6):
        d = {"old": X, "new": X + 1}
        was, x = d["new"], X * 2
        assert jitted(d, x) is was is d["old"]
        assert d["new"] is x
    assert f(dict(d), X) is not None


def test_aliases_are_left_to_python():
    def f(a, b, x):
        a["x"] = a["x"] + x
        return b["x"] * 2

    jitted = pf.jit(f)
    for _ in range(5):
        jitted({"x": X}, {"x": X}, X)
    assert is_native(jitted, {"x": X}, {"x": X}, X)
    one = {"x": X}
    assert not is_native(jitted, one, one, X)
    same(one["x"], X * 2)
    assert jitted(one, one, X).tolist() == (X * 6).tolist()

    table = {"x": X}

    def g(a, x):
        a["x"] = a["x"] + x
        return table["x"] * 2

    jitted = pf.jit(g)
    for _ in range(5):
        assert jitted({"x": X}, X).tolist() == (X * 2).tolist()
    assert is_native(jitted, {"x": X}, X)
    for k in range(2, 5):
        assert jitted(table, X).tolist() == (X * 2 * k).tolist()

    def h(a, x):
        table["x"] = table["x"] + x
        return a["x"] * 2

    table["x"], jitted = X, pf.jit(h)
    for _ in range(5):
        assert jitted({"x": X}, X).tolist() == (X * 2).tolist()
    assert is_native(jitted, {"x": X}, X)
    table["x"] = X
    assert jitted(table, X).tolist() == (X * 4).tolist()


def test_other_things_in_a_place_are_seen():
    ours, theirs, f = Model(), Model(), pf.jit(step)

    def both(change):
        for m in (ours, theirs):
            change(m)
        for _ in range(4):
            same(f(ours, X), step(theirs, X))
            same(ours.__dict__, theirs.__dict__)

    both(lambda m: None)
    assert is_native(f, ours, X) and step(theirs, X)
    both(lambda m: setattr(m, "t", 1.5))
    both(lambda m: setattr(m, "w", np.ones(4, np.float32)))
    both(lambda m: setattr(m, "w", np.ones(8)[::2]))
    both(lambda m: setattr(m, "t", 2**40))
    both(lambda m: m.cache.update({3: 7}))
    both(lambda m: setattr(m, "items", [2, np.ones(2)]))
    both(lambda m: m.__dict__.update(rate=0.25))
    both(lambda m: m.cache.update(k=np.zeros((2, 3))))
    del ours.w, theirs.w
    for function, m in ((f, ours), (step, theirs)):
        with pytest.raises(AttributeError):
            function(m, X)
    same(ours.__dict__, theirs.__dict__)
    assert ours.t == theirs.t


def test_references_are_dropped():
    m, f, x = Model(), pf.jit(step), X.copy()
    p, train = params(), pf.jit(descends)
    for _ in range(6):
        f(m, x), train(p, GRADIENTS, 0.1)
    gc.collect()

    def counts():
        held = (m, m.cache, m.items, x, p, p["layers"], p["layers"][0], GRADIENTS, GRADIENTS["w"])
        return [sys.getrefcount(one) for one in held]

    before, was = counts(), m.w
    known = sys.getrefcount(was)
    for _ in range(50):
        f(m, x), train(p, GRADIENTS, 0.1)
    assert counts() == before
    assert sys.getrefcount(was) == known - 1  # it is in no place any more
    m.w = "no array"
    seen = []
    for _ in range(2):  # the first error is remembered
        for _ in range(5):
            with pytest.raises(TypeError):
                f(m, x)
        gc.collect()
        seen.append(sys.getrefcount(m.w))
    assert seen[0] == seen[1]


def test_containers_that_python_takes_apart_are_assigned_to_as_well():
    def f(s, x):
        s.n = s.n + 1
        s.x = s.x + x
        return s

    jitted = pf.jit(f)
    ours = types.SimpleNamespace(n=0, x=X)
    theirs = copy.deepcopy(ours)
    for _ in range(6):
        assert jitted(ours, X) is ours
        same(f(theirs, X), ours)
    assert jitted.state().counters["python_calls"] == 0
