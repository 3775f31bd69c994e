"""Flows: steps of Navier-Stokes, and the kernels of a weather model."""

from __future__ import annotations

import numpy as np

from ..program import program


def build_up_b(b, rho, dt, u, v, dx, dy):
    b[1:-1, 1:-1] = rho * (
        1 / dt * ((u[1:-1, 2:] - u[1:-1, 0:-2]) / (2 * dx) + (v[2:, 1:-1] - v[0:-2, 1:-1]) / (2 * dy))
        - ((u[1:-1, 2:] - u[1:-1, 0:-2]) / (2 * dx)) ** 2
        - 2 * ((u[2:, 1:-1] - u[0:-2, 1:-1]) / (2 * dy) * (v[1:-1, 2:] - v[1:-1, 0:-2]) / (2 * dx))
        - ((v[2:, 1:-1] - v[0:-2, 1:-1]) / (2 * dy)) ** 2
    )


def pressure_poisson(nit, p, dx, dy, b):
    pn = np.empty_like(p)
    pn[:] = p.copy()
    for _ in range(nit):
        pn[:] = p.copy()
        p[1:-1, 1:-1] = ((pn[1:-1, 2:] + pn[1:-1, 0:-2]) * dy**2 + (pn[2:, 1:-1] + pn[0:-2, 1:-1]) * dx**2) / (
            2 * (dx**2 + dy**2)
        ) - dx**2 * dy**2 / (2 * (dx**2 + dy**2)) * b[1:-1, 1:-1]
        p[:, -1] = p[:, -2]
        p[0, :] = p[1, :]
        p[:, 0] = p[:, 1]
        p[-1, :] = 0


def momentum(un, across, vn, p, dt, dx, dy, nu, along):
    """The values of a component after a step, inside; `along` is the axis of its pressure gradient."""
    if along == 1:
        gradient = dt / (2 * dx) * (p[1:-1, 2:] - p[1:-1, 0:-2])
    else:
        gradient = dt / (2 * dy) * (p[2:, 1:-1] - p[0:-2, 1:-1])
    return (
        un[1:-1, 1:-1]
        - across[1:-1, 1:-1] * dt / dx * (un[1:-1, 1:-1] - un[1:-1, 0:-2])
        - vn[1:-1, 1:-1] * dt / dy * (un[1:-1, 1:-1] - un[0:-2, 1:-1])
        - gradient
        + nu
        * (
            dt / dx**2 * (un[1:-1, 2:] - 2 * un[1:-1, 1:-1] + un[1:-1, 0:-2])
            + dt / dy**2 * (un[2:, 1:-1] - 2 * un[1:-1, 1:-1] + un[0:-2, 1:-1])
        )
    )


def cavity(nt, nit, u, v, dt, dx, dy, p, rho, nu):
    b = np.zeros(u.shape)
    for _ in range(nt):
        un = u.copy()
        vn = v.copy()
        build_up_b(b, rho, dt, u, v, dx, dy)
        pressure_poisson(nit, p, dx, dy, b)
        u[1:-1, 1:-1] = momentum(un, un, vn, p, dt, dx, dy, nu, 1)
        v[1:-1, 1:-1] = momentum(vn, un, vn, p, dt, dx, dy, nu, 0)
        u[0, :] = 0
        u[:, 0] = 0
        u[:, -1] = 0
        u[-1, :] = 1
        v[0, :] = 0
        v[-1, :] = 0
        v[:, 0] = 0
        v[:, -1] = 0


@program(small=9, real=61, tolerance=1e-8)
def cavity_flow(jit, n, rng):
    run = jit(cavity)
    u, v, p = np.zeros((3, n, n))
    return lambda: run(8, 30, u, v, 1e-4, 2 / (n - 1), 2 / (n - 1), p, 1.0, 0.1), (u, v, p)


def channel(u, v, p, dt, dx, dy, rho, nu, force, tol, most):
    """Flow between two walls, periodic along x, until it hardly changes."""
    udiff = 1.0
    stepcount = 0
    while udiff > tol and stepcount < most:
        un = u.copy()
        vn = v.copy()
        for _ in range(5):
            pn = p.copy()
            east, west = np.roll(pn, -1, axis=1), np.roll(pn, 1, axis=1)
            p[1:-1] = ((east + west)[1:-1] * dy**2 + (pn[2:] + pn[:-2]) * dx**2) / (2 * (dx**2 + dy**2))
            p[-1, :] = p[-2, :]
            p[0, :] = p[1, :]
        ue, uw = np.roll(un, -1, axis=1), np.roll(un, 1, axis=1)
        pe, pw = np.roll(p, -1, axis=1), np.roll(p, 1, axis=1)
        u[1:-1] = (
            un[1:-1]
            - un[1:-1] * dt / dx * (un - uw)[1:-1]
            - vn[1:-1] * dt / dy * (un[1:-1] - un[:-2])
            - dt / (2 * rho * dx) * (pe - pw)[1:-1]
            + nu * (dt / dx**2 * (ue - 2 * un + uw)[1:-1] + dt / dy**2 * (un[2:] - 2 * un[1:-1] + un[:-2]))
            + force * dt
        )
        u[0, :] = 0
        u[-1, :] = 0
        udiff = (np.sum(u) - np.sum(un)) / np.sum(u)
        stepcount += 1
    return stepcount, udiff


@program(small=9, real=61, tolerance=1e-8)
def channel_flow(jit, n, rng):
    run = jit(channel)
    u, v, p = np.zeros((3, n, n))

    def call():
        u[:], p[:] = 0, 0
        return run(u, v, p, 1e-3, 2 / (n - 1), 2 / (n - 1), 1.0, 0.1, 1.0, 1e-2, 60)

    return call, (u, v, p)


def horizontal_diffusion(in_field, out_field, coeff):
    i_n, j_n, k_n = out_field.shape
    lap_field = 4.0 * in_field[1 : i_n + 3, 1 : j_n + 3, :] - (
        in_field[2 : i_n + 4, 1 : j_n + 3, :]
        + in_field[0 : i_n + 2, 1 : j_n + 3, :]
        + in_field[1 : i_n + 3, 2 : j_n + 4, :]
        + in_field[1 : i_n + 3, 0 : j_n + 2, :]
    )
    res = lap_field[1:, 1 : j_n + 1, :] - lap_field[:-1, 1 : j_n + 1, :]
    flx_field = np.where(
        res * (in_field[2 : i_n + 3, 2 : j_n + 2, :] - in_field[1 : i_n + 2, 2 : j_n + 2, :]) > 0, 0, res
    )
    res = lap_field[1 : i_n + 1, 1:, :] - lap_field[1 : i_n + 1, :-1, :]
    fly_field = np.where(
        res * (in_field[2 : i_n + 2, 2 : j_n + 3, :] - in_field[2 : i_n + 2, 1 : j_n + 2, :]) > 0, 0, res
    )
    out_field[:, :, :] = in_field[2 : i_n + 2, 2 : j_n + 2, :] - coeff * (
        flx_field[1:, :, :] - flx_field[:-1, :, :] + fly_field[:, 1:, :] - fly_field[:, :-1, :]
    )


@program(small=4, real=64)
def horizontal_diffusion_of_weather(jit, n, rng):
    run = jit(horizontal_diffusion)
    field, out, coeff = rng.random((n + 4, n + 4, 30)), rng.random((n, n, 30)), 0.03
    return lambda: run(field, out, coeff), (field, out)


BET_M = 0.5
BET_P = 0.5


def vertical_advection(utens_stage, u_stage, wcon, u_pos, utens, dtr_stage):
    I, J, K = utens_stage.shape[0], utens_stage.shape[1], utens_stage.shape[2]
    ccol = np.empty((I, J, K), dtype=utens_stage.dtype)
    dcol = np.empty((I, J, K), dtype=utens_stage.dtype)
    data_col = np.empty((I, J), dtype=utens_stage.dtype)
    for k in range(1):
        gcv = 0.25 * (wcon[1:, :, k + 1] + wcon[:-1, :, k + 1])
        cs = gcv * BET_M
        ccol[:, :, k] = gcv * BET_P
        bcol = dtr_stage - ccol[:, :, k]
        correction_term = -cs * (u_stage[:, :, k + 1] - u_stage[:, :, k])
        dcol[:, :, k] = dtr_stage * u_pos[:, :, k] + utens[:, :, k] + utens_stage[:, :, k] + correction_term
        divided = 1.0 / bcol
        ccol[:, :, k] = ccol[:, :, k] * divided
        dcol[:, :, k] = dcol[:, :, k] * divided
    for k in range(1, K - 1):
        gav = -0.25 * (wcon[1:, :, k] + wcon[:-1, :, k])
        gcv = 0.25 * (wcon[1:, :, k + 1] + wcon[:-1, :, k + 1])
        as_ = gav * BET_M
        cs = gcv * BET_M
        acol = gav * BET_P
        ccol[:, :, k] = gcv * BET_P
        bcol = dtr_stage - acol - ccol[:, :, k]
        correction_term = -as_ * (u_stage[:, :, k - 1] - u_stage[:, :, k]) - cs * (
            u_stage[:, :, k + 1] - u_stage[:, :, k]
        )
        dcol[:, :, k] = dtr_stage * u_pos[:, :, k] + utens[:, :, k] + utens_stage[:, :, k] + correction_term
        divided = 1.0 / (bcol - ccol[:, :, k - 1] * acol)
        ccol[:, :, k] = ccol[:, :, k] * divided
        dcol[:, :, k] = (dcol[:, :, k] - (dcol[:, :, k - 1]) * acol) * divided
    for k in range(K - 1, K):
        gav = -0.25 * (wcon[1:, :, k] + wcon[:-1, :, k])
        as_ = gav * BET_M
        acol = gav * BET_P
        bcol = dtr_stage - acol
        correction_term = -as_ * (u_stage[:, :, k - 1] - u_stage[:, :, k])
        dcol[:, :, k] = dtr_stage * u_pos[:, :, k] + utens[:, :, k] + utens_stage[:, :, k] + correction_term
        divided = 1.0 / (bcol - ccol[:, :, k - 1] * acol)
        dcol[:, :, k] = (dcol[:, :, k] - (dcol[:, :, k - 1]) * acol) * divided
    for k in range(K - 1, K - 2, -1):
        datacol = dcol[:, :, k]
        data_col[:] = datacol
        utens_stage[:, :, k] = dtr_stage * (datacol - u_pos[:, :, k])
    for k in range(K - 2, -1, -1):
        datacol = dcol[:, :, k] - ccol[:, :, k] * data_col[:, :]
        data_col[:] = datacol
        utens_stage[:, :, k] = dtr_stage * (datacol - u_pos[:, :, k])


@program(small=4, real=64)
def vertical_advection_of_weather(jit, n, rng):
    run = jit(vertical_advection)
    u_stage, u_pos, utens, source = rng.random((4, n, n, 25))
    wcon = rng.random((n + 1, n, 25))
    stage = source.copy()

    def call():
        stage[:] = source
        run(stage, u_stage, wcon, u_pos, utens, 3.0 / 20.0)

    return call, (stage,)


def shallow_water(h, u, v, steps, dt, g):
    n, m = h.shape
    for step in range(steps):
        for i in range(n):
            for j in range(m):
                u[i, j] -= dt * g * (h[(i + 1) % n, j] - h[i, j])
                v[i, j] -= dt * g * (h[i, (j + 1) % m] - h[i, j])
        for i in range(n):
            for j in range(m):
                h[i, j] -= dt * (u[i, j] - u[i - 1, j] + v[i, j] - v[i, j - 1])


@program(small=6, real=60)
def shallow_water_by_elements(jit, n, rng):
    run = jit(shallow_water)
    h, u, v = 1 + 0.1 * rng.random((n, n + 2)), np.zeros((n, n + 2)), np.zeros((n, n + 2))
    return lambda: run(h, u, v, 5, 0.01, 9.81), (h, u, v)
