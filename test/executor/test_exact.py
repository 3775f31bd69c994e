"""``exact``: kernels compute what the op-by-op evaluation does, to the last bit."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import profuse as pf
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "dialect" / "gradients"))

from random_functions import function

pytestmark = pytest.mark.optimised  # these are bits


@pytest.fixture(autouse=True)
def _exact():
    settings = pf.knobs.override(exact=True, background=False, cache=False, demote=0.0)
    with settings, np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def flat(found):
    if isinstance(found, (tuple, list)):
        return [y for x in found for y in flat(x)]
    return [np.asarray(found)]


def same_bits(found, wanted):
    """Whether arrays are the same, which zero and which layout included, but for NaN's payload."""
    return len(found) == len(wanted) and all(
        a.dtype == b.dtype
        and a.shape == b.shape
        and a.strides == b.strides
        and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
        and np.array_equal(np.signbit(a), np.signbit(b) | np.isnan(b) & np.signbit(a))
        if a.dtype.kind == "f"
        else np.array_equal(a, b)
        for a, b in zip(found, wanted, strict=True)
    )


def check(fn, *calls):
    """Call a jitted function, three times each; how many kernels it has launched."""
    jitted = pf.jit(fn)
    for args in calls:
        wanted = flat(fn(*args))
        for _ in range(3):
            assert same_bits(flat(jitted(*args)), wanted)
    return jitted.state().counters["kernel_launches"]


def normalised(x, y, gain):
    a = x * y + 0.1 * x - y / 3.0
    centred = a - a.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    z = centred / np.sqrt(variance + 1e-5) * gain
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True), (z * 2).T + 1, z.sum()


def arguments(dtype, *shape, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(s).astype(dtype) for s in (shape, shape, shape[-1:])]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_layer_norm_and_a_softmax_are_those_of_numpy(dtype):
    assert check(normalised, arguments(dtype, 64, 48)) >= 8


def test_without_it_they_are_not():
    with pf.knobs.override(exact=False):
        jitted, args = pf.jit(normalised), arguments(np.float32, 64, 48)
        for _ in range(3):
            found = flat(jitted(*args))
        assert not same_bits(found, flat(normalised(*args)))


def test_sizes_that_change():
    calls = [arguments(np.float32, n, m) for n, m in ((5, 8), (6, 8), (7, 9), (1, 9), (8, 33))]
    assert check(normalised, *calls) > 0


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_layouts_that_change(order):
    """A sum adds up elements as they lie in memory, so that layouts decide on its last bit."""

    def f(x, y):
        z = x * 1.1 + y
        return z.sum(), z.mean(axis=0), (z - 0.3) * y

    x, y, _ = arguments(np.float32, 40, 40)
    c_order = (x, y)
    fortran = (np.asfortranarray(x), np.asfortranarray(y))
    part = (np.repeat(x, 2, 0)[::2], np.repeat(y, 2, 1)[:, ::2])
    launches = check(f, *[(c_order, fortran)[k] for k in order], part, (x, y.T))
    assert (launches > 0) is (order == [0, 1])  # what was profiled in another order is not fused


def test_views_within_groups():
    def f(x, row, column):
        spread = np.broadcast_to(row, x.shape) * x + column[:, None] / 7
        return spread, np.broadcast_to(column[:, None], x.shape).sum(), spread.reshape(-1)[::3] + 1

    x, _, row = arguments(np.float64, 30, 20)
    assert check(f, (x, row, np.linspace(0, 1, 30))) > 0


def test_products_are_not_fused_with_sums_nor_quotients_taken_by_reciprocals():
    def f(x, y, z):
        return x * y + z, x * y - x, z / 3.0, (x - 1) / y[0]

    rng = np.random.default_rng(1)
    for dtype in (np.float32, np.float64):
        assert check(f, [rng.standard_normal(5000).astype(dtype) for _ in range(3)]) > 0


def test_zeros_infinities_and_nan():
    def f(x, y):
        return x + y, x - y, x * y, x / y, -x, np.abs(x), np.sqrt(x), np.where(x < y, x, y), x == y

    values = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.5, 5e-324, 1e308, -2e-308])
    x, y = (a.ravel().copy() for a in np.meshgrid(values, values))
    assert check(f, (x, y)) > 0
    assert check(f, (x.astype(np.float32), y.astype(np.float32))) > 0


def test_integers_and_bools():
    def f(i, b, x):
        return i * 3 + i // 2, i / 7, b & (i > 2), np.where(b, i, 0).sum(), x * i, x > i

    i = np.arange(-20, 20)
    assert check(f, (i, i % 3 == 0, np.linspace(0, 1, 40).astype(np.float32))) > 0


def test_what_is_left_out_is_told():
    jitted = pf.jit(lambda x: np.exp(x) * 2 + x.T.copy().T)
    x = np.ones((4, 5))
    for _ in range(3):
        jitted(x)
    text = jitted.explain()
    assert "Not fused: exp" in text and "which exact=True rules out" in text
    assert "set pf.knobs.exact = False" in text
    assert "may not lie in C order" in text


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_random_functions_and_their_gradients(seed):
    """The kernels' calls give what the profiled one has given, op by op."""
    made = function(seed, flow=seed % 2 == 0)
    fn = made.compiled()

    def call(*args):
        return fn(np, pf, *args)

    for jitted in (pf.jit(call), pf.jit(pf.value_and_grad(call))):
        profiled, *others = (flat(jitted(*made.args)) for _ in range(3))
        assert all(same_bits(found, profiled) for found in others)


def test_the_spec_keyed_executor():
    before = pf.set_profiling_mode(False)
    try:
        assert check(normalised, arguments(np.float32, 6, 8), arguments(np.float32, 7, 9)) > 0
    finally:
        pf.set_profiling_mode(before)
