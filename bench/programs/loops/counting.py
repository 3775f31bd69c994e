"""Integers and conditions, element by element."""

from __future__ import annotations

import numpy as np

from ..program import program


def mandelbrot(xs, ys, most):
    out = np.zeros((len(ys), len(xs)), dtype=np.int32)
    for i in range(len(ys)):
        for j in range(len(xs)):
            x0, y0 = xs[j], ys[i]
            x = y = 0.0
            k = 0
            while x * x + y * y <= 4.0 and k < most:
                x, y = x * x - y * y + x0, 2 * x * y + y0
                k += 1
            out[i, j] = k
    return out


@program(small=6, real=60)
def mandelbrot_by_elements(jit, n, rng):
    run = jit(mandelbrot)
    xs, ys = np.linspace(-2, 0.6, n), np.linspace(-1.2, 1.2, n)
    return lambda: run(xs, ys, 50), (xs, ys)


def escape(c, most):
    z = 0j
    for k in range(most):
        z = z * z + c
        if abs(z) > 2:
            return k
    return most


def mandelbrot_complex(xs, ys, out):
    for i in range(len(ys)):
        for j in range(len(xs)):
            out[i, j] = escape(complex(xs[j], ys[i]), 30)


@program(small=6, real=60)
def mandelbrot_of_complex_elements(jit, n, rng):
    run = jit(mandelbrot_complex)
    xs, ys = np.linspace(-2, 0.6, n), np.linspace(-1.2, 1.2, n)
    out = np.zeros((n, n), dtype=np.int64)
    return lambda: run(xs, ys, out), (out,)


def life(board, generations):
    n, m = board.shape
    for _ in range(generations):
        new = np.zeros_like(board)
        for i in range(n):
            for j in range(m):
                alive = 0
                for di in (-1, 0, 1):
                    for dj in (-1, 0, 1):
                        if di != 0 or dj != 0:
                            alive += board[(i + di) % n, (j + dj) % m]
                if alive == 3 or (alive == 2 and board[i, j] == 1):
                    new[i, j] = 1
        board = new
    return board


@program(small=6, real=60)
def life_by_elements(jit, n, rng):
    run = jit(life)
    board = rng.integers(0, 2, (n, n))
    return lambda: run(board, 2), (board,)


def life_slices(Z, generations):
    for _ in range(generations):
        N = Z[:-2, :-2] + Z[:-2, 1:-1] + Z[:-2, 2:] + Z[1:-1, :-2] + Z[1:-1, 2:] + Z[2:, :-2] + Z[2:, 1:-1] + Z[2:, 2:]
        birth = (N == 3) & (Z[1:-1, 1:-1] == 0)
        survive = ((N == 2) | (N == 3)) & (Z[1:-1, 1:-1] == 1)
        Z[...] = 0
        Z[1:-1, 1:-1][birth | survive] = 1


@program(small=8, real=256)
def life_by_slices(jit, n, rng):
    run = jit(life_slices)
    Z = rng.integers(0, 2, (n, n))
    return lambda: run(Z, 10), (Z,)


def crc16(data, poly=0x8408):
    crc = 0xFFFF
    for b in data:
        cur_byte = 0xFF & b
        for _ in range(8):
            if (crc & 0x0001) ^ (cur_byte & 0x0001):
                crc = (crc >> 1) ^ poly
            else:
                crc >>= 1
            cur_byte >>= 1
    crc = ~crc & 0xFFFF
    crc = (crc << 8) | ((crc >> 8) & 0xFF)
    return crc & 0xFFFF


@program(small=12, real=10_000)
def checksum(jit, n, rng):
    run = jit(crc16)
    data = rng.integers(0, 256, n).astype(np.uint8)
    return lambda: run(data), (data,)


def sieve(n):
    prime = np.ones(n + 1, dtype=bool)
    prime[:2] = False
    for i in range(2, int(n**0.5) + 1):
        if prime[i]:
            prime[i * i :: i] = False
    return np.count_nonzero(prime)


@program(small=30, real=300_000)
def primes(jit, n, rng):
    run = jit(sieve)
    return lambda: run(n), ()


def count_values(x, low, high, bins):
    counts = np.zeros(bins, dtype=np.int64)
    width = (high - low) / bins
    for value in x:
        k = int((value - low) / width)
        if 0 <= k < bins:
            counts[k] += 1
    return counts


@program(small=20, real=60_000)
def histogram_by_elements(jit, n, rng):
    run = jit(count_values)
    x = rng.standard_normal(n)
    return lambda: run(x, -2.0, 2.0, 20), (x,)


def collatz(limit):
    best = steps_of_best = 0
    for start in range(1, limit):
        n, steps = start, 0
        while n != 1:
            if n % 2 == 0:
                n //= 2
            else:
                n = 3 * n + 1
            steps += 1
        if steps > steps_of_best:
            best, steps_of_best = start, steps
    return best, steps_of_best


@program(small=12, real=3_000)
def longest_collatz(jit, n, rng):
    run = jit(collatz)
    return lambda: run(n), ()


def insertion_sort(a):
    for i in range(1, len(a)):
        key = a[i]
        j = i - 1
        while j >= 0 and a[j] > key:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = key
    return a


@program(small=9, real=400)
def sort_by_insertion(jit, n, rng):
    run = jit(insertion_sort)
    source = rng.random(n)
    a = source.copy()

    def call():
        a[:] = source
        return run(a)

    return call, (a,)


def bisect_all(table, wanted):
    out = np.empty(len(wanted), dtype=np.int64)
    for k in range(len(wanted)):
        low, high = 0, len(table)
        while low < high:
            middle = (low + high) // 2
            if table[middle] < wanted[k]:
                low = middle + 1
            else:
                high = middle
        out[k] = low
    return out


@program(small=12, real=10_000)
def binary_search(jit, n, rng):
    run = jit(bisect_all)
    table, wanted = np.sort(rng.random(n)), rng.random(n // 2)
    return lambda: run(table, wanted), (table,)


def rasterise(z, points, colours):
    """Points into an image; nearer ones hide others."""
    image = np.zeros(z.shape, dtype=np.uint8)
    z[:] = np.inf
    for (x, y, depth), colour in zip(points, colours):
        i, j = int(y), int(x)
        if i < 0 or j < 0 or i >= z.shape[0] or j >= z.shape[1]:
            continue
        if depth < z[i, j]:
            z[i, j] = depth
            image[i, j] = colour
    return image


@program(small=20, real=20_000)
def hidden_points(jit, n, rng):
    run = jit(rasterise)
    points = rng.random((n, 3)) * [70, 70, 1] - [3, 3, 0]
    colours, z = rng.integers(0, 256, n).astype(np.uint8), np.zeros((64, 64))
    return lambda: run(z, points, colours), (z,)


def dither(image):
    """Floyd-Steinberg."""
    out = image.astype(np.float64)
    h, w = out.shape
    for y in range(h):
        for x in range(w):
            old = out[y, x]
            new = 255.0 if old > 127 else 0.0
            out[y, x] = new
            err = old - new
            if x + 1 < w:
                out[y, x + 1] += err * 7 / 16
            if y + 1 < h:
                if x > 0:
                    out[y + 1, x - 1] += err * 3 / 16
                out[y + 1, x] += err * 5 / 16
                if x + 1 < w:
                    out[y + 1, x + 1] += err * 1 / 16
    return out.astype(np.uint8)


@program(small=6, real=120)
def dithering(jit, n, rng):
    run = jit(dither)
    image = rng.integers(0, 256, (n, n)).astype(np.uint8)
    return lambda: run(image), (image,)
