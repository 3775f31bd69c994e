"""Train a small convolutional network on scikit-learn's handwritten digits: NumPy, and what it lacks from ``pf.nn``.

Three convolutions with batch norm, two of them followed by max pooling, then dropout and a linear layer. One jitted
step has the loss, its gradients, the running statistics, which batch norm writes in place, and Adam. Images are moved
by up to a pixel, anew in each epoch. ``pf.manual_seed`` and one generator say what is random, so two runs draw the
same. The filters of the first layer and the losses go to a picture, ``build/digits_conv.png``.
Where PyTorch is installed, the time of a step is compared with its own, of the same network.

    python examples/digits_conv.py [--epochs N]
    PROFUSE_DISABLE=1 python examples/digits_conv.py    # the same, op by op in NumPy
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import os
import time
from pathlib import Path

import matplotlib
import numpy as np
import profuse as pf
from profuse import nn
from sklearn.datasets import load_digits
from tqdm import tqdm

matplotlib.use("Agg")  # no screen is needed
from matplotlib import pyplot

CHANNELS = (1, 32, 64, 64)
DROP, BATCH, TEST = 0.3, 64, 360
RATE = 4e-3  # Adam's, at the start; it falls to zero along a cosine
ROUNDS, STEPS = 7, 10  # of a comparison
ACCURACY = 0.985
PICTURE = Path(__file__).parents[1] / "build" / "digits_conv.png"


def scores(p, statistics, x, training):
    """Class scores (n, 10) of images (n, 1, 8, 8); in training, the running statistics are written."""
    for k in range(3):
        x = nn.conv2d(x, p[f"filters{k}"], padding="same")
        mean, var = statistics[f"mean{k}"], statistics[f"var{k}"]
        x = nn.relu(nn.batch_norm(x, mean, var, p[f"gain{k}"], p[f"bias{k}"], training=training))
        if k:
            x = nn.max_pool2d(x, 2)
    x = nn.dropout(x.reshape(len(x), -1), DROP, training=training)
    return nn.linear(x, p["out"], p["shift"])


def loss(p, statistics, x, labels):
    """The mean cross-entropy of a batch."""
    return nn.cross_entropy(scores(p, statistics, x, True), labels, label_smoothing=0.05)


loss_and_gradients = pf.value_and_grad(loss)


@pf.jit
def step(p, first, second, statistics, x, labels, rate, count):
    """One step of Adam (Kingma and Ba, 2014); ``count`` is the number of steps so far, plus one."""
    value, grads = loss_and_gradients(p, statistics, x, labels)
    first = {k: 0.9 * first[k] + 0.1 * grads[k] for k in p}
    second = {k: 0.999 * second[k] + 0.001 * grads[k] * grads[k] for k in p}
    scale = rate * (1 - 0.999**count) ** 0.5 / (1 - 0.9**count)
    p = {k: p[k] - scale * first[k] / (np.sqrt(second[k]) + 1e-8) for k in p}
    return value, p, first, second


@pf.jit
def predicted(p, statistics, x):
    """The class of each image."""
    return scores(p, statistics, x, False).argmax(-1)


def initial(rng):
    """Parameters, Adam's two moments, and the running statistics."""
    p, statistics = {}, {}
    for k, (inputs, outputs) in enumerate(itertools.pairwise(CHANNELS)):
        drawn = rng.standard_normal((outputs, inputs, 3, 3)) * (2 / (9 * inputs)) ** 0.5
        p[f"filters{k}"] = drawn.astype(np.float32)
        p[f"gain{k}"], p[f"bias{k}"] = np.ones(outputs, np.float32), np.zeros(outputs, np.float32)
        statistics[f"mean{k}"], statistics[f"var{k}"] = np.zeros(outputs, np.float32), np.ones(outputs, np.float32)
    width = CHANNELS[-1] * 4
    p["out"] = (rng.standard_normal((10, width)) * width**-0.5).astype(np.float32)
    p["shift"] = np.zeros(10, np.float32)
    return p, *({k: np.zeros_like(v) for k, v in p.items()} for _ in range(2)), statistics


def digits(rng):
    """Images (n, 1, 8, 8) from 0 to 1 and their labels, in random order."""
    data = load_digits()
    order = rng.permutation(len(data.data))
    return (data.images[order, None] / 16.0).astype(np.float32), data.target[order]


def moved(images, rng):
    """The images, each moved by up to a pixel along both axes."""
    wide = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    parts = np.lib.stride_tricks.sliding_window_view(wide, (8, 8), axis=(2, 3))
    up, left = rng.integers(0, 3, (2, len(images)))
    return np.ascontiguousarray(parts[np.arange(len(images)), :, up, left])


def train(images, labels, epochs, rng):
    """The fitted state, and the mean loss of each epoch."""
    state, losses, count = initial(rng), [], 0
    steps = epochs * (len(images) // BATCH)
    bar = tqdm(range(epochs), unit="epoch")
    for _ in bar:
        order, total = rng.permutation(len(images)), []
        for part in np.split(order[: len(order) // BATCH * BATCH], len(order) // BATCH):
            count += 1
            rate = RATE * (1 + np.cos(np.pi * count / steps)) / 2
            p, first, second, statistics = state
            value, *rest = step(
                p, first, second, statistics, moved(images[part], rng), labels[part], float(rate), float(count)
            )
            state = (*rest, statistics)
            total.append(float(value))
            if count == 2:
                step.wait()  # else the steps go on in NumPy until the compile is there
        losses.append(float(np.mean(total)))
        bar.set_postfix_str(f"loss {losses[-1]:.4f}, {step.state().tier}")
    return state, losses


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=24)
    epochs = parser.parse_args().epochs
    pf.manual_seed(0)
    rng = np.random.default_rng(0)
    images, labels = digits(rng)
    print(f"{len(images) - TEST} images to train on, {TEST} to test with")
    start = time.perf_counter()
    state, losses = train(images[TEST:], labels[TEST:], epochs, rng)
    seconds = time.perf_counter() - start
    right = (predicted(state[0], state[3], images[:TEST]) == labels[:TEST]).mean()
    counters = step.state().counters
    print(
        f"test accuracy {right:.2%} after {seconds:.1f} s; a step: {counters['compiles']} compiles, "
        f"{counters['kernel_launches']} launches of kernels, {counters['python_calls']} calls in Python"
    )
    draw(state[0]["filters0"], losses, right)
    if not os.environ.get("PROFUSE_DISABLE"):
        compare(state, images[:BATCH], labels[:BATCH])
    if epochs >= 24 and right < ACCURACY:
        raise SystemExit(f"the accuracy is below {ACCURACY:.1%}")


def draw(filters, losses, right):
    """Save a picture of the filters of the first layer, and of the loss by epoch."""
    PICTURE.parent.mkdir(exist_ok=True)
    figure = pyplot.figure(figsize=(10, 3.5), layout="constrained")
    left, behind = figure.subfigures(1, 2, width_ratios=(3, 2))
    left.suptitle("filters of the first layer")
    most = np.abs(filters).max()
    for axes, kernel in zip(left.subplots(4, 8).flat, filters[:, 0], strict=True):
        axes.imshow(kernel, cmap="RdBu", vmin=-most, vmax=most)
        axes.set_axis_off()
    axes = behind.subplots()
    axes.semilogy(range(1, len(losses) + 1), losses)
    axes.set(xlabel="epoch", ylabel="mean cross-entropy", title=f"test accuracy {right:.2%}")
    figure.savefig(PICTURE, dpi=120)
    print(f"filters, and loss by epoch: {PICTURE}")


# --- time of a step ----------------------------------------------------------------------------


def compare(state, x, labels):
    """Time of one step, beside that of PyTorch if it is installed, in turn, on one thread each."""
    calls = {"Profuse": lambda: step(*state, x, labels, RATE, 1.0)}
    if importlib.util.find_spec("torch") is not None:
        calls["torch"] = torch_step(state, x, labels)
    with pf.knobs.override(threads=1):
        for call in calls.values():
            for _ in range(5):
                call()
        step.wait()
        taken = {name: [] for name in calls}
        for _ in range(ROUNDS):
            for name, call in calls.items():
                start = time.process_time()
                for _ in range(STEPS):
                    call()
                taken[name].append((time.process_time() - start) / STEPS)
    for name, seconds in taken.items():
        print(f"  a step of {len(x)} images with {name}: {min(seconds) * 1e3:.2f} ms of one core at best")


def torch_step(state, x, labels):
    """The same network and optimiser in PyTorch, op by op."""
    import torch

    functions = torch.nn.functional
    torch.set_num_threads(1)
    p = {k: torch.tensor(v, requires_grad=True) for k, v in state[0].items()}
    statistics = {k: torch.tensor(v) for k, v in state[3].items()}
    optimizer = torch.optim.Adam(p.values(), RATE)
    images, target = torch.tensor(x), torch.tensor(labels)

    def run():
        h = images
        for k in range(3):
            h = functions.conv2d(h, p[f"filters{k}"], padding="same")
            mean, var = statistics[f"mean{k}"], statistics[f"var{k}"]
            h = functions.relu(functions.batch_norm(h, mean, var, p[f"gain{k}"], p[f"bias{k}"], training=True))
            if k:
                h = functions.max_pool2d(h, 2)
        h = functions.dropout(h.reshape(len(h), -1), DROP)
        optimizer.zero_grad()
        value = functions.cross_entropy(functions.linear(h, p["out"], p["shift"]), target, label_smoothing=0.05)
        value.backward()
        optimizer.step()

    return run


if __name__ == "__main__":
    main()
