"""Classify scikit-learn's handwritten digits with a network written in plain NumPy.

The network (layer norm, tanh-GELU, a residual block, softmax, cross-entropy) is fitted here: the
hidden layers are random features, the last layer is solved by regularised least squares on the
training half. Then batches of several sizes, a ragged last one among them, run through all tiers,
and what each call did is printed. Last, the warm function is measured
against plain NumPy, both on one thread; on a machine on which other programs run, the ratios say
little.

    python examples/digits.py
"""

from __future__ import annotations

import os
import statistics
import time

import numpy as np
import profuse as pf
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

WIDTH = 256
BATCH = 128  # images, in measurements
WARM_UP, ROUNDS, CALLS = 10, 9, 20


def layer_norm(x, gain, bias):
    mean = x.mean(axis=-1, keepdims=True)
    centred = x - mean
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * gain + bias


def gelu(x):
    return 0.5 * x * (1.0 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def features(p, x):
    """Hidden representation of images ``x`` (n, 64) -> (n, WIDTH)."""
    h = gelu(layer_norm(x @ p["w0"] + p["b0"], p["gain0"], p["bias0"]))
    return h + gelu(layer_norm(h @ p["w1"] + p["b1"], p["gain1"], p["bias1"]))


def logits(p, x):
    """Class scores (n, 10)."""
    return features(p, x) @ p["w2"] + p["b2"]


def classify(p, x, labels):
    """Scores, class probabilities and the mean cross-entropy of a batch."""
    scores = logits(p, x)
    top = scores.max(axis=-1, keepdims=True)
    exps = np.exp(scores - top)
    total = exps.sum(axis=-1, keepdims=True)
    log_probabilities = scores - top - np.log(total)
    picked = np.take_along_axis(log_probabilities, labels[:, None], axis=-1)
    return scores, exps / total, -picked.mean()


def fit(images, labels, seed=0):
    """Random hidden layers, least-squares output layer."""
    rng = np.random.default_rng(seed)

    def normal(*shape, scale):
        return (rng.standard_normal(shape) * scale).astype(np.float32)

    p = {
        "w0": normal(64, WIDTH, scale=64**-0.5),
        "b0": normal(WIDTH, scale=0.1),
        "gain0": np.ones(WIDTH, np.float32),
        "bias0": np.zeros(WIDTH, np.float32),
        "w1": normal(WIDTH, WIDTH, scale=WIDTH**-0.5),
        "b1": normal(WIDTH, scale=0.1),
        "gain1": np.ones(WIDTH, np.float32),
        "bias1": np.zeros(WIDTH, np.float32),
    }
    h = features(p, images).astype(np.float64)
    h1 = np.concatenate([h, np.ones((len(h), 1))], axis=1)
    target = np.eye(10)[labels] * 8.0 - 4.0
    solved = np.linalg.solve(h1.T @ h1 + 1.0 * np.eye(h1.shape[1]), h1.T @ target)
    p["w2"], p["b2"] = solved[:-1].astype(np.float32), solved[-1].astype(np.float32)
    return p


def batches(count):
    """Batch boundaries: full batches of several sizes, then a ragged last one."""
    sizes = [128, 128, 128, 64, 64, 200, 200, 32]
    start = k = 0
    while start < count:
        size = min(sizes[k % len(sizes)], count - start)
        yield slice(start, start + size)
        start, k = start + size, k + 1


def main():
    data = load_digits()
    images = (data.data / 16.0).astype(np.float32)
    labels = data.target.astype(np.int64)
    half = len(images) // 2
    p = fit(images[:half], labels[:half])
    fused = pf.jit(classify)

    print(f"{len(images)} images, trained on {half}, WIDTH={WIDTH}")
    print(f"{'call':>4} {'size':>5} {'tier':<10} {'ms':>8} {'numpy ms':>9}  events")
    worst = correct = 0.0
    for call, part in enumerate(batches(len(images)), 1):
        seen = len(pf.events())
        before = dict(fused.state().counters)
        start = time.perf_counter()
        scores, _, loss = fused(p, images[part], labels[part])
        ours = time.perf_counter() - start
        start = time.perf_counter()
        expected, _, expected_loss = classify(p, images[part], labels[part])
        plain = time.perf_counter() - start
        worst = max(worst, float(np.abs(scores - expected).max()), abs(float(loss - expected_loss)))
        correct += int((scores.argmax(-1) == labels[part]).sum())
        state = fused.state()
        misses = state.counters["guard_misses"] - before["guard_misses"]
        happened = [f"{e.kind}:{e.details['tier']}" if "tier" in e.details else e.kind for e in pf.events()[seen:]]
        happened += [f"guard-miss x{misses}"] if misses else []
        print(
            f"{call:>4} {len(scores):>5} {state.tier:<10} {ours * 1e3:>8.2f} {plain * 1e3:>9.2f}  {' '.join(happened)}"
        )
        fused.wait()  # in place of the other work between batches: compiles land meanwhile

    state = fused.state()
    c = state.counters
    agree = worst < 1e-3
    print(f"\naccuracy {correct / len(images):.1%}; logits agree with NumPy: {agree} ({worst:.1e})")
    print(
        f"kernels {c['kernels_compiled']}, guards {len(state.specializations)},"
        f" guard misses {c['guard_misses']}, fallback calls {c['fallback_calls']},"
        f" compiles {c['compiles']}, ops evaluated {c['evaluated_ops']}"
    )
    for s in state.specializations:
        print(f"  {s.behavior:<7} depth {s.depth:>2}: {s.hits} hits, {s.misses} misses")
    load = os.getloadavg()[0]
    with threadpool_limits(1):  # NumPy's products: those of kernels run on one thread, too
        print(speed_text(fused, p, images[:BATCH], labels[:BATCH]))
    if load > 0.7 * (os.cpu_count() or 1):
        print(f"  (load average before: {load:.1f}; other programs run here, so measure again)")
    if not agree:
        raise SystemExit("results differ from NumPy")


def speed_text(fused, *batch) -> str:
    """Speed of the warm function against plain NumPy, each side measured alone, and in turn.

    In turn, both sides meet the same noise of the machine, and take each other's data out of the
    caches; alone, they do neither.
    """
    ours, plain = (lambda: fused(*batch)), (lambda: classify(*batch))
    for _ in range(WARM_UP):
        ours(), plain()
    fused.wait()
    alone, in_turn, ours_ms, plain_ms = [], [], [], []
    for _ in range(ROUNDS):
        fast = statistics.median(seconds(ours) for _ in range(CALLS))
        slow = statistics.median(seconds(plain) for _ in range(CALLS))
        ours_ms.append(fast * 1e3)
        plain_ms.append(slow * 1e3)
        alone.append(slow / fast)
        pairs = [(seconds(ours), seconds(plain)) for _ in range(CALLS)]
        in_turn.append(statistics.median(slow / fast for fast, slow in pairs))
    return "\n".join(
        [
            f"speed on a batch of {BATCH}, one thread, warm: time of NumPy {np.__version__} over"
            f" time of Profuse {pf.__version__};",
            f"median [quartiles] of {ROUNDS} rounds of {CALLS} calls each",
            f"  alone        {spread(alone)}   (Profuse {statistics.median(ours_ms):.3f} ms,"
            f" NumPy {statistics.median(plain_ms):.3f} ms)",
            f"  interleaved  {spread(in_turn)}",
        ]
    )


def seconds(call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def spread(ratios) -> str:
    """Median and quartiles of ratios, as text."""
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{middle:.2f}x [{low:.2f}, {high:.2f}]"


if __name__ == "__main__":
    main()
