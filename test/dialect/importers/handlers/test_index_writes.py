"""Writes through index arrays become native updates in the order of the indices."""

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.errors import GradientError, TraceError
from tracing import same

RNG = np.random.default_rng(1)
X, V = RNG.standard_normal((6, 5)), RNG.standard_normal(40)
ROWS, COLUMNS = np.array([3, 0, 3, -1, 2]), np.array([1, 1, 4, 0, -2])
BINS = np.arange(40) ** 2 % 7


def assigned(x, i, j):
    y = x.copy()
    y[i] = 7
    y[i, j] = np.arange(5.0)
    y[:, j] += 1
    y[i, 2] *= 3
    y[1:][j] = y[1:][j] * 2
    y[i, 1] = x[j, 0]
    y[x[:, 0].argmax()] = x.mean(axis=0)
    y[np.diag_indices(5)] = 0
    y[[4, 2]] = [[1.0], [2.0]]
    return y


def accumulated(v, i):
    out = np.zeros(7), np.ones(7), np.full(7, -np.inf), np.full(7, np.inf), np.zeros(7)
    np.add.at(out[0], i, v)
    np.multiply.at(out[1], i, v)
    np.maximum.at(out[2], i, v)
    np.minimum.at(out[3], i, v)
    np.subtract.at(out[4], i, 0.5)
    count = np.zeros(7, int)
    np.add.at(count, i, 1)
    return *out, count


def last_wins(v, i):
    y = np.zeros(7)
    y[i] = v
    y[i] += 1
    return y


def pages(ranks, source, target):
    degree = np.zeros(len(ranks))
    np.add.at(degree, source, 1)
    new = np.full(len(ranks), 0.15 / len(ranks))
    np.add.at(new, target, 0.85 * ranks[source] / degree[source])
    return new


def functions(x, i):
    y = x.copy()
    np.put(y, i, [1.0, 2.0, 3.0, 4.0, 5.0])
    y.put(i + 20, -1)
    np.put_along_axis(y, np.argmax(x, axis=1)[:, None], 0.0, axis=1)
    np.fill_diagonal(y, 9)
    z = x[:5].copy()
    np.fill_diagonal(z, z[0])
    return y, z


CALLS = (
    (assigned, (X, ROWS, COLUMNS)),
    (accumulated, (V, BINS)),
    (last_wins, (V, BINS)),
    (pages, (np.full(7, 1 / 7), BINS, np.arange(40) % 7)),
    (functions, (X, ROWS)),
)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("fn", "args"), CALLS)
def test_writes_are_one_kernel(fn, args):
    f = pf.jit(fn, background=False)
    for _ in range(4):
        same(f(*args), fn(*args), exact=False)
    counters = f.state().counters
    assert counters["kernels_compiled"] == 1 and counters["kernel_launches"] == 3
    assert counters["fallback_calls"] == counters["refusals"] == 0


def test_sizes_that_change():
    f, g = (pf.jit(fn, background=False) for fn in (accumulated, assigned))
    for n in (40, 41, 7, 90, 64):
        args = RNG.standard_normal(n), RNG.integers(-7, 7, n)
        same(f(*args), accumulated(*args), exact=False)
        x = RNG.standard_normal((n, 5))
        same(g(x, ROWS, COLUMNS), assigned(x, ROWS, COLUMNS))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", ["f4", "i8", "i4", "u1", "c16", "?"])
def test_dtypes(dtype):
    def fn(v, i):
        y = np.zeros(7, v.dtype)
        y[i] = v
        y[i[:3]] = 1
        z = np.ones(7, v.dtype)
        np.add.at(z, i, v)
        return y, z

    v = (V * 9).astype(dtype) if dtype != "u1" else np.abs(V * 9).astype(dtype)
    f = pf.jit(fn, background=False)
    for _ in range(3):
        same(f(v, BINS), fn(v, BINS), exact=dtype != "f4")


def test_errors_are_those_of_numpy():
    """Indices out of range, also in a kernel that has run; values that do not broadcast or cast."""
    f = pf.jit(last_wins, background=False)
    for i in (BINS, BINS, BINS, BINS + 4):
        if i is BINS:
            same(f(V, i), last_wins(V, i))
            continue
        for call in (f, last_wins):
            with pytest.raises(IndexError, match="out of bounds for axis 0 with size 7"):
                call(V, i)

    def short(v, i):
        y = np.zeros(7)
        y[i] = v[:3]
        return y

    for call in (short, pf.jit(short)):
        with pytest.raises(ValueError, match="broadcast"):
            call(V, BINS)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: np.logical_and.at(x.copy(), np.array([0]), True),
        lambda x: np.add.at(x.copy(), slice(0, 2), 1),
        lambda x: np.add.at(np.zeros(3, int), np.array([0]), x[0, 0]),
        lambda x: np.add.at(x, np.array([0]), 1),
        lambda x: np.put(x.copy(), [0, 1, 2], [1, 2]),
        lambda x: np.fill_diagonal(x.copy(), 1, wrap=True),
    ],
)
def test_refusals(fn):
    with pytest.raises(TraceError):
        pf.jit(fn)(X)


def test_gradients():
    """Values that a later one has replaced have none; equal extrema share."""

    def loss(x, v):
        y = x * 2
        y[BINS % 6, 1] = v
        z = np.zeros(7)
        np.add.at(z, BINS, v * v)
        w = np.full(7, -1.0)
        np.maximum.at(w, BINS, v)
        np.minimum.at(w, BINS[:5], v[:5])
        y[ROWS] *= 3
        return (y * y * np.arange(5)).sum() + (z * z).sum() + (w * np.arange(7)).sum()

    grads = pf.grad(loss, wrt=(0, 1))(X, V)
    for k, found in enumerate(grads):
        for at in np.ndindex(found.shape):
            step = np.zeros(found.shape)
            step[at] = 1e-6
            up, down = (loss(*(a + s * step if j == k else a for j, a in enumerate((X, V)))) for s in (1, -1))
            np.testing.assert_allclose(found[at], (up - down) / 2e-6, rtol=1e-4, atol=1e-6)
    found = pf.grad(lambda v: _highest(v).sum())(np.array([2.0, 2.0, 1.0]))
    np.testing.assert_allclose(found, [0.5, 0.5, 0])


def _highest(v):
    y = np.zeros(1)
    np.maximum.at(y, np.array([0, 0, 0]), v)
    return y


def test_products_at_repeated_indices_have_no_gradient():
    def loss(v):
        y = np.ones(7)
        np.multiply.at(y, BINS, v)
        return y.sum()

    with pytest.raises(GradientError, match=r"products at repeated indices .* x\[i\] = x\[i\] \* v") as caught:
        pf.grad(loss)(V)
    assert str(caught.value).startswith(__file__)
