"""Bodies that act on each other, all pairs at once."""

from __future__ import annotations

import numpy as np

from .program import program


def nbody_step(pos, vel, mass, dt, softening=0.1):
    x, y, z = pos[:, 0:1], pos[:, 1:2], pos[:, 2:3]
    dx, dy, dz = x.T - x, y.T - y, z.T - z
    r2 = dx**2 + dy**2 + dz**2 + softening**2
    inv = r2 ** (-1.5)
    np.fill_diagonal(inv, 0)
    acc = np.hstack([(dx * inv) @ mass, (dy * inv) @ mass, (dz * inv) @ mass])
    vel += acc * dt
    pos += vel * dt
    return 0.5 * np.sum(mass * vel**2)


@program(small=7, real=400)
def nbody(jit, n, rng):
    step = jit(nbody_step)
    pos, vel = rng.standard_normal((n, 3)), rng.standard_normal((n, 3)) * 0.1
    mass = np.full((n, 1), 20 / n)
    return lambda: step(pos, vel, mass, 0.01), (pos, vel)


def boids_step(x, y, vx, vy, near=0.2, limit=0.05):
    dx = np.subtract.outer(x, x)
    dy = np.subtract.outer(y, y)
    dist = np.hypot(dx, dy)
    close = (dist > 0) & (dist < near)
    count = np.maximum(close.sum(axis=1), 1)
    vx += 0.01 * (np.where(close, vx, 0).sum(axis=1) / count - vx)
    vy += 0.01 * (np.where(close, vy, 0).sum(axis=1) / count - vy)
    push = close & (dist < near / 4)
    vx += 0.05 * np.where(push, dx, 0).sum(axis=1)
    vy += 0.05 * np.where(push, dy, 0).sum(axis=1)
    speed = np.sqrt(vx**2 + vy**2)
    fast = speed > limit
    vx[fast] *= limit / speed[fast]
    vy[fast] *= limit / speed[fast]
    x += vx
    y += vy
    x %= 1.0
    y %= 1.0


@program(small=9, real=500)
def boids(jit, n, rng):
    step = jit(boids_step)
    x, y = rng.random(n), rng.random(n)
    vx, vy = rng.standard_normal((2, n)) * 0.05
    vx, vy = vx.copy(), vy.copy()
    return lambda: step(x, y, vx, vy), (x, y, vx, vy)


def quaternion_multiply(a, b):
    w0, x0, y0, z0 = a[..., 0], a[..., 1], a[..., 2], a[..., 3]
    w1, x1, y1, z1 = b[..., 0], b[..., 1], b[..., 2], b[..., 3]
    return np.stack(
        [
            w0 * w1 - x0 * x1 - y0 * y1 - z0 * z1,
            w0 * x1 + x0 * w1 + y0 * z1 - z0 * y1,
            w0 * y1 - x0 * z1 + y0 * w1 + z0 * x1,
            w0 * z1 + x0 * y1 - y0 * x1 + z0 * w1,
        ],
        axis=-1,
    )


def rotate(points, q):
    q = q / np.linalg.norm(q, axis=-1, keepdims=True)
    conjugate = q * np.array([1, -1, -1, -1])
    pure = np.concatenate([np.zeros(points.shape[:-1] + (1,)), points], axis=-1)
    return quaternion_multiply(quaternion_multiply(q, pure), conjugate)[..., 1:]


@program(small=5, real=50_000)
def quaternions(jit, n, rng):
    turn = jit(rotate)
    points, q = rng.standard_normal((n, 3)), rng.standard_normal((n, 4))
    return lambda: turn(points, q), (points, q)
