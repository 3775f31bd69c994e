"""Calls that are Python's are looked at once, whatever their arguments are: not at each call."""

from __future__ import annotations

import fractions
import itertools
import pathlib
import threading
import time
from typing import Any

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.errors import TraceError
from profuse.executor.arguments import plain_calls
from profuse.executor.routing.ledger import Verdicts
from profuse.executor.routing.verdict import Cause, Server

X = np.arange(4.0)
FIELDS = np.zeros(3, [("a", "f8"), ("b", "i4")])


@pytest.fixture(autouse=True)
def python():
    with pf.knobs.override(unsupported="python"):
        yield


class Plain:
    def __init__(self, x):
        self.x = x


class Valued(Plain):
    def __eq__(self, other):
        return isinstance(other, Valued) and self.x == other.x


def counts(f, *names):
    counters = f.state().counters
    return tuple(counters[name] for name in names)


def timed(*args, **kwargs):
    """Python's, as it reads a clock; gives how many arguments there are."""
    time.monotonic()
    return len(args) + len(kwargs)


def counted(*args, **kwargs):
    """A graph of its own, if the arguments can have one."""
    return len(args) + len(kwargs)


def formatted(x, n):
    return {f"item {n}": x + 1}


def looks(f, calls, least=20, more=60):
    """Looks and traces of calls, after some of them."""
    calls = iter(calls)
    for args in itertools.islice(calls, least):
        f(*args)
    before = counts(f, "python_looks", "traces", "python_calls")
    for args in itertools.islice(calls, more):
        f(*args)
    after = counts(f, "python_looks", "traces", "python_calls")
    assert after[2] - before[2] == more
    return after[0] - before[0], after[1] - before[1]


@pytest.mark.parametrize(
    "argument",
    [
        FIELDS,
        np.array(["a", "bc"]),
        np.array([b"a"]),
        np.array(["2020-01-01"], "M8[D]"),
        np.array([3], "m8[s]"),
        np.array([1, "a", None], object),
        np.ones(3, np.longdouble),
        np.ones(3, np.clongdouble),
        FIELDS.view(np.recarray),
        FIELDS[0],
        np.ma.masked_less(X, 2),
        np.datetime64("2020-01-01"),
        np.longdouble(3),
        np.array(["ab"])[0],
        [X, FIELDS],
        {"a": np.array(["x"])},
        (FIELDS, 3),
        [0.5] * 1000,
    ],
    ids=lambda x: getattr(getattr(x, "dtype", None), "str", type(x).__name__) + type(x).__name__,
)
@pytest.mark.parametrize("way", ["alone", "second", "keyword"])
def test_arguments_that_no_graph_takes_are_refused_once(argument, way):
    f = pf.jit(counted)
    call = {"alone": lambda: f(argument), "second": lambda: f(X, argument), "keyword": lambda: f(x=argument)}[way]
    for _ in range(60):
        assert call() == (2 if way == "second" else 1)
    assert counts(f, "calls", "python_calls", "traces") == (60, 60, 0)
    assert counts(f, "python_looks") == (1,)


@pytest.mark.parametrize(
    "argument",
    [
        X,
        X.astype(">f8"),
        np.float64(3),
        2,
        3.5,
        "text",
        None,
        len,
        Plain(1),
        Valued(1),
        {1, 2},
        [X, X],
        (1.0, 2.0),
        {"a": X},
        fractions.Fraction(1, 3),
        np.random.default_rng(0),
        slice(3),
    ],
    ids=lambda x: type(x).__name__,
)
def test_functions_that_no_graph_holds_are_looked_at_once_per_kind_of_call(argument):
    f = pf.jit(timed)
    assert looks(f, itertools.repeat((X, argument)), 4) == (0, 0)
    assert counts(f, "python_looks")[0] <= 2


@pytest.mark.parametrize(
    "make",
    [
        lambda k: f"text {k}",
        lambda k: fractions.Fraction(k, 77),
        Plain,
        Valued,
        lambda k: k,
        lambda k: k / 7,
        lambda k: np.float32(k),
        lambda k: pathlib.PurePath(f"{k}"),
        lambda k: [Plain(k)],
        lambda k: {"name": f"text {k}"},
        lambda k: iter([k]),
        lambda k: lambda: k,
        lambda k: (f"text {k}", "mode"),
        lambda k: {k},
        lambda k: k * 1j,
    ],
)
@pytest.mark.parametrize("fn", [timed, counted])
def test_objects_and_texts_that_are_new_each_time_are_looked_at_no_more(make, fn):
    """Neither where no graph holds the function, nor where each would have one of its own."""
    f = pf.jit(fn)
    calls = iter([(X, make(k)) for k in range(120)])
    for args in itertools.islice(calls, 40):
        assert f(*args) == 2
    before = counts(f, "python_looks", "traces")
    for args in calls:
        assert f(*args) == 2
    looked, traced = (b - a for a, b in zip(before, counts(f, "python_looks", "traces"), strict=True))
    assert looked + traced <= 2  # one call in 64 is looked at


def test_the_words_name_what_is_new():
    f = pf.jit(counted)
    for k in range(30):
        f(X, f"text {k}", "mode")
    assert counts(f, "traces", "python_looks") == (8, 1)
    assert "other objects at each call (str)" in f.explain()


def test_texts_that_come_again_have_graphs():
    f = pf.jit(counted)
    modes = [f"mode {k}" for k in range(7)]
    for _ in range(9):
        for mode in modes:
            f(X, mode)
    for k in range(7, 14):
        f(X, f"mode {k}")
    assert counts(f, "python_calls", "traces") == (0, 14)


def test_one_object_beside_many_that_are_new_gets_its_graph():
    f, kept = pf.jit(counted), Plain(0)
    for k in range(20):
        f(X, Plain(k))
    for _ in range(80):
        f(X, kept)
    before = counts(f, "python_calls", "traces")
    assert before[1] == 9  # eight that were new, and this one
    for k in range(80):
        f(X, kept), f(X, Plain(k))
    after = counts(f, "python_calls", "traces")
    for _ in range(40):
        f(X, kept)
    assert after[1] <= before[1] + 8 + 1 and counts(f, "python_calls", "traces") == after


@pytest.mark.parametrize("first", [3, [3, 4], {"n": 3}, 2.5])
def test_numbers_that_are_formatted_are_looked_at_once_each(first):
    """A refusal that holds for a number is known for it, also in a container."""

    def named(x, n):
        n = n[0] if isinstance(n, list) else n["n"] if isinstance(n, dict) else n
        time.monotonic() if f"{n}" == f"{2 + 1}" or f"{n}" == "2.5" else None
        return x.sum()

    f = pf.jit(named, background=False)
    assert looks(f, itertools.repeat((X, first)), 4) == (0, 0)
    other = {3: 7, 2.5: 1.5}.get(first) if not isinstance(first, (list, dict)) else None
    if other is not None:
        for _ in range(3):
            f(X, other)
        assert counts(f, "traces") == (1,)


def test_new_numbers_that_are_formatted():
    f = pf.jit(formatted)
    for k in range(40):
        assert list(f(X, k)) == [f"item {k}"]
    before = counts(f, "python_looks", "traces")
    for k in range(40, 100):
        assert list(f(X, k)) == [f"item {k}"]
    looked, traced = (b - a for a, b in zip(before, counts(f, "python_looks", "traces"), strict=True))
    assert looked + traced <= 2


def test_errors_of_the_function_are_looked_for_once():
    state = {"allowed": False}

    def checked(x, n):
        if not state["allowed"] and x.ndim == 1:
            raise LookupError(f"{x.shape} and {n}")
        return x * n

    f = pf.jit(checked, background=False)
    for n in (2, 3):
        for _ in range(30):
            with pytest.raises(LookupError, match=rf"\(4,\) and {n}"):
                f(X, n)
    assert counts(f, "calls", "python_calls", "python_looks") == (60, 60, 2)
    for _ in range(3):
        np.testing.assert_array_equal(f(X[None], 2), X[None] * 2)
    assert counts(f, "traces") == (1,)
    state["allowed"] = True  # what a function reads may change: calls are looked at, later on
    for _ in range(100):
        np.testing.assert_array_equal(f(X, 2), X * 2)
    assert counts(f, "traces")[0] > 1 and f.state().tier == "optimized"


def test_looks_get_rare():
    f = pf.jit(timed)
    for _ in range(3000):
        f(X, "text")
    assert counts(f, "python_looks")[0] <= 6


def test_a_knob_that_changes_has_calls_looked_at():
    f, g = pf.jit(timed), pf.jit(counted)
    for _ in range(5):
        f(X), f(X, "text"), g(FIELDS)
    with pf.knobs.override(unsupported="raise"):
        for call in (lambda: f(X), lambda: f(X, "text")):
            with pytest.raises(TraceError):
                call()
        with pytest.raises(pf.DTypeError):
            g(FIELDS)
    assert f(X) == 1 and f(X, "text") == 2 and g(FIELDS) == 1


def test_calls_in_traces_are_traced():
    inner = pf.jit(lambda x, name: time.monotonic() * 0 + x if name == "clock" else x * 2)
    outer = pf.jit(lambda x: inner(x, "twice") + 1)
    for _ in range(3):
        np.testing.assert_array_equal(inner(X, "clock"), X)
        np.testing.assert_array_equal(outer(X), X * 2 + 1)
    assert counts(outer, "python_calls") == (0,)


def test_what_is_known_of_calls_is_bounded():
    known = Verdicts(plain_calls.outline, Cause.OUTLINE)
    kept = [Plain(k) for k in range(3000)]
    for x in kept:
        assert known.propose((x,), {})
        assert known.find((x,), {}).server is Server.PYTHON
    assert len(known.left) <= 1024


def test_threads_take_calls_unseen():
    f, failures = pf.jit(timed), []

    def work():
        try:
            for k in range(300):
                assert f(X, f"text {k}") == 2 and f(FIELDS) == 1
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert counts(f, "calls", "python_calls") == (2400, 2400)


@pytest.mark.parametrize(
    ("outline", "same", "other"),
    [
        (plain_calls.outline_of_kinds, (X, "a"), (X, 1)),
        (plain_calls.outline_of_kinds, (X, "a"), (X[None], "a")),
        (plain_calls.outline_of_kinds, ([1],), ([1, 2],)),
        (plain_calls.outline, (X, "a"), (X, "b")),
        (plain_calls.outline, (len,), (max,)),
        (plain_calls.outline, (True,), (False,)),
        (plain_calls.valued_outline, (X, 1), (X, 2)),
        (plain_calls.valued_outline, (X,), (X[:2],)),
        (plain_calls.valued_outline, ([1, X],), ([2, X],)),
        (plain_calls.valued_outline, (np.float32(1),), (np.float64(1),)),
        (plain_calls.sized_outline, (X, 1), (X, 100)),
        (plain_calls.sized_outline, ({"a": X},), ({"a": np.ones(99)},)),
    ],
)
def test_outlines(outline: Any, same: tuple, other: tuple):
    assert outline(same, {}) == outline(same, {}) != outline(other, {})
    assert outline(same, {"k": 1.5}) != outline(same, {"l": 1.5})
    assert outline(same, {"k": 1.5}) == outline(same, {"k": 1.5})


def test_outlines_that_tell_too_little():
    for outline in (plain_calls.sized_outline, plain_calls.valued_outline):
        assert outline(([[1]],), {}) is None
        assert outline(([1] * 100,), {}) is None
        assert outline((), {"a": {"b": [1]}}) is None
