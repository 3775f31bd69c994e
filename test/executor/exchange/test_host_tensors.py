"""Tensors of a library in host memory, of which nothing but DLPack's C functions is known."""

from __future__ import annotations

import gc
import sys
import threading
import types
import weakref

import numpy as np
import profuse as pf
import pytest
from host_library import Elsewhere, Parameter, Tensor
from profuse.dialect.errors import ArgumentError, DTypeError, GradientError
from profuse.executor.exchange import dlpack
from profuse.executor.exchange.host_tensors import array_of, owner_of, tensor_of, tensor_type

X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)
TYPE = tensor_type(Tensor)


@pytest.fixture(autouse=True)
def nothing_is_kept():
    """All memory that a test has lent is given back, once."""
    gc.collect()
    before = dict(dlpack._lent)
    yield
    gc.collect()
    assert not (Tensor.live or Tensor.wrong)
    assert dlpack._lent == before


def scaled(x, k):
    return np.tanh(x) * k, x.sum()


def warm(fn, *args, runs=3, **options):
    f = pf.jit(fn, **options)
    for _ in range(runs):
        f(*args)
    assert f.state().emitted, f.explain()
    return f


def test_calls_with_tensors_run_in_emitted_code():
    f = warm(scaled, Tensor(X), 2.0)
    before, made = dict(f.state().counters), Tensor.made
    for _ in range(5):
        product, total = f(Tensor(X), 2.0)
        assert type(product) is type(total) is Tensor
        assert product.is_of_emitted_code and total.is_of_emitted_code
        np.testing.assert_allclose(product.held, np.tanh(X) * 2, rtol=1e-6)
        np.testing.assert_allclose(total.held, X.sum(), atol=1e-5)
    after = f.state().counters
    assert after["guard_hits"] - before["guard_hits"] == 5
    assert after["python_calls"] == before["python_calls"] == 0
    assert after["traces"] == 1
    assert Tensor.made - made == 10


def test_arrays_and_tensors_have_one_graph():
    f = warm(scaled, Tensor(X), 2.0)
    for _ in range(3):
        assert type(f(X, 2.0)[0]) is np.ndarray
        assert type(f(Tensor(X), 2.0)[0]) is Tensor
    assert (f.state().counters["traces"], f.state().counters["compiles"]) == (1, 1)
    assert not Tensor.live


def test_results_outlive_the_call_and_end_in_any_thread():
    f = warm(scaled, Tensor(X), 2.0)
    results = [f(Tensor(X), float(k)) for k in range(50)]
    for k, result in enumerate(results):
        np.testing.assert_allclose(result[0].held, np.tanh(X) * k, rtol=1e-6)
    del result
    assert len(Tensor.live) == 100
    thread = threading.Thread(target=results.clear)
    thread.start()
    thread.join()
    assert not Tensor.live


def test_a_result_is_aligned_and_laid_out_as_arrays_are():
    def turned(x):
        return x.T * 2, x * 2, x[:, :0] + 1

    f = warm(turned, Tensor(X))
    wanted = turned(X)
    for result, want in zip(f(Tensor(X)), wanted, strict=True):
        np.testing.assert_array_equal(result.held, want)
        assert not result.held.size or result.held.strides == want.strides
        assert result.held.__array_interface__["data"][0] % 64 == 0
        assert result.is_of_emitted_code


def test_strided_tensors_are_read_where_they_lie():
    f = warm(lambda x: x + 1, Tensor(X[::2, ::3]))
    result = f(Tensor(X[1::2, ::3]))
    np.testing.assert_array_equal(result.held, X[1::2, ::3] + 1)
    assert result.is_of_emitted_code
    assert f.state().counters["input_copies"] == 0


def test_what_is_viewed_is_kept_alive_and_what_is_returned_is_itself():
    f = pf.jit(lambda x: (x, x[1:]), unsupported="python")
    for _ in range(4):
        given = Tensor(X.copy())
        same, view = f(given)
        assert same is given
        view.held[:] = 5
        assert (given.held[1:] == 5).all() and (given.held[0] == X[0]).all()
    there = weakref.ref(given)
    del given, same
    gc.collect()
    assert there() is not None
    del view
    gc.collect()
    assert there() is None


def test_a_tensor_that_is_closed_over_is_returned_itself():
    weight = Tensor(X.copy())
    f = pf.jit(lambda x: (weight, x + 1), unsupported="python")
    for _ in range(4):
        assert f(Tensor(X.copy()))[0] is weight


def test_writes_are_seen_in_tensors_and_in_containers_of_them():
    def steps(state, x):
        x += 1
        state["w"] = state["w"] * x

    f = pf.jit(steps, unsupported="python")
    x, state = Tensor(np.zeros(3)), {"w": Tensor(np.ones(3)), "n": 3}
    for k in range(1, 5):
        f(state, x)
        assert (x.held == k).all()
        assert type(state["w"]) is Tensor and list(state) == ["w", "n"]
        np.testing.assert_array_equal(state["w"].held, np.ones(3) * np.prod(range(1, k + 1)))
    assert f.state().counters["python_calls"] == 0
    assert f.state().emitted


def test_an_array_that_is_stored_and_returned_is_one_tensor():
    def stored(state, x):
        state["y"] = y = x * 2
        return y

    def unfused(state, x):
        state["y"] = y = np.vectorize(abs)(x)
        return [y, y]

    for function in (stored, unfused):
        f, state = pf.jit(function, unsupported="python"), {"y": Tensor(X)}
        for _ in range(4):
            result = f(state, Tensor(X))
            for y in result if isinstance(result, list) else [result]:
                assert type(y) is Tensor and y is state["y"]


def test_emitted_code_puts_tensors_into_containers_of_arguments_alone():
    outside = {"last": None}

    def steps(state, xs, x):
        state["pair"] = (x * 2, x)
        state["sum"] = x.sum()
        xs[0] = x
        outside["last"] = x + 1
        return state, x + 3

    state, xs = {"pair": (Tensor(X), Tensor(X)), "sum": Tensor(np.float32(0))}, [Tensor(X), Tensor(X)]
    f = warm(steps, state, xs, Tensor(X), unsupported="python")
    hits = f.state().counters["guard_hits"]
    for k in range(3):
        x = Tensor(X + k)
        same, more = f(state, xs, x)
        assert same is state and xs[0] is x and state["pair"][1] is x
        assert type(state["sum"]) is type(more) is Tensor and type(outside["last"]) is np.ndarray
        for found, wanted in (
            (state["pair"][0].held, x.held * 2),
            (more.held, x.held + 3),
            (outside["last"], x.held + 1),
        ):
            np.testing.assert_array_equal(found, wanted)
        np.testing.assert_allclose(state["sum"].held, x.held.sum(), atol=1e-4)
    assert f.state().counters["guard_hits"] - hits == 3
    assert f.state().counters["python_calls"] == 0
    outside["last"] = None


def written(x, y):
    x *= 2
    y[:] = x + 1
    return y, x.sum()


def test_emitted_code_writes_to_tensors():
    f = warm(written, Tensor(np.ones((4, 6))), Tensor(np.zeros((4, 6))), unsupported="python")
    hits = f.state().counters["guard_hits"]
    base = np.arange(96.0)
    pairs = [(base[:24].reshape(4, 6), base[24:48].reshape(4, 6)) for _ in range(3)]
    pairs += [(base[:24].reshape(6, 4).T, base[24:48].reshape(4, 6))]  # in Fortran's order
    pairs += [
        (base[:24].reshape(4, 6), base[12:36].reshape(4, 6)),
        (base[:48:2].reshape(4, 6), base[48:72].reshape(4, 6)),
    ]
    for arrays in pairs:
        before = base.copy()
        x, y = map(Tensor, arrays)
        result, total = f(x, y)
        found = base.copy()
        base[:] = before
        _, wanted = written(*arrays)
        np.testing.assert_array_equal(found, base)
        assert result is y and total.held == wanted
    assert f.state().counters["guard_hits"] - hits >= 3
    assert f.state().counters["python_calls"] <= 2  # of memory that overlaps


def test_a_tensor_that_is_only_written_may_lie_in_any_order():
    def filled(x, y):
        y[:] = np.tanh(x) + 1

    targets = [np.zeros((4, 6)), np.zeros((6, 4)).T, np.zeros((4, 12))[:, ::2]]
    for first in targets:  # in whose order the kernel is made to write
        f = pf.jit(filled, unsupported="python")
        for target in (*[first] * 4, *targets):
            memory = target.base if target.base is not None else target
            memory[...] = 0
            y = Tensor(target)
            f(Tensor(X), y)
            np.testing.assert_allclose(target, np.tanh(X) + 1, rtol=1e-6)
        assert f.state().counters["python_calls"] == 0
        assert f.state().emitted or first is not targets[0]


def test_an_array_that_is_written_beside_tensors_is_returned_as_one():
    def added(x, y):
        y += x
        return y

    x, y = Tensor(np.ones(4)), np.zeros(4)
    f = warm(added, x, y, unsupported="python")
    for k in range(4, 7):
        result = f(x, y)
        assert type(result) is Tensor and np.shares_memory(result.held, y)
        assert (y == k).all()
    assert f.state().counters["python_calls"] == 0


def test_results_that_emitted_code_has_python_make_are_those_of_python():
    weight = Tensor(X.copy())

    def parts(x, n):
        return x, x[1:], [np.tanh(x), x.sum(1)], n, x.T, weight

    given = Tensor(X.copy())
    f = warm(parts, given, 3, unsupported="python")
    hits = f.state().counters["guard_hits"]
    for _ in range(3):
        found, wanted = f(given, 3), parts(given.held, 3)
        assert found[0] is given and found[3] == 3 and found[5] is weight
        for a, b in zip((found[1], *found[2], found[4]), (wanted[1], *wanted[2], wanted[4]), strict=True):
            assert type(a) is Tensor and a.held.strides == b.strides
            np.testing.assert_allclose(a.held, b, rtol=1e-6)
        found[1].held[:] = 7
        assert (given.held[1:] == 7).all() and (found[4].held[:, 1:] == 7).all()
    counters = f.state().counters
    assert (counters["guard_hits"] - hits, counters["python_calls"], counters["traces"]) == (3, 0, 1)
    assert f.state().emitted


def test_an_error_leaves_what_was_stored_before_it():
    def f(state):
        state["w"] = state["w"] + 1
        raise KeyError("late")

    state = {"w": Tensor(np.zeros(3))}
    with pytest.raises(KeyError, match="late"):
        pf.jit(f, unsupported="python")(state)
    assert type(state["w"]) is Tensor and (state["w"].held == 1).all()


def test_objects_that_hold_tensors_get_what_the_function_stores():
    def f(state, x):
        state.y = x * 2
        return state

    state = types.SimpleNamespace(w=Tensor(X), y=None)
    for _ in range(3):
        assert pf.jit(f, unsupported="python")(state, Tensor(X)) is state
        assert type(state.w) is type(state.y) is Tensor
        np.testing.assert_array_equal(state.y.held, X * 2)


def test_into_writes_into_a_tensor():
    f, out = pf.jit(lambda x: x * 2), Tensor(np.zeros_like(X))
    for k in range(3):
        assert f.into(out, Tensor(X + k)) is out
        np.testing.assert_array_equal(out.held, (X + k) * 2)


def test_a_function_sees_what_a_tensor_holds_that_it_closes_over():
    w = Tensor(np.ones((6, 2), np.float32))
    f = pf.jit(lambda x: x @ w)
    for k in range(1, 5):
        w.held = np.full((6, 2), k, np.float32)  # other memory
        result = f(Tensor(X))
        np.testing.assert_allclose(result.held, X @ w.held, rtol=1e-6)
        assert result.is_of_emitted_code == (k > 1), k
        assert type(f(X)) is np.ndarray
        w.held[:] = -k
        np.testing.assert_allclose(f(X), X @ w.held, rtol=1e-6)
    assert f.state().emitted
    assert (f.state().counters["traces"], f.state().counters["python_calls"]) == (1, 0)
    w.held = np.ones((6, 3), np.float32)
    np.testing.assert_allclose(f(X), X @ w.held, rtol=1e-6)


def test_gradients_are_not_lost():
    f = warm(lambda x: x * 2, Tensor(X))
    given = Tensor(X)
    given.requires_grad = True
    with pytest.raises(GradientError, match="requires gradients is used, and would lose them"):
        f(given)
    g = pf.jit(lambda x: x + given, unsupported="python")
    with pytest.raises(GradientError, match="would lose them"):
        g(X)


def test_tensors_that_no_array_shows_are_refused(monkeypatch):
    f = warm(lambda x: x * 2, Tensor(X))
    with monkeypatch.context() as patch:
        patch.setattr(Tensor, "fails", True)
        with pytest.raises(ArgumentError, match="no elements in memory that kernels could read"):
            f(Tensor(X))
        with pytest.raises(DTypeError, match="makes no tensor of a result of float32"):
            tensor_of(X, TYPE)
    with monkeypatch.context() as patch:
        patch.setattr(Tensor, "device", (2, 0))
        assert array_of(Tensor(X), TYPE) is None
    with pytest.raises(ArgumentError, match="tensors of host_library and of elsewhere"):
        pf.jit(lambda x, y: x + y)(Tensor(X), Elsewhere(X))
    np.testing.assert_array_equal(f(Tensor(X)).held, X * 2)


def test_each_type_and_each_place_of_tensors_has_its_code():
    f = pf.jit(lambda x, y: x - y)
    ways = [(a(X), b(X + 1)) for a in (np.array, Tensor, Parameter) for b in (np.array, Tensor)]
    for _ in range(3):
        for x, y in ways:
            result = f(x, y)
            is_array = type(x) is type(y) is np.ndarray
            assert type(result) is (np.ndarray if is_array else Tensor)
            np.testing.assert_array_equal(result if is_array else result.held, X - (X + 1))
    assert [f(x, y).is_of_emitted_code for x, y in ways[1:]] == [True, True, True, True, False]


def test_conversions_to_arrays_and_back():
    given = Tensor(X.copy()[:, ::2])
    array = array_of(given, TYPE)
    np.testing.assert_array_equal(array, X[:, ::2])
    assert owner_of(array) == (given, array.dtype) and owner_of(X) is None
    for value in (X[::-1], np.broadcast_to(X, (2, 4, 6)), X.astype(">f4"), np.float32(3), np.ones((0, 3))):
        made = tensor_of(value, TYPE)
        np.testing.assert_array_equal(made.held, value)
    count = sys.getrefcount(array)
    back = tensor_of(array[:, :2], TYPE)
    back.held[0, 0] = 7
    assert array[0, 0] == 7
    del back, made
    assert sys.getrefcount(array) == count


def test_tensors_are_not_donated():
    f = pf.jit(lambda x: x * 2, donate="x")
    given = Tensor(X.copy())
    for _ in range(4):
        np.testing.assert_array_equal(f(given).held, X * 2)
    np.testing.assert_array_equal(given.held, X)


def test_numbers_of_python_stay_such():
    f = warm(lambda x: {"n": len(x), "mean": x.mean(), "x": (x * 2, "text")}, Tensor(X))
    result = f(Tensor(X))
    assert result["n"] == 4 and type(result["n"]) is int
    assert type(result["mean"]) is Tensor and result["mean"].held.shape == ()
    assert type(result["x"][0]) is Tensor and result["x"][1] == "text"


def test_calls_in_a_trace_take_the_elements_as_a_captured_array():
    inner = pf.jit(lambda x, w: x @ w)
    w = Tensor(np.ones((6, 2), np.float32))
    f = pf.jit(lambda x: inner(x, w) * 2)
    for k in range(4):
        w.held[:] = k
        np.testing.assert_allclose(f(X), X @ w.held * 2, rtol=1e-6)
    assert f.state().counters["python_calls"] == 0


def test_the_memory_of_calls_is_flat():
    f = warm(scaled, Tensor(X), 2.0)
    given = Tensor(X)
    count = sys.getrefcount(given)
    for _ in range(2000):
        f(given, 2.0)
    assert sys.getrefcount(given) == count
    assert not Tensor.live
