"""What is read and written under masks becomes selects and masked reductions."""

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.errors import BoundsError, TraceError
from tracing import same

RNG = np.random.default_rng(0)
X, Z = RNG.standard_normal((6, 5)), RNG.standard_normal((6, 5))


def every_other(x, z):
    y = x.copy()
    m = y > 0
    y[m] += 1
    y[~m] *= z[~m]
    return y


def of_two_arrays(x, z):
    y = np.zeros_like(x)
    m = x > 0
    y[m] = np.sqrt(x[m]) + z[m] * 2
    y[x < -1] = np.log(-x[x < -1])
    return y


def of_itself(x, z):
    y = x.copy()
    y[y > 0] = y[y > 0] ** 2 / y[y > 0]
    y[y > 1] = 0
    return y


def parts(x, z):
    y = x.copy()
    y[x[:, 0] > 0, 1] = 5
    y[:, x[0] > 0] -= 1
    y[x[:, 1] > 0] = x[x[:, 1] > 0][:, ::-1] - z.mean(axis=0)
    y[..., z[0] > 0] = -y[..., z[0] > 0]
    y[2, z[2] > 0] = x[2, z[2] > 0]
    return y


def in_steps(x, z):
    m = x > 0
    t = x[m]
    t *= 3
    t = np.where(t > 1, t, -t)
    y = np.zeros(x.shape)
    y[m] = np.clip(t, -2, 2).astype(np.float32)
    return y, (t * t).sum(), t @ t


def reductions(x, z):
    m = x > 0
    t = x[m]
    return (
        t.sum(),
        t.mean(),
        t.min(),
        t.max(),
        t.any(),
        t.all(),
        t.std(),
        t.var(ddof=1),
        np.ptp(t),
        np.prod(t),
        np.count_nonzero(t > 1),
        t.mean(keepdims=True),
        x[x[:, 0] > 0].mean(axis=0),
        x[x[:, 0] > 0].sum(axis=1).max(),
        x[:, z[0] > 0].sum(axis=-1),
    )


def where(x, z):
    m = z > 0
    return (
        np.sum(x, where=m),
        np.mean(x, axis=0, where=x > -9),
        x.max(initial=-5.0, where=m, axis=1),
        np.any(x > 1, where=m, axis=0),
        x.std(where=m),
        np.var(x, axis=1, where=x > -9, ddof=1),
    )


def functions(x, z):
    y = x.copy()
    np.putmask(y, z > 0, -x)
    np.copyto(y, 7.0, where=x < -1)
    np.place(y, x > 1, 3.0)
    quotient = np.divide(x, z, out=np.zeros_like(x), where=z > 0)
    np.add(y, 1, out=y, where=x[0] > 0)
    return y, quotient


PROGRAMS = (every_other, of_two_arrays, of_itself, parts, in_steps, reductions, where, functions)


@pytest.mark.sampled(9)
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("fn", PROGRAMS)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8"])
def test_masked_programs_are_one_kernel(fn, dtype):
    """Nothing warns where a mask does not pick, and all of it is one kernel."""
    if dtype == "i8" and fn in (of_itself, of_two_arrays, parts, in_steps, functions):
        pytest.skip("NumPy does not store floats in integers")
    x, z = ((5 * a).astype(dtype) if dtype == "i8" else a.astype(dtype) for a in (X, Z))
    f = pf.jit(fn, background=False)
    for k in range(4):
        same(f(x + k // 3, z), fn(x + k // 3, z), exact=False)
    counters = f.state().counters
    assert counters["kernels_compiled"] == 1 and counters["kernel_launches"] == 3
    assert counters["fallback_calls"] == counters["refusals"] == 0


@pytest.mark.sampled(6)
@pytest.mark.parametrize("fn", PROGRAMS)
def test_sizes_that_change(fn):
    f = pf.jit(fn, background=False)
    for n in (6, 7, 9, 12, 5):
        x, z = RNG.standard_normal((n, 5)), RNG.standard_normal((n, 5))
        same(f(x, z), fn(x, z), exact=False)


def test_nothing_is_picked():
    """Sums of nothing are 0, means NaN; extrema raise, also in a kernel that has run before."""

    def least(x):
        return x[x > 0].min()

    f, total = pf.jit(least, background=False), pf.jit(lambda x: x[x > 0].sum(), background=False)
    mean = pf.jit(lambda x: x[x > 0].mean(), background=False)
    for x in (X, X, X, X + 1, -np.ones((6, 5))):
        same(total(x), x[x > 0].sum(), exact=False)
        if (x > 0).any():
            same(f(x), least(x))
            continue
        for call in (f, least):
            with pytest.raises(ValueError, match="zero-size array to reduction operation minimum"):
                call(x)
        with np.errstate(invalid="ignore"):
            assert np.isnan(mean(x))


def test_masks_that_are_written_in_between_are_other_masks():
    def changed(x):
        m = x > 0
        t = x[m]
        m[0] = False
        y = np.zeros(x.shape)
        y[m] = t
        return y

    def array_changed(x):
        y = x.copy()
        t = y[y > 0]
        y[0] = 1
        y[y > 0] = t
        return y

    def recomputed(x):
        y = x.copy()
        y[y > 0] += 1
        y[y > 1] -= 1
        y[abs(x) > 1] = x[abs(x) > 1] * 2
        return y

    for fn in (changed, array_changed):
        with pytest.raises(TraceError, match="another mask"):
            pf.jit(fn)(X)
    same(pf.jit(recomputed)(X), recomputed(X))

    def summed(x):
        m = x > 0
        t = x[m]
        m[0] = ~m[0]
        return t.sum()

    with pytest.raises(TraceError, match="mask is written"):
        pf.jit(summed)(X)


def test_masks_of_other_sizes():
    """NumPy refuses a mask of another size, also where it would broadcast, in any call."""

    def fn(x, m):
        y = x.copy()
        y[m] = 0
        return y

    f = pf.jit(fn, background=False)
    x = np.ones(4)
    for _ in range(3):
        same(f(x, x > 0), fn(x, x > 0))
    for m in (np.ones(3, bool), np.ones(1, bool)):
        with pytest.raises(IndexError):
            fn(x, m)
        with pytest.raises(BoundsError):
            f(x, m)


def test_gradients():
    """Gradients of what is picked are those of differences."""

    def loss(x, z):
        y = x * 2
        y[x > 0] = np.log(x[x > 0]) * z[x > 0] + y[x > 0] ** 2
        return y.sum() + x[z > 0].mean() * (x[z > 0] ** 2).sum() + x[x > -0.5].var()

    grads = pf.grad(loss, wrt=(0, 1))(X, Z)
    for k, found in enumerate(grads):
        for at in ((0, 0), (2, 3), (5, 1)):
            step = np.zeros(X.shape)
            step[at] = 1e-6
            one = [a + step * (j == k) for j, a in enumerate((X, Z))]
            two = [a - step * (j == k) for j, a in enumerate((X, Z))]
            np.testing.assert_allclose(found[at], (loss(*one) - loss(*two)) / 2e-6, rtol=1e-4)
