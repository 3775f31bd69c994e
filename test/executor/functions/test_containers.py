"""Objects that arguments and results are nested in: jitted functions see them as plain ones do."""

import gc
from collections import Counter, OrderedDict, defaultdict
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.errors import ArgumentError

W = np.arange(1.0, 5.0)


@pytest.fixture(autouse=True)
def in_python():
    with pf.knobs.override(unsupported="python"):
        yield


@dataclass
class Scaled:
    """A field that is no parameter, one that only `__init__` gets, one that is computed."""

    w: Any
    factor: InitVar[float] = 2.0
    steps: int = field(default=3, init=False)

    def __post_init__(self, factor):
        self.w = self.w * factor
        self.norm = float(np.abs(self.w[0]))

    @cached_property
    def doubled(self):
        return self.w * 2


@dataclass(frozen=True, slots=True)
class Frozen:
    w: Any
    name: str = "frozen"


@dataclass
class Nested:
    layer: Any
    names: list = field(default_factory=list)
    options: dict = field(default_factory=dict)


@dataclass
class Table(dict):
    """A dataclass that has items beside its attributes."""

    scale: Any = 2.0


class AttributeDict(dict):
    """Items as attributes."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.__dict__ = self


class Config(dict):
    """Iterates backwards, and has attributes beside its items."""

    def __iter__(self):
        return reversed(list(self.keys()))

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def scaled():
    found = Scaled(W)
    found.steps = 7
    found.norm = 10.0
    return found


def config():
    found = Config(w=W, b=W + 1)
    found.scale = 3.0
    return found


def table():
    found = Table(W)
    found["b"] = W + 1
    return found


def counts():
    found = defaultdict(list)
    found["w"], found["more"] = W, [W + 1, 2]
    return found


# What makes an argument, a function of it, and whether a graph holds the function.
CASES = {
    "dataclass": (scaled, lambda p: p.w * p.steps + p.norm, True),
    "dataclass, attribute of no field": (scaled, lambda p: (p.w, getattr(p, "extra", 1)), True),
    "dataclass, cached": (scaled, lambda p: p.doubled + p.w, True),
    "dataclass, as result": (scaled, lambda p: p, True),
    "dataclass, made": (lambda: W, lambda x: Scaled(x, 4.0), False),
    "dataclass, made of traced arrays": (lambda: W, lambda x: Nested(x * 2, ["n"], {"twice": x + x}), True),
    "frozen": (lambda: Frozen(W), lambda p: Frozen(p.w * 2, p.name + "!"), True),
    "nested": (
        lambda: Nested(Frozen(W), ["a", "b"], {"k": [1, 2]}),
        lambda p: p.layer.w * len(p.names) + p.options["k"][1],
        True,
    ),
    "namespace": (lambda: SimpleNamespace(w=W, n=3), lambda s: s.w * s.n, True),
    "namespace, made": (lambda: W, lambda x: SimpleNamespace(w=x + 1, text="x"), True),
    "dict that is its attributes": (
        lambda: AttributeDict(w=W, n=2),
        lambda d: (d.w * d["n"], AttributeDict(w=d.w)),
        True,
    ),
    "dict of a class": (config, lambda d: (d.w * d.scale, list(d), d), True),
    "dict that is a dataclass": (table, lambda d: (d.scale * d["b"], d), True),
    "counter": (lambda: Counter(a=2, b=3), lambda c: W * c["a"] + c["missing"], True),
    "defaultdict": (counts, lambda d: (d["w"] + d["more"][0], d), True),
    "defaultdict, written": (counts, lambda d: d["new"] + [d["w"] * 2], False),
    "defaultdict, function": (lambda: defaultdict(lambda: 1.0, w=W), lambda d: d["w"] * d["n"], False),
    "attribute assigned": (scaled, lambda p: setattr(p, "w", p.w * 2), True),
    "item assigned": (config, lambda d: d.update(w=d["w"] * 2), False),
    "ordered": (lambda: OrderedDict(w=W, b=W), lambda d: OrderedDict(x=d["w"] + d["b"]), True),
}


def same(a, b):
    """Compare results with what objects of their classes hold; an array equals its copy alone."""
    assert type(a) is type(b)
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    elif isinstance(a, dict):
        assert list(dict.keys(a)) == list(dict.keys(b))
        for key in dict.keys(a):
            same(dict.__getitem__(a, key), dict.__getitem__(b, key))
    elif isinstance(a, (tuple, list)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    if isinstance(a, Frozen):
        same((a.w, a.name), (b.w, b.name))
    elif hasattr(a, "__dict__") and a.__dict__ is not a:
        same(vars(a), vars(b))
    elif not isinstance(a, (np.ndarray, dict, tuple, list)):
        assert a == b


@pytest.mark.parametrize("case", CASES)
def test_functions_of_containers_do_what_plain_ones_do(case):
    make, fn, is_native = CASES[case]
    f = pf.jit(fn)
    for _ in range(4):
        given, expected = make(), make()
        same(f(given), fn(expected))
        same(given, expected)
    counters = f.state().counters
    assert (counters["python_calls"] == 0) is is_native, f.explain()
    if is_native:
        assert counters["traces"] == 1 and f.state().tier == "optimized"


def test_attributes_decide_which_graph_serves_a_call():
    f = pf.jit(lambda p: p.w + 1 if hasattr(p, "shifted") else p.w)
    plain, shifted = scaled(), scaled()
    shifted.shifted = True
    for _ in range(3):
        np.testing.assert_array_equal(f(plain), plain.w)
        np.testing.assert_array_equal(f(shifted), shifted.w + 1)
    assert f.state().counters["traces"] == 2


class Deleted:
    alive = 0

    def __init__(self, w):
        self.w = w

    __hash__ = None


@dataclass
class Resource(Deleted):
    w: Any

    def __del__(self):
        Deleted.alive -= 1


def test_objects_that_clean_up_are_not_copied():
    Deleted.alive = 1
    held = Resource(W)
    f = pf.jit(lambda r: r.w * 2)
    for _ in range(3):
        np.testing.assert_array_equal(f(held), W * 2)
    assert Deleted.alive == 1 and f.state().tier == "python"
    assert "profuse.register_pytree" in f.explain()
    del held, f
    gc.collect()  # else it is at some moment of another trace that the object cleans up


class Matrix:
    """Hashable by identity, and not a container before it is registered."""

    def __init__(self, rows, columns, name="m"):
        self.rows, self.columns, self.name = rows, columns, name

    def __eq__(self, other):
        return NotImplemented

    __hash__ = None


def test_registered_classes_are_containers():
    f = pf.jit(lambda m: Matrix(m.columns * 2, m.rows + 1, m.name))
    plain = f(Matrix(W, W + 1))  # an object, of which the attributes are read
    same((plain.rows, plain.columns, plain.name), ((W + 1) * 2, W + 1, "m"))
    pf.register_pytree(Matrix, lambda m: ((m.rows, m.columns), m.name), lambda name, parts: Matrix(*parts, name))
    f = pf.jit(lambda m: Matrix(m.columns * 2, m.rows + 1, m.name))
    for name in ("m", "n", "m", "n", "m"):
        found = f(Matrix(W, W + 1, name))
        same((found.rows, found.columns, found.name), ((W + 1) * 2, W + 1, name))
    counters = f.state().counters
    assert (counters["python_calls"], counters["traces"]) == (0, 2)
    _, pullback = pf.vjp(lambda m: (m.rows * m.columns).sum(), Matrix(W, W + 1))
    (gradient,) = pullback(1.0)
    same((gradient.rows, gradient.columns), (W + 1, W))
    with pytest.raises(ArgumentError, match="Matrix has been registered already"):
        pf.register_pytree(Matrix, lambda m: ((), None), lambda s, parts: None)


@pytest.mark.parametrize(
    "cls, flatten, said",
    [
        (3, len, "3 is no class"),
        (dict, len, "dict has a meaning of its own here"),
        (np.ndarray, len, "ndarray has a meaning of its own here"),
        (Frozen, None, "None cannot be called"),
    ],
)
def test_what_cannot_be_registered(cls, flatten, said):
    with pytest.raises(ArgumentError, match=said):
        pf.register_pytree(cls, flatten, len)


class Unhashable:
    pass


def test_static_parts_have_to_be_hashable():
    pf.register_pytree(Unhashable, lambda u: ((W,), ["list"]), lambda s, parts: Unhashable())
    with pytest.raises(ArgumentError, match="static part of a Unhashable is not hashable"):
        pf.jit(unsupported="raise")(lambda u: W)(Unhashable())
