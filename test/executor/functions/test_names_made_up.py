"""Attributes that code asks for by names that it makes up are compared as those that it names."""

from __future__ import annotations

import dataclasses
from operator import attrgetter

import numpy as np
import profuse as pf
import pytest


@dataclasses.dataclass
class Model:
    w0: float = 1.0
    w1: float = 2.0
    layer: int = 0
    unused: int = 0

    def formatted(self, x):
        return x * getattr(self, f"w{self.layer}")

    def listed(self, x):
        for name in ("w0", "w1"):
            x = x * getattr(self, name)
        return x

    def variables(self, x):
        return x * vars(self)["w" + str(self.layer)]

    def dictionary(self, x):
        return x * self.__dict__["w" + str(self.layer)]

    def values(self, x):
        return x * sum(vars(self).values())

    def as_dict(self, x):
        return x * sum(dataclasses.asdict(self).values())

    def getter(self, x):
        return x * attrgetter("w" + str(self.layer))(self)

    def plain(self, x):
        return x * self.w0

    def default(self, x):
        return x * getattr(self, "w0", 3.0)

    def compared(self, x):
        return x * 2 if self == Model() else x

    def written(self, x):
        return x * len(f"{self}")


WAYS = (
    "formatted",
    "listed",
    "variables",
    "dictionary",
    "values",
    "as_dict",
    "getter",
    "default",
    "compared",
    "written",
)


@pytest.mark.parametrize("way", WAYS)
def test_new_values_are_seen(way):
    model, x = Model(), np.arange(3.0)
    jitted = pf.jit(getattr(model, way), unsupported="python")
    for k in range(5):
        np.testing.assert_array_equal(jitted(x), getattr(model, way)(x))
        model.w0 += 1
        model.layer = k % 2


def test_new_attributes_are_seen():
    model, x = Model(), np.arange(3.0)
    jitted = pf.jit(model.values, unsupported="python")
    for k in range(4):
        np.testing.assert_array_equal(jitted(x), model.values(x))
        setattr(model, f"w{k + 2}", 0.5)


@pytest.mark.parametrize("way", ["default", "plain"])
def test_others_are_not_compared_where_the_names_are_known(way):
    model, x = Model(), np.arange(3.0)
    jitted = pf.jit(getattr(model, way))
    for _ in range(4):
        jitted(x)
        model.unused += 1
    assert jitted.state().counters["traces"] == 1
