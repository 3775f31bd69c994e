"""Functions that NumPy applies to parts of arrays, and block matrices, as users write them."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest

RNG = np.random.default_rng(5)


def floats(*shape):
    return RNG.normal(size=shape)


def saddle_point(a, b):
    return np.block([[a * 2, b.T], [b, np.zeros((b.shape[0], b.shape[0]))]]) + 1


def standardised(v):
    return (v - v.mean()) / v.std()


# Each with what makes its arguments for a size.
PROGRAMS = {
    "parts": (
        lambda x: np.piecewise(x, [x < 0.3, x > 0.6], [lambda v: v * v, np.sqrt, 0.5]) * 2,
        lambda n: (RNG.random(n),),
    ),
    "logarithm of positive ones": (lambda x: np.piecewise(x, [x > 0], [np.log, -1]) + 1, lambda n: (floats(n),)),
    "integers": (
        lambda x: np.piecewise(x, [x > 2], [lambda v: v / 2, lambda v: -v]) * 2,
        lambda n: (RNG.integers(0, 9, n),),
    ),
    "matrix": (lambda x: np.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v + 1]), lambda n: (floats(n, 3),)),
    "parameter": (lambda x, k: np.piecewise(x, [x < 0], [lambda v, k: v * k, 0], k) + 1, lambda n: (floats(n), 2.5)),
    "columns": (lambda x: np.apply_along_axis(standardised, 0, x) * 2, lambda n: (floats(n, 3),)),
    "outer products of rows": (
        lambda x: np.apply_along_axis(lambda v: np.outer(v, v), 1, x) + 1,
        lambda n: (floats(3, n),),
    ),
    "inner axis": (lambda x: np.apply_along_axis(np.diff, 1, x) * 2, lambda n: (floats(2, n, 3),)),
    "over axes": (lambda x: np.apply_over_axes(np.sum, x, [0, 2]) * 2, lambda n: (floats(2, n, 3),)),
    "saddle point": (saddle_point, lambda n: (floats(n, n), floats(2, n))),
    "identity": (
        lambda a: np.block([[a, np.eye(a.shape[0])], [np.eye(a.shape[0]), 0 * a]]) * 2,
        lambda n: (floats(n, n),),
    ),
    "ends": (lambda x: np.block([0, x, 1]) * 2, lambda n: (floats(n),)),
    "depth": (lambda x: sum(np.dsplit(x, 2)) * 2, lambda n: (floats(n, 2, 4),)),
    "common type": (lambda x: x.astype(np.common_type(x, np.float32(1))) * 2, lambda n: (np.arange(n),)),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_native_and_do_what_they_do_in_numpy(name):
    function, arguments = PROGRAMS[name]
    f = pf.jit(function, unsupported="raise")
    for n in (8, 8, 8, 9, 9, 9, 12):
        args = arguments(n)
        found, wanted = f(*args), function(*args)
        f.wait()
        assert type(found) is type(wanted)
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(found, wanted, 1e-9, 1e-12)
    assert f.state().tier == "optimized" and f.state().counters["kernel_launches"] > 0


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: np.piecewise(x[0], [x[0] < 0], [lambda v: v - v.max(), 0]), "element by"),
        (lambda x: np.apply_along_axis(np.sum, 1, x), "more than 16 slices"),
        (lambda x: np.min_scalar_type(x.sum()), "depends on its value"),
    ],
)
def test_refusals_say_why(function, message):
    with pytest.raises(pf.TraceError, match=message):
        pf.jit(function, unsupported="raise")(floats(17, 3))


@pytest.mark.parametrize("mode", ["trace", "tape"])
def test_gradients_go_through_parts_and_blocks(mode):
    def loss(x):
        bent = np.piecewise(x, [x < 0], [lambda v: v * v, lambda v: 3 * v])
        return (np.block([[bent, x], [x, bent]]) ** 2).sum()

    x = floats(3, 4)
    slope = np.where(x < 0, 2 * x, 3.0)
    bent = np.where(x < 0, x * x, 3 * x)
    if mode == "trace":
        found = pf.grad(loss)(x)
    else:
        leaf = pf.array(x, requires_grad=True)
        loss(leaf).backward()
        found = leaf.grad
    np.testing.assert_allclose(found, 4 * bent * slope + 4 * x)


def test_parts_on_the_tape_take_any_function_and_none_where_nothing_is():
    x = pf.array([-1.0, 1, 2], requires_grad=True)
    y = np.piecewise(x, [x < -5, x > 0], [lambda v: v - v.max(), lambda v: v * v.sum(), 0])
    np.testing.assert_array_equal(y.data, [0, 3, 6])
    np.testing.assert_allclose(pf.gradients(y.sum(), x), [0, 6, 6])
