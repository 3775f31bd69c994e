"""Products of a matrix with its own transpose: half of the work, and exactly symmetric."""

import numpy as np
import pytest
from graphs import Graph, tensor
from native import built
from pools import needs_pool, on_threads, one_thread_around, same_bits  # noqa: F401
from profuse.dialect.ir.dtypes import F32, F64

RNG = np.random.default_rng(5)


def gram(*sizes, first=True, dtype=F32, strides="contiguous"):
    """``x.T @ x``, or ``x @ x.T``."""
    g = Graph(tensor(*sizes, dtype=dtype, strides=strides))
    (x,) = g.inputs
    y = g.transpose(x, perm=(1, 0))
    return g.returning(g.matmul(y, x) if first else g.matmul(x, y))


def check(kernel, x, first=True):
    (found,) = kernel(x)
    exact = x.astype(np.float64)
    wanted = exact.T @ exact if first else exact @ exact.T
    error = np.abs(found - wanted).max(initial=0) / np.abs(wanted).max(initial=1)
    assert error < (1e-5 if x.dtype == np.float32 else 1e-13)
    np.testing.assert_array_equal(found, found.T)
    return found


@pytest.mark.sampled(6)
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("shape", [(70, 64), (64, 70), (3, 65), (100, 100), (600, 300), (1, 129)])
def test_both_halves(shape, dtype, first):
    x = RNG.standard_normal(shape).astype(dtype.numpy)
    known = built(gram(*shape, dtype=dtype, first=first))
    anywhere = built(gram("s0", "s1", dtype=dtype, first=first))
    is_large = shape[1 if first else 0] >= 64
    assert ("cblas" in known.stages["loops"]) and is_large == ("syrk" in known.stages["loops"])
    check(known, x, first)
    check(anywhere, x, first)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shape", [(0, 70), (5, 0), (0, 0), (1, 1), (4, 17), (17, 4)])
def test_sizes_that_are_small_when_the_kernel_runs(shape):
    x = RNG.standard_normal(shape).astype(np.float32)
    for first in (True, False):
        check(built(gram("s0", "s1", first=first)), x, first)


def test_rows_apart():
    """Of a slice of columns."""
    x = RNG.standard_normal((90, 200)).astype(np.float32)[:, 20:100]
    for first in (True, False):
        check(built(gram(90, 80, first=first, strides=(200, 1))), x, first)


def test_of_what_the_kernel_has_computed():
    g = Graph(tensor(300, 80))
    (x,) = g.inputs
    c = g.sub(x, g.mean(x, axes=(0,), keepdims=True))
    kernel = built(g.returning(g.matmul(g.transpose(c, perm=(1, 0)), c)))
    x = RNG.standard_normal((300, 80)).astype(np.float32)
    (found,) = kernel(x)
    assert "syrk" in kernel.stages["loops"]
    np.testing.assert_allclose(found, np.cov(x.T, bias=True) * 300, atol=2e-3)
    np.testing.assert_array_equal(found, found.T)


def test_other_products_are_computed_as_a_whole():
    def product(make, *shapes):
        g = Graph(*[tensor(*shape) for shape in shapes])
        return built(g.returning(make(g, *g.inputs))).stages["loops"]

    turned = {"perm": (1, 0)}
    assert "syrk" not in product(lambda g, x: g.matmul(x, x), (80, 80))
    assert "syrk" not in product(lambda g, x, y: g.matmul(g.transpose(x, **turned), y), (80, 80), (80, 80))
    upper = {"starts": (0,), "stops": (80,)}
    lower = {"starts": (20,), "stops": (100,)}
    assert "syrk" not in product(
        lambda g, x: g.matmul(g.transpose(g.slice(x, axes=(0,), **upper), **turned), g.slice(x, axes=(0,), **lower)),
        (100, 80),
    )


@pytest.mark.sampled(4, each=())
@needs_pool
@pytest.mark.parametrize(("shape", "symbolic"), [((700, 2100), False), ((500, 3100), True), ((34000, 70), False)])
@pytest.mark.parametrize(("dtype", "first"), [(F32, True), (F64, False), (F64, True)])
def test_same_bits_on_any_number_of_threads(shape, symbolic, dtype, first):
    """Parts of many rows, and of sums of many products."""
    shape = shape if first else shape[::-1]
    x = RNG.standard_normal(shape).astype(dtype.numpy)
    sizes = ("s0", "s1") if symbolic else shape
    kernel = built(gram(*sizes, first=first, dtype=dtype))
    check(kernel, x, first)
    assert "profuse_pool" in kernel.stages["loops"]
    assert same_bits([*on_threads(kernel, x), kernel(x)])


@pytest.mark.parametrize("first", [True, False])
def test_one_call_where_parts_would_cost_time(first):
    x = RNG.standard_normal((700, 520))
    kernel = built(gram(*x.shape, first=first, dtype=F64))
    assert "profuse_pool" not in kernel.stages["loops"]
    assert kernel.stages["loops"].count("call @scipy_cblas_dsyrk") == 1
    assert "gemm" not in kernel.stages["loops"]
    check(kernel, x, first)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("shape", [(40, 2047), (40, 2048), (16383, 65), (16384, 65), (16385, 65)])
def test_sizes_of_one_part_and_of_two(shape):
    x = RNG.standard_normal(shape)
    kernel = built(gram(*shape, dtype=F64))
    is_one = shape in ((40, 2047), (16383, 65))
    assert ("profuse_pool" in kernel.stages["loops"]) != is_one
    check(kernel, x)
