"""Which functions may come upon tensors that are no arguments of theirs: found by the names in their code."""

from __future__ import annotations

import functools
import types
from collections import deque
from dataclasses import dataclass

import numpy as np
import profuse as pf
import pytest
from host_library import Tensor
from profuse.executor.functions.tensor_reads import TensorReads

WEIGHT = Tensor(np.ones(3))
SCALE = 2.0
PAIR = {"weights": [np.ones(3), (WEIGHT,)]}
SPACE = types.SimpleNamespace(weight=WEIGHT, scale=3.0)


@dataclass
class Layer:
    weight: object
    scale: float = 2.0

    shared = WEIGHT

    def of_weight(self, x):
        return x @ self.weight

    def of_scale(self, x):
        return x * self.scale

    @property
    def turned(self):
        return self.weight.T


class Slotted:
    __slots__ = ("scale", "weight")

    def __init__(self) -> None:
        self.weight = WEIGHT


class Called(Layer):
    def __call__(self, x):
        return self.of_weight(x)


LAYER, SLOTTED = Layer(WEIGHT), Slotted()


def closing(value):
    return lambda x: x + value


def calls_later(x):
    return [named(x) for _ in range(2)]


def named(x, *, w=WEIGHT):
    return x * w


def plain(x):
    return np.tanh(x) * SCALE


READS = {
    "a global": lambda x: x * WEIGHT,
    "an item": lambda x: x * PAIR["weights"][0],
    "an attribute": lambda x: x * SPACE.weight,
    "a slot": lambda x: x * SLOTTED.weight,
    "a method": LAYER.of_weight,
    "a method by its name": lambda x: LAYER.of_weight(x),
    "a property": lambda x: LAYER.turned,
    "a class": lambda x: x * Layer.shared,
    "a text": lambda x: getattr(LAYER, "weight"),  # noqa: B009
    "a made-up name": lambda x: getattr(LAYER, "wei" + x),
    "a variable": closing(WEIGHT),
    "a variable in a container": closing(deque([WEIGHT])),
    "a default": named,
    "another function": calls_later,
    "a jitted function": closing(pf.jit(named)),
    "an object that is called": Called(WEIGHT),
    "a partial": functools.partial(plain, w=WEIGHT),
}
DOES_NOT = {
    "nothing": plain,
    "another attribute": lambda x: x * SPACE.scale,
    "another method": LAYER.of_scale,
    "another method by its name": lambda x: LAYER.of_scale(x),
    "an array": closing([np.ones(3), "weight"]),
    "the class of tensors": closing(Tensor),
    "a package": lambda x: np.linalg.norm(x),
}


def may_read(fn, *arguments):
    return TensorReads(fn).may(arguments, are_plain=False)


@pytest.mark.parametrize("name", READS)
def test_what_may_be_a_tensor_is_found(name):
    assert may_read(READS[name], np.ones(3))


@pytest.mark.parametrize("name", DOES_NOT)
def test_what_is_no_tensor_is_not(name):
    assert not may_read(DOES_NOT[name], np.ones(3))


def test_arguments_are_looked_through():
    assert may_read(Layer.of_weight, LAYER, np.ones(3))
    assert not may_read(Layer.of_scale, LAYER, np.ones(3))
