"""Steps of partial differential equations on grids, which write to arrays that they are given."""

from __future__ import annotations

import numpy as np

from .program import program


def heat_step(u, work, alpha):
    work[1:-1, 1:-1] = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
    u[1:-1, 1:-1] += alpha * work[1:-1, 1:-1]


@program(small=12, real=512)
def heat(jit, n, rng):
    step = jit(heat_step)
    u, work = rng.random((n, n)), np.zeros((n, n))
    return lambda: step(u, work, 0.1), (u, work)


def laplacian(z):
    return np.roll(z, 1, axis=0) + np.roll(z, -1, axis=0) + np.roll(z, 1, axis=1) + np.roll(z, -1, axis=1) - 4 * z


def gray_scott_step(u, v, feed=0.037, kill=0.06, du=0.16, dv=0.08):
    uvv = u * v * v
    u += du * laplacian(u) - uvv + feed * (1 - u)
    v += dv * laplacian(v) + uvv - (feed + kill) * v


@program(small=10, real=512)
def gray_scott(jit, n, rng):
    step = jit(gray_scott_step)
    u, v = np.ones((n, n)), np.zeros((n, n))
    middle = slice(n // 3, 2 * n // 3)
    u[middle, middle], v[middle, middle] = 0.5, 0.25
    u += 0.02 * rng.random((n, n))
    return lambda: step(u, v), (u, v)


class Wave:
    """The wave equation by leapfrog, with a sponge at the border."""

    def __init__(self, n, rng):
        self.now = np.zeros((n, n), dtype=np.float32)
        self.before = np.zeros_like(self.now)
        self.c2 = (0.2 + 0.1 * rng.random((n, n))).astype(np.float32)
        self.sponge = np.ones((n, n), dtype=np.float32)
        self.sponge[:3] = self.sponge[-3:] = 0.9
        self.steps = 0

    def step(self, source):
        now = self.now
        lap = -4 * now
        lap[1:] += now[:-1]
        lap[:-1] += now[1:]
        lap[:, 1:] += now[:, :-1]
        lap[:, :-1] += now[:, 1:]
        after = (2 * now - self.before + self.c2 * lap) * self.sponge
        after[after.shape[0] // 2, after.shape[1] // 2] += source
        self.before = now
        self.now = after
        self.steps += 1


@program(small=11, real=512, tolerance=1e-4)
def wave(jit, n, rng):
    wave = Wave(n, rng)
    step = jit(Wave.step)
    return lambda: step(wave, np.sin(0.3 * wave.steps)), (wave,)


def pressure(p, b, dx, dy):
    pn = p.copy()
    p[1:-1, 1:-1] = (
        (pn[1:-1, 2:] + pn[1:-1, :-2]) * dy**2 + (pn[2:, 1:-1] + pn[:-2, 1:-1]) * dx**2 - b[1:-1, 1:-1] * dx**2 * dy**2
    ) / (2 * (dx**2 + dy**2))
    p[:, -1] = p[:, -2]
    p[0, :] = p[1, :]
    p[:, 0] = p[:, 1]
    p[-1, :] = 0
    return np.abs(p - pn).max()


@program(small=9, real=512)
def poisson(jit, n, rng):
    step = jit(pressure)
    p, b = np.zeros((n, n)), rng.standard_normal((n, n))
    return lambda: step(p, b, 2 / n, 2 / n), (p,)
