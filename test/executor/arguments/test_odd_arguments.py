"""Calls and settings that nobody means: each is told from a good one, in words, at the line."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import profuse as pf
import pytest

X = np.arange(4, dtype=np.float32)
BYTES = np.arange(4, dtype=np.uint8)


@pytest.fixture(params=["profiled", "keyed", "no-opt"])
def mode(request):
    keyed, plain = request.param == "keyed", request.param == "no-opt"
    before = pf.set_profiling_mode(not keyed), pf.set_optimize(not plain)
    yield request.param
    pf.set_profiling_mode(before[0])
    pf.set_optimize(before[1])


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "fn, good, bad, error",
    [
        (lambda x, k: x + k, (BYTES, 3), (BYTES, 300), OverflowError),
        (lambda x, k: x * k, (BYTES, 3), (BYTES, -1), OverflowError),
        (lambda x, k: x * (1 // k), (X, 3), (X, 0), ZeroDivisionError),
        (lambda x, k: x * 10.0**k, (X, 3), (X, 400), OverflowError),
    ],
)
def test_what_python_numbers_cannot_do_names_the_line(mode, fn, good, bad, error):
    f = pf.jit(fn)
    for args in (bad, good, bad, good, bad):
        if args is good:
            np.testing.assert_allclose(f(*good), fn(*good))
            continue
        with pytest.raises(error) as info:
            f(*bad)
        assert isinstance(info.value, pf.ProfuseError)
        assert info.value.loc.file == __file__


def test_a_constant_beyond_64_bits_names_the_line_and_a_way_out():
    with pytest.raises(pf.RangeError, match="does not fit 64 bits") as info:
        pf.jit(lambda x: x + 2**70)(X)
    assert info.value.loc.file == __file__ and "as a float" in info.value.hint


def _generator(x):
    yield x


async def _coroutine(x):
    return x


@pytest.mark.parametrize(
    "fn", [_generator, lambda x: (v * 2 for v in x), lambda x: map(np.tanh, x), lambda x: [iter(x)]]
)
def test_results_that_are_not_there_yet_are_refused(fn):
    with pytest.raises(pf.ArgumentError, match="not there yet"):
        pf.jit(fn)(X)


def test_coroutines_are_refused_before_there_is_one():
    """One that nobody awaits would be told of by a warning."""
    with pytest.raises(pf.ArgumentError, match="coroutine"):
        pf.jit(_coroutine)(X)


def test_arguments_that_can_be_read_once_are_refused():
    with pytest.raises(pf.ArgumentError, match=r"argument 'xs'.*not there yet"):
        pf.jit(lambda xs: sum(xs))(v for v in X)


def test_assigning_a_shape_is_refused_with_a_way_out():
    def f(x):
        y = x * 2
        y.shape = (2, 2)
        return y

    with pytest.raises(pf.TraceError, match=r"x\.reshape\(shape\)"):
        pf.jit(f)(X)


@pytest.mark.parametrize(
    "settings",
    [
        {"profiled_runs": "2"},
        {"profiled_runs": 1.5},
        {"profiled_runs": True},
        {"profiled_runs": -1},
        {"name": 3},
        {"device": "gpu"},
        {"background": "yes"},
        {"strategy": [("static", "1")]},
        {"strategy": [("static", 1.5)]},
        {"strategy": [("static", True)]},
        {"strategy": 5},
    ],
)
def test_bad_settings(settings):
    with pytest.raises(pf.KnobError):
        pf.jit(np.tanh, **settings)


# --- copies -----------------------------------------------------------------------------------


@pf.jit
def doubled(x):
    return x * 2


def pickled(thing):
    return pickle.loads(pickle.dumps(thing))


class Model:
    @pf.jit
    def method(self, x):
        return x * 3


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, pickled])
def test_functions_found_by_name_are_copied_as_themselves(clone):
    assert clone(doubled) is doubled
    assert clone(Model.method) is Model.method
    assert clone({"f": [doubled]})["f"][0] is doubled


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, pickled])
def test_other_copies_learn_anew(clone):
    f = pf.jit(np.tanh, strategy=[("dynamic", 1)], name="mine")
    for _ in range(2):
        f(X)
    made = clone(f)
    assert made is not f and "mine" in made.explain()
    assert made.state().counters["calls"] == 0
    for _ in range(2):
        np.testing.assert_allclose(made(X), np.tanh(X), rtol=1e-6)
    assert made.state().remaining_depth == f.state().remaining_depth
    assert made.state().counters["compiles"] == f.state().counters["compiles"] == 1


def test_graphs_from_files_are_copied_as_their_graph(tmp_path):
    path = tmp_path / "f.mlir"
    path.write_text(
        "func.func @f(%0: !profuse.tensor) -> (!profuse.tensor) {\n"
        '  %1 = "profuse.tanh"(%0) : (!profuse.tensor) -> !profuse.tensor\n'
        "  return %1 : !profuse.tensor\n}\n"
    )
    f = pf.load(str(path))
    f(X)
    for made in (copy.deepcopy(f), pickle.loads(pickle.dumps(f))):
        assert made.state().counters["calls"] == 0
        for _ in range(2):
            np.testing.assert_allclose(made(X), np.tanh(X), rtol=1e-6)
        assert made.state().tier == "optimized"


def test_a_jitted_function_says_what_it_is():
    assert repr(pf.jit(np.tanh)) == "<profuse.jit of <ufunc 'tanh'>>"


@pytest.mark.parametrize("bad", [2j, np.ones(3), None, np.complex64(1)])
def test_numbers_of_a_loaded_graph_are_checked_on_every_tier(bad, mode, tmp_path):
    path = tmp_path / "f.mlir"
    path.write_text(
        "func.func @f(%0: !profuse.tensor, %k: f64) -> (!profuse.tensor) {\n"
        '  %1 = "profuse.mul"(%0, %k) : (!profuse.tensor, f64) -> !profuse.tensor\n'
        "  return %1 : !profuse.tensor\n}\n"
    )
    f = pf.load(str(path))
    for good in (2.0, 2, True, np.float32(2)):
        with pytest.raises(pf.ArgumentError, match=r"argument 1 must be a number \(f64\)|@f takes"):
            f(X, bad)
        np.testing.assert_array_equal(f(X, good), X * good)
    outer = pf.jit(lambda x, k: f(x, k))
    np.testing.assert_array_equal(outer(X, 3.0), X * 3)
