"""Stencils over time: all steps are inside of the function."""

from __future__ import annotations

import numpy as np

from ..program import program


def jacobi_1d(TSTEPS, A, B):
    for t in range(1, TSTEPS):
        B[1:-1] = 0.33333 * (A[:-2] + A[1:-1] + A[2:])
        A[1:-1] = 0.33333 * (B[:-2] + B[1:-1] + B[2:])


@program(small=9, real=4000)
def jacobi_of_lines(jit, n, rng):
    run = jit(jacobi_1d)
    A, B = rng.random((2, n))
    return lambda: run(100, A, B), (A, B)


def jacobi_2d(TSTEPS, A, B):
    for t in range(1, TSTEPS):
        B[1:-1, 1:-1] = 0.2 * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1])
        A[1:-1, 1:-1] = 0.2 * (B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1])


@program(small=7, real=200)
def jacobi_of_planes(jit, n, rng):
    run = jit(jacobi_2d)
    A, B = rng.random((n, n + 1)), rng.random((n, n + 1))
    return lambda: run(40, A, B), (A, B)


def heat_3d(steps, A, B):
    for _ in range(steps):
        B[1:-1, 1:-1, 1:-1] = (
            0.125 * (A[2:, 1:-1, 1:-1] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[:-2, 1:-1, 1:-1])
            + 0.125 * (A[1:-1, 2:, 1:-1] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[1:-1, :-2, 1:-1])
            + 0.125 * (A[1:-1, 1:-1, 2:] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[1:-1, 1:-1, :-2])
            + A[1:-1, 1:-1, 1:-1]
        )
        A[1:-1, 1:-1, 1:-1] = (
            0.125 * (B[2:, 1:-1, 1:-1] - 2.0 * B[1:-1, 1:-1, 1:-1] + B[:-2, 1:-1, 1:-1])
            + 0.125 * (B[1:-1, 2:, 1:-1] - 2.0 * B[1:-1, 1:-1, 1:-1] + B[1:-1, :-2, 1:-1])
            + 0.125 * (B[1:-1, 1:-1, 2:] - 2.0 * B[1:-1, 1:-1, 1:-1] + B[1:-1, 1:-1, :-2])
            + B[1:-1, 1:-1, 1:-1]
        )


@program(small=5, real=40)
def heat_of_cubes(jit, n, rng):
    run = jit(heat_3d)
    A = rng.random((n, n, n))
    B = A.copy()
    return lambda: run(20, A, B), (A, B)


def diffuse(u, steps, alpha):
    for _ in range(steps):
        new = u.copy()
        new[1:-1, 1:-1] = u[1:-1, 1:-1] + alpha * (
            u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        )
        u = new
    return u


@program(small=6, real=200)
def diffusion_with_new_arrays(jit, n, rng):
    run = jit(diffuse)
    u = rng.random((n, n))
    return lambda: run(u, 50, 0.2), (u,)


def heat_swapped(u, steps, c):
    v = np.empty_like(u)
    for k in range(steps):
        for i in range(len(u)):
            left = u[i - 1] if i > 0 else 0.0
            right = u[i + 1] if i < len(u) - 1 else 0.0
            v[i] = u[i] + c * (left - 2 * u[i] + right)
        u, v = v, u
    return u


@program(small=9, real=1500)
def diffusion_by_elements(jit, n, rng):
    run = jit(heat_swapped)
    u = rng.random(n)
    return lambda: run(u, 51, 0.2), (u,)


def gauss_seidel(TSTEPS, N, A):
    for t in range(TSTEPS):
        for i in range(1, N - 1):
            A[i, 1:-1] += (
                A[i - 1, :-2] + A[i - 1, 1:-1] + A[i - 1, 2:] + A[i, 2:] + A[i + 1, :-2] + A[i + 1, 1:-1] + A[i + 1, 2:]
            )
            for j in range(1, N - 1):
                A[i, j] += A[i, j - 1]
                A[i, j] /= 9.0


@program(small=7, real=100)
def gauss_seidel_by_rows(jit, n, rng):
    run = jit(gauss_seidel)
    A = rng.random((n, n))
    return lambda: run(8, n, A), (A,)


def red_black(u, f, h, sweeps, omega):
    n = u.shape[0]
    for _ in range(sweeps):
        for colour in range(2):
            for i in range(1, n - 1):
                for j in range(1 + (i + colour) % 2, n - 1, 2):
                    r = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - h * h * f[i, j]
                    u[i, j] = (1 - omega) * u[i, j] + omega * r / 4


@program(small=7, real=80)
def red_black_relaxation(jit, n, rng):
    run = jit(red_black)
    u, f = np.zeros((n, n)), rng.standard_normal((n, n))
    return lambda: run(u, f, 1 / n, 6, 1.5), (u, f)


def fdtd(TMAX, ex, ey, hz, source):
    for t in range(TMAX):
        ey[0, :] = source[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


@program(small=6, real=200)
def fdtd_of_planes(jit, n, rng):
    run = jit(fdtd)
    ex, ey, hz = rng.random((3, n, n + 4))
    source = np.sin(np.arange(40) / 5)
    return lambda: run(40, ex, ey, hz, source), (ex, ey, hz)


def adi(TSTEPS, N, u):
    v, p, q = np.empty(u.shape), np.empty(u.shape), np.empty(u.shape)
    DX = 1.0 / N
    DY = 1.0 / N
    DT = 1.0 / TSTEPS
    mul1 = 2.0 * DT / (DX * DX)
    mul2 = 1.0 * DT / (DY * DY)
    a = -mul1 / 2.0
    b = 1.0 + mul1
    c = a
    d = -mul2 / 2.0
    e = 1.0 + mul2
    f = d
    for t in range(1, TSTEPS + 1):
        v[0, 1 : N - 1] = 1.0
        p[1 : N - 1, 0] = 0.0
        q[1 : N - 1, 0] = v[0, 1 : N - 1]
        for j in range(1, N - 1):
            p[1 : N - 1, j] = -c / (a * p[1 : N - 1, j - 1] + b)
            q[1 : N - 1, j] = (
                -d * u[j, 0 : N - 2] + (1.0 + 2.0 * d) * u[j, 1 : N - 1] - f * u[j, 2:N] - a * q[1 : N - 1, j - 1]
            ) / (a * p[1 : N - 1, j - 1] + b)
        v[N - 1, 1 : N - 1] = 1.0
        for j in range(N - 2, 0, -1):
            v[j, 1 : N - 1] = p[1 : N - 1, j] * v[j + 1, 1 : N - 1] + q[1 : N - 1, j]
        u[1 : N - 1, 0] = 1.0
        p[1 : N - 1, 0] = 0.0
        q[1 : N - 1, 0] = u[1 : N - 1, 0]
        for j in range(1, N - 1):
            p[1 : N - 1, j] = -f / (d * p[1 : N - 1, j - 1] + e)
            q[1 : N - 1, j] = (
                -a * v[0 : N - 2, j] + (1.0 + 2.0 * a) * v[1 : N - 1, j] - c * v[2:N, j] - d * q[1 : N - 1, j - 1]
            ) / (d * p[1 : N - 1, j - 1] + e)
        u[1 : N - 1, N - 1] = 1.0
        for j in range(N - 2, 0, -1):
            u[1 : N - 1, j] = p[1 : N - 1, j] * u[1 : N - 1, j + 1] + q[1 : N - 1, j]


@program(small=8, real=120)
def alternating_directions(jit, n, rng):
    run = jit(adi)
    u = rng.random((n, n))
    return lambda: run(10, n, u), (u,)


def burgers(u, dt, dx, nu, nt):
    for _ in range(nt):
        un = u.copy()
        u[1:-1] = (
            un[1:-1] - un[1:-1] * dt / dx * (un[1:-1] - un[:-2]) + nu * dt / dx**2 * (un[2:] - 2 * un[1:-1] + un[:-2])
        )
        u[0] = un[0] - un[0] * dt / dx * (un[0] - un[-2]) + nu * dt / dx**2 * (un[1] - 2 * un[0] + un[-2])
        u[-1] = u[0]
    return u


@program(small=12, real=2000)
def burgers_equation(jit, n, rng):
    run = jit(burgers)
    u = 1 + np.sin(np.linspace(0, 2 * np.pi, n))
    u[-1] = u[0]
    return lambda: run(u, 1e-5, 2 * np.pi / n, 0.07, 100), (u,)
