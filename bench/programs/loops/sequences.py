"""Networks as loops: over time, over windows of images, over rows."""

from __future__ import annotations

import numpy as np

from ..program import program


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, h, c, w, u, b):
    outputs = np.zeros((x.shape[0], h.shape[0], h.shape[1]), dtype=x.dtype)
    n = h.shape[1]
    for t in range(x.shape[0]):
        z = x[t] @ w + h @ u + b
        i, f, o = sigmoid(z[:, :n]), sigmoid(z[:, n : 2 * n]), sigmoid(z[:, 2 * n : 3 * n])
        c = f * c + i * np.tanh(z[:, 3 * n :])
        h = o * np.tanh(c)
        outputs[t] = h
    return outputs, h, c


@program(small=4, real=64, tolerance=1e-3)
def lstm_over_time(jit, n, rng):
    run = jit(lstm)
    x = rng.standard_normal((40, 8, n)).astype(np.float32)
    w, u = (rng.standard_normal((2, n, 4 * n)) / np.sqrt(n)).astype(np.float32)
    h, c = np.zeros((2, 8, n), dtype=np.float32)
    b = np.zeros(4 * n, dtype=np.float32)
    return lambda: run(x, h, c, w, u, b), (x, h, c)


def gru(x, h, wz, uz, wr, ur, wh, uh):
    for t in range(len(x)):
        z = 1 / (1 + np.exp(-(wz @ x[t] + uz @ h)))
        r = 1 / (1 + np.exp(-(wr @ x[t] + ur @ h)))
        new = np.tanh(wh @ x[t] + uh @ (r * h))
        h = (1 - z) * h + z * new
    return h


@program(small=4, real=32)
def gru_over_time(jit, n, rng):
    run = jit(gru)
    x, h = rng.standard_normal((200, n)), np.zeros(n)
    weights = [rng.standard_normal((n, n)) / np.sqrt(n) for _ in range(6)]
    return lambda: run(x, h, *weights), (x, h)


def relu(x):
    return np.maximum(x, 0)


def conv2d(input, weights):
    K = weights.shape[0]
    N = input.shape[0]
    H_out = input.shape[1] - K + 1
    W_out = input.shape[2] - K + 1
    C_out = weights.shape[3]
    output = np.empty((N, H_out, W_out, C_out), dtype=np.float32)
    for i in range(H_out):
        for j in range(W_out):
            output[:, i, j, :] = np.sum(
                input[:, i : i + K, j : j + K, :, np.newaxis] * weights[np.newaxis, :, :, :], axis=(1, 2, 3)
            )
    return output


def maxpool2d(x):
    output = np.empty((x.shape[0], x.shape[1] // 2, x.shape[2] // 2, x.shape[3]), dtype=x.dtype)
    for i in range(x.shape[1] // 2):
        for j in range(x.shape[2] // 2):
            output[:, i, j, :] = np.max(x[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2, :], axis=(1, 2))
    return output


def lenet5(input, conv1, b1, conv2, b2, fc1w, fc1b, fc2w, fc2b):
    x = relu(conv2d(input, conv1) + b1)
    x = maxpool2d(x)
    x = relu(conv2d(x, conv2) + b2)
    x = maxpool2d(x)
    x = np.reshape(x, (x.shape[0], -1))
    x = relu(x @ fc1w + fc1b)
    return x @ fc2w + fc2b


@program(small=1, real=4, tolerance=1e-3)
def lenet_by_slices(jit, n, rng):
    run = jit(lenet5)

    def of(*shape):
        return rng.standard_normal(shape).astype(np.float32) / 3

    x = of(n, 28, 28, 1)
    weights = (of(5, 5, 1, 6), of(6), of(5, 5, 6, 16), of(16), of(256, 40), of(40), of(40, 10), of(10))
    return lambda: run(x, *weights), (x,)


def convolve_elements(image, kernel):
    h, w = image.shape
    kh, kw = kernel.shape
    out = np.zeros((h - kh + 1, w - kw + 1), dtype=np.float32)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            acc = np.float32(0)
            for a in range(kh):
                for b in range(kw):
                    acc += image[i + a, j + b] * kernel[a, b]
            out[i, j] = acc
    return out


@program(small=6, real=60, tolerance=1e-4)
def convolution_by_elements(jit, n, rng):
    run = jit(convolve_elements)
    image = rng.random((n, n)).astype(np.float32)
    kernel = rng.random((3, 5)).astype(np.float32)
    return lambda: run(image, kernel), (image,)


def softmax_rows(x):
    out = np.empty_like(x)
    for i in range(x.shape[0]):
        row = np.exp(x[i] - x[i].max())
        out[i] = row / row.sum()
    return out


@program(small=5, real=1000)
def softmax_by_rows(jit, n, rng):
    run = jit(softmax_rows)
    x = rng.standard_normal((n, 64))
    return lambda: run(x), (x,)


def perceptron(x, y, w, rate, epochs):
    mistakes = 0
    for _ in range(epochs):
        for i in range(len(x)):
            if y[i] * (x[i] @ w) <= 0:
                w += rate * y[i] * x[i]
                mistakes += 1
    return mistakes


@program(small=10, real=5_000)
def perceptron_by_samples(jit, n, rng):
    run = jit(perceptron)
    x = rng.standard_normal((n, 12))
    y = np.sign(x[:, 0] + 0.3 * rng.standard_normal(n))
    w = np.zeros(12)
    return lambda: run(x, y, w, 0.1, 2), (w,)


def descend(w, x, y, rate, steps):
    losses = np.zeros(steps)
    for k in range(steps):
        error = x @ w - y
        losses[k] = 0.5 * np.mean(error**2)
        w = w - rate * x.T @ error / len(y)
    return w, losses


@program(small=8, real=500)
def gradient_descent(jit, n, rng):
    run = jit(descend)
    x, w = rng.standard_normal((n, 10)), rng.standard_normal(10)
    y = x @ rng.standard_normal(10)
    return lambda: run(w, x, y, 0.1, 200), (w,)


def coordinate_descent(X, y, w, penalty, sweeps):
    """The lasso."""
    n, p = X.shape
    residual = y - X @ w
    for _ in range(sweeps):
        for j in range(p):
            column = X[:, j]
            residual += column * w[j]
            rho = column @ residual
            norm = (column**2).sum()
            if rho > penalty:
                w[j] = (rho - penalty) / norm
            elif rho < -penalty:
                w[j] = (rho + penalty) / norm
            else:
                w[j] = 0.0
            residual -= column * w[j]
    return residual


@program(small=10, real=1_000)
def lasso(jit, n, rng):
    run = jit(coordinate_descent)
    X, w = rng.standard_normal((n, 30)), np.zeros(30)
    y = X[:, :3].sum(axis=1) + 0.1 * rng.standard_normal(n)

    def call():
        w[:] = 0
        return run(X, y, w, 0.2 * n, 6)

    return call, (w,)
