"""Time series: filters, spectra, prices."""

from __future__ import annotations

import numpy as np

from .program import program


def moving_average(x, n):
    total = np.cumsum(x)
    total[n:] = total[n:] - total[:-n]
    return total[n - 1 :] / n


@program(small=30, real=200_000)
def moving_averages(jit, n, rng):
    run = jit(moving_average)
    x = rng.standard_normal(n)
    return lambda: run(x, 5), ()


def bollinger(price, n, k):
    windows = np.lib.stride_tricks.sliding_window_view(price, n)
    mean = windows.mean(axis=-1)
    std = windows.std(axis=-1)
    upper, lower = mean + k * std, mean - k * std
    signal = np.zeros(price.shape, dtype=int)
    signal[n - 1 :][price[n - 1 :] > upper] = -1
    signal[n - 1 :][price[n - 1 :] < lower] = 1
    return mean, upper, lower, signal


@program(small=40, real=50_000)
def bollinger_bands(jit, n, rng):
    run = jit(bollinger)
    price = 100 + np.cumsum(rng.standard_normal(n))
    return lambda: run(price, 20, 2.0), ()


def spectrum(signal, size, hop):
    frames = np.lib.stride_tricks.sliding_window_view(signal, size)[::hop]
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
    z = np.fft.rfft(frames * window, axis=-1)
    power = np.abs(z) ** 2
    return 10 * np.log10(np.maximum(power, 1e-10))


@program(small=200, real=100_000, tolerance=1e-7)
def spectrogram(jit, n, rng):
    run = jit(spectrum)
    signal = np.sin(np.arange(n) * 0.1) + 0.1 * rng.standard_normal(n)
    return lambda: run(signal, 64, 16), ()


class Kalman:
    """Filter of a linear system, with its state in attributes."""

    def __init__(self, n, m, rng):
        self.F = np.eye(n) + 0.01 * rng.standard_normal((n, n))
        self.H = rng.standard_normal((m, n))
        self.Q, self.R = 0.01 * np.eye(n), 0.1 * np.eye(m)
        self.x, self.P = np.zeros(n), np.eye(n)

    def update(self, z):
        x = self.F @ self.x
        P = self.F @ self.P @ self.F.T + self.Q
        y = z - self.H @ x
        S = self.H @ P @ self.H.T + self.R
        K = P @ self.H.T @ np.linalg.inv(S)
        self.x = x + K @ y
        self.P = (np.eye(len(x)) - K @ self.H) @ P
        return self.x


@program(small=4, real=48, tolerance=1e-6)
def kalman_filter(jit, n, rng):
    kalman = Kalman(n, max(n // 2, 1), rng)
    update = jit(Kalman.update)
    z = rng.standard_normal(max(n // 2, 1))
    return lambda: update(kalman, z), (kalman,)


def asian_option(rng, n, steps, s0, strike, rate, sigma, maturity):
    dt = maturity / steps
    z = rng.standard_normal((n, steps))
    paths = s0 * np.exp(np.cumsum((rate - 0.5 * sigma**2) * dt + sigma * np.sqrt(dt) * z, axis=1))
    payoff = np.maximum(paths.mean(axis=1) - strike, 0)
    price = np.exp(-rate * maturity) * payoff.mean()
    return price, payoff.std() / np.sqrt(n)


@program(small=20, real=5000)
def monte_carlo(jit, n, rng):
    run = jit(asian_option)
    return lambda: run(rng, n, 50, 100.0, 105.0, 0.02, 0.3, 1.0), (rng,)


def normal_cdf(x):
    k = 1 / (1 + 0.2316419 * np.abs(x))
    poly = k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    w = 1 - np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi) * poly
    return np.where(x < 0, 1 - w, w)


def prices(s, k, t, r, sigma):
    root = sigma * np.sqrt(t)
    d1 = (np.log(s / k) + (r + 0.5 * sigma**2) * t) / root
    d2 = d1 - root
    discount = k * np.exp(-r * t)
    call = s * normal_cdf(d1) - discount * normal_cdf(d2)
    return call, call - s + discount


@program(small=10, real=100_000)
def black_scholes(jit, n, rng):
    run = jit(prices)
    s, k, t = rng.uniform(50, 150, n), rng.uniform(50, 150, n), rng.uniform(0.1, 2, n)
    return lambda: run(s, k, t, 0.02, 0.3), ()
