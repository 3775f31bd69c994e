"""Sliding windows and the methods of ufuncs, in programs as NumPy users write them."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from numpy.lib.stride_tricks import sliding_window_view as windows

RNG = np.random.default_rng(3)


def f32(*shape):
    return RNG.random(shape, np.float32)


def f64(*shape):
    return RNG.random(shape)


def padded_blur(image, kernel):
    padded = np.pad(image, 1, mode="edge")
    return np.einsum("ijkl,kl->ij", windows(padded, (3, 3)), kernel)


def convolution(x, w):
    seen = windows(x, (3, 3), axis=(1, 2))
    return np.maximum(np.tensordot(seen, w, axes=([0, 3, 4], [1, 2, 3])), 0)


def bollinger(prices):
    seen = windows(prices, 5)
    middle, spread = seen.mean(-1), seen.std(-1)
    return middle - 2 * spread, middle, middle + 2 * spread


def written_before_it_is_read(x):
    y = x * 2
    seen = windows(y, 2)
    y[0] = 9
    return seen.sum(-1)


def pairwise(points):
    return np.sqrt(sum(np.subtract.outer(points[:, k], points[:, k]) ** 2 for k in range(2)))


def kernel_matrix(x, y):
    return np.exp(-(np.subtract.outer(x, y) ** 2) / 0.5) @ y


# Each with arguments that make sizes; the second sizes are those of a later call.
NATIVE = {
    "moving average": (lambda x: windows(x, 5).mean(axis=-1), lambda n: (f64(n),)),
    "bollinger": (bollinger, lambda n: (f64(n),)),
    "moving maximum": (lambda x: windows(x, 3, axis=1).max(-1) - x[:, 1:-1], lambda n: (f32(4, n),)),
    "max pooling": (lambda x: windows(x, (2, 2))[::2, ::2].max(axis=(-2, -1)), lambda n: (f32(n, 8),)),
    "mean pooling": (
        lambda x: windows(x, (2, 2), axis=(2, 3))[:, :, ::2, ::2].mean(axis=(-2, -1)),
        lambda n: (f32(2, 3, n, 8),),
    ),
    "blur": (padded_blur, lambda n: (f32(n, 9), f32(3, 3))),
    "convolution": (convolution, lambda n: (f32(2, n, 9), f32(4, 2, 3, 3))),
    "fir": (lambda x, k: windows(x, k.shape[0]) @ k[::-1], lambda n: (f64(n), f64(4))),
    "life": (lambda b: windows(np.pad(b, 1), (3, 3)).sum(axis=(-2, -1)) - b, lambda n: (RNG.integers(0, 2, (n, 7)),)),
    "twice along an axis": (lambda x: windows(x, (2, 3), axis=(0, 0)).sum(-1) + 1, lambda n: (f64(n, 3),)),
    "written": (written_before_it_is_read, lambda n: (f64(n),)),
    "local minima": (lambda x: (windows(x, 3).min(-1) == x[1:-1]).sum(), lambda n: (f64(n),)),
    "differences": (lambda x: windows(x, 2) @ np.array([-1.0, 1.0]), lambda n: (f64(n),)),
    "complex": (lambda x: windows(x * 1j, 3).sum(-1), lambda n: (f64(n),)),
    "pairwise": (pairwise, lambda n: (f64(n, 2),)),
    "kernel matrix": (kernel_matrix, lambda n: (f64(n), f64(5))),
    "table": (lambda x: np.multiply.outer(x, x).sum(0), lambda n: (np.arange(n),)),
    "compared": (lambda x, y: np.less.outer(x, y).sum(1), lambda n: (f64(n), f64(4))),
    "powers": (lambda x: np.power.outer(x, [0, 1, 2]), lambda n: (f64(n),)),
    "with a number": (lambda x: np.add.outer(x, 2.0) * 3, lambda n: (f32(n),)),
    "matrices": (lambda x, y: np.add.outer(x, y)[1] * 2, lambda n: (f64(n, 2), f64(3))),
}

ON_HOST = {
    "spectrogram": (lambda x: np.abs(np.fft.rfft(windows(x, 16)[::4] * np.hanning(16))) ** 2, lambda n: (f64(8 * n),)),
    "running maximum": (lambda x: np.maximum.accumulate(x * 2, axis=-1) - x, lambda n: (f64(3, n),)),
    "drawdown": (lambda x: 1 - x / np.maximum.accumulate(x), lambda n: (f64(n) + 1,)),
    "groups": (lambda x: np.add.reduceat(x * 2, [0, 3, 5]) + 1, lambda n: (f64(n),)),
    "groups of any size": (lambda x, k: np.repeat(x * 2, k % 3) + 1, lambda n: (f64(n), np.arange(n))),
    "rows, repeated": (lambda x: np.repeat(x * 2, [1, 0, 3], axis=0) + 1, lambda n: (f64(3, n),)),
    "flags": (lambda x: np.bitwise_or.reduce(x) * 2, lambda n: (RNG.integers(0, 9, n),)),
    "divisor": (lambda x: x // np.gcd.reduce(x), lambda n: (RNG.integers(1, 9, n) * 6,)),
    "difference": (lambda x: np.subtract.reduce(x, axis=1) * 2.0, lambda n: (f64(3, n),)),
}


def compare(function, arguments, unsupported="raise"):
    f = pf.jit(function, unsupported=unsupported)
    for n in (8, 8, 8, 10, 10, 8, 13):
        args = arguments(n)
        found, wanted = f(*args), function(*args)
        f.wait()
        several = isinstance(wanted, tuple)
        for ours, theirs in zip(*((found, wanted) if several else ([found], [wanted])), strict=True):
            assert (type(ours), ours.dtype, ours.shape) == (type(theirs), theirs.dtype, theirs.shape)
            np.testing.assert_allclose(ours, theirs, 2e-5, 2e-6)
    return f.state()


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", NATIVE)
def test_native_programs(name):
    state = compare(*NATIVE[name])
    assert state.tier == "optimized" and state.counters["kernel_launches"] > 0
    assert not [r for r in state.reasons if r.startswith(("refused", "dissolved", "in Python"))]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ON_HOST)
def test_programs_with_host_calls(name):
    state = compare(*ON_HOST[name])
    assert state.tier == "optimized" and state.counters["kernel_launches"] > 0


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: windows(x, 9),
        lambda x: windows(x, (2, 2)),
        lambda x: windows(x, -1),
        lambda x: windows(x, 2, axis=3),
        lambda x: windows(x, (2, 3), axis=0),
        lambda x: np.sqrt.outer(x, x),
        lambda x: np.add.reduceat(x, [9]),
    ],
)
def test_errors_are_those_of_numpy(wrong):
    with pytest.raises(Exception) as theirs:
        wrong(np.ones(4))
    kind = next(c for c in type(theirs.value).__mro__ if c.__module__ == "builtins")
    with pytest.raises(kind):
        pf.jit(wrong)(np.ones(4))


def test_a_window_that_no_longer_fits_raises():
    f = pf.jit(lambda x: windows(x, 5).sum(-1) * 2)
    for n in (9, 9, 9, 8, 8, 6):
        f(f64(n))
        f.wait()
    for n in (4, 3, 1):
        with pytest.raises(ValueError, match=r"window shape|negative dimensions"):
            f(f64(n))


def test_windows_cannot_be_written():
    def write(x):
        seen = windows(x * 2, 2)
        seen[0] = 9
        return seen

    for function in (write, pf.jit(write)):
        with pytest.raises(ValueError, match="read-only"):
            function(np.ones(4))
    with pytest.raises(pf.TraceError, match="overlap"):
        pf.jit(lambda x: windows(x, 2, writeable=True))(np.ones(4))
