"""Batches of small products: vector code in place of calls of the library."""

import re

import numpy as np
import pytest
from graphs import Graph, tensor
from native import built
from pools import needs_pool, on_threads, one_thread_around, same_bits  # noqa: F401
from profuse.dialect.ir.dtypes import F32, F64
from profuse.lowering.schedule.small import MOST

LAYOUTS = ((0, 1, 2), (0, 2, 1), (2, 0, 1), (1, 2, 0))  # order of axes in memory


def product(left, right, dtype=F32, orders=((0, 1, 2), (0, 1, 2))):
    """``left @ right``, of arrays whose axes are in these orders in memory."""

    def stored(shape, order):
        return tensor(*(shape[k] for k in order), dtype=dtype)

    def viewed(g, value, order):
        return g.transpose(value, perm=tuple(int(k) for k in np.argsort(order)))

    g = Graph(*(stored(s, o) for s, o in zip((left, right), orders, strict=True)))
    x, y = (viewed(g, v, o) for v, o in zip(g.inputs, orders, strict=True))
    return g.returning(g.matmul(x, y))


def arrays(left, right, dtype, orders=((0, 1, 2), (0, 1, 2))):
    rng = np.random.default_rng(0)
    made = [rng.standard_normal(shape).astype(dtype.numpy) for shape in (left, right)]
    return [np.ascontiguousarray(a.transpose(o)) for a, o in zip(made, orders, strict=True)], made


def calls(kernel):
    return len(re.findall(r"call @scipy_cblas", kernel.stages["loops"]))


def check(kernel, args, x, y):
    wanted = x.astype(np.float64) @ y.astype(np.float64)
    scale = (np.abs(x).astype(np.float64) @ np.abs(y).astype(np.float64)).max(initial=1.0)
    error = 8 * np.finfo(x.dtype).eps * scale
    np.testing.assert_allclose(kernel(*args)[0], wanted, rtol=0, atol=error)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("depth", [1, 2, 3, 7, 8, 16])
@pytest.mark.parametrize("width", [1, 2, 3, 5, 8, 11, 16])
def test_sizes(width, depth, dtype):
    for rows in (1, 4, 15, 16):
        shapes = (3, rows, depth), (3, depth, width)
        kernel = built(product(*shapes, dtype))
        assert kernel.artifact.library_calls == calls(kernel) == 0
        check(kernel, *(lambda a, m: (a, *m))(*arrays(*shapes, dtype)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("right", LAYOUTS)
@pytest.mark.parametrize("left", LAYOUTS)
def test_operands_of_any_layout(left, right):
    shapes, orders = ((5, 6, 9), (5, 9, 7)), (left, right)
    kernel = built(product(*shapes, orders=orders))
    assert kernel.artifact.library_calls == 0
    given, made = arrays(*shapes, F32, orders)
    check(kernel, given, *made)


@pytest.mark.parametrize("batch", [0, 1, 2, 1000])
def test_batches_of_any_size(batch):
    kernel = built(product(("n", 4, 4), ("n", 4, 4)))
    assert kernel.artifact.library_calls == 0
    given, made = arrays((batch, 4, 4), (batch, 4, 4), F32)
    check(kernel, given, *made)


@pytest.mark.parametrize("place", range(3))
def test_larger_ones_call_the_library(place):
    sizes = [MOST] * 3
    sizes[place] += 1
    rows, depth, width = sizes
    shapes = (4, rows, depth), (4, depth, width)
    kernel = built(product(*shapes))
    assert kernel.artifact.library_calls == calls(kernel) == 1
    given, made = arrays(*shapes, F32)
    check(kernel, given, *made)


def test_sizes_that_are_not_known_call_the_library():
    kernel = built(product(("n", "m", 4), ("n", 4, 4)))
    assert kernel.artifact.library_calls == calls(kernel) == 1


def test_infinities_numbers_that_are_none_and_zeros():
    (x, y), _ = arrays((4, 8, 8), (4, 8, 8), F32)
    x[0, 1, 2], x[1, 3, 4], y[2, 5, 6], x[3, 7] = np.nan, np.inf, -np.inf, -0.0
    with np.errstate(invalid="ignore"):
        wanted = x @ y
    found = built(product((4, 8, 8), (4, 8, 8)))(x, y)[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    assert not np.signbit(found[3, 7]).any()  # a sum that begins with 0.0


@needs_pool
@pytest.mark.parametrize("batch", [20_011, "n"])
def test_same_bits_on_any_number_of_threads(batch):
    kernel = built(product((batch, 8, 8), (batch, 8, 8)))
    assert kernel.artifact.shared_steps == 1
    given, made = arrays((20_011, 8, 8), (20_011, 8, 8), F32)
    assert same_bits(on_threads(kernel, *given))
    check(kernel, given, *made)


def test_attention_over_a_few_places():
    """Many heads with few keys each: blocks of rows that call no library."""
    shape = (1500, 16, 8)
    g = Graph(*[tensor(*shape)] * 3)
    q, k, v = g.inputs
    s = g.exp(g.matmul(q, g.transpose(k, perm=(0, 2, 1))))
    weights = g.div(s, g.sum(s, axes=(2,), keepdims=True))
    kernel = built(g.returning(g.matmul(weights, v)))
    assert kernel.artifact.library_calls == calls(kernel) == 0
    q, k, v = np.random.default_rng(0).standard_normal((3, *shape)).astype(np.float32)
    e = np.exp(q @ k.transpose(0, 2, 1))
    wanted = e / e.sum(axis=2, keepdims=True) @ v
    np.testing.assert_allclose(kernel(q, k, v)[0], wanted, rtol=1e-4, atol=1e-5)
