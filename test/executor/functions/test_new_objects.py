"""Objects that a function makes are new ones at each call; values may be the same."""

from __future__ import annotations

import collections
import contextlib
import datetime
import enum
import functools
import types
from fractions import Fraction

import numpy as np
import profuse as pf
import pytest

X = np.arange(1.0, 5.0)


@pytest.fixture(autouse=True)
def python():
    """The default, which the other tests turn off."""
    with pf.knobs.override(unsupported="python"):
        yield


class Box:
    def __init__(self, x):
        self.x = x

    def get(self):
        return self.x


class Kind(enum.Enum):
    A = 1


def named(x):
    return x


KEPT, HOLDER = Box(1), types.SimpleNamespace(box=Box(2), kind=Kind.A)
NEW = {
    "object of a class": lambda x: (x * 2, Box(1)),
    "within a list": lambda x: {"a": [x * 2, Box([1])]},
    "key": lambda x: {Box(1): x * 2},
    "key of several": lambda x: {("a", Box(1)): x * 2},
    "class": lambda x: (x * 2, type("Made", (), {})),
    "named tuple's class": lambda x: (x * 2, collections.namedtuple("Made", "a b")),
    "sentinel": lambda x: (x * 2, object()),
    "exception": lambda x: (x * 2, ValueError("text")),
    "partial": lambda x: (x * 2, functools.partial(max, 1)),
    "module": lambda x: (x * 2, types.ModuleType("made")),
    "bound method": lambda x: (x * 2, Box(1).get),
    "object of a library": lambda x: (x * 2, contextlib.nullcontext(1)),
    "NumPy's": lambda x: (x * 2, np.vectorize(max)),
}
SAME = {
    "object of a name": lambda x: (x * 2, KEPT),
    "object of an attribute": lambda x: (x * 2, HOLDER.box),
    "enum": lambda x: (x * 2, HOLDER.kind, Kind.A),
    "class": lambda x: (x * 2, Box, np.float32, int),
    "function": lambda x: (x * 2, named, np.sin, len),
    "dtype": lambda x: (x * 2, x.dtype, np.dtype([("a", float)])),
    "values": lambda x: (x * 2, "text", None, b"a", range(3), ..., datetime.date(2024, 1, 1), Fraction(1, 3)),
    "keys": lambda x: {1: x * 2, ("a", 2): x, Kind.A: x + 1, None: x + 2},
}


def flat(value):
    if isinstance(value, dict):
        return [y for item in (*value, *value.values()) for y in flat(item)]
    return [y for item in value for y in flat(item)] if isinstance(value, tuple | list) else [value]


@pytest.mark.parametrize("name", NEW)
def test_objects_of_the_functions_own(name):
    f = pf.jit(NEW[name], background=False)
    found = [f(X) for _ in range(4)]
    objects = [x for result in found for x in flat(result) if not isinstance(x, np.ndarray | str)]
    assert len(set(map(id, objects))) == len(found)
    assert f.state().tier == "python" and "that the function makes" in f.explain()
    with pf.knobs.override(unsupported="raise"), pytest.raises(pf.TraceError, match="that the function makes"):
        pf.jit(NEW[name])(X)


@pytest.mark.parametrize("name", SAME)
def test_objects_that_are_there_and_values(name):
    f = pf.jit(SAME[name], background=False)
    for _ in range(3):
        found, wanted = flat(f(X)), flat(SAME[name](X))
        for ours, theirs in zip(found, wanted, strict=True):
            assert np.array_equal(ours, theirs) and type(ours) is type(theirs)
    assert f.state().counters["python_calls"] == 0


def test_arguments_may_be_results():
    f = pf.jit(lambda x, box: (x * 2, box), background=False)
    for box in (Box(1), Box(2), KEPT):
        assert f(X, box)[1] is box


def test_classes_are_of_the_module_that_makes_them():
    def f(x):
        made = type("Made", (Box,), {"unit": 2.0})
        return x * made.unit, made.__module__, made(3).get()

    jitted = pf.jit(f, background=False)
    for _ in range(3):
        np.testing.assert_equal(jitted(X), f(X))
    assert jitted.state().counters["python_calls"] == 0
