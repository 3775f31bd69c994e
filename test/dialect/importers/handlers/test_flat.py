"""`x.flat`: elements in C order are read and written as NumPy does, natively or in Python."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest

A = np.arange(12.0).reshape(3, 4)


def one(x):
    x.flat[5] = 7
    return x.sum()


def from_the_end(x):
    x.flat[-2] = x[0, 0]
    return x * 1


def transposed(x):
    x.T.flat[3] = -1
    return x + 1


def listed(x):
    x.flat[[1, 2, -1]] = [9, 8, 7]
    return x * 2


def a_part(x):
    x.flat[1:9:2] = x[0] * 2
    return x * 1


def own_array(x):
    y = np.zeros(4, int)
    y.flat[1] = 2.7
    return y + x.shape[0]


def read(x):
    return x.flat[3] * 2 + len(x.flat) + next(x.flat)


def read_a_part(x):
    return x.flat[2:5]


def walked(x):
    return sum(v * v for v in x.flat)


NATIVE = (one, from_the_end, transposed, listed, a_part, own_array, read, read_a_part, walked)


def own_elements(x):
    x.flat[1:9:2] = x[0]  # NumPy reads the second one after it has been written
    return x * 1


def masked(x):
    x.flat[x > 3] = 0
    return x * 1


def repeated(x):
    x.flat[:] = [1, 2]
    return x * 1


def summed(x):
    return np.sum(x.flat)


def all_of_it(x):
    x.flat = 3
    return x * 1


def outside(x):
    x.flat[20] = 1
    return x


IN_PYTHON = (own_elements, masked, repeated, summed, all_of_it)


def outcome(f, x):
    try:
        found = f(x)
    except (IndexError, TypeError) as error:
        return type(error), x.copy()
    return found, x.copy()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("f", [*NATIVE, *IN_PYTHON, outside], ids=lambda f: f.__name__)
def test_elements_are_numpys(f):
    jitted = pf.jit(f, unsupported="python")
    for _ in range(3):
        ours, theirs = outcome(jitted, A.copy()), outcome(f, A.copy())
        assert type(ours[0]) is type(theirs[0])
        np.testing.assert_array_equal(ours[0], theirs[0])
        np.testing.assert_array_equal(ours[1], theirs[1])
        jitted.wait()
    if f is not outside:
        assert (jitted.state().tier == "python") == (f in IN_PYTHON)


def squares(x):
    y = x * 1
    y.flat[2] = x[0] * 3
    y.flat[3:5] = x[:2] * x[1]
    return (y**2).sum()


def test_gradients_pass_through_elements_that_are_set():
    x = np.arange(1.0, 7)
    expected = pf.grad(lambda x: x[0] ** 2 + x[1] ** 2 + 9 * x[0] ** 2 + (x[:2] * x[1]) @ (x[:2] * x[1]) + x[5] ** 2)(x)
    a = pf.array(x, requires_grad=True)
    squares(a).backward()
    np.testing.assert_allclose(np.asarray(a.grad), expected)
    np.testing.assert_allclose(pf.grad(squares)(x), expected)


def test_an_array_is_multiplied_by_a_view_of_itself():
    x = np.arange(1.0, 7)
    a = pf.array(x, requires_grad=True)
    y = a * 1
    y *= y[::-1]
    np.testing.assert_array_equal(y.data, x * x[::-1])
    (y * np.arange(6)).sum().backward()
    np.testing.assert_allclose(np.asarray(a.grad), x[::-1] * (np.arange(6) + np.arange(6)[::-1]))
