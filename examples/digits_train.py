"""Train a network on scikit-learn's handwritten digits, in plain NumPy, with ``pf.value_and_grad``.

The network has two hidden layers with layer norm and tanh-GELU; the loss is the cross-entropy, the
optimiser Adam. Loss, gradients and update are NumPy functions; one jitted step contains them all.
The loss of each epoch goes to a picture, ``build/digits_train.png``. Where JAX or PyTorch is
installed, the time of a step is compared with theirs, of the same network, in turn.

    python examples/digits_train.py [--epochs N]
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time
import types
from pathlib import Path

import matplotlib
import numpy as np
import profuse as pf
from sklearn.datasets import load_digits
from tqdm import tqdm

matplotlib.use("Agg")  # no screen is needed
from matplotlib import pyplot

WIDTH, BATCH, TEST = 128, 64, 360
RATE, DECAY = 3e-3, 0.97  # Adam's rate, and its factor from epoch to epoch
SIZES = ((64, WIDTH), (WIDTH, WIDTH))
ROUNDS, STEPS = 15, 20  # of a comparison
PICTURE = Path(__file__).parents[1] / "build" / "digits_train.png"


def layer(x, w, b, gain):
    h = x @ w + b
    centred = h - h.mean(axis=-1, keepdims=True)
    h = centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5) * gain
    return 0.5 * h * (1.0 + np.tanh(0.7978845608 * (h + 0.044715 * h * h * h)))


def logits(p, x):
    """Class scores (n, 10) of images (n, 64)."""
    for k in range(len(SIZES)):
        x = layer(x, p[f"w{k}"], p[f"b{k}"], p[f"gain{k}"])
    return x @ p["out"]


def loss(p, x, labels):
    """The mean cross-entropy of a batch."""
    scores = logits(p, x)
    top = scores.max(axis=-1, keepdims=True)
    total = np.log(np.exp(scores - top).sum(axis=-1)) + top[:, 0]
    picked = np.take_along_axis(scores, labels[:, None], axis=-1)[:, 0]
    return (total - picked).mean()


def adam(p, grads, first, second, rate, count):
    """One step of Adam (Kingma and Ba, 2014); ``count`` is the number of steps so far, plus one."""
    first = {k: 0.9 * first[k] + 0.1 * grads[k] for k in p}
    second = {k: 0.999 * second[k] + 0.001 * grads[k] * grads[k] for k in p}
    scale = rate * (1 - 0.999**count) ** 0.5 / (1 - 0.9**count)
    p = {k: p[k] - scale * first[k] / (np.sqrt(second[k]) + 1e-8) for k in p}
    return p, first, second


@pf.jit
def step(p, first, second, x, labels, rate, count):
    value, grads = pf.value_and_grad(loss)(p, x, labels)
    return value, *adam(p, grads, first, second, rate, count)


def initial(rng):
    """Parameters, and Adam's two moments."""
    p = {}
    for k, (rows, columns) in enumerate(SIZES):
        p[f"w{k}"] = (rng.standard_normal((rows, columns)) * rows**-0.5).astype(np.float32)
        p[f"b{k}"] = np.zeros(columns, np.float32)
        p[f"gain{k}"] = np.ones(columns, np.float32)
    p["out"] = (rng.standard_normal((WIDTH, 10)) * WIDTH**-0.5).astype(np.float32)
    return p, *({k: np.zeros_like(v) for k, v in p.items()} for _ in range(2))


def train(images, labels, epochs, rng):
    """Fitted parameters, and the mean loss of each epoch."""
    state, losses, count = initial(rng), [], 0
    bar = tqdm(range(epochs), unit="epoch")
    for epoch in bar:
        order, total = rng.permutation(len(images)), 0.0
        parts = [order[k : k + BATCH] for k in range(0, len(order), BATCH)]
        for part in parts:
            count += 1
            rate = RATE * DECAY**epoch
            value, *state = step(*state, images[part], labels[part], rate, float(count))
            total += float(value) * len(part)
            if count == 2:
                # Without this the steps go on in NumPy until the compile is there. NumPy's
                # products keep all cores busy, so that it may take some seconds.
                step.wait()
        losses.append(total / len(images))
        bar.set_postfix_str(f"loss {losses[-1]:.4f}, {step.state().tier}")
    return state, losses


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=40)
    epochs = parser.parse_args().epochs
    rng = np.random.default_rng(0)
    data = load_digits()
    order = rng.permutation(len(data.data))
    images, labels = (data.data[order] / 16.0).astype(np.float32), data.target[order]
    print(f"{len(images) - TEST} images to train on, {TEST} to test with")
    state, losses = train(images[TEST:], labels[TEST:], epochs, rng)
    right = (logits(state[0], images[:TEST]).argmax(-1) == labels[:TEST]).mean()
    counters = step.state().counters
    print(
        f"test accuracy {right:.1%}; {counters['compiles']} compiles, {counters['kernel_launches']} launches of kernels"
    )
    draw(losses, right)
    compare(state, images[:BATCH], labels[:BATCH])
    if epochs >= 40 and right < 0.97:
        raise SystemExit("the accuracy is below 97 %")


def draw(losses, right):
    PICTURE.parent.mkdir(exist_ok=True)
    figure, axes = pyplot.subplots(figsize=(6, 3.5), layout="constrained")
    axes.semilogy(range(1, len(losses) + 1), losses)
    axes.set(xlabel="epoch", ylabel="mean cross-entropy", title=f"test accuracy {right:.1%}")
    figure.savefig(PICTURE, dpi=120)
    print(f"loss by epoch: {PICTURE}")


# --- time of a step ----------------------------------------------------------------------------


def compare(state, x, labels):
    """Time of one step, beside those of JAX and PyTorch if they are installed, in turn."""
    calls = {"Profuse": lambda: step(*state, x, labels, RATE, 1.0)}
    for name, make in (("jax", jax_step), ("torch", torch_step)):
        if importlib.util.find_spec(name) is not None:
            calls[name] = make(state, x, labels)
    for call in calls.values():
        for _ in range(10):
            call()
    step.wait()
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
        print(f"  a step of {len(x)} images with {name}: {min(seconds) * 1e3:.3f} ms at best{beside}")
    if len(calls) == 1:
        print("  (pip install jax, or torch, to compare)")


def jax_step(state, x, labels):
    """The same functions, with JAX in the place of NumPy."""
    import jax

    here: dict = {}
    names = {**globals(), "np": jax.numpy}
    for fn in (layer, logits, loss, adam):
        here[fn.__name__] = types.FunctionType(fn.__code__, names)
    names.update(here)

    @jax.jit
    def run(p, first, second, x, labels, rate, count):
        value, grads = jax.value_and_grad(here["loss"])(p, x, labels)
        return value, *here["adam"](p, grads, first, second, rate, count)

    given = jax.tree_util.tree_map(jax.numpy.asarray, (*state, x, labels))
    return lambda: jax.block_until_ready(run(*given, RATE, 1.0))


def torch_step(state, x, labels):
    """The same network and optimiser in PyTorch, op by op."""
    import torch

    p = {k: torch.tensor(v, requires_grad=True) for k, v in state[0].items()}
    optimizer = torch.optim.Adam(p.values(), RATE)
    images, target = torch.tensor(x), torch.tensor(labels)

    def run():
        h = images
        for k, (_, columns) in enumerate(SIZES):
            h = h @ p[f"w{k}"] + p[f"b{k}"]
            h = torch.nn.functional.layer_norm(h, (columns,)) * p[f"gain{k}"]
            h = torch.nn.functional.gelu(h, approximate="tanh")
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(h @ p["out"], target).backward()
        optimizer.step()

    return run


if __name__ == "__main__":
    main()
