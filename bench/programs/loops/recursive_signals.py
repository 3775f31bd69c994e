"""Signals element by element: filters with memory, convolution, transforms by hand."""

from __future__ import annotations

import numpy as np

from ..program import program


def fir(x, taps):
    y = np.zeros_like(x)
    for i in range(len(x)):
        for k in range(len(taps)):
            if i - k >= 0:
                y[i] += taps[k] * x[i - k]
    return y


@program(small=20, real=10_000)
def fir_by_elements(jit, n, rng):
    run = jit(fir)
    x, taps = rng.standard_normal(n), rng.standard_normal(9)
    return lambda: run(x, taps), (x, taps)


def fir_by_taps(x, taps):
    y = np.zeros(len(x) - len(taps) + 1, dtype=x.dtype)
    for k, tap in enumerate(taps):
        y += tap * x[len(taps) - 1 - k : len(x) - k]
    return y


@program(small=40, real=100_000)
def fir_by_slices(jit, n, rng):
    run = jit(fir_by_taps)
    x, taps = rng.standard_normal(n), rng.standard_normal(33)
    return lambda: run(x, taps), (x, taps)


def biquad(x, b0, b1, b2, a1, a2):
    y = np.empty_like(x)
    x1 = x2 = y1 = y2 = 0.0
    for i in range(x.size):
        v = b0 * x[i] + b1 * x1 + b2 * x2 - a1 * y1 - a2 * y2
        x2, x1 = x1, x[i]
        y2, y1 = y1, v
        y[i] = v
    return y


@program(small=20, real=100_000)
def iir_of_second_order(jit, n, rng):
    run = jit(biquad)
    x = rng.standard_normal(n)
    return lambda: run(x, 0.2, 0.3, 0.2, -0.5, 0.3), (x,)


def smooth(x, alpha):
    out = np.zeros(len(x))
    out[0] = x[0]
    for i in range(1, len(x)):
        out[i] = alpha * x[i] + (1 - alpha) * out[i - 1]
    return out


@program(small=20, real=200_000)
def exponential_smoothing(jit, n, rng):
    run = jit(smooth)
    x = rng.standard_normal(n)
    return lambda: run(x, 0.1), (x,)


def deriche(alpha, img):
    k = (1.0 - np.exp(-alpha)) ** 2 / (1.0 + 2.0 * alpha * np.exp(-alpha) - np.exp(2.0 * alpha))
    a1 = a5 = k
    a2 = a6 = k * np.exp(-alpha) * (alpha - 1.0)
    a3 = a7 = k * np.exp(-alpha) * (alpha + 1.0)
    a4 = a8 = -k * np.exp(-2.0 * alpha)
    b1 = 2.0 ** (-alpha)
    b2 = -np.exp(-2.0 * alpha)
    c1 = c2 = 1
    y1 = np.empty_like(img)
    y1[:, 0] = a1 * img[:, 0]
    y1[:, 1] = a1 * img[:, 1] + a2 * img[:, 0] + b1 * y1[:, 0]
    for j in range(2, img.shape[1]):
        y1[:, j] = a1 * img[:, j] + a2 * img[:, j - 1] + b1 * y1[:, j - 1] + b2 * y1[:, j - 2]
    y2 = np.empty_like(img)
    y2[:, -1] = 0.0
    y2[:, -2] = a3 * img[:, -1]
    for j in range(img.shape[1] - 3, -1, -1):
        y2[:, j] = a3 * img[:, j + 1] + a4 * img[:, j + 2] + b1 * y2[:, j + 1] + b2 * y2[:, j + 2]
    out = c1 * (y1 + y2)
    y1[0, :] = a5 * out[0, :]
    y1[1, :] = a5 * out[1, :] + a6 * out[0, :] + b1 * y1[0, :]
    for i in range(2, img.shape[0]):
        y1[i, :] = a5 * out[i, :] + a6 * out[i - 1, :] + b1 * y1[i - 1, :] + b2 * y1[i - 2, :]
    y2[-1, :] = 0.0
    y2[-2, :] = a7 * out[-1, :]
    for i in range(img.shape[0] - 3, -1, -1):
        y2[i, :] = a7 * out[i + 1, :] + a8 * out[i + 2, :] + b1 * y2[i + 1, :] + b2 * y2[i + 2, :]
    return c2 * (y1 + y2)


@program(small=7, real=256)
def recursive_edge_filter(jit, n, rng):
    run = jit(deriche)
    img = rng.random((n, n + 2))
    return lambda: run(0.25, img), (img,)


def fft(re, im):
    """In place, radix 2, of a power of two."""
    n = len(re)
    j = 0
    for i in range(1, n):
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j ^= bit
        if i < j:
            re[i], re[j] = re[j], re[i]
            im[i], im[j] = im[j], im[i]
    size = 2
    while size <= n:
        half = size // 2
        step = -2 * np.pi / size
        for start in range(0, n, size):
            for k in range(half):
                c, s = np.cos(step * k), np.sin(step * k)
                a, b = start + k, start + k + half
                tr = re[b] * c - im[b] * s
                ti = re[b] * s + im[b] * c
                re[b], im[b] = re[a] - tr, im[a] - ti
                re[a], im[a] = re[a] + tr, im[a] + ti
        size *= 2


@program(small=8, real=2048)
def fft_by_elements(jit, n, rng):
    run = jit(fft)
    source = rng.standard_normal((2, n))
    re, im = source.copy()

    def call():
        re[:], im[:] = source
        run(re, im)

    return call, (re, im)


def stockham(x):
    """Radix 2, by halves of an array."""
    n = x.size
    y = x.astype(np.complex128)
    length, stride = n, 1
    while length > 1:
        half = length // 2
        w = np.exp(-2j * np.pi * np.arange(half) / length)
        z = y.reshape(length, stride)
        a, b = z[:half], z[half:]
        out = np.empty((half, 2, stride), dtype=np.complex128)
        out[:, 0] = a + b
        out[:, 1] = (a - b) * w[:, None]
        y = out.reshape(n)
        length, stride = half, 2 * stride
    return y


@program(small=16, real=8192)
def fft_by_halves(jit, n, rng):
    run = jit(stockham)
    x = rng.standard_normal(n)
    return lambda: run(x), (x,)


def dft(x):
    n = len(x)
    out = np.zeros(n, dtype=np.complex128)
    for k in range(n):
        total = 0j
        for t in range(n):
            total += x[t] * np.exp(-2j * np.pi * k * t / n)
        out[k] = total
    return out


@program(small=6, real=180)
def fourier_sums(jit, n, rng):
    run = jit(dft)
    x = rng.standard_normal(n)
    return lambda: run(x), (x,)


def median_of_three(x):
    y = x.copy()
    for i in range(1, len(x) - 1):
        a, b, c = x[i - 1], x[i], x[i + 1]
        if a > b:
            a, b = b, a
        if b > c:
            b = c
        if a > b:
            b = a
        y[i] = b
    return y


@program(small=12, real=60_000)
def median_filter(jit, n, rng):
    run = jit(median_of_three)
    x = rng.standard_normal(n)
    return lambda: run(x), (x,)


def crossings(x, level):
    """The number of times that a signal crosses a level, with hysteresis, and the longest time above."""
    above = False
    count = 0
    run = longest = 0
    for value in x:
        if not above and value > level:
            above = True
            count += 1
            run = 0
        elif above and value < -level:
            above = False
        if above:
            run += 1
            if run > longest:
                longest = run
    return count, longest


@program(small=30, real=100_000)
def crossings_of_a_level(jit, n, rng):
    run = jit(crossings)
    x = rng.standard_normal(n)
    return lambda: run(x, 0.5), (x,)


def lms(x, d, taps, mu):
    """An adaptive filter."""
    w = np.zeros(taps)
    error = np.zeros(len(x))
    for i in range(taps, len(x)):
        window = x[i - taps : i][::-1]
        error[i] = d[i] - np.dot(w, window)
        w += mu * error[i] * window
    return w, error


@program(small=30, real=8_000, tolerance=1e-7)
def adaptive_filter(jit, n, rng):
    run = jit(lms)
    x = rng.standard_normal(n)
    d = np.convolve(x, [0.5, -0.2, 0.1])[:n]
    return lambda: run(x, d, 16, 0.01), (x, d)
