"""A function, or a module, is the same one wherever code finds it: by name or in an object."""

import functools
import itertools
import math
import operator
import os
import time
import types
from collections import deque

import numpy as np
import profuse as pf
import pytest

X = np.arange(1.0, 5.0)


@pytest.fixture(autouse=True)
def in_python():
    with pf.knobs.override(unsupported="python"):
        yield


def double(x):
    return x * 2.0


def shift(x):
    return x + 1.0


class Net:
    """Its functions are beside other state: it has a shadow."""

    chosen = staticmethod(shift)

    def __init__(self):
        self.act, self.gain, self.xp, self.zeros, self.lib = double, 3.0, np, np.zeros, math

    @property
    def doubles(self):
        return self.act is double

    @property
    def is_numpys(self):
        return self.xp is np

    @property
    def makes_zeros(self):
        return self.zeros is np.zeros


class Named:
    """It holds names alone, and stands for itself."""

    def __init__(self):
        self.act = double


net, named = Net(), Named()
GAINS = {double: 2.0, shift: 5.0}
BOTH = [double, shift]


def chosen_by_default(x, act=double):
    return x * (3.0 if act is net.act else 5.0)


def chosen_by_keyword(x, *, act=double):
    return x * (3.0 if act is net.act else 5.0)


def told_apart(x, act):
    return act(x) * (3.0 if act is double else 5.0)


NATIVE = {
    "attribute": lambda x: x * (3.0 if net.act is double else 5.0),
    "equal": lambda x: x * (3.0 if net.act == double else 5.0),
    "among": lambda x: x * (3.0 if net.act in (shift, double) else 5.0),
    "key": lambda x: x * GAINS[net.act],
    "key by name": lambda x: x * GAINS[shift],
    "item": lambda x: x * BOTH.index(double),
    "getattr": lambda x: x * (3.0 if net.act is double else 5.0),
    "module": lambda x: net.xp.exp(x) * (3.0 if net.xp is np else 5.0),
    "module of the library": lambda x: x * (net.lib.pi if net.lib is math else 5.0),
    "substitute": lambda x: x + net.zeros(4) if net.zeros is np.zeros else x,
    "default": chosen_by_default,
    "default by keyword": chosen_by_keyword,
    "property": lambda x: x * (3.0 if net.doubles else 5.0),
    "module, in a property": lambda x: net.xp.exp(x) * (3.0 if net.is_numpys else 5.0),
    "substitute, in a property": lambda x: x * (3.0 if net.makes_zeros else 5.0),
    "argument": lambda x: told_apart(x, double) + told_apart(x, shift),
    "called alone": lambda x: double(x) + net.act(x) + named.act(x),
}
# Nobody makes one function of the two, so that Python has to tell.
PYTHONS = {
    "names alone": lambda x: x * (3.0 if named.act is double else 5.0),
    "of a class": lambda x: x * (3.0 if net.chosen is shift else 5.0),
}


@pytest.mark.parametrize("name", [*NATIVE, *PYTHONS])
def test_identities(name):
    plain = {**NATIVE, **PYTHONS}[name]
    f = pf.jit(plain)
    for _ in range(4):
        np.testing.assert_allclose(f(X), plain(X), rtol=1e-14)
        f.wait()
    assert f.state().counters["python_calls"] == (4 if name in PYTHONS else 0)
    if name in PYTHONS:
        assert "is in an object" in f.explain()


def test_a_function_that_is_met_before_its_name():
    """The attribute is read before any code is known that takes the function by name."""

    def told(x):
        return x * (3.0 if net.act is double else 5.0)

    def plain(x):
        y = x * net.gain
        return told(y)

    f = pf.jit(plain)
    for _ in range(4):
        np.testing.assert_array_equal(f(X), plain(X))
        f.wait()


def test_functions_as_arguments():
    f = pf.jit(told_apart)
    for act in (double, shift, double, shift):
        np.testing.assert_array_equal(f(X, act), told_apart(X, act))
        f.wait()
    assert f.state().counters["python_calls"] == 0


def test_a_function_that_is_bound_anew():
    held = Net()

    def plain(x):
        return held.act(x) * (3.0 if held.act is double else 5.0)

    f = pf.jit(plain)
    for act in (double, shift, double, shift):
        held.act = act
        np.testing.assert_array_equal(f(X), plain(X))
        f.wait()
    assert f.state().counters["python_calls"] == 0


class Clock:
    of_class = time.perf_counter_ns

    def __init__(self):
        self.now, self.gain, self.now_by_name = time.perf_counter_ns, 2.0, {}
        self.now_by_name["wall"] = time.time_ns


class Names:
    def __init__(self):
        self.now = time.perf_counter_ns


clock, names = Clock(), Names()
LIST, TUPLE, QUEUE = [time.time_ns], (time.time_ns,), deque([time.time_ns])
SPACE = types.SimpleNamespace(now=time.time_ns, gain=2.0)
PARTIAL = functools.partial(itertools.starmap, time.time_ns)


def asked(function):
    """What C code gets by a call of which nobody is told."""
    return next(itertools.starmap(function, [()]))


@pytest.mark.parametrize(
    "read",
    [
        lambda: asked(clock.now),
        lambda: asked(clock.now_by_name["wall"]),
        lambda: asked(clock.of_class),
        lambda: asked(names.now),
        lambda: asked(LIST[0]),
        lambda: asked(TUPLE[0]),
        lambda: asked(QUEUE[0]),
        lambda: asked(SPACE.now),
        lambda: asked(getattr(clock, "now")),  # noqa: B009
        lambda: next(PARTIAL([()])),
        lambda: functools.partial(clock.now)(),
        lambda: next(map(asked, LIST)),
    ],
)
def test_c_functions_that_objects_hold(read):
    f = pf.jit(lambda x: x + 0 * read() + read() % 2**40)
    found = {float(f(X)[0]) for _ in range(5)}
    f.wait()
    found |= {float(f(X)[0]) for _ in range(5)}
    assert len(found) == 10
    counters = f.state().counters
    assert (counters["python_calls"], counters["kernel_launches"]) == (10, 0)


def test_c_functions_that_nobody_calls():
    """An object with such a function beside what is read stays native."""
    held = types.SimpleNamespace(log=print, getenv=os.getenv, gain=2.0)
    f = pf.jit(lambda x: x * held.gain)
    for gain in (2.0, 3.0, 4.0):
        held.gain = gain
        np.testing.assert_array_equal(f(X), X * gain)
        f.wait()
    assert f.state().counters["python_calls"] == 0


def test_stores_keep_functions():
    """What an object is given is the function, and not what the trace has in its place."""
    held = Net()

    def plain(x):
        held.zeros, held.act = held.zeros, double
        held.lib = held.xp
        return x * held.gain

    f = pf.jit(plain)
    for _ in range(4):
        held.lib, held.act = math, shift
        f(X)
        f.wait()
        assert (held.zeros, held.act, held.lib) == (np.zeros, double, np)
    assert f.state().counters["python_calls"] == 0


def test_results_are_the_objects_themselves():
    """In emitted code, too, whatever stands for them in a trace and in the structure of results."""
    held = Net()
    f = pf.jit(lambda x: (held, double, held.act, held.xp, held.zeros, [time.time, len], x + 1))
    for _ in range(5):
        found = f(X)
        f.wait()
        assert all(map(operator.is_, found, (held, double, double, np, np.zeros)))
        assert all(map(operator.is_, found[5], (time.time, len)))
    assert f.state().emitted


def test_keys_are_the_objects_themselves():
    held, table = Net(), {double: 1.0}

    def plain(x):
        table[held.act] = x.sum()
        table[held] = table[held, "gain"] = held.gain
        return x * table[double]

    f = pf.jit(plain)
    for k in range(4):
        np.testing.assert_array_equal(f(X + k), (X + k) * (X + k).sum())
        f.wait()
        first, second, (third, _) = table
        assert (first, second, third) == (double, held, held)
    assert f.state().counters["evaluated_ops"] and f.state().tier == "optimized"  # no key makes the call Python's


def test_what_is_stored_are_the_objects_themselves():
    held = Net()

    def plain(x):
        held.lib, held.zeros, held.act = time.time, [np.ones, len], (shift, print)
        return x * held.gain

    f = pf.jit(plain)
    for _ in range(4):
        held.lib = held.zeros = held.act = None
        np.testing.assert_array_equal(f(X), X * 3.0)
        f.wait()
        found = (held.lib, *held.zeros, *held.act)
        assert all(map(operator.is_, found, (time.time, np.ones, len, shift, print)))
