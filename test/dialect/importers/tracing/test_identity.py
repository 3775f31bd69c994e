"""`is` of arrays tells which of them are one object, as in Python, also where one is passed twice (R2.2)."""

import numpy as np
import profuse as pf
import pytest
from internals import emitted_hits as hits

X, Y = np.arange(4.0), np.ones(4)
KEPT = [X, Y]


@pytest.fixture(autouse=True)
def in_python():
    with pf.knobs.override(unsupported="python"):
        yield


class Last:
    def __init__(self):
        self.x = Y

    def is_new(self, x):
        return x is not self.x

    def __contains__(self, x):
        return any(v is x for v in (self.x, Y * 2))


LAST = Last()


def passed_twice(x, y):
    return x + 1 if x is y else x - y


def written(x, y):
    out = x.copy() if y is x else x * 2
    out += y
    return out


def read_by_name(x, y):
    return [x * 2 if x is kept else y for kept in KEPT]


def by_a_method(x, y):
    return x + y if LAST.is_new(x) else x - y


def by_an_operator(x, y):
    return x + y if x in LAST else x


def in_a_container(x, y):
    arrays = {"x": x, "y": [y]}
    return x + y, [v is y for v in (arrays["x"], *arrays["y"], x + 0, y[:])]


space = {}
exec("def without_source(x, y):\n    return x + 1 if x is y else x - y\n", space)
CALLS = [(X, Y), (X, Y), (Y, Y), (X, Y), (X, X), (Y, X), (X.copy(), Y), (Y, Y)]
FUNCTIONS = [passed_twice, written, read_by_name, by_a_method, in_a_container]
UNSEEN = [by_an_operator, space["without_source"]]  # code that is not compiled anew


def compared(f, plain):
    for x, y in CALLS:
        got, wanted = f(x, y), plain(x, y)
        assert repr(got) == repr(wanted)


@pytest.mark.parametrize("plain", [*FUNCTIONS, *UNSEEN], ids=lambda f: f.__name__)
def test_arrays_are_told_apart(plain):
    f = pf.jit(plain, profiled_runs=1000)
    compared(f, plain)
    if plain in FUNCTIONS:
        assert f.state().counters["python_calls"] == 0


@pytest.mark.parametrize("plain", [passed_twice, by_a_method], ids=lambda f: f.__name__)
def test_emitted_code_tells_arrays_apart(plain):
    f = pf.jit(plain, background=False)
    compared(f, plain)
    assert f.state().emitted
    before = hits(f)
    compared(f, plain)
    assert hits(f) == before + len(CALLS)


def test_slots_are_told_apart():
    class Cached:
        def __init__(self):
            self.x, self.sums = Y, Y.sum()

        def __call__(self, x):
            if x is not self.x:
                self.sums = x.sum()
            self.sums = self.sums + 1
            return x * self.sums

    plain, cached = Cached(), Cached()
    f = pf.jit(cached.__call__, profiled_runs=1000)
    for x in (X, X, Y, X):
        np.testing.assert_array_equal(f(x), plain(x))
        plain.x = cached.x = x
    assert f.state().counters["python_calls"] == 0


def best_of(x, n):
    best = x
    for k in range(n):
        if (x * k).sum() > 8:
            best = x * k
    return best + 1 if best is x else best


def test_what_a_loop_decides_is_pythons():
    f = pf.jit(best_of, profiled_runs=1000)
    for n in (20, 1, 30, 2):
        np.testing.assert_array_equal(f(X, n), best_of(X, n))
    assert "whether two arrays are the same object" in f.explain()


def test_graphs_that_join_others():
    inner = pf.jit(passed_twice, profiled_runs=1000)
    f = pf.jit(lambda x, y: inner(x, y) + inner(x, x) + inner(x + 0, y), profiled_runs=1000)
    for x, y in CALLS:
        np.testing.assert_array_equal(f(x, y), passed_twice(x, y) + x + 1 + (x - y))
    assert "`x is y`" in f.explain()


def test_loaded_functions(tmp_path):
    f = pf.jit(passed_twice, background=False)
    f(X, Y), f(X, X)
    f.save(tmp_path / "saved")
    loaded = pf.load(tmp_path / "saved")
    for x, y in CALLS:
        np.testing.assert_array_equal(loaded(x, y), passed_twice(x, y))


def in_c_order(x, y):
    z = np.ascontiguousarray(x)
    return x + 1 if z is x else z - y


def in_fortran_order(x, y):
    return [np.asfortranarray(v) is v for v in (x, y)], np.asarray(y, order="K") is y, x + y


exec("def ordered(x, y):\n    return x + 1 if np.ascontiguousarray(x) is x else x - y\n", {"np": np}, space)


@pytest.mark.parametrize("plain", [in_c_order, in_fortran_order, space["ordered"]], ids=lambda f: f.__name__)
def test_what_is_put_in_an_order_may_be_the_array_itself(plain):
    f = pf.jit(plain, profiled_runs=1000)
    rows, columns, apart = np.ones((2, 3)), np.ones((3, 2)).T, np.ones((4, 3))[::2]
    for x, y in ((rows, rows), (rows, columns), (columns, rows), (apart, rows), (X, Y), (rows, apart)):
        got, wanted = f(x, y), plain(x, y)
        assert repr(got) == repr(wanted)


def test_raveled_arrays_are_views():
    f = pf.jit(lambda x: x + 1 if x.ravel() is x else x - 1)
    np.testing.assert_array_equal(f(X), X - 1)
    assert f.state().counters["python_calls"] == 0
