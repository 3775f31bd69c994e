"""Emitted code takes objects apart that consist of attributes, assigns to them, and returns what Python makes."""

from __future__ import annotations

import gc
import sys
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import profuse as pf
import pytest
from dispatched import X, Y, hits, is_native
from internals import emitted_call
from test_dispatch_arguments import warm


@dataclass
class Pair:
    x: object
    y: object


@dataclass(frozen=True)
class Frozen:
    x: object
    y: object


@dataclass(slots=True)
class Slotted:
    x: object
    y: object


class Base:
    unit = 1.0


@dataclass
class Derived(Base):
    x: object
    y: object
    tags: list = field(default_factory=list)


def total(p):
    return p.x * 2 + p.y


KINDS = {
    "dataclass": Pair,
    "frozen": Frozen,
    "slots": Slotted,
    "derived": Derived,
    "namespace": lambda x, y: SimpleNamespace(x=x, y=y),
}


@pytest.mark.parametrize("name", KINDS)
def test_objects_are_taken_apart(name):
    make = KINDS[name]
    f = warm(total, make(X, Y))
    other = make(Y, X)
    np.testing.assert_allclose(f(other), Y * 2 + X)
    assert is_native(f, other)
    g = warm(lambda ps, q: ps[0].x + ps[1]["p"].y * q.x, [make(X, Y), {"p": make(Y, X)}], q=make(X, X))
    np.testing.assert_allclose(g([make(Y, X), {"p": make(X, Y)}], q=make(X, Y)), Y + Y * X, rtol=1e-6)


def test_objects_of_another_structure_are_other_graphs():
    f = warm(total, Pair(X, Y))
    changed = Pair(X, Y)
    changed.z = X
    turned = SimpleNamespace(y=Y, x=X)
    missing = Pair(X, Y)
    del missing.y
    for other in (changed, turned, Frozen(X, Y), Derived(X, Y), Pair(X.astype(float), Y), Pair(X, 3.0), Pair(X[0], Y)):
        assert not is_native(f, other)
        np.testing.assert_allclose(f(other), total(other), rtol=1e-6)
    with pytest.raises(AttributeError):
        f(missing)
    slots = Slotted(X, Y)
    g = warm(total, slots)
    del slots.y
    with pytest.raises(AttributeError):
        g(slots)
    assert is_native(f, Pair(X, Y)) and is_native(g, Slotted(X, Y))


def test_attributes_are_read_at_each_call():
    p = Pair(X, Y)
    f = warm(total, p)
    for k in range(3):
        p.x = X + k
        vars(p)["y"] = Y * k
        np.testing.assert_allclose(f(p), (X + k) * 2 + Y * k, rtol=1e-6)
    p.__dict__ = {"x": Y, "y": X}
    np.testing.assert_allclose(f(p), Y * 2 + X)
    assert is_native(f, p)


@dataclass
class Asked:
    x: object
    y: object

    def __getattribute__(self, name):
        return object.__getattribute__(self, name)


class WithSlot:
    __slots__ = ("z",)


@dataclass
class Mixed(WithSlot):
    x: object
    y: object


@pytest.mark.parametrize("make", [Asked, Mixed], ids=["asked", "mixed"])
def test_objects_that_python_takes_apart(make):
    f = pf.jit(total, unsupported="python")
    for k in range(4):
        p = make(X + k, Y)
        np.testing.assert_allclose(f(p), (X + k) * 2 + Y, rtol=1e-6)
    assert not f.state().emitted


def test_what_python_takes_apart_says_so():
    f = pf.jit(lambda p: p["x"] + p["y"])
    for _ in range(3):
        np.testing.assert_array_equal(f(OrderedDict(x=X, y=Y)), X + Y)
    assert not f.state().emitted
    assert "an argument is an ordered dict, which Python takes apart" in f.explain()


# --- what is assigned -----------------------------------------------------------------------------


def stepped(state, g):
    state.x = state.x - 0.5 * g
    state.y = state.y + 1
    return state.x.sum()


@pytest.mark.parametrize("name", ["dataclass", "slots", "derived", "namespace"])
def test_attributes_are_assigned(name):
    ours, theirs = KINDS[name](X, 0), KINDS[name](X, 0)
    f = pf.jit(stepped, unsupported="python")
    for _ in range(6):
        np.testing.assert_allclose(f(ours, Y), stepped(theirs, Y), rtol=1e-6)
        np.testing.assert_allclose(ours.x, theirs.x, rtol=1e-6)
        assert ours.y == theirs.y
    assert f.state().emitted and is_native(f, ours, Y)


GLOBAL = Pair(X, 0)


def test_objects_that_are_passed_twice_or_known_are_pythons():
    def both(a, b):
        a.x = a.x + 1
        return b.x * 2

    def known(a):
        a.x = a.x + 1
        return GLOBAL.x * 2

    f = pf.jit(both, unsupported="python")
    for _ in range(4):
        f(Pair(X, 0), Pair(Y, 0))
    assert is_native(f, Pair(X, 0), Pair(Y, 0))
    same = Pair(X, 0)
    assert not is_native(f, same, same)
    np.testing.assert_allclose(f(same, same), (X + 2) * 2, rtol=1e-6)
    g = pf.jit(known, unsupported="python")
    for _ in range(4):
        g(Pair(X, 0))
    assert is_native(g, Pair(X, 0))
    before = GLOBAL.x
    np.testing.assert_allclose(g(GLOBAL), (before + 1) * 2, rtol=1e-6)
    np.testing.assert_allclose(GLOBAL.x, before + 1)


# --- results --------------------------------------------------------------------------------------


class Registered:
    def __init__(self, x, name):
        self.x, self.name = x, name


pf.register_pytree(Registered, lambda r: ((r.x,), r.name), lambda name, parts: Registered(parts[0], name))


class Table(dict):
    pass


RESULTS = {
    "dataclass": lambda x: Pair(x + 1, [x * 2]),
    "frozen": lambda x: Frozen(x + 1, "text"),
    "slots": lambda x: (Slotted(x + 1, 3), x * 3),
    "derived": lambda x: Derived(x + 1, 2, ["a"]),
    "namespace": lambda x: SimpleNamespace(x=x + 1, y=SimpleNamespace(z=x * 2)),
    "ordered": lambda x: OrderedDict(b=x + 1, a=x * 2),
    "default": lambda x: defaultdict(list, b=x + 1),
    "dict subclass": lambda x: Table(b=x + 1),
    "registered": lambda x: Registered(x + 1, "name"),
    "no axes": lambda x: np.array(x.sum()),
    "no axes, within": lambda x: {"a": np.zeros(()), "b": (np.array(x.max()), x * 2)},
}


def shown(value):
    if isinstance(value, np.ndarray | np.generic):
        return type(value), value.dtype, np.round(value, 4).tolist()
    if isinstance(value, dict):
        return type(value), [(k, shown(v)) for k, v in value.items()]
    if isinstance(value, tuple | list):
        return type(value), [shown(v) for v in value]
    if hasattr(value, "__dict__"):
        return type(value), [(k, shown(v)) for k, v in vars(value).items()]
    return (type(value), [shown(getattr(value, k)) for k in value.__slots__]) if hasattr(value, "__slots__") else value


@pytest.mark.parametrize("name", RESULTS)
def test_results_that_python_makes(name):
    fn = RESULTS[name]
    f = warm(fn, X)
    for x in (X, Y):
        before = hits(f)
        found, again = f(x), f(x)
        assert hits(f) == before + 2
        assert shown(found) == shown(again) == shown(fn(x))
        assert found is not again


# --- references -----------------------------------------------------------------------------------


def test_nothing_is_leaked():
    f, g, h = warm(total, Pair(X, Y)), warm(total, Slotted(X, Y)), warm(lambda p: Pair(p.x + 1, p.y * 2), Frozen(X, Y))
    k = pf.jit(stepped, unsupported="python")
    state = Pair(X, 0)
    for _ in range(5):
        k(state, Y)
    arguments = Pair(X, Y), Slotted(X, Y), Frozen(X, Y)
    wrong = Pair(X, None)
    held = [X, Y, *arguments, Pair, Slotted, Frozen]

    def calls(count):
        for _ in range(count):
            f(arguments[0]), g(arguments[1]), h(arguments[2]), k(state, Y)
            with pytest.raises(TypeError):
                f(wrong)
        gc.collect()
        return [sys.getrefcount(o) for o in held], sys.getallocatedblocks()

    calls(50)
    counts, blocks = calls(50)
    after, later = calls(500)
    assert after == counts and later - blocks < 300


class Emptied:
    """Empties a list when it is collected, and overwrites what was in it."""

    def __init__(self, target):
        self.target, self.me = target, self

    def __del__(self):
        self.target.clear()
        np.full((300, 400), -1, np.float32)


def test_what_is_opened_first_lives_while_memory_is_made_for_attributes():
    """Where the dict of an object is made, Python may collect objects, whose finalizers change what has been opened."""
    ones = np.ones(400, np.float32)
    call = emitted_call(warm(lambda xs, p: xs[0] * 2 + p.x, [np.ones((300, 400), np.float32)], Pair(ones, Y)))
    threshold, emptied = gc.get_threshold(), 0
    try:
        for k in range(60):
            xs, p = [np.full((300, 400), k, np.float32)], Pair(ones, Y)
            kept = [{} for _ in range(200)]  # so that Python has none to use again
            gc.collect()
            Emptied(xs)
            gc.set_threshold(1)
            try:
                found = call(xs, p)
            except IndexError:  # the list was empty when the call began, or Python has taken it
                continue
            finally:
                gc.set_threshold(*threshold)
            emptied += not xs
            np.testing.assert_array_equal(found, np.full((300, 400), 2 * k + 1, np.float32))
    finally:
        gc.set_threshold(*threshold)
    assert emptied and kept
