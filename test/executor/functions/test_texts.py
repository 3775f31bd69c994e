"""Texts, hashes and questions about the class of traced values are Python's."""
# ruff: noqa: UP031, UP032

from __future__ import annotations

import collections
import copy
import dataclasses
import json
import math
import operator
import pickle
import pprint
import reprlib
import string
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import profuse as pf
import pytest


@dataclasses.dataclass(frozen=True)
class Window:
    width: object


class Pair(NamedTuple):
    first: object
    second: object


def matched(value):
    match value:
        case 3:
            return "three"
        case bool() | int():
            return "int"
        case (3, *_):
            return "shape"
        case np.floating():
            return "scalar"
        case np.ndarray():
            return "array"
    return "other"


def keys(value):
    table = {value: "first"}
    table[3] = "second"
    return [repr(key) for key in table], value in {3, (3, 2)}, table.get(value)


def lines(value):
    out = string.Template("$v;").substitute(v=value)
    for k, part in enumerate([value, (value,)]):
        out += f"{k:02d}:{part!r:>12}"
    return out


# What text and questions see of sizes, and of numbers that are passed: a graph holds for one each.
OF_NUMBERS = {
    "dataclass": lambda v: str(Window(v)),
    "containers": lambda v: repr([v, (v, 1), {"k": v}, {v: 2}, {v}]),
    "formatted containers": lambda v: f"{[v]} {(v,)!s:>9} {Pair(v, 2)}",
    "percent": lambda v: "%r %s %%" % (v, [v]),
    "format": lambda v: "{0!r}{0!s:>7}{1[0]}".format(v, [v]),
    "namespace": lambda v: repr(SimpleNamespace(v=v)),
    "collections": lambda v: f"{collections.OrderedDict(v=v)}{collections.Counter([v])}",
    "errors": lambda v: repr(ValueError(v, 2)) + str(KeyError(v)),
    "shortened": lambda v: reprlib.repr({"v": v}) + ascii(v),
    "lines": lines,
    "joined": lambda v: "-".join(map(repr, [v, v])),
    "method": lambda v: v.__repr__() + v.__str__() + v.__format__(""),
    "keys": keys,
    "hash": lambda v: (hash(v), hash(Window((v, 1)))),
    "match": matched,
    "sorted": lambda v: sorted([v, 10, 2], key=str),
    "class": lambda v: (v.__class__, type(v).__name__, isinstance(v, collections.abc.Sized)),
    "attributes": lambda v: [hasattr(v, k) for k in ("value", "kind", "real", "__len__", "mro")],
    "default": lambda v: getattr(v, "value", "none") + getattr(v, "rec", "none"),
}
OF_INTS = {
    "width": lambda v: f"{7:{v}d}" + f"{v:05d}" + "%d" % v,
    "bits": lambda v: (v.bit_length(), hex(v), operator.index(v), divmod(17, v), divmod(v, 2)),
    "power": lambda v: (pow(v, 2, 5), pow(v, v, v + 4), pow(v, 2)),
    "rounded": lambda v: (round(v, -1), round(v, 1), round(v > 2), math.trunc(v > 2)),
}
# What C code and libraries refuse of objects that are no plain ints and floats, or asks the world.
OF_PLAIN_NUMBERS = {
    "pretty": lambda v: pprint.pformat([v]),
    "json": lambda v: json.dumps({"v": [v]}),
    "copies": lambda v: repr(copy.deepcopy([v])) + repr(copy.copy((v,))),
    "pickle": lambda v: pickle.loads(pickle.dumps((v, 1))),
    "width": lambda v: "%*d" % (v, 7) if type(v) is int else pickle.dumps(v),
}
VALUES = {
    "size": lambda a, n, s: a.shape[0],
    "length": lambda a, n, s: len(a),
    "int": lambda a, n, s: n,
    "sum of ints": lambda a, n, s: n + len(a) - 1,
    "float": lambda a, n, s: s,
    "half": lambda a, n, s: n / 2,
    "bool": lambda a, n, s: n > 3,
}
CALLS = [(3, 3, 0.5), (3, 3, 0.5), (15, 3, 0.5), (3, 4, -0.0), (3, 3, 0.5), (15, 4, 2.5)]


def observed(f):
    return [f(np.arange(float(size)), n, s) for size, n, s in CALLS]


def seen(x):
    """What tells numbers of one class and of equal value apart."""
    return repr(x) if not isinstance(x, tuple) else tuple(map(seen, x))


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("form", "value"),
    [
        (form, value)
        for form in (*OF_NUMBERS, *OF_INTS)
        for value in VALUES
        if form in OF_NUMBERS or value not in ("float", "half", "bool")
    ],
)
def test_texts_of_numbers(form, value):
    made, of = (OF_NUMBERS | OF_INTS)[form], VALUES[value]

    def f(a, n, s):
        return made(of(a, n, s)), a * 2

    jitted = pf.jit(f)
    for found, wanted in zip(observed(jitted), observed(f), strict=True):
        assert seen(found[0]) == seen(wanted[0])
        assert found[1].tolist() == wanted[1].tolist()
    counters = jitted.state().counters
    assert (counters["python_calls"], counters["calls"]) == (0, len(CALLS))


@pytest.mark.parametrize("form", OF_PLAIN_NUMBERS)
def test_what_takes_plain_numbers_alone_is_pythons(form):
    def f(a, n, s):
        return [OF_PLAIN_NUMBERS[form](v) for v in (len(a), n, s)], a * 2

    jitted = pf.jit(f, unsupported="python")
    for found, wanted in zip(observed(jitted), observed(f), strict=True):
        assert repr(found) == repr(wanted)
    assert jitted.state().counters["python_calls"] == len(CALLS)


def test_shapes_as_text_and_as_keys():
    table = {(2, 3): "small", (4, 4): "square"}

    def f(a):
        same = [a.shape == (2, 3), a.shape in table, np.shape(a) in [(4, 4)]]
        return f"{a.shape} {a.T.shape!r} {len(a)}", str([*a.shape, a.size]), same, a + 1

    jitted = pf.jit(f)
    for shape in [(2, 3), (2, 3), (4, 4), (2, 3), (1, 1)]:
        *found, _ = jitted(np.ones(shape))
        *wanted, _ = f(np.ones(shape))
        assert found == wanted
    assert jitted.state().counters["python_calls"] == 0


OF_CONTENTS = {
    "element": lambda a: repr(a[0]),
    "list": lambda a: str([a[0], 1]),
    "array": lambda a: f"{a * 2!r}",
    "percent": lambda a: "%r" % (a.sum(),),
    "dict": lambda a: str({"total": a.sum()}),
    "float": lambda a: repr({"item": float(a[0])}),
    "masked": lambda a: f"{a[a > 1]}" + repr([a[a > 1]]),
    "ascii": lambda a: ascii(np.argmax(a)),
    "what catches errors": lambda a: reprlib.repr([a]),
    "and others": lambda a: reprlib.repr({"x": float(a.sum())}),
    "method": lambda a: a.mean().__repr__(),
    "repeated": lambda a: [0, 1] * np.argmax(a),
    "method of floats": lambda a: a.sum().is_integer(),
}


@pytest.mark.parametrize("form", OF_CONTENTS)
def test_texts_of_contents_are_pythons(form):
    def f(a):
        return OF_CONTENTS[form](a), a * 2

    jitted = pf.jit(f, unsupported="python")
    for a in (np.arange(3.0), np.arange(3.0), np.arange(4.0) - 2, np.arange(3.0)):
        assert repr(jitted(a)) == repr(f(a))
    assert jitted.state().counters["python_calls"] == 4
    assert jitted.state().tier == "python"


def test_what_a_library_catches_refuses_the_trace():
    jitted = pf.jit(lambda a: (reprlib.repr([a]), a * 2), unsupported="raise")
    with pytest.raises(pf.TraceError, match="the text of an array is needed here"):
        jitted(np.ones(3))


@pytest.mark.parametrize(
    "question",
    [
        lambda x: [hasattr(x, k) for k in ("__len__", "__iter__", "is_integer", "shape", "rec")],
        lambda x: [isinstance(x, cls) for cls in (collections.abc.Sized, collections.abc.Iterable)],
        lambda x: isinstance(x, float | collections.abc.Sized),
        lambda x: isinstance(x, (tuple, (collections.abc.Container, str))),
        lambda x: getattr(x, "storage", None) is None and getattr(x, "shape", None) is not None,
    ],
)
def test_questions_about_classes(question):
    def f(a):
        return [question(x) for x in (a, a.sum(), a[0], np.argmax(a), a[1:], a.max() > 1)], a + 1

    jitted = pf.jit(f)
    for _ in range(3):
        assert jitted(np.arange(4.0))[0] == f(np.arange(4.0))[0]
    assert jitted.state().counters["python_calls"] == 0


def test_sequences_are_no_operands_of_scalars():
    def f(a):
        try:
            return [1, 2] * a.sum(), a * 2
        except TypeError:
            return "no int", a * 2

    jitted = pf.jit(f, unsupported="python")
    for _ in range(3):
        assert jitted(np.ones(3))[0] == "no int"
    scaled = pf.jit(lambda a: ([1, 2, 3] * a, (a[0] + 0.5) * 2))
    for _ in range(3):
        assert scaled(np.arange(3.0))[0].tolist() == [0, 2, 6]
    assert scaled.state().counters["python_calls"] == 0


def test_numpys_ints_are_not_truncated():
    def f(a):
        try:
            return math.trunc(np.argmax(a)), math.floor(a.max())
        except TypeError:
            return "no __trunc__", math.trunc(a.max())

    jitted = pf.jit(f, unsupported="python")
    for _ in range(3):
        assert jitted(np.arange(3.0)) == f(np.arange(3.0))


def test_keys_made_of_text_count_calls_by_shape():
    counts = {}

    def f(a):
        counts.setdefault(str(a.shape), 0)
        counts[str(a.shape)] += 1
        return a * 2

    jitted = pf.jit(f, unsupported="python")
    for size in (3, 3, 5, 3, 5):
        jitted(np.ones(size))
    assert counts == {"(3,)": 3, "(5,)": 2}
