"""What functions and classes of Python's library keep for the user's code: it is read, too."""

import abc
import collections
import contextlib
import functools
import os

import numpy as np
import profuse as pf
import pytest

X = np.arange(1.0, 5.0)


@pytest.fixture(autouse=True)
def in_python():
    with pf.knobs.override(unsupported="python"):
        yield


def compared(make, changes, python=None):
    """Each call gives what plain Python gives; ``make`` returns a function and its namespace."""
    (plain, mine), (traced, theirs) = make(), make()
    f = pf.jit(traced)
    for change in (None, None, *changes, None):
        for state in (mine, theirs):
            if change is not None:
                change(state)
        np.testing.assert_array_equal(f(X), plain(X))
        f.wait()
    if python is not None:
        assert (f.state().counters["python_calls"] > 0) == python
        assert f.state().emitted or python
    return mine, theirs


def _dispatched():
    class Thing:
        pass

    @functools.singledispatch
    def gain(value):
        return 1.0

    thing = Thing()
    return lambda x: x * gain(thing), (gain, Thing)


def test_functions_that_dispatch_by_class():
    compared(_dispatched, [lambda s: s[0].register(s[1])(lambda value: 3.0)])


def test_a_function_that_dispatches_by_class_itself():
    gain = {}
    for kind in ("plain", "jitted"):

        @functools.singledispatch
        def scaled(x, by):
            return x * 1.0

        gain[kind] = scaled
    f = pf.jit(gain["jitted"], profiled_runs=1000)
    for k in range(4):
        if k == 2:
            for dispatched in gain.values():
                dispatched.register(np.ndarray)(lambda x, by: x * 3.0 + by)
        np.testing.assert_array_equal(f(X, 2.0), gain["plain"](X, 2.0))


def test_a_function_of_c_that_is_hidden_in_one_of_a_package(tmp_path):
    class Hooked(contextlib.ContextDecorator):
        def __enter__(self):
            pass

        def __exit__(self, *raised):
            pass

    path = tmp_path / "file"
    reads = Hooked()(functools.partial(os.path.getsize, path))
    f = pf.jit(reads, profiled_runs=1000)
    for size in (3, 5, 2):
        path.write_bytes(b"a" * size)
        assert f() == size


def test_what_a_decorator_of_a_package_counts():
    class Counted(contextlib.ContextDecorator):
        def __init__(self):
            self.calls = 0

        def __enter__(self):
            self.calls += 1

        def __exit__(self, *raised):
            pass

    counts, wrapped = [Counted(), Counted()], []
    for counted in counts:

        @counted
        def doubled(x):
            return x * 2

        wrapped.append(doubled)
    alone, both = pf.jit(wrapped[0], profiled_runs=1000), pf.jit(lambda x: wrapped[0](x) + wrapped[1](x))
    for k in range(1, 4):
        np.testing.assert_array_equal(alone(X), X * 2)
        assert counts[0].calls == 2 * k - 1
        np.testing.assert_array_equal(both(X), X * 4)
        assert [counted.calls for counted in counts] == [2 * k, k]
    reached = [lambda x: functools.partial(wrapped[0])(x), lambda x: next(f for f in wrapped)(x)]
    for f in (pf.jit(fn, profiled_runs=1000) for fn in reached):  # no name leads to what the decorator keeps
        before = counts[0].calls
        for k in range(1, 5):
            np.testing.assert_array_equal(f(X), X * 2)
            assert counts[0].calls == before + k


def _method_dispatched():
    class Thing:
        @functools.singledispatchmethod
        def gain(self, value):
            return 1.0

    thing = Thing()
    return lambda x: x * thing.gain("a"), Thing


def test_methods_that_dispatch_by_class():
    compared(_method_dispatched, [lambda s: s.gain.register(str)(lambda self, value: 3.0)])


def _abstract():
    class Shape(metaclass=abc.ABCMeta):  # noqa: B024
        pass

    class Disc:
        pass

    disc = Disc()
    return lambda x: x * (2.0 if isinstance(disc, Shape) else 3.0), (Shape, Disc)


def test_classes_that_are_registered():
    compared(_abstract, [lambda s: s[0].register(s[1])], python=False)


def _matched():
    class Pair:
        __match_args__ = ("gain",)

        def __init__(self):
            self.gain, self.other, self.kind = 2.0, 7.0, "a"

    pair = Pair()

    def plain(x):
        match pair:
            case Pair(gain, kind="a"):
                return x * gain
            case Pair(gain):
                return x - gain

    return plain, (Pair, pair)


def test_patterns_name_attributes_by_their_place():
    def assign(name, value):
        return lambda s: setattr(s[1], name, value)

    def turn(s):
        s[0].__match_args__ = ("other",)

    compared(_matched, [assign("gain", 4.0), assign("kind", "b"), turn, assign("other", 1.0)])


def _kept():
    space = {"gain": 2.0}

    @functools.lru_cache
    def gain(n):
        return n * space["gain"]

    def change(value):
        space["gain"] = value

    return lambda x: x * gain(3), (gain, change)


def test_results_that_are_kept():
    """The answer is asked for at each call; a change behind it is seen when it is cleared."""
    changes = [lambda s: s[1](5.0), lambda s: s[0].cache_clear()]
    compared(_kept, changes, python=False)


def _kept_array():
    @functools.lru_cache
    def row(n):
        return np.ones(n)

    return lambda x: x * row(4), row


def test_arrays_that_are_kept():
    def write(row):
        row(4)[0] = 9.0

    compared(_kept_array, [write, lambda row: row.cache_clear()], python=False)


def _kept_list():
    @functools.lru_cache
    def items(n):
        return [1.0] * n

    return lambda x: x * sum(items(3)), items


def test_lists_that_are_kept():
    compared(_kept_list, [lambda items: items(3).append(5.0)])


def _kept_method():
    class Model:
        gain = 2.0

        @functools.lru_cache  # noqa: B019
        def scaled(self, n):
            return n * self.gain

    model = Model()
    return lambda x: x * model.scaled(3), model


def test_results_of_methods_that_are_kept():
    changes = [lambda m: setattr(m, "gain", 5.0), lambda m: type(m).scaled.cache_clear()]
    compared(_kept_method, changes)


def _kept_in_a_property():
    space = {"gain": 2.0}

    @functools.lru_cache
    def gain(n):
        return n * space["gain"]

    class Model:
        @property
        def scaled(self):
            return gain(3)

    model = Model()
    return lambda x: x * model.scaled, (gain, space)


def test_results_that_are_kept_for_properties():
    def change(s):
        s[1]["gain"] = 5.0
        s[0].cache_clear()

    compared(_kept_in_a_property, [change], python=True)


def test_errors_of_what_keeps_results():
    @functools.lru_cache
    def checked(n):
        if n < 0:
            raise ValueError(f"{n} is negative")
        return n

    f = pf.jit(lambda x, n: x * checked(n))
    np.testing.assert_array_equal(f(X, 2), X * 2)
    with pytest.raises(ValueError, match="-1 is negative"):
        f(X, -1)
    np.testing.assert_array_equal(f(X, 3), X * 3)


def _user_list():
    items = collections.UserList([2.0])

    def plain(x):
        items.append(1.0)
        return x * len(items)

    return plain, items


def _user_dict():
    table = collections.UserDict(n=0)

    def plain(x):
        table["n"] += 1
        return x * table["n"]

    return plain, table


@pytest.mark.parametrize("make", [_user_list, _user_dict])
def test_effects_of_code_of_packages(make):
    mine, theirs = compared(make, [], python=True)
    assert mine == theirs


def _user_string():
    text = collections.UserString("ab")
    return lambda x: x * len(text), text


def test_builtins_that_call_code_of_packages():
    """`len` stands for itself in a trace; what it calls is watched all the same."""
    compared(_user_string, [lambda text: setattr(text, "data", "abc")], python=False)


def _finalised():
    class Counted:
        ended = [0]

        def __del__(self):
            Counted.ended[0] += 1

    def plain(x):
        Counted()
        return x * Counted.ended[0]

    return plain, Counted


def test_objects_that_end_in_a_call():
    compared(_finalised, [], python=True)


def _named():
    def helper():
        """Two words."""

    return lambda x: x * len(helper.__name__) * len(helper.__doc__), helper


def test_names_of_functions():
    compared(_named, [lambda h: setattr(h, "__name__", "h"), lambda h: setattr(h, "__doc__", "")])


def _listed():
    class Table:
        a = 1.0

    return lambda x: x * len([k for k in vars(Table) if not k.startswith("_")]), Table


def test_attributes_of_classes_that_are_listed():
    compared(_listed, [lambda table: setattr(table, "b", 2.0)])


def _derived():
    class Base:
        pass

    return lambda x: x * (1 + len(Base.__subclasses__())), Base


def test_classes_that_are_derived_later():
    kept = []
    compared(_derived, [lambda base: kept.append(type("Derived", (base,), {}))], python=True)
