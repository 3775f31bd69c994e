"""Losses as people publish them, of a module like NumPy and one like Profuse, with their arguments.

``PROGRAMS`` names each: a function ``(np, control, *args)`` and float64 arguments, of which the
first is differentiated. ``control`` has `fori_loop`, `while_loop` and `cond`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy

RNG = numpy.random.default_rng(41)


def normal(*shape: int, scale: float = 0.5) -> numpy.ndarray:
    return RNG.standard_normal(shape) * scale


@dataclass(frozen=True)
class Program:
    """A loss and its arguments."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]


PROGRAMS: dict[str, Program] = {}


def program(*args: Any) -> Callable[[Callable], Callable]:
    def register(fn: Callable) -> Callable:
        PROGRAMS[fn.__name__] = Program(fn, args)
        return fn

    return register


# --- networks ------------------------------------------------------------------------------------


@program(
    [[normal(2, 5), normal(5)], [normal(5, 5), normal(5)], [normal(5, 1), normal(1)]],
    normal(7, 2),
    numpy.sign(normal(7)),
)
def lists_of_layers(np, control, layers, x, labels):
    """An MLP whose parameters are nested lists, with a hinge loss and weight decay."""
    for k, (w, b) in enumerate(layers):
        x = x @ w + b
        if k < len(layers) - 1:
            x = np.maximum(x, 0)
    losses = np.maximum(0, 1 + -labels * x[:, 0])
    decay = sum((p * p).sum() for layer in layers for p in layer)
    return losses.mean() + 1e-3 * decay


@program(
    {"Wxh": normal(6, 4), "Whh": normal(4, 4), "Why": normal(4, 6), "bh": normal(4), "by": normal(6)},
    [0, 3, 5, 2, 2],
    [3, 5, 2, 2, 1],
)
def character_rnn(np, control, p, inputs, targets):
    h = np.zeros(4)
    loss = 0.0
    for t in range(len(inputs)):
        x = np.zeros(6)
        if hasattr(x, "at"):
            x = x.at[inputs[t]].set(1)
        else:
            x[inputs[t]] = 1
        h = np.tanh(np.dot(x, p["Wxh"]) + np.dot(h, p["Whh"]) + p["bh"])
        y = np.dot(h, p["Why"]) + p["by"]
        probs = np.exp(y) / np.sum(np.exp(y))
        loss += -np.log(probs[targets[t]])
    return loss


@program((normal(7, 12), normal(12)), normal(5, 2, 4))
def lstm_by_split(np, control, params, xs):
    w, b = params
    h = c = np.zeros((2, 3))

    def sigmoid(x):
        return 0.5 * (np.tanh(x / 2) + 1)

    outputs = []
    for x in xs:
        i, f, g, o = np.split(np.concatenate([x, h], axis=1) @ w + b, 4, axis=1)
        c = sigmoid(f + 1) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        outputs.append(h)
    return np.mean(np.square(np.stack(outputs)))


@program(
    {
        "wte": normal(11, 8),
        "wpe": normal(6, 8),
        "blocks": [
            {
                "ln_1": {"g": 1 + normal(8), "b": normal(8)},
                "ln_2": {"g": 1 + normal(8), "b": normal(8)},
                "attn": {"c_attn": (normal(8, 24), normal(24)), "c_proj": (normal(8, 8), normal(8))},
                "mlp": {"c_fc": (normal(8, 32), normal(32)), "c_proj": (normal(32, 8), normal(8))},
            }
            for _ in range(2)
        ],
        "ln_f": {"g": 1 + normal(8), "b": normal(8)},
    },
    numpy.array([3, 1, 10, 4, 4, 0]),
)
def picogpt(np, control, params, ids):
    """Names and structure of the well-known sixty lines of NumPy."""

    def gelu(x):
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))

    def softmax(x):
        exp_x = np.exp(x - np.max(x, axis=-1, keepdims=True))
        return exp_x / np.sum(exp_x, axis=-1, keepdims=True)

    def layer_norm(x, g, b, eps=1e-5):
        mean = np.mean(x, axis=-1, keepdims=True)
        variance = np.var(x, axis=-1, keepdims=True)
        return g * ((x - mean) / np.sqrt(variance + eps)) + b

    def linear(x, wb):
        return x @ wb[0] + wb[1]

    def mha(x, c_attn, c_proj, heads=2):
        x = linear(x, c_attn)
        qkv = [np.split(part, heads, axis=-1) for part in np.split(x, 3, axis=-1)]
        mask = (1 - np.tri(x.shape[0])) * -1e10
        out = [softmax(q @ k.T / np.sqrt(q.shape[-1]) + mask) @ v for q, k, v in zip(*qkv)]  # noqa: B905
        return linear(np.hstack(out), c_proj)

    x = params["wte"][ids] + params["wpe"][np.arange(len(ids))]
    for block in params["blocks"]:
        x = x + mha(layer_norm(x, **block["ln_1"]), **block["attn"])
        normed = layer_norm(x, **block["ln_2"])
        x = x + linear(gelu(linear(normed, block["mlp"]["c_fc"])), block["mlp"]["c_proj"])
    logits = layer_norm(x, **params["ln_f"]) @ params["wte"].T
    shifted = logits - np.max(logits, axis=-1, keepdims=True)
    log_p = shifted - np.log(np.sum(np.exp(shifted), axis=-1, keepdims=True))
    return -np.mean(log_p[np.arange(len(ids) - 1), ids[1:]])


@program((normal(3, 2, 3, 3), normal(3), normal(12, 4)), normal(2, 2, 6, 6), numpy.array([1, 3]))
def convolution_by_im2col(np, control, params, images, labels):
    w, b, v = params
    n, c, height, width = images.shape
    k = w.shape[2]
    columns = [images[:, :, i : i + height - k + 1, j : j + width - k + 1] for i in range(k) for j in range(k)]
    patches = np.stack(columns, axis=2).reshape(n, c * k * k, -1)
    y = np.maximum(w.reshape(w.shape[0], -1) @ patches + b[:, None], 0)
    y = y.reshape(n, -1, 2, 2, 2, 2).max(axis=(3, 5))
    logits = y.reshape(n, -1) @ v
    top = logits.max(axis=1)
    return np.mean(np.log(np.exp(logits - top[:, None]).sum(axis=1)) + top - logits[np.arange(n), labels])


class Linear(NamedTuple):
    weight: Any
    bias: Any


@program(
    {
        "encoder": Linear(normal(5, 8), normal(8)),
        "mean": Linear(normal(8, 2), normal(2)),
        "log_var": Linear(normal(8, 2), normal(2)),
        "decoder": Linear(normal(2, 5), normal(5)),
    },
    (RNG.random((6, 5)) > 0.5).astype(float),
    normal(6, 2, scale=1.0),
)
def variational_autoencoder(np, control, p, x, noise):
    def layer(which, x):
        return x @ p[which].weight + p[which].bias

    h = np.tanh(layer("encoder", x))
    mu, log_var = layer("mean", h), layer("log_var", h)
    z = mu + np.exp(0.5 * log_var) * noise
    logits = layer("decoder", z)
    likelihood = -np.sum(np.logaddexp(0, np.where(x == 1, -1, 1) * logits), axis=1)
    divergence = 0.5 * np.sum(np.exp(log_var) + mu**2 - 1 - log_var, axis=1)
    return np.mean(divergence - likelihood)


@program(normal(3, 5, 4), normal(3, 5, 4), normal(2, 5, 4))
def style_transfer(np, control, image, content, style):
    def gram(x):
        flat = x.reshape(x.shape[0], -1)
        return flat @ flat.T / flat.size

    small = np.concatenate([style, style[:1]])
    variation = np.sum(np.abs(np.diff(image, axis=1))) + np.sum(np.abs(np.diff(image, axis=2)))
    return np.sum((image - content) ** 2) + 10 * np.linalg.norm(gram(image) - gram(small)) ** 2 + 0.1 * variation


@program({"w1": normal(4, 6), "w2": normal(6, 3)}, normal(8, 4), numpy.array([0, 2, 1, 1, 0, 2, 2, 1]), normal(8))
def policy_gradient(np, control, policy, states, actions, rewards):
    returns = np.cumsum(rewards[::-1])[::-1]
    advantages = (returns - np.mean(returns)) / (np.std(returns) + 1e-8)
    logits = np.tanh(states @ policy["w1"]) @ policy["w2"]
    log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    chosen = np.take_along_axis(log_p, actions[:, None], axis=1)[:, 0]
    entropy = -(np.exp(log_p) * log_p).sum(axis=1).mean()
    old = log_p[np.arange(len(actions)), actions] * 0.9
    ratio = np.exp(chosen - old)
    clipped = np.minimum(ratio * advantages, np.clip(ratio, 0.8, 1.2) * advantages)
    return -(chosen * advantages).mean() - 0.01 * entropy - clipped.mean()


# --- statistics ----------------------------------------------------------------------------------


@program((normal(3), normal(3, 2), normal(3, 2)), normal(9, 2, scale=1.0))
def gaussian_mixture(np, control, params, x):
    def logsumexp(x, axis):
        top = np.max(x, axis=axis, keepdims=True)
        return np.log(np.sum(np.exp(x - top), axis=axis)) + np.squeeze(top, axis=axis)

    weights, means, log_scales = params
    log_weights = weights - logsumexp(weights, 0)
    z = (x[:, None, :] - means[None, :, :]) / np.exp(log_scales)
    log_p = -0.5 * np.sum(z**2 + 2 * log_scales + np.log(2 * np.pi), axis=-1)
    return -np.mean(logsumexp(log_weights + log_p, 1))


@program((normal(4), normal(4, 4), normal(4, 5)), numpy.array([0, 2, 4, 4, 1, 3]))
def hidden_markov_model(np, control, params, observed):
    initial, moves, emits = params

    def logsumexp(x, axis=None, keepdims=False):
        top = x.max(axis=axis, keepdims=True)
        out = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top
        return out if keepdims else out.reshape(np.sum(x, axis=axis).shape)

    initial = initial - logsumexp(initial)
    moves = moves - logsumexp(moves, 1, True)
    emits = emits - logsumexp(emits, 1, True)
    alpha = initial + emits[:, observed[0]]

    def step(t, alpha):
        return logsumexp(alpha[:, None] + moves, 0) + emits[:, observed[t]]

    return -logsumexp(control.fori_loop(1, 6, step, alpha))


@program((normal(3, 3), normal(6, 3)), numpy.array([0, 2, 1, 1, 2, 0]))
def linear_chain_crf(np, control, params, tags):
    moves, scores = params
    alpha = scores[0]
    for t in range(1, 6):
        alpha = (
            np.logaddexp.reduce(alpha[:, None] + moves, axis=0) + scores[t]
            if False
            else (np.log(np.exp(alpha[:, None] + moves).sum(0)) + scores[t])
        )
    total = np.log(np.exp(alpha).sum())
    path = scores[np.arange(6), tags].sum() + moves[tags[:-1], tags[1:]].sum()
    return total - path


@program({"a": normal(2, 2), "c": normal(1, 2), "q": normal(2), "r": normal(1)}, normal(6, 1))
def kalman_filter(np, control, p, ys):
    """One observed component, so that the innovation's variance is a number."""
    x, cov = np.zeros(2), np.eye(2)
    noise, r = np.diag(np.exp(p["q"])), np.exp(p["r"])[0]
    loss = 0.0
    for y in ys:
        x = p["a"] @ x
        cov = p["a"] @ cov @ p["a"].T + noise
        s = (p["c"] @ cov @ p["c"].T)[0, 0] + r
        gain = cov @ p["c"].T / s
        error = y - p["c"] @ x
        x = x + gain @ error
        cov = (np.eye(2) - gain @ p["c"]) @ cov
        loss = loss + 0.5 * (np.log(2 * np.pi * s) + (error @ error) / s)
    return loss


@program((normal(6, 3), normal(5, 3)), numpy.array([[0, 1], [5, 4], [2, 2], [0, 3], [0, 1]]), normal(5))
def matrix_factorisation(np, control, factors, pairs, ratings):
    users, items = factors
    found = np.sum(users[pairs[:, 0]] * items[pairs[:, 1]], axis=1)
    return np.sum((found - ratings) ** 2) + 0.1 * (np.linalg.norm(users) + np.linalg.norm(items))


@program(normal(3), normal(5, 2), normal(5))
def gaussian_process(np, control, theta, x, y):
    """The marginal likelihood by a Cholesky factorisation that is written out."""
    length, scale, noise = np.exp(theta)
    squared = np.sum((x[:, None] - x[None]) ** 2, axis=-1)
    k = scale * np.exp(-0.5 * squared / length**2) + noise * np.eye(5)
    rows = []
    for i in range(5):
        row = []
        for j in range(i):
            done = sum(row[m] * rows[j][m] for m in range(j))
            row.append((k[i, j] - done) / rows[j][j])
        row.append(np.sqrt(k[i, i] - sum(r * r for r in row)))
        rows.append(row)
    z = []
    for i in range(5):
        z.append((y[i] - sum(rows[i][m] * z[m] for m in range(i))) / rows[i][i])
    return 0.5 * sum(e * e for e in z) + sum(np.log(rows[i][i]) for i in range(5))


# --- physics and optimisation --------------------------------------------------------------------


@program((normal(4, 4), normal(4, 2), normal(2, 4)), normal(3, 2))
def neural_ode(np, control, params, y0):
    w, v, u = params

    def f(y):
        return np.tanh(y @ u) @ w @ v

    def rk4(i, y, h=0.1):
        k1 = f(y)
        k2 = f(y + h / 2 * k1)
        k3 = f(y + h / 2 * k2)
        k4 = f(y + h * k3)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    return np.sum(control.fori_loop(0, 5, rk4, y0) ** 2)


@program((normal(4, 3, scale=2.0), normal(4, 3)), 1 + RNG.random(4))
def n_bodies(np, control, state, masses):
    def forces(x):
        d = x[None, :, :] - x[:, None, :]
        squared = (d**2).sum(-1) + 0.05
        return (masses[None, :, None] * d * (squared**-1.5)[:, :, None]).sum(axis=1)

    def leapfrog(i, state):
        x, v = state
        v = v + 0.005 * forces(x)
        x = x + 0.01 * v
        return x, v + 0.005 * forces(x)

    x, v = control.fori_loop(0, 6, leapfrog, state)
    return 0.5 * np.sum(masses[:, None] * v * v) + np.sum(np.sqrt(np.sum(x * x, axis=1)))


@program(normal(2), normal(6, 3), normal(6))
def while_newton(np, control, theta, x, y):
    """A root found by rounds whose number depends on the values."""
    target = np.exp(theta[0]) + 2.0

    def goes_on(s):
        return np.abs(s * s - target) > 1e-13

    root = control.while_loop(goes_on, lambda s: 0.5 * (s + target / s), target)
    return root * theta[1] + control.cond(theta[1] > 0, lambda: np.sin(root), lambda: root * root)


@program({"x": normal(3), "flags": (True, 2, "name", None)}, normal(4, 3), numpy.arange(4))
def leaves_of_all_kinds(np, control, p, a, n):
    flag, power, _, nothing = p["flags"]
    return np.sum((a @ p["x"]) ** power * n) * (1.0 if flag and nothing is None else 0.0)


@program((normal(3, 3), normal(3)), normal(4, 3))
def power_iteration(np, control, params, a):
    m, v = params
    m = m @ m.T + np.eye(3)
    for _ in range(4):
        v = m @ v
        v /= np.linalg.norm(v)
    return v @ m @ v + np.linalg.norm(a @ v)


@program(normal(5, 4), numpy.array([0, 0, 2, 1, 2]))
def contrastive(np, control, x, labels):
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    similar = unit @ unit.T / 0.5
    same = (labels[:, None] == labels[None, :]) & ~np.eye(5, dtype=bool)
    others = np.where(np.eye(5, dtype=bool), -np.inf, similar)
    log_p = similar - np.log(np.sum(np.exp(others), axis=1, keepdims=True))
    count = np.maximum(same.sum(1), 1)
    distances = np.sqrt(np.maximum(((x[:, None] - x[None]) ** 2).sum(-1), 1e-12))
    return -np.sum(np.where(same, log_p, 0) / count[:, None]) + np.triu(distances, 1).mean()
