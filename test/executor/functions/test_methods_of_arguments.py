"""What methods of containers among the arguments assign: a method is bound to the container itself."""

import copy
import dataclasses

import numpy as np
import profuse as pf
import pytest
from internals import same

X = np.arange(3.0)


@pytest.fixture(autouse=True)
def python():
    """The default, which the other tests turn off."""
    with pf.knobs.override(unsupported="python"):
        yield


@dataclasses.dataclass
class Moments:
    steps: int = 0
    mean: dict = dataclasses.field(default_factory=dict)

    def count(self):
        self.steps += 1

    def update(self, name, x):
        self.count()
        if name not in self.mean:
            self.mean[name] = np.zeros_like(x)
        self.mean[name] = 0.9 * self.mean[name] + 0.1 * x
        return self.mean[name] / (1 - 0.9**self.steps)


class Registered:
    def __init__(self, total, parts):
        self.total, self.parts = total, parts

    def add(self, x):
        self.total = self.total + x
        self.parts["last"] = x * 2


pf.register_pytree(Registered, lambda r: ((r.total, r.parts), None), lambda _, parts: Registered(*parts))


def by_method(moments, x):
    return moments.update("a", x) * 2


def by_bound_method(moments, x):
    count, update = moments.count, moments.update
    count()
    return update("a", x) + update("b", x)


def by_name(moments, x):
    getattr(moments, "update")("a", x)  # noqa: B009
    return x * 2


def by_map(moments, x):
    return sum(map(moments.update, ["a", "b"], [x, x * 2]))


def by_class(moments, x):
    return Moments.update(moments, "a", x)


def inside(moments, x):
    for part in (moments["one"], *moments["rest"]):
        part.update("a", x)
    return x * 2


def one():
    return Moments()


def several():
    return {"one": Moments(), "rest": [Moments(3), Moments()]}


@pytest.mark.parametrize(
    "f, make", [(f, one) for f in (by_method, by_bound_method, by_name, by_map, by_class)] + [(inside, several)]
)
def test_methods_assign_to_the_callers_container(f, make):
    jitted, ours = pf.jit(f), make()
    theirs = copy.deepcopy(ours)
    for k in range(6):
        same(jitted(ours, X + k), f(theirs, X + k))
        same(ours, theirs)
    state = jitted.state()
    assert state.tier == "optimized" and state.counters["python_calls"] == 0


def test_methods_of_registered_classes_are_python_s():
    def f(r, x):
        r.add(x)
        return r.total * 2

    jitted, ours, theirs = pf.jit(f), Registered(X, {}), Registered(X, {})
    for _ in range(4):
        same(jitted(ours, X), f(theirs, X))
        same((ours.total, ours.parts), (theirs.total, theirs.parts))
    assert jitted.state().counters["python_calls"] == 4
