"""Functions that ask for sizes and dtypes of what device groups compute (R3.29, R3.33, R3.47)."""

import numpy as np
import profuse as pf
import pytest


@pytest.fixture(autouse=True)
def device_groups():
    pf.set_device_fusion(True, host=True)
    yield
    pf.set_device_fusion(None)


def runs(f, shapes, rtol=1e-5):
    """Call a function with arrays of these shapes in turn; returns its counters."""
    g = pf.jit(f)
    rng = np.random.default_rng(0)
    for shape in shapes:
        arrays = [rng.standard_normal(s).astype(np.float32) for s in shape]
        for actual, expected in zip(g(*arrays), f(*arrays), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=rtol)
            assert np.asarray(actual).dtype == np.asarray(expected).dtype
        g.wait()
    return g.state().counters


def of_shape(x, w):
    """The product is there for its sizes alone, and for what is returned."""
    y = np.tanh(x @ w)
    z = np.expand_dims(y, 0).sum(axis=1)
    return z / y.shape[0], np.ones(np.expand_dims(y, 0).shape, np.float32)


SHAPES = [[(5, 4), (4, 3)], [(5, 4), (4, 3)], [(7, 2), (2, 9)], [(6, 4), (4, 4)], [(12, 3), (3, 2)]]


def test_r3_33_sizes_of_other_calls_are_those_of_the_operands():
    counters = runs(of_shape, SHAPES)
    assert counters["compiles"] == 1 and counters["guard_misses"] == 0
    assert counters["guard_hits"] >= len(SHAPES) - 2


def test_r3_33_sizes_are_right_where_the_guard_fails():
    """The guard does not let a size of 1 pass."""
    counters = runs(of_shape, [*SHAPES, [(1, 4), (4, 3)], [(5, 1), (1, 3)], [(5, 4), (4, 1)]])
    assert counters["guard_misses"] + counters["fallback_calls"] > 0


def numbers_of_sizes(x, w):
    y = np.tanh(x @ w)
    z = np.expand_dims(y, 0)
    return np.exp(y).sum(), y.shape[0] * y.shape[1], z.size - y.ndim, y.T.shape[0]


def test_r3_33_sizes_are_worked_out_in_emitted_code():
    """No call but the profiled one, and the two that wait for code, comes to Python."""
    f = pf.jit(numbers_of_sizes)
    rng = np.random.default_rng(0)
    for shape in [*SHAPES, *SHAPES, *SHAPES]:
        arrays = [rng.standard_normal(s).astype(np.float32) for s in shape]
        total, *numbers = f(*arrays)
        expected, *others = numbers_of_sizes(*arrays)
        np.testing.assert_allclose(total, expected, rtol=1e-5)
        assert numbers == others and all(type(n) is int for n in numbers)
        f.wait()
    assert f.explain().startswith("numbers_of_sizes runs as native code")
    counters = f.state().counters
    assert counters["compiles"] == 1 and counters["guard_hits"] == 3 * len(SHAPES) - 1


def test_r3_47_a_dtype_that_is_asked_for():
    def f(x, w):
        y = np.exp(x) * 2
        return (w.astype(y.dtype) + 1,)

    runs(f, [[(4, 5), (3,)], [(4, 5), (3,)], [(2, 7), (6,)]])


def test_r3_33_sizes_that_do_not_fit_raise_what_numpy_raises():
    g = pf.jit(of_shape)
    for shape in SHAPES:
        g(*(np.ones(s, np.float32) for s in shape))
        g.wait()
    wrong = np.ones((5, 4), np.float32), np.ones((3, 3), np.float32)
    for call in (of_shape, g):
        with pytest.raises(ValueError, match="matmul: Input operand 1 has a mismatch in its core dimension 0"):
            call(*wrong)
