"""A kernel that meets an index out of range: NumPy's error at the user's line, no wrong value."""

import numpy as np
import profuse as pf
import pytest

X = np.arange(12.0).reshape(4, 3)
CASES = {
    "take": (lambda x, i: np.take(x, i, axis=0) * 2, [0, -4, 3], [0, 4, 3]),
    "take of the flat array": (lambda x, i: np.take(x, i) * 2, [0, -12, 11], [0, 12, 1]),
    "take_along_axis": (
        lambda x, i: np.take_along_axis(x, i, axis=1) * 2,
        [[2], [1], [0], [-3]],
        [[2], [1], [0], [-4]],
    ),
    "index": (lambda x, i: x[i] * 2, [2, -1], [2, -5]),
    "index on two axes": (lambda x, i: x[i, i[::-1]] * 2, [2, -3], [2, 3]),
    "a column": (lambda x, i: x[:, i].sum(axis=1), [[2, 0], [-1, 1]], [[2, 0], [3, 1]]),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("strategy", [[("static", 1)], [("dynamic", 1)]], ids=str)
@pytest.mark.parametrize("dtype", ["i8", "i2", "u8"])
def test_array_indices(name, strategy, dtype):
    plain, good, bad = CASES[name]
    if dtype == "u8":
        good = np.abs(good) % 3
    good, bad = np.array(good, dtype), np.array(bad).astype(dtype)
    f = pf.jit(plain, strategy=strategy)
    for _ in range(3):
        np.testing.assert_array_equal(f(X, good), plain(X, good.astype("i8")))
    assert (f.state().counters["kernel_launches"], f.state().counters["voided_launches"]) == (2, 0)
    for _ in range(2):
        with pytest.raises(pf.BoundsError, match=rf"{__file__}:\d+: .*out of bounds"):
            f(X, bad)
    np.testing.assert_array_equal(f(X, good), plain(X, good.astype("i8")))
    counters = f.state().counters
    assert counters["voided_launches"] == 2
    assert (counters["guard_misses"], counters["compiles"]) == (0, 1)


@pytest.mark.parametrize("strategy", [[("static", 1)], [("dynamic", 1)]], ids=str)
def test_a_number_as_index(strategy):
    f = pf.jit(lambda x, i: x[i] + 1, strategy=strategy)
    for index in (0, 3, -4):
        np.testing.assert_array_equal(f(X, index), X[index] + 1)
    for index in (4, -5, 2**40):
        with pytest.raises(IndexError, match=f"index {index} is out of bounds"):
            f(X, index)
    counters = f.state().counters
    assert (counters["kernel_launches"], counters["voided_launches"]) == (5, 3)


def test_several_checks_in_one_kernel():
    """The first to fail in program order is the one reported, as NumPy would."""

    def plain(x, i, j):
        return x[i].sum() + x[:, j].sum()

    f = pf.jit(plain)
    inside, outside = np.array([1, 2]), np.array([1, 7])
    for _ in range(2):
        assert f(X, inside, inside) == plain(X, inside, inside)
    for i, j in ((outside, inside), (inside, outside), (outside, outside)):
        with pytest.raises(IndexError) as expected:
            plain(X, i, j)
        with pytest.raises(pf.BoundsError) as error:
            f(X, i, j)
        assert str(expected.value) in str(error.value)
    assert f.state().counters["voided_launches"] == 3


@pytest.mark.parametrize("strategy", [[("static", 1)], [("dynamic", 1)]], ids=str)
def test_negative_integer_powers(strategy):
    f = pf.jit(lambda x, n: x**n + 1, strategy=strategy)
    x = np.array([[3, -2, 0], [1, -1, 7]])
    for n in (x * 0 + 2, np.abs(x), np.abs(x)):
        np.testing.assert_array_equal(f(x, n), x**n + 1)
    with pytest.raises(ValueError, match="Integers to negative integer powers are not allowed"):
        f(x, x)
    counters = f.state().counters
    assert (counters["kernel_launches"], counters["voided_launches"]) == (3, 1)


def test_nothing_to_check_costs_no_output():
    f = pf.jit(lambda x: x[1] + x[:, 2].sum())
    for _ in range(2):
        f(X)
    assert "violation" not in f.ir("linalg")
