"""Mandelbrot and Julia sets in three styles: complex numbers, masks, pairs of real numbers."""

from __future__ import annotations

import numpy as np

from .program import program


def grid(n):
    x, y = np.linspace(-2, 0.6, n), np.linspace(-1.2, 1.2, n)
    return x, y


def mandelbrot_whole(c, rounds):
    z = np.zeros_like(c)
    count = np.zeros(c.shape, dtype=np.int32)
    for _ in range(rounds):
        z = np.where(np.abs(z) < 2, z * z + c, z)
        count += np.abs(z) < 2
    return count


def mandelbrot_masked(c, rounds):
    z = np.zeros(c.shape, dtype=complex)
    count = np.zeros(c.shape, dtype=int)
    for k in range(rounds):
        inside = np.abs(z) <= 2
        z[inside] = z[inside] ** 2 + c[inside]
        count[inside] = k
    return count


def mandelbrot_real(x, y, rounds):
    cx, cy = x[None, :], y[:, None]
    zx, zy = np.zeros((len(y), len(x))), np.zeros((len(y), len(x)))
    count = np.zeros((len(y), len(x)), dtype=np.int64)
    for _ in range(rounds):
        xx, yy = zx * zx, zy * zy
        inside = xx + yy < 4
        zy = np.where(inside, 2 * zx * zy + cy, zy)
        zx = np.where(inside, xx - yy + cx, zx)
        count += inside
    return count


def julia_step(z, count, c):
    inside = z.real**2 + z.imag**2 < 4
    z[inside] = z[inside] ** 2 + c
    count[inside] += 1


@program(small=8, real=256)
def mandelbrot_complex(jit, n, rng):
    run = jit(mandelbrot_whole)
    x, y = grid(n)
    c = x[None, :] + 1j * y[:, None]
    return lambda: run(c, 12), ()


@program(small=8, real=256)
def mandelbrot_masks(jit, n, rng):
    run = jit(mandelbrot_masked)
    x, y = grid(n)
    c = x[None, :] + 1j * y[:, None]
    return lambda: run(c, 12), ()


@program(small=8, real=256)
def mandelbrot_pairs(jit, n, rng):
    run = jit(mandelbrot_real)
    x, y = grid(n)
    return lambda: run(x, y, 12), ()


@program(small=8, real=256)
def julia(jit, n, rng):
    step = jit(julia_step)
    x, y = grid(n)
    start = x[None, :] + 1j * y[:, None]
    z, count = start.copy(), np.zeros(start.shape, dtype=int)

    def call():
        if count.max() > 20:
            z[:], count[:] = start, 0
        step(z, count, -0.4 + 0.6j)

    return call, (z, count)
