"""Train a character-level transformer on Python's own documentation, on the tape.

The text is that of ``help()`` in the standard library. The parameters are arrays of the tape. The
blocks of the network, its head and the loss are jitted functions, of which each call is a few nodes
of the tape; the embedding is NumPy on the tape, and what lies between is ordinary Python. The loss
of each step goes to a picture, ``build/chars.png``. Where PyTorch is installed, the time of a step
is compared with that of the same network there, op by op.

    python examples/chars.py [--steps N] [--seed N] [--characters N]
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time
from pathlib import Path
from pydoc_data import topics

import matplotlib
import numpy as np
import profuse as pf
from tqdm import tqdm

matplotlib.use("Agg")  # no screen is needed
from matplotlib import pyplot

SIZE = 100_000  # characters of text, of which the last tenth tests
VOCABULARY = "\n" + "".join(map(chr, range(32, 127)))
WIDTH, HEADS, LAYERS, LENGTH, BATCH = 64, 4, 2, 64, 16
RATE, WARM = 6e-3, 50  # Adam's rate, and the steps in which it rises to that
ROUNDS, STEPS = 10, 5  # of a comparison
PICTURE = Path(__file__).parents[1] / "build" / "chars.png"

# What is added to the score of a position for one that comes after it.
LATER = np.triu(np.full((LENGTH, LENGTH), -1e9, np.float32), 1)


# --- network -----------------------------------------------------------------------------------


def layer_norm(x, gain, bias):
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * gain + bias


def softmax(x):
    exps = np.exp(x - x.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)


def gelu(x):
    return 0.5 * x * (1.0 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def attention(p, x):
    """Causal self-attention with HEADS heads on ``x`` (batch, LENGTH, WIDTH)."""
    batch, length, width = x.shape

    def split(y):
        return y.reshape(batch, length, HEADS, width // HEADS).transpose(0, 2, 1, 3)

    q, k, v = (split(x @ p[name]) for name in ("query", "key", "value"))
    scores = q @ k.transpose(0, 1, 3, 2) / (width // HEADS) ** 0.5 + LATER
    mixed = softmax(scores) @ v
    return mixed.transpose(0, 2, 1, 3).reshape(batch, length, width) @ p["mix"]


@pf.jit
def block(p, x):
    """Attention, then a layer with GELU, each behind a layer norm and with a residual."""
    x = x + attention(p, layer_norm(x, p["gain0"], p["bias0"]))
    h = layer_norm(x, p["gain1"], p["bias1"])
    return x + gelu(h @ p["up"] + p["up_bias"]) @ p["down"] + p["down_bias"]


@pf.jit
def logits(p, x):
    """Scores (batch, LENGTH, characters) of the character that follows each position."""
    return layer_norm(x, p["gain"], p["bias"]) @ p["out"]


@pf.jit
def cross_entropy(scores, targets):
    """The mean over all positions."""
    top = scores.max(axis=-1, keepdims=True)
    total = np.log(np.exp(scores - top).sum(axis=-1)) + top[..., 0]
    picked = np.take_along_axis(scores, targets[..., None], axis=-1)[..., 0]
    return (total - picked).mean()


def predict(p, characters):
    """Scores of what follows each of ``characters`` (batch, LENGTH), which are integers."""
    x = p["characters"][characters] + p["positions"]
    for k in range(LAYERS):
        x = block(p[f"block{k}"], x)
    return logits(p["head"], x)


def settle():
    """Wait for the compiles that the calls so far have asked for.

    Without this the program goes on in NumPy until they are there: first those of the functions,
    then those of the halves of their subgraphs. NumPy's products keep all cores busy, so that it
    may take some seconds.
    """
    for fn in (block, logits, cross_entropy, adam):
        fn.wait()


# --- training ----------------------------------------------------------------------------------


def initial(rng):
    """Parameters, as arrays of the tape in nested dicts."""

    def normal(*shape, scale=None):
        values = rng.standard_normal(shape) * (shape[0] ** -0.5 if scale is None else scale)
        return pf.array(values.astype(np.float32), requires_grad=True)

    def full(value, size):
        return pf.array(np.full(size, value, np.float32), requires_grad=True)

    p = {
        "characters": normal(len(VOCABULARY), WIDTH, scale=0.1),
        "positions": normal(LENGTH, WIDTH, scale=0.1),
        "head": {"gain": full(1, WIDTH), "bias": full(0, WIDTH), "out": normal(WIDTH, len(VOCABULARY))},
    }
    for k in range(LAYERS):
        p[f"block{k}"] = {
            "gain0": full(1, WIDTH),
            "bias0": full(0, WIDTH),
            "query": normal(WIDTH, WIDTH),
            "key": normal(WIDTH, WIDTH),
            "value": normal(WIDTH, WIDTH),
            "mix": normal(WIDTH, WIDTH),
            "gain1": full(1, WIDTH),
            "bias1": full(0, WIDTH),
            "up": normal(WIDTH, 4 * WIDTH),
            "up_bias": full(0, 4 * WIDTH),
            "down": normal(4 * WIDTH, WIDTH),
            "down_bias": full(0, WIDTH),
        }
    return p


def leaves(p):
    """The arrays in nested dicts."""
    for value in p.values():
        if isinstance(value, dict):
            yield from leaves(value)
        else:
            yield value


@pf.jit
def adam(grads, first, second, rate, count):
    """Changes of parameters, and the new moments (Kingma and Ba, 2014); ``count`` begins at 1."""
    first = [0.9 * m + 0.1 * g for m, g in zip(first, grads, strict=True)]
    second = [0.99 * m + 0.01 * g * g for m, g in zip(second, grads, strict=True)]
    scale = rate * (1 - 0.99**count) ** 0.5 / (1 - 0.9**count)
    changes = [scale * m / (np.sqrt(v) + 1e-8) for m, v in zip(first, second, strict=True)]
    return changes, first, second


class Trainer:
    """The state of a training run.

    Attributes:
        p: the parameters.
        first, second: Adam's moments, a list each, in the order of `leaves`.
        count: steps so far.
        seconds: what forward, backward and update of each step took.
    """

    def __init__(self, rng):
        self.p = initial(rng)
        self.first, self.second = ([np.zeros_like(x.data) for x in leaves(self.p)] for _ in range(2))
        self.count = 0
        self.seconds = []

    def step(self, characters, targets, rate):
        """One step on a batch (batch, LENGTH); returns the loss before it."""
        self.count += 1
        times = [time.perf_counter()]
        loss = cross_entropy(predict(self.p, characters), targets)
        times.append(time.perf_counter())
        loss.backward()
        times.append(time.perf_counter())
        with pf.no_grad():
            parameters = list(leaves(self.p))
            changes, self.first, self.second = adam(
                [x.grad for x in parameters], self.first, self.second, rate, float(self.count)
            )
            for x, change in zip(parameters, changes, strict=True):
                x -= change
                x.grad = None
        times.append(time.perf_counter())
        self.seconds.append(np.diff(times))
        return float(loss)


def text():
    """The first SIZE characters of the topics of ``help()``, without what is not ASCII."""
    known = set(VOCABULARY)
    joined = "\n\n".join(topics.topics[name] for name in sorted(topics.topics))
    return "".join(c for c in joined if c in known)[:SIZE]


def encoded(characters):
    return np.array([VOCABULARY.index(c) for c in characters])


def batch(data, rng):
    """BATCH pieces of a text, and the characters that follow each of theirs."""
    starts = rng.integers(0, len(data) - LENGTH, BATCH)[:, None]
    where = starts + np.arange(LENGTH)
    return data[where], data[where + 1]


def train(data, steps, rng):
    """A `Trainer` after so many steps, and the loss of each."""
    trainer, losses = Trainer(rng), []
    bar = tqdm(range(steps), unit="step")
    for k in bar:
        if 0 < k <= 3:
            settle()
        fade = 0.5 + 0.5 * np.cos(np.pi * k / steps)
        losses.append(trainer.step(*batch(data, rng), RATE * min(1.0, (k + 1) / WARM) * fade))
        if k % 10 == 9:
            bar.set_postfix_str(f"loss {np.mean(losses[-10:]):.3f}")
    return trainer, losses


@pf.no_grad()
def sample(p, start, count, rng, temperature=0.7):
    """``start``, and ``count`` characters after it, drawn one by one.

    What comes after the last character is filled with anything: no earlier position sees it.
    """
    found = list(encoded(start))
    for k in range(count):
        if k == 2:
            settle()  # sizes differ from those of training
        window = found[-LENGTH:]
        given = np.zeros((1, LENGTH), int)
        given[0, : len(window)] = window
        scores = np.asarray(predict(p, given))[0, len(window) - 1].astype(float)
        chances = softmax(scores / temperature)
        found.append(int(rng.choice(len(VOCABULARY), p=chances)))
    return "".join(VOCABULARY[n] for n in found)


@pf.no_grad()
def test_loss(p, data, rng, batches=10):
    pieces = (batch(data, rng) for _ in range(batches))
    return np.mean([float(cross_entropy(predict(p, x), y)) for x, y in pieces])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--characters", type=int, default=300, help="of the sample")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    data = encoded(text())
    held = len(data) // 10
    trainer, losses = train(data[:-held], options.steps, rng)
    print(
        f"{len(data)} characters of text, {sum(x.size for x in leaves(trainer.p))} parameters;"
        f" loss {losses[0]:.3f} at first, {np.mean(losses[-20:]):.3f} at the end,"
        f" {test_loss(trainer.p, data[-held:], rng):.3f} on text that is held back"
    )
    print(sample(trainer.p, "The ", options.characters, rng))
    draw(losses)
    parts = np.median(trainer.seconds[-100:], axis=0) * 1e3  # without the steps that compile
    names = ("forward", "backward", "update")
    print("of a step: " + ", ".join(f"{n} {t:.2f} ms" for n, t in zip(names, parts, strict=True)))
    compare(trainer, *batch(data, rng))
    if options.steps >= 1000 and np.mean(losses[-20:]) > 2:
        raise SystemExit("the loss is above 2")


def draw(losses):
    PICTURE.parent.mkdir(exist_ok=True)
    figure, axes = pyplot.subplots(figsize=(6, 3.5), layout="constrained")
    axes.plot(losses)
    axes.set(xlabel="step", ylabel="cross-entropy of a character")
    figure.savefig(PICTURE, dpi=120)
    pyplot.close(figure)
    print(f"loss by step: {PICTURE}")


# --- time of a step ----------------------------------------------------------------------------


def compare(trainer, characters, targets):
    """Time of one step, beside that of PyTorch if it is installed, in turn."""
    calls = {"Profuse": lambda: trainer.step(characters, targets, RATE)}
    if importlib.util.find_spec("torch") is not None:
        calls["torch"] = torch_step(trainer.p, characters, targets)
    for call in calls.values():
        for _ in range(5):
            call()
    taken = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(STEPS):
                call()
            taken[name].append((time.perf_counter() - start) / STEPS)
    for name, seconds in taken.items():
        ratio = statistics.median(b / a for a, b in zip(taken["Profuse"], seconds, strict=True))
        beside = "" if name == "Profuse" else f", {ratio:.2f} times Profuse's"
        print(f"  a step of {characters.size} characters with {name}: {min(seconds) * 1e3:.2f} ms at best{beside}")
    if len(calls) == 1:
        print("  (pip install torch to compare)")


def torch_step(p, characters, targets):
    """The same network and optimiser in PyTorch, op by op."""
    import torch
    from torch.nn.functional import cross_entropy, gelu, layer_norm, scaled_dot_product_attention

    def copied(value):
        if isinstance(value, dict):
            return {k: copied(v) for k, v in value.items()}
        return torch.tensor(value.data, requires_grad=True)

    p = copied(p)
    optimizer = torch.optim.Adam(leaves(p), RATE, betas=(0.9, 0.99))
    given, wanted = torch.tensor(characters), torch.tensor(targets)

    def split(y):
        return y.reshape(BATCH, LENGTH, HEADS, WIDTH // HEADS).transpose(1, 2)

    def attention(p, x):
        q, k, v = (split(x @ p[name]) for name in ("query", "key", "value"))
        mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
        return mixed.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH) @ p["mix"]

    def block(p, x):
        x = x + attention(p, layer_norm(x, (WIDTH,), p["gain0"], p["bias0"]))
        h = layer_norm(x, (WIDTH,), p["gain1"], p["bias1"])
        return x + gelu(h @ p["up"] + p["up_bias"], approximate="tanh") @ p["down"] + p["down_bias"]

    def loss():
        x = p["characters"][given] + p["positions"]
        for k in range(LAYERS):
            x = block(p[f"block{k}"], x)
        head = p["head"]
        scores = layer_norm(x, (WIDTH,), head["gain"], head["bias"]) @ head["out"]
        return cross_entropy(scores.reshape(-1, len(VOCABULARY)), wanted.reshape(-1))

    def run():
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        return value.item()

    return run


if __name__ == "__main__":
    main()
