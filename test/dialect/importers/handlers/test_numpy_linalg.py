"""Products, norms and diagonals of traced arrays, against NumPy."""

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.errors import ShapeError, TraceError
from profuse.dialect.importers.numpy.capture.tracer import trace
from tracing import call, check

RNG = np.random.default_rng(1)
X, C = RNG.normal(size=(2, 3)), RNG.normal(size=(2, 3, 4))

ORDERS = [None, 1, -1, 2, 3, 0, -2.5, np.inf, -np.inf, "fro", "f", "huge"]
NORMS = {
    "norm": [{}, {"axis": 0}, {"axis": (1, 0)}, {"keepdims": True}, {"axis": (0, 0)}],
    "vector_norm": [{}, {"axis": 1}, {"axis": (0, 1), "keepdims": True}],
    "matrix_norm": [{}, {"keepdims": True}],
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("name", NORMS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_norms(name, order):
    """Of vectors, matrices and stacks of these; errors are NumPy's. Singular values are refused."""
    given = {} if order is None else {"ord": order}
    for kwargs in NORMS[name]:
        for x in (X, C, X[0], np.arange(-3, 3).reshape(2, 3), X + 1j):

            def f(x, kwargs=given | kwargs):
                return getattr(np.linalg, name)(x, **kwargs)

            try:
                want = f(x)
            except ValueError:
                with pytest.raises(ValueError, match=r"\w"):
                    trace(f, (x,))
                continue
            try:
                found = call(trace(f, (x,)), x)
            except TraceError as error:
                assert "singular values" in error.what and order == 2
                continue
            assert (found.shape, found.dtype) == (np.shape(want), np.asarray(want).dtype)
            np.testing.assert_allclose(found, want, rtol=1e-12)


def test_diagonals_and_traces():
    for x in (X, C, X[0]):
        for f in (
            np.linalg.trace,
            np.trace,
            np.linalg.diagonal,
            np.diagonal,
            lambda x: np.linalg.trace(x, offset=1, dtype=np.float32),
            lambda x: np.linalg.diagonal(x, offset=-1),
            lambda x: x.trace(1, -1, 0),
        ):
            try:
                want = f(x)
            except ValueError as error:
                with pytest.raises(type(error)):
                    trace(f, (x,))
                continue
            np.testing.assert_allclose(call(trace(f, (x,)), x), want)


def test_einsum_stretches_axes_of_size_1():
    """Which axes these are holds for one graph: other sizes have one of their own."""
    f = pf.jit(lambda x, y: np.einsum("ij,ij->i", x * 1, y), background=False)
    shapes = [
        ((3, 2), (3, 1)),
        ((4, 1), (4, 1)),
        ((4, 3), (4, 3)),
        ((4, 1), (4, 3)),
        ((0, 1), (1, 0)),
        ((5, 2), (5, 2)),
        ((1, 2), (5, 2)),
        ((2, 4), (2, 1)),
    ]
    for one, other in shapes:
        x, y = np.arange(1.0, 1 + np.prod(one)).reshape(one), np.full(other, 2.0)
        np.testing.assert_allclose(f(x, y), np.einsum("ij,ij->i", x, y))
    with pytest.raises(ValueError):
        f(np.ones((3, 2)), np.ones((3, 4)))


def test_einsum_of_sizes_known_only_at_run_time():
    def f(x, y):
        return pf.fori_loop(0, 3, lambda i, s: s + np.einsum("i,i->", x[:i], y[:i]), 0.0)

    x, y = np.arange(1.0, 5), np.arange(4.0)
    assert pf.jit(f, background=False)(x, y) == np.dot(x[:1], y[:1]) + np.dot(x[:2], y[:2])


def test_einsum_of_a_size_that_is_1_now_and_no_guard_can_tell():
    """It begins with one key: the number of these decides nothing else."""

    def f(q, keys, values, n):
        weights = np.einsum("hd,htd->ht", q, keys[:, :n])
        return np.einsum("ht,htd->hd", weights, values[:, :n])

    q, keys = RNG.random((2, 4)), RNG.random((2, 9, 4))
    found = trace(f, (q, keys, keys + 1, 1))
    assert not found.guards
    for n in (1, 2, 9):
        np.testing.assert_allclose(call(found, q, keys, keys + 1, n), f(q, keys, keys + 1, n))


def test_einsum_of_unlike_sizes_where_both_were_1():
    def f(x, y, m, n):
        return np.einsum("ij,jk->ik", x[:, :m], y[:n])

    x, y = RNG.random((3, 5)), RNG.random((5, 2))
    with pf.knobs.override(unsupported="python"):
        jitted = pf.jit(f)
        for m, n in ((1, 1), (1, 1), (1, 5), (5, 1), (5, 5), (1, 1)):
            np.testing.assert_allclose(jitted(x, y, m, n), f(x, y, m, n))


@pytest.mark.parametrize("subscripts", ["i,i", "i->", "i,j->ij", "i->i", "i,i->i"])
def test_einsum_multiplies_and_adds_up_no_bfloat16(subscripts):
    def f(x):
        try:
            return np.einsum(subscripts, *[x] * (1 + ("," in subscripts)))
        except TypeError:
            return x + 1

    x = np.arange(4).astype("bfloat16")
    found, want = pf.jit(f, background=False)(x), f(x)
    assert found.dtype == want.dtype
    np.testing.assert_array_equal(found, want)


def test_a_subscript_that_is_no_letter_is_refused_at_the_users_line():
    with pytest.raises(ShapeError, match=r"test_numpy_linalg\.py:\d+: invalid subscript '1'"):
        pf.jit(lambda x: np.einsum("ij,k1->i", x, x))(np.ones((2, 2)))


def test_einsum_of_ones_in_a_try_block():
    def f(x):
        try:
            return np.einsum("...j,...j->...", np.tile(x, 2), x)
        except Exception:
            return x * 0

    x = np.array([[1.0], [2.0]])
    np.testing.assert_array_equal(pf.jit(f)(x), f(x))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shape", [(3, 2, 1), (1, 2, 1), (2, 3, 4), (2, 2, 2)])
@pytest.mark.parametrize(
    "product",
    [
        lambda y: np.dot(y, y.T),
        lambda y: np.tensordot(y, y.T, axes=((2,), (1,))),
        lambda y: np.inner(y, y.T),
        lambda y: np.tensordot(y, y, axes=((1, 2), (2, 1))),
        lambda y: np.einsum("ij,ij->", y[0], y[0].T),
        lambda y: np.einsum("ijk,ikj->i", y, y * 2),
    ],
)
def test_products_of_axes_of_unlike_sizes(product, shape):
    """What is merged for a product keeps its own sizes: no product is made of unlike ones."""
    y = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    f = pf.jit(product, background=False)
    f(np.ones((2, 2, 2)))
    try:
        want = product(y)
    except ValueError:
        with pytest.raises(ValueError):
            f(y)
    else:
        np.testing.assert_allclose(f(y), want)


def test_products_of_the_linalg_namespace():
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    check(lambda a, b: np.linalg.matmul(a, b), a, b)
    check(lambda a, b: np.linalg.tensordot(a, b, axes=1), a, b)
    check(lambda a, b: np.linalg.outer(a[0], b[0]), a, b)
    with pytest.raises(ValueError, match="one-dimensional"):
        trace(lambda a: np.linalg.outer(a, a[0]), (a,))
