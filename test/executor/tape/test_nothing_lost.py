"""What NumPy computes of arrays that require gradients has their gradient, or is an error."""

from __future__ import annotations

import cmath
import math
import operator

import numpy as np
import profuse as pf
import pytest

X = np.array([0.3, -1.2, 2.1, 0.8])
C = np.array([1.0, 2.0, 4.0, 3.0])
MASK = np.array([True, False, True, True])

HAVE_GRADIENTS = {
    "a list with numbers": lambda x: np.stack([x[0], x[1]]) * 2,
    "a list as an operand": lambda x: [x[1], 2.0] * x[:2] + [x[0] ** 2, x[3]],
    "values around an array": lambda x: np.pad(x, 1) * np.arange(6),
    "weights of a mean": lambda x: np.average(C, weights=x * x),
    "a part of the elements": lambda x: np.sum(x * x, where=MASK),
    "an array on the left": lambda x: C @ x + np.dot(C, x) + np.inner(x, C),
    "bounds": lambda x: np.clip(C, x[0], x[2]),
    "a function of SciPy": lambda x: pf.sigmoid(x) * pf.erf(x),
}

HAVE_ONE_OR_AN_ERROR = {
    "a list to choose from": lambda x: np.where(MASK, [x[0], x[1], 1.0, x[2]], C),
    "a list in a method": lambda x: x[:2].dot([x[2], 3.0]),
    "counts with weights": lambda x: np.bincount([0, 1, 1, 3], weights=x**2) * C,
    "counts with weights by place": lambda x: np.bincount([0, 2, 1, 1], x) ** 2,
    "a method of an ndarray": lambda x: C.clip(x[0], x[2]) * C,
    "dot of an ndarray": lambda x: C.dot(x),
    "a list in a ufunc": lambda x: np.tanh([x[2], x[0]]),
    "a list in a reduction": lambda x: np.max([x, C], axis=0),
    "an array of a list": lambda x: np.array([x[0], x[3]]) ** 2,
    "a list of lists": lambda x: np.asarray([[x[0], 1.0], [2.0, x[1]]]),
    "an array of an array": lambda x: np.array(x) * 2,
    "the first of a product": lambda x: np.prod(C, initial=x[0]),
    "the first of a maximum": lambda x: np.max(C, initial=x[2] * 9),
    "the first of a method": lambda x: C.sum(initial=x[1]),
    "the first of a ufunc": lambda x: np.add.reduce(C, initial=x[1]),
    "the first of its own": lambda x: np.sum(x, initial=x[1]),
    "a histogram with weights": lambda x: np.histogram(C, bins=2, weights=x)[0],
    "a histogram by place": lambda x: np.histogram(C, 2, None, None, x * x)[0],
    "values around": lambda x: np.pad(C, 1, constant_values=x[0]),
    "values at both ends": lambda x: np.pad(x, 1, constant_values=(x[0], x[1])),
    "what else is selected": lambda x: np.select([C > 2], [C], default=x[0]),
    "what is selected": lambda x: np.select([C > 2], [x * 2], default=0.0),
    "rows": lambda x: np.r_[x, x[0], 1.0],
    "columns": lambda x: np.c_[x, C],
    "a vectorised function": lambda x: np.vectorize(lambda v: v * v)(x),
    "a function of Python": lambda x: np.frompyfunc(lambda v: v * v, 1, 1)(x).astype(float),
    "in place of NaN": lambda x: np.nan_to_num(np.array([np.nan, 1.0]), nan=x[0]),
    "left of a table": lambda x: np.interp([0.0, 1.5], C[:3], C[:3], left=x[0]),
    "filled": lambda x: np.full(3, x[1]),
    "differences": lambda x: np.diff(C, prepend=x[0]),
    "steps": lambda x: np.trapezoid(C, dx=x[0]),
    "inserted": lambda x: np.insert(C, 1, x[0]),
    "a function of math": lambda x: math.exp(x[0]) * C,
    "a function of two numbers": lambda x: C * math.atan2(x[0], 2.0),
    "a sum of math": lambda x: math.fsum(x) * C,
    "a function of complex numbers": lambda x: abs(cmath.exp(x[1])) * C,
    "read one by one": lambda x: np.fromiter((v for v in x), float) * C,
    "rows of fields": lambda x: np.array([(x[0], 1)], [("a", "f8"), ("b", "i8")])["a"] * 2,
    "an element of an ndarray": lambda x: after(lambda c: operator.setitem(c, 1, x[0] * 3)),
    "an ndarray that is filled": lambda x: after(lambda c: c.fill(x[2])),
    "a method of what a call returns": lambda x: np.ones(2).sum(initial=x[0]) * C,
    "an attribute of what is filled": lambda x: after(lambda c: Holder(c).array.fill(x[1])),
}


class Holder:
    def __init__(self, array):
        self.array = array

    @staticmethod
    def number(x):
        return Holder.to_number(x)

    to_number = float


def after(write):
    """An ndarray after it was written to."""
    array = C.copy()
    write(array)
    return array


def differences(f, step=1e-6):
    found = np.zeros_like(X)
    for k in range(len(X)):
        moved = np.zeros_like(X)
        moved[k] = step
        found[k] = (np.sum(f(X + moved)) - np.sum(f(X - moved))) / (2 * step)
    return found


def slope(f):
    """The gradient of a sum that has another term, so that one that is lost is not noticed."""
    x = pf.array(X, requires_grad=True)
    ((x * 2).sum() + np.sum(f(x))).backward()
    return x.grad - 2


@pytest.mark.parametrize("name", HAVE_GRADIENTS)
def test_what_has_a_gradient(name):
    f = HAVE_GRADIENTS[name]
    np.testing.assert_allclose(slope(f), differences(f), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", HAVE_ONE_OR_AN_ERROR)
def test_what_has_none_is_an_error(name):
    f = HAVE_ONE_OR_AN_ERROR[name]
    try:
        found = slope(f)
    except (pf.GradientError, ValueError, TypeError) as error:
        told = error if isinstance(error, pf.GradientError) else error.__cause__
        assert isinstance(told, pf.GradientError) and told.hint and told.loc.file == __file__
        with pf.no_grad():  # all of NumPy works
            value = f(pf.array(X, requires_grad=True))
            np.testing.assert_allclose(value, f(X))
    else:
        np.testing.assert_allclose(found, differences(f), rtol=1e-6, atol=1e-7)


def test_numbers_are_still_there_for_who_asks_for_them():
    x = pf.array(X, requires_grad=True)
    assert float(x[0]) == X[0] and x[1].item() == X[1] and x.tolist() == X.tolist()
    assert float(x[0]) + C.sum(initial=0.0) == X[0] + 10  # another call of the line has `initial`
    assert math.isfinite(x[0]) and math.floor(x[2]) == 2
    assert Holder.number(x[0]) == np.float64(x[0]) == max(map(float, [x[0], x[1]])) == X[0]
    assert "%.1f" % x[2] == "2.1"  # noqa: UP031
    assert f"{x[2]:.1f}" == "2.1" and np.asarray(x.data) is x.data
    np.testing.assert_array_equal(np.asarray(x.detach()), X)
    assert np.bincount([0, 1, 1]).tolist() == [1, 2]
    assert np.histogram(x, bins=2)[0].tolist() == np.histogram(X, bins=2)[0].tolist()
