"""Products of a vector and a matrix in f64: sums of the rows of the matrix, without the library."""

import numpy as np
import pytest
from graphs import Graph, tensor
from native import built
from pools import needs_pool, on_threads, one_thread_around, same_bits  # noqa: F401
from profuse.dialect.ir.dtypes import F32, F64

RNG = np.random.default_rng(8)


def kernel(rows, columns, turned=False, dtype=F64, strides="contiguous", added=False):
    """``x @ m``, or ``m.T @ x``, and ``y`` added to it."""
    g = Graph(
        tensor(rows, dtype=dtype),
        tensor(rows, columns, dtype=dtype, strides=strides),
        *([tensor(columns, dtype=dtype)] if added else []),
    )
    x, m, *more = g.inputs
    made = g.matmul(g.transpose(m, perm=(1, 0)), x) if turned else g.matmul(x, m)
    return built(g.returning(g.add(made, *more) if added else made))


def given(*shape):
    return RNG.standard_normal(shape)


def in_order(x, m):
    """The sum of the rows, one after the other, in more digits."""
    return sum(np.longdouble(f) * row.astype(np.longdouble) for f, row in zip(x, m, strict=True))


SIZES = [(1, 9), (7, 8), (8, 7), (9, 1), (16, 16), (23, 40), (100, 3), (300, 501)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("sizes", SIZES)
def test_sums_of_rows(sizes, symbolic, turned):
    made = kernel(*(("n", "k") if symbolic else sizes), turned=turned)
    x, m = given(sizes[0]), given(*sizes)
    (found,) = made(x, m)
    np.testing.assert_allclose(found, in_order(x, m).astype(float), rtol=1e-11, atol=1e-13)
    if symbolic or 1 not in sizes:
        assert made.artifact.library_calls == 0
        assert "cblas" not in made.stages["loops"]


@pytest.mark.parametrize("sizes", [(0, 5), (5, 0), (0, 0)])
def test_nothing_to_add(sizes):
    (found,) = kernel("n", "k")(given(sizes[0]), given(*sizes))
    np.testing.assert_array_equal(found, np.zeros(sizes[1]))


@pytest.mark.parametrize("turned", [False, True])
def test_of_rows_apart(turned):
    m = given(50, 90)[:, 20:61]
    x = given(50)
    (found,) = kernel(50, 41, turned, strides=(90, 1))(x, m)
    np.testing.assert_allclose(found, x @ m, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("turned", [False, True])
def test_added_to_what_there_is(turned):
    x, m, y = given(90), given(90, 61), given(61)
    before = y.copy()
    (found,) = kernel(90, 61, turned, added=True)(x, m, y)
    np.testing.assert_allclose(found, x @ m + y, rtol=1e-11, atol=1e-12)
    np.testing.assert_array_equal(y, before)


def test_an_element_has_the_same_bits_wherever_it_lies():
    x, m = given(203), given(203, 77)
    (whole,) = kernel("n", "k")(x, m)
    for low, high in ((0, 77), (1, 77), (5, 12), (69, 70), (8, 75)):
        (part,) = kernel("n", "k")(x, np.ascontiguousarray(m[:, low:high]))
        assert part.tobytes() == whole[low:high].tobytes()


def test_infinities_and_nans():
    m = given(20, 30)
    m[3, 5], m[4, 17], m[9, 29], x = np.inf, np.nan, -np.inf, given(20)
    x[3] = 0.0
    (found,) = kernel(20, 30)(x, m)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(found, x @ m, rtol=1e-11, atol=1e-13)
    assert np.isnan(found[[5, 17]]).all() and np.isinf(found[29])


@needs_pool
@pytest.mark.parametrize("symbolic", [False, True])
def test_same_bits_on_any_number_of_threads(symbolic):
    x, m = given(900), given(900, 1111)
    made = kernel(*(("n", "k") if symbolic else m.shape), turned=True)
    assert "profuse_pool" in made.stages["loops"]
    assert same_bits([*on_threads(made, x, m), made(x, m)])


@pytest.mark.parametrize("turned", [False, True])
def test_the_library_computes_what_it_computes_as_fast(turned):
    """Single precision, and sums along rows."""
    assert kernel(40, 50, turned, F32).artifact.library_calls == 1
    g = Graph(tensor(50, 40, dtype=F64), tensor(40, dtype=F64))
    assert built(g.returning(g.matmul(*g.inputs))).artifact.library_calls == 1
