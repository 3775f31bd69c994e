"""What a function reads of classes: of arguments that are containers, of descriptors, and of keys that are objects."""

from __future__ import annotations

import dataclasses
import weakref
from typing import ClassVar, NamedTuple

import numpy as np
import profuse as pf
import pytest

X = np.arange(1.0, 5.0)


@pytest.fixture(autouse=True)
def python():
    """The default, which the other tests turn off."""
    with pf.knobs.override(unsupported="python"):
        yield


@dataclasses.dataclass
class Layer:
    w: object
    unit: ClassVar[float] = 2.0

    @property
    def scale(self):
        return 3.0

    def apply(self, x):
        return self.w * x * self.unit * self.scale


class Named(NamedTuple):
    w: object

    def apply(self, x):
        return self.w * x


class Table(dict):
    unit = 2.0

    def apply(self, x):
        return self["w"] * x * self.unit


class Part:
    def __init__(self, w):
        self.w = w

    def apply(self, x):
        return self.w * x


pf.register_pytree(Part, lambda part: ((part.w,), None), lambda _, parts: Part(*parts))

MADE = {"dataclass": Layer, "named tuple": Named, "dict": lambda w: Table(w=w), "registered": Part}
CHANGES = {
    "dataclass": [("unit", 5.0), ("scale", property(lambda self: 7.0)), ("apply", lambda self, x: self.w - x)],
    "named tuple": [("apply", lambda self, x: self.w - x)],
    "dict": [("unit", 5.0), ("apply", lambda self, x: self["w"] - x)],
    "registered": [("apply", lambda self, x: self.w - x)],
}


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("name", MADE)
def test_classes_of_arguments_are_compared(name, nested, monkeypatch):
    made = MADE[name](X)
    argument = [made, {"k": made}] if nested else made

    def f(argument, x):
        return (argument[1]["k"] if nested else argument).apply(x)

    jitted = pf.jit(f, background=False)
    for change in (None, *CHANGES[name]):
        if change is not None:
            monkeypatch.setattr(type(made), *change)
        for _ in range(3):
            np.testing.assert_array_equal(jitted(argument, X), f(argument, X))
    assert jitted.state().counters["python_calls"] == 0


class Base:
    gain = 2.0

    def apply(self, x):
        return x * self.gain


@dataclasses.dataclass
class Derived(Base):
    w: object

    def apply(self, x):
        return super().apply(x) * getattr(self, "late", 1.0) + self.w

    def __call__(self, x):
        return self.apply(x)


def test_what_hides_an_attribute_of_a_class_is_seen(monkeypatch):
    def f(argument, x):
        return argument(x)

    jitted, argument = pf.jit(f, background=False), Derived(X)
    for change in (
        None,
        (Base, "gain", 3.0),
        (Derived, "gain", 5.0),
        (Base, "late", 7.0),
        (Derived, "late", 11.0),
        (Base, "apply", lambda self, x: x - 1),
        (Derived, "__call__", lambda self, x: x),
    ):
        if change is not None:
            monkeypatch.setattr(*change, raising=False)
        for _ in range(3):
            np.testing.assert_array_equal(jitted(argument, X), f(argument, X))


@dataclasses.dataclass(frozen=True)
class Key:
    a: int


class Box:
    pass


KEYS = {
    "arguments": lambda cache, k, x: (cache.setdefault(k, 2.0 * k.a), x * cache[k])[1],
    "of arguments": lambda cache, k, x: (cache.__setitem__(("k", k), 2.0), x * len(cache))[1],
    "made in the call": lambda cache, k, x: (cache.__setitem__(Box(), 2.0), x * len(cache))[1],
}


@pytest.mark.parametrize("name", KEYS)
def test_objects_that_become_keys(name):
    calls = [(Key(k % 2), X + k) for k in range(5)]
    told = []
    for is_jitted in (True, False):
        table = {}

        def f(k, x, table=table):
            return KEYS[name](table, k, x)

        function = pf.jit(f, background=False) if is_jitted else f
        told.append(([function(k, x) for k, x in calls], [repr(k)[:5] for k in table], list(table.values())))
    np.testing.assert_equal(*told)


class Counting:
    def __init__(self):
        self.count, self.gain = 0, 2.0

    def __getattribute__(self, name):
        if name == "gain":
            object.__setattr__(self, "count", object.__getattribute__(self, "count") + 1)
        return object.__getattribute__(self, name)


def test_classes_that_find_attributes_in_their_own_way():
    held = Counting()
    f = pf.jit(lambda x: x * held.gain, background=False)
    for k in range(4):
        np.testing.assert_array_equal(f(X), X * 2)
        assert object.__getattribute__(held, "count") == k + 1


class Kept:
    def __init__(self):
        self.table = weakref.WeakKeyDictionary()

    def __get__(self, holder, owner=None):
        return self.table.get(holder, 1.0)

    def __set__(self, holder, value):
        self.table[holder] = value


class Holder:
    gain = Kept()


def test_what_descriptors_keep_is_written_once():
    held = Holder()

    def f(x):
        held.gain = held.gain * 2
        return x * held.gain

    jitted = pf.jit(f, background=False)
    for k in range(4):
        np.testing.assert_array_equal(jitted(X), X * 2.0 ** (k + 1))
        assert held.gain == 2.0 ** (k + 1)


class Doubled:
    def __call__(self, x):
        return x * 2

    def gain(self, x):
        return x * 2


class Raised:
    def __call__(self, x):
        return x + 1

    def gain(self, x):
        return x + 1


ASKED = {
    "call": lambda step, x: step(x),
    "method": lambda step, x: step.gain(x),
    "isinstance": lambda step, x: x * (2 if isinstance(step, Doubled) else 7),
    "type": lambda step, x: x if type(step) is Doubled else -x,
}


@pytest.mark.parametrize("how", ASKED)
@pytest.mark.parametrize("is_argument", [False, True])
def test_objects_that_get_another_class(how, is_argument):
    step, ask = Doubled(), ASKED[how]
    f = pf.jit(ask, background=False) if is_argument else pf.jit(lambda x: ask(step, x), background=False)
    for kind in (Doubled, Doubled, Doubled, Raised, Raised, Doubled):
        step.__class__ = kind
        np.testing.assert_array_equal(f(step, X) if is_argument else f(X), ask(step, X))
    assert f.state().emitted
