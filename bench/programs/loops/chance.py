"""Systems over time, with and without chance, one step or one particle after the other."""

from __future__ import annotations

import numpy as np

from ..program import program


def ising(spins, beta, rows, cols, draws):
    n, m = spins.shape
    for k in range(len(draws)):
        i, j = rows[k], cols[k]
        around = spins[(i + 1) % n, j] + spins[(i - 1) % n, j] + spins[i, (j + 1) % m] + spins[i, (j - 1) % m]
        cost = 2 * spins[i, j] * around
        if cost <= 0 or draws[k] < np.exp(-beta * cost):
            spins[i, j] = -spins[i, j]
    return spins.sum()


@program(small=6, real=100)
def ising_model(jit, n, rng):
    run = jit(ising)
    spins = rng.choice([-1, 1], (n, n))
    count = 3 * n * n
    rows, cols, draws = rng.integers(0, n, count), rng.integers(0, n, count), rng.random(count)
    return lambda: run(spins, 0.4, rows, cols, draws), (spins,)


def lorenz(x, y, z, steps, dt, out):
    for k in range(steps):
        dx = 10.0 * (y - x)
        dy = x * (28.0 - z) - y
        dz = x * y - 8.0 / 3.0 * z
        x, y, z = x + dt * dx, y + dt * dy, z + dt * dz
        out[k, 0] = x
        out[k, 1] = y
        out[k, 2] = z
    return x, y, z


@program(small=12, real=30_000, tolerance=1e-6)
def lorenz_by_numbers(jit, n, rng):
    run = jit(lorenz)
    out = np.zeros((n, 3))
    return lambda: run(1.0, 1.0, 1.0, n, 1e-4, out), (out,)


def rates(s):
    return np.array([10.0 * (s[1] - s[0]), s[0] * (28.0 - s[2]) - s[1], s[0] * s[1] - 8 / 3 * s[2]])


def runge_kutta(state, steps, dt):
    path = np.empty((steps + 1, 3))
    path[0] = state
    for k in range(steps):
        s = path[k]
        k1 = rates(s)
        k2 = rates(s + dt / 2 * k1)
        k3 = rates(s + dt / 2 * k2)
        k4 = rates(s + dt * k3)
        path[k + 1] = s + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return path


@program(small=8, real=2_000, tolerance=1e-6)
def lorenz_by_runge_kutta(jit, n, rng):
    run = jit(runge_kutta)
    state = np.array([1.0, 1.0, 1.0])
    return lambda: run(state, n, 1e-3), (state,)


def sir(s, i, r, beta, gamma, days):
    history = []
    for _ in range(days):
        new = beta * s * i
        out = gamma * i
        s, i, r = s - new, i + new - out, r + out
        history.append((s, i, r))
    return np.array(history)


@program(small=9, real=1_000)
def epidemic(jit, n, rng):
    run = jit(sir)
    return lambda: run(0.99, 0.01, 0.0, 0.3, 0.1, n), ()


def verlet(pos, vel, mass, dt, steps):
    n = len(mass)
    for _ in range(steps):
        acc = np.zeros_like(pos)
        for i in range(n):
            for j in range(n):
                if i != j:
                    d = pos[j] - pos[i]
                    r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + 0.01
                    acc[i] += mass[j] * d / (r2 * np.sqrt(r2))
        vel += dt * acc
        pos += dt * vel


@program(small=4, real=40, tolerance=1e-7)
def bodies_by_pairs(jit, n, rng):
    run = jit(verlet)
    start, mass = rng.standard_normal((n, 3)), rng.random(n) / n
    pos, vel = start.copy(), np.zeros((n, 3))

    def call():
        pos[:], vel[:] = start, 0
        run(pos, vel, mass, 0.01, 3)

    return call, (pos, vel)


def lennard_jones(x, f, box):
    energy = 0.0
    f[:] = 0.0
    n = x.shape[0]
    for i in range(n):
        for j in range(i + 1, n):
            r2 = 0.0
            for k in range(3):
                d = x[i, k] - x[j, k]
                d -= box * np.round(d / box)
                r2 += d * d
            if r2 < 6.25:
                s6 = 1.0 / r2**3
                energy += 4 * (s6 * s6 - s6)
                g = 24 * (2 * s6 * s6 - s6) / r2
                for k in range(3):
                    d = x[i, k] - x[j, k]
                    d -= box * np.round(d / box)
                    f[i, k] += g * d
                    f[j, k] -= g * d
    return energy


@program(small=5, real=100)
def forces_of_lennard_jones(jit, n, rng):
    run = jit(lennard_jones)
    side = int(np.ceil(n ** (1 / 3)))
    places = np.stack(np.meshgrid(*[np.arange(side)] * 3), axis=-1).reshape(-1, 3)[:n]
    x, f = 1.2 * places + 0.1 * rng.random((n, 3)), np.zeros((n, 3))
    return lambda: run(x, f, 1.2 * side), (x, f)


def filter_step(particles, weights, observed, moves, u):
    """A particle filter: move, weigh, resample systematically."""
    n = len(particles)
    particles += moves
    weights *= np.exp(-0.5 * (observed - particles) ** 2)
    weights += 1e-300
    weights /= weights.sum()
    estimate = np.sum(weights * particles)
    if 1.0 / np.sum(weights**2) < n / 2:
        cumulative = np.cumsum(weights)
        cumulative[-1] = 1.0
        picked = np.zeros(n, dtype=np.int64)
        i = j = 0
        while i < n:
            if (i + u) / n < cumulative[j]:
                picked[i] = j
                i += 1
            else:
                j += 1
        particles[:] = particles[picked]
        weights[:] = 1.0 / n
    return estimate


@program(small=12, real=20_000)
def particle_filter(jit, n, rng):
    step = jit(filter_step)
    particles, weights = rng.standard_normal(n), np.full(n, 1 / n)
    moves = rng.standard_normal((4, n))
    time = [0]

    def call():
        k = time[0] = time[0] + 1
        return step(particles, weights, np.sin(k), moves[k % 4], (k % 7) / 7)

    return call, (particles, weights)


def metropolis(x, steps, noise, uniform):
    samples = np.zeros(steps)
    accepted = 0
    logp = -0.25 * x**4 + x**2
    for k in range(steps):
        y = x + noise[k]
        new = -0.25 * y**4 + y**2
        if np.log(uniform[k]) < new - logp:
            x, logp = y, new
            accepted += 1
        samples[k] = x
    return samples, accepted / steps


@program(small=15, real=30_000)
def metropolis_chain(jit, n, rng):
    run = jit(metropolis)
    noise, uniform = rng.standard_normal(n), rng.random(n)
    return lambda: run(0.5, n, noise, uniform), (noise, uniform)


def walk(rng, steps, n):
    position = np.zeros((n, 2))
    for _ in range(steps):
        position += rng.normal(size=(n, 2))
    return (position**2).sum(axis=1).mean()


@program(small=5, real=2_000)
def random_walk(jit, n, rng):
    run = jit(walk)
    return lambda: run(rng, 50, n), (rng,)


class Pendulum:
    """A double pendulum whose state is in attributes; the path goes to a list."""

    def __init__(self):
        self.a, self.b, self.va, self.vb = 1.0, 0.5, 0.0, 0.0
        self.path = []

    def simulate(self, steps, dt=1e-3, g=9.81):
        for _ in range(steps):
            d = self.a - self.b
            m = 2 - np.cos(d) ** 2
            aa = (
                -(self.vb**2) * np.sin(d)
                - 2 * g * np.sin(self.a)
                + np.cos(d) * (g * np.sin(self.b) - self.va**2 * np.sin(d))
            ) / m
            ab = (
                2 * self.va**2 * np.sin(d)
                - 2 * g * np.sin(self.b)
                + np.cos(d) * (self.vb**2 * np.sin(d) + 2 * g * np.sin(self.a))
            ) / m
            self.va += dt * aa
            self.vb += dt * ab
            self.a += dt * self.va
            self.b += dt * self.vb
            if len(self.path) < 100:
                self.path.append((self.a, self.b))
        return self.a, self.b


@program(small=5, real=400, tolerance=1e-7)
def double_pendulum(jit, n, rng):
    pendulum = Pendulum()
    simulate = jit(Pendulum.simulate)
    return lambda: simulate(pendulum, n), (pendulum,)
