"""Gradients as native code: what tier 0 computes, from few kernels, in static and dynamic sizes."""

import numpy as np
import profuse as pf
import pytest
from gradient_cases import CASES, RNG

INTERPRETED = {
    ("item", "static"),
    ("item", "dynamic"),
    ("split", "dynamic"),  # pieces of symbolic sizes may be empty, and are not joined by kernels
    ("slice_scatter", "dynamic"),  # a part of symbolic sizes may be empty
    ("slice", "dynamic"),
    ("reshape", "dynamic"),  # symbolic sizes fit some values only
    ("conv2d", "dynamic"),  # channels of symbolic sizes may be no groups of those that a weight has
    ("gather", "dynamic"),  # kernels add to what `gather` picks by a few, known, indices per row
    ("gather_add", "dynamic"),
}


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"), pf.knobs.override(cache=False):
        yield


@pytest.mark.sampled(10, each=("strategy",))
@pytest.mark.parametrize("strategy", ["static", "dynamic"])
@pytest.mark.parametrize("case", CASES[::3], ids=str)
def test_kernels_compute_what_tier_0_does(case, strategy):
    floats = tuple(k for k, x in enumerate(case.args) if np.asarray(x).dtype.kind == "f")

    def total(*args):
        return np.sin(case.fn(*args)).sum()

    f = pf.value_and_grad(total, wrt=floats, background=False, strategy=[(strategy, 2)])
    value, grads = f(*case.args)
    for _ in range(2):
        again, found = f(*case.args)
        np.testing.assert_allclose(again, value, rtol=1e-10, atol=1e-12)
        for g, h in zip(found, grads, strict=True):
            np.testing.assert_allclose(g, h, rtol=1e-9, atol=1e-11)
    if (case.op, strategy) not in INTERPRETED:
        assert f.state().counters["kernel_launches"] > 0, f.explain()
        assert f.state().counters["compile_failures"] == 0, f.explain()


def gelu(x, b):
    y = x + b
    return (0.5 * y * (1 + np.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))).sum()


def softmax(x, b):
    e = np.exp(x / 8 + b - (x / 8 + b).max(1, keepdims=True))
    return ((e / e.sum(1, keepdims=True)) ** 2).sum()


def layer_norm(x, w):
    d = x - x.mean(1, keepdims=True)
    return np.sin(d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5) * w).sum()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("f", [gelu, softmax, layer_norm], ids=lambda f: f.__name__)
def test_forward_and_backward_are_one_kernel(f, dtype):
    x, b = RNG.standard_normal((7, 33)).astype(dtype), RNG.standard_normal(33).astype(dtype)
    both = pf.value_and_grad(f, wrt=(0, 1), background=False)
    first = both(x, b)
    for _ in range(2):
        value, (gx, gb) = both(x, b)
        tolerance = 1e-3 if dtype == "f4" else 1e-10
        np.testing.assert_allclose(value, first[0], rtol=tolerance)
        np.testing.assert_allclose(gx, first[1][0], rtol=tolerance, atol=tolerance / 10)
        np.testing.assert_allclose(gb, first[1][1], rtol=tolerance, atol=tolerance / 10)
    ops = both.state().counters
    assert (ops["compiles"], ops["kernel_launches"]) == (1, 2)
    assert both.ir("linalg").count("func.func") == 1


@pytest.mark.parametrize("strategy", ["static", "dynamic"])
def test_operands_of_size_1_are_summed_to(strategy):
    """What was broadcast in one call, and not in the next, has gradients of its own shape."""
    f = pf.grad(lambda x, y: (x * y).sum(), wrt=(0, 1), background=False, strategy=[(strategy, 3)])
    for _ in range(3):
        for a, b in [((4, 3), (4, 3)), ((4, 3), (1, 3)), ((1, 3), (4, 1)), ((1, 1), (5, 3))]:
            x, y = RNG.standard_normal(a), RNG.standard_normal(b)
            gx, gy = f(x, y)
            whole = np.broadcast_shapes(a, b)
            for found, other, shape in ((gx, y, a), (gy, x, b)):
                axes = tuple(k for k in range(2) if shape[k] == 1 and whole[k] != 1)
                wanted = np.broadcast_to(other, whole).sum(axes, keepdims=True)
                np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_a_divisor_is_inverted_once():
    """Quotients take long: forward divides, and both gradients share one reciprocal of a row."""
    f = pf.value_and_grad(lambda x, r: ((x / r) ** 2).sum(), wrt=(0, 1), background=False)
    x, r = RNG.standard_normal((5, 33)), 1 + RNG.random((5, 1))
    for _ in range(3):
        _, (gx, gr) = f(x, r)
    np.testing.assert_allclose(gx, 2 * x / r**2, rtol=1e-12)
    np.testing.assert_allclose(gr, (-2 * x * x / r**3).sum(1, keepdims=True), rtol=1e-12)
    assert f.ir("linalg").count("arith.divf") == 2
