"""What a trace would do once and later calls never: refused, with nothing left behind."""

import collections
import functools
import itertools
import sys
import types

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.importers.numpy.capture.tracer import trace
from tracing import call, check, line_of

A = np.arange(4.0)
COUNT = 0
ARRAY = np.ones(4)
LIST, DICT, SET, DEQUE = [1], {"a": 1}, {1}, collections.deque([1])
DEFAULTS = collections.defaultdict(list)
NUMBERS = itertools.count()
SPACE = types.SimpleNamespace(k=1)


class _Model:
    made = 0
    shared: list = []

    def __init__(self):
        self.t, self.m, self.w = 0, None, np.ones(4)
        self.log = {"loss": []}

    def step(self, x):
        self.t += 1  # changes
        return x + self.t

    def keep(self, x):
        self.m = x * 2  # changes
        return self.m

    def drop(self, x):
        del self.m  # changes
        return x

    def note(self, x):
        self.log["loss"].append(x.sum())  # changes
        return x

    def scale(self, x):
        self.w *= 2  # changes
        return x * self.w

    def count(self, x):
        type(self).made += 1  # changes
        return x

    def share(self, x):
        _Model.shared.append(1)  # changes
        return x

    def deep(self, x):
        return self.step(x) * 2


class _Slots:
    __slots__ = ("__private", "v")

    def __init__(self):
        self.v = 1

    def step(self, x):
        self.v += 1  # changes
        return x

    def private(self, x):
        self.__private = x  # changes
        return x


def _global(x):
    global COUNT
    COUNT += 1  # changes
    return x + COUNT


def _nonlocal():
    n = 0

    def count(x):
        nonlocal n
        n += 1  # changes
        return x + n

    return count


def _array(x):
    ARRAY[...] = ARRAY * 2  # changes
    return x + ARRAY


def _array_in_place(x):
    np.add(ARRAY, 1, out=ARRAY)  # changes
    return x + ARRAY


def _list(x):
    LIST.append(x)  # changes
    return x


def _dict(x):
    DICT["a"] = 2  # changes
    return x


def _set(x):
    SET.add(2)  # changes
    return x


def _deque(x):
    DEQUE.appendleft(2)  # changes
    return x


def _default(x):
    return x + len(DEFAULTS["b"])  # reads


def _namespace(x):
    SPACE.k = 2  # changes
    return x


def _through_globals(x):
    globals()["NEW"] = x
    return x


def _module(x):
    sys.modules[__name__].__dict__["COUNT"] = 5
    return x


def _mutable_default(x, seen=[]):  # noqa: B006
    seen.append(1)  # changes
    return x


def _counted(fn):
    def call(x):
        call.calls += 1  # changes
        return fn(x)

    call.calls = 0
    return call


MODEL, SLOTS, CALLS = _Model(), _Slots(), _counted(lambda x: x * 2)


def _state():
    """Everything that the functions here change."""
    return repr(
        (
            COUNT,
            ARRAY,
            LIST,
            DICT,
            SET,
            DEQUE,
            DEFAULTS,
            SPACE,
            "NEW" in globals(),
            CALLS.calls,
            vars(MODEL),
            _Model.made,
            _Model.shared,
            SLOTS.v,
            hasattr(SLOTS, "_Slots__private"),
            _mutable_default.__defaults__,
        )
    )


@pytest.mark.parametrize(
    "fn, what",
    [
        (_global, "the global variable COUNT is assigned"),
        (_nonlocal(), "the nonlocal variable n is assigned"),
        (_array, "the array ARRAY is changed"),
        (_array_in_place, "the array ARRAY is changed"),
        (_list, "the list LIST is changed"),
        (_dict, "the dict DICT is changed"),
        (_set, "the set SET is changed"),
        (_deque, "the deque DEQUE is changed"),
        (_default, "the defaultdict DEFAULTS is changed"),
        (_namespace, "the attribute SPACE.k is changed"),
        (_through_globals, "the global variable NEW is assigned"),
        (_mutable_default, "the list seen is changed"),
        (CALLS, "the attribute call.calls is changed"),
        (MODEL.step, "the attribute self.t is changed"),
        (lambda x: MODEL.deep(x), "the attribute MODEL.t is changed"),
        (MODEL.keep, "the attribute self.m is changed"),
        (MODEL.drop, "the attribute self.m is changed"),
        (MODEL.note, "the list self.log is changed"),
        (MODEL.scale, "the array self.w is changed"),
        (MODEL.count, "the attribute _Model.made is changed"),
        (MODEL.share, "the list _Model.shared is changed"),
        (SLOTS.step, "the attribute self.v is changed"),
        (SLOTS.private, "the attribute self._Slots__private is changed"),
    ],
)
def test_effects_are_refused_and_undone(fn, what):
    """Also when the trace fails for another reason, at once or later."""
    before = _state()
    with pytest.raises(pf.TraceError, match=what) as info:
        trace(fn, (A,))
    assert "return the new value" in info.value.hint and _state() == before
    place = info.value.loc
    with open(__file__) as source:
        line = source.read().splitlines()[place.line - 1]
    assert place.file == __file__
    assert "# changes" in line or "DEFAULTS" in line or fn is _through_globals

    def fails(x):
        fn(x)
        raise KeyError("mine")

    def is_refused(x):
        return np.sort(fn(x))

    for other, error in ((fails, KeyError), (is_refused, pf.TraceError)):
        with pytest.raises(error):
            trace(other, (A,))
        assert _state() == before


def test_a_call_that_is_refused_can_be_made_without_the_effect():
    """Values and counts: the effect never happens, a later call starts from what was."""
    model = _Model()
    f = pf.jit(lambda x, grow: model.step(x) if grow else x + model.t)
    for _ in range(3):
        with pytest.raises(pf.TraceError, match=r"model\.t"):
            f(A, "yes")
    np.testing.assert_array_equal(f(A, None), A)
    assert model.t == 0 and f.state().counters["traces"] == 1


@pytest.mark.parametrize(
    "fn, args",
    [
        (lambda d: d.update(y=d["x"]) or d["y"], ({"x": A},)),
        (lambda d: [d["p"].append(1), d["x"]][1], ({"x": A, "p": [2.0]},)),
        (lambda p: p.pop() + 0, ([A, A],)),
        (lambda s: [setattr(s, "k", 3.0), s.x * s.k][1], None),
    ],
)
def test_containers_among_the_arguments_are_not_written(fn, args):
    if args is None:
        import dataclasses

        kind = dataclasses.make_dataclass("State", [("x", object), ("k", float)])
        args = (kind(A, 2.0),)
    with pytest.raises(pf.TraceError, match="is changed by the function"):
        trace(fn, args)


def test_what_the_function_makes_is_free():
    def f(x, *more, **named):
        seen, table, model = [], {}, _Model()
        model.step(x)
        for k in range(3):
            seen.append(x * k)
            table[k] = seen[-1]
            model.log["loss"].append(table[k])
        named.pop("mode")
        more = list(more)
        more.append(model.keep(x))
        return sum(seen) + sum(model.log["loss"]) + model.t + sum(more)

    check(f, A, A, mode="fast")


def test_state_is_read_as_it_is():
    """Reading is no effect: globals, attributes, captured arrays changed between calls."""
    traced = check(lambda x: x * ARRAY + MODEL.w + len(LIST) + DICT["a"], A)
    assert {id(c) for c in traced.captured} == {id(ARRAY), id(MODEL.w)}
    ARRAY[0] += 1
    np.testing.assert_array_equal(call(traced, A), A * ARRAY + MODEL.w + 2)
    ARRAY[0] -= 1


def test_iterators_from_outside_are_not_read():
    with pytest.raises(pf.TraceError, match="uses NUMBERS, a count"):
        trace(lambda x: x + next(NUMBERS), (A,))
    assert next(NUMBERS) == 0
    check(lambda x: x + next(iter([1, 2])) + next(iter([]), 3), A)


class _Lazy:
    def __init__(self):
        self.k = 2.0

    @functools.cached_property
    def table(self):
        return np.arange(4.0) * self.k

    @functools.cached_property
    def traced(self):
        return self.x * 2

    def go(self, x):
        return x * self.table

    def bad(self, x):
        return _keeps(self, x)


def _keeps(lazy, x):
    vars(lazy)["x"] = x
    out = lazy.traced
    del vars(lazy)["x"]
    return out


def test_cached_properties_may_be_filled():
    """With what does not depend on the arguments; a traced value never stays."""
    lazy = _Lazy()
    check(lazy.go, A)
    assert sorted(vars(lazy)) == ["k", "table"]
    with pytest.raises(pf.TraceError, match=r"the attribute self\.traced is changed"):
        trace(lazy.bad, (A,))
    assert sorted(vars(lazy)) == ["k", "table"]


def test_effects_of_inlined_functions_are_those_of_the_outer_one():
    inner = pf.jit(_list)
    with pytest.raises(pf.TraceError, match="the list LIST is changed") as info:
        pf.jit(lambda x: inner(x) * 2)(A)
    assert LIST == [1] and info.value.loc.line == line_of(_list, "# changes")


def test_big_arrays_are_compared_by_checksum():
    big = np.zeros((1 << 23) + 1)

    def f(x):
        big[-1] = 1
        return x

    with pytest.raises(pf.TraceError, match="the array big is changed"):
        trace(f, (A,))
