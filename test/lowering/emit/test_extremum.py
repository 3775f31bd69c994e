"""Indices of extrema: those of NumPy, whatever the layout of the blocks among which is searched."""

import ml_dtypes
import numpy as np
import pytest
from every_case import fewer
from graphs import Graph, tensor
from hypothesis import given, settings
from hypothesis import strategies as st
from native import Kernel
from profuse.dialect.ir.dtypes import DTYPES, dtype_of
from profuse.lowering.cpu.cpu_stages import compile_program
from profuse.lowering.emit.extremum import BLOCK
from profuse.lowering.target import host_target

RNG = np.random.default_rng(23)
# Around a vector, an unrolled loop of vectors, a block, two blocks, and with a last block of 1.
COLUMNS = [1, 2, 15, 16, 17, 63, 64, 65, 130, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 1, 5 * BLOCK + 70]
NUMBERS = [d for d in DTYPES if d.kind != "c"]


def build(*inputs, make):
    g = Graph(*inputs)
    results = make(g, *g.inputs)
    return Kernel(compile_program(g.returning(*results), host_target(), keep_stages=True))


def rows_of(x, axis, keepdims, number=np.argmax):
    """NumPy's result; halves are compared in float32, which is exact and quicker."""
    wide = x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else x
    return number(wide, axis=axis, keepdims=keepdims)


def sample(shape, dtype, kinds=7):
    """Few different values, so that many are equal."""
    x = RNG.integers(0, kinds, shape)
    if np.dtype(dtype).kind in "fiV":
        x = x - kinds // 2
    if np.dtype(dtype).kind == "b":
        x = x == 3
    return x.astype(dtype)


def with_special(x):
    """Rows with one NaN or several, infinities, zeros of both signs, and nothing but NaN."""
    columns = x.shape[1]
    for row, places in enumerate([(0,), (-1,), (columns // 2, -1), (columns // 3, columns // 2)]):
        x[row, list(places)] = np.nan
    x[4] = np.nan
    x[5], x[6] = np.inf, -np.inf
    x[7] = 0
    x[7, ::2] = -0.0
    x[8] = -np.inf
    x[8, columns // 2 :] = np.inf
    x[9, columns // 2] = -np.inf
    if columns > BLOCK:
        x[10, BLOCK - 1 : BLOCK + 1] = np.nan
        x[11, [BLOCK, 2]] = 100, 100
    return x


def check(kernel, x, axis=1, keepdims=False):
    for number, found in zip((np.argmax, np.argmin), kernel(x), strict=True):
        expected = rows_of(x, axis, keepdims, number)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == np.int64 and found.shape == np.shape(expected)


def both(axis=1, keepdims=False):
    return lambda g, x: [g.argmax(x, axis=axis, keepdims=keepdims), g.argmin(x, axis=axis, keepdims=keepdims)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_all_dtypes_at_sizes_of_the_call(dtype):
    kernel = build(tensor("s0", "s1", dtype=dtype), make=both())
    for columns in COLUMNS:
        x = sample((14, columns), dtype.numpy)
        check(kernel, x)
        if dtype.is_float:
            check(kernel, with_special(x))
        else:
            check(kernel, np.full_like(x, 0))
            check(kernel, limits(x))


def limits(x):
    """The least and the greatest value of a dtype, at random places."""
    if x.dtype.kind == "b":
        return RNG.random(x.shape) < 0.01
    info = np.iinfo(x.dtype)
    x[RNG.random(x.shape) < 0.02] = info.max
    x[RNG.random(x.shape) < 0.02] = info.min
    x[0], x[1] = info.min, info.max
    return x


@pytest.mark.sampled(3)
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "u4", ml_dtypes.bfloat16], ids=str)
def test_known_sizes(dtype, columns):
    x = sample((14, columns), dtype)
    kernel = build(tensor(*x.shape, dtype=dtype_of(x.dtype)), make=both(-1, True))
    check(kernel, x, -1, True)
    if x.dtype.kind in "fV":
        check(kernel, with_special(x), -1, True)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("axis", [None, 0, 1, 2])
@pytest.mark.parametrize("keepdims", [False, True])
def test_axes(axis, keepdims, static):
    x = sample((3, 70, 90), "f4", 1000)
    x[1, 5, 7] = np.nan
    sizes = x.shape if static else ("s0", "s1", "s2")
    check(build(tensor(*sizes), make=both(axis, keepdims)), x, axis, keepdims)


def values_and_places(g, x, y):
    z = g.add(g.mul(x, g.number(2.0)), y)
    ends = g.max(z, axes=(1,)), g.min(z, axes=(1,)), g.sum(g.square(z), axes=(1,))
    return [g.argmax(z, axis=1), g.argmin(z, axis=1), *ends]


@pytest.mark.parametrize("columns", [1, 40, BLOCK, 3 * BLOCK + 5, 9 * BLOCK])
@pytest.mark.parametrize("static", [True, False])
def test_computed_elements_are_kept_for_the_search(columns, static):
    shape = (6, columns)
    sizes = shape if static else ("s0", "s1")
    kernel = build(tensor(*sizes), tensor(*sizes), make=values_and_places)
    for kinds in (5, 100000):
        x, y = sample(shape, "f4", kinds), sample(shape, "f4", kinds)
        y[2, columns // 2 :: 3] = np.nan
        y[3] = np.nan
        z = x * 2 + y
        top, low, high, least, squares = kernel(x, y)
        np.testing.assert_array_equal(top, z.argmax(1))
        np.testing.assert_array_equal(low, z.argmin(1))
        np.testing.assert_array_equal(high, z.max(1))
        np.testing.assert_array_equal(least, z.min(1))
        np.testing.assert_allclose(squares, np.square(z.astype("f8")).sum(1), rtol=1e-5)


def test_expensive_elements_that_round_are_computed_once():
    def make(g, x):
        e = g.div(g.exp(x), g.add(g.tanh(x), g.number(3.0)))
        return [g.argmax(e, axis=1), e, g.max(e, axes=(1,))]

    x = RNG.standard_normal((20, 4 * BLOCK + 11)).astype("f4")
    where, elements, top = build(tensor("s0", "s1"), make=make)(x)
    np.testing.assert_array_equal(where, elements.argmax(1))
    np.testing.assert_array_equal(top, elements.max(1))


def test_indices_of_earlier_stages():
    """The extremum of running sums, and of elements that a scan leaves in memory."""

    def make(g, x):
        sums = g.cumsum(x, axis=1)
        return [g.argmax(sums, axis=1), g.argmin(g.sub(sums, g.max(sums, axes=(1,), keepdims=True)), axis=1)]

    x = sample((5, 2 * BLOCK + 3), "f4")
    top, low = build(tensor(5, "s1"), make=make)(x)
    sums = x.cumsum(1)
    np.testing.assert_array_equal(top, sums.argmax(1))
    np.testing.assert_array_equal(low, sums.argmin(1))


FLOATS = st.sampled_from([np.nan, -np.inf, np.inf, 0.0, -0.0, 1.0, -1.0, 2.0])


@pytest.fixture(scope="module")
def any_rows():
    return build(tensor("s0", "s1"), make=both())


@settings(max_examples=fewer(150), deadline=None)
@given(data=st.data())
def test_rows_of_few_values(any_rows, data):
    columns = data.draw(st.integers(1, 3 * BLOCK))
    background = data.draw(FLOATS)
    x = np.full((2, columns), background, np.float32)
    places = st.tuples(st.integers(0, 1), st.integers(0, columns - 1), FLOATS)
    for row, column, value in data.draw(st.lists(places, max_size=6)):
        x[row, column] = value
    check(any_rows, x)
