"""Random graphs agree between plain NumPy, tier 0, the static plan and the dynamic plan."""

from __future__ import annotations

import os

import numpy as np
import profuse as pf
from every_case import EVERY_CASE
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

N, M = "n", "m"
SIZES = [{N: 4, M: 6}, {N: 7, M: 5}, {N: 9, M: 3}]

UNARY = {
    "tanh": np.tanh,
    "sin": np.sin,
    "neg": np.negative,
    "abs": np.abs,
    "square": lambda x: x * x,
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
    "halve": lambda x: x * 0.5,
    "relu": lambda x: np.maximum(x, 0),
    "clip": lambda x: np.clip(x, -1.5, 1.5),
    "rsqrt1": lambda x: 1 / np.sqrt(x * x + 1),
    "round": lambda x: np.where(np.isfinite(x), x, 0),
    "by_size": lambda x: x / x.shape[0],
}
BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "div": lambda x, y: x / (1 + y * y),
    "where": lambda x, y: np.where(x > y, x, y * 0.5),
}
REDUCE = {
    "sum": lambda x, axis: x.sum(axis=axis, keepdims=True) * 0.125,
    "mean": lambda x, axis: x.mean(axis=axis, keepdims=True),
    "max": lambda x, axis: x.max(axis=axis, keepdims=True),
    "softmax": lambda x, axis: np.exp(x - x.max(axis=axis, keepdims=True)),
    "var": lambda x, axis: x.var(axis=axis, keepdims=True),
}


@st.composite
def graphs(draw, most=40):
    """Steps over a growing list of rank-2 values; each step is (callable, operand indices)."""
    shapes = [(N, M), (N, M), (1, M), (M, N)]
    steps = []
    for _ in range(draw(st.integers(1, most))):
        kind = draw(st.sampled_from(["unary", "binary", "binary", "reduce", "view", "matmul"]))
        a = draw(st.integers(0, len(shapes) - 1))
        if kind == "unary":
            fn, operands, shape = UNARY[draw(st.sampled_from(sorted(UNARY)))], (a,), shapes[a]
        elif kind == "binary":
            fits = [k for k, s in enumerate(shapes) if joined(shapes[a], s) is not None]
            b = draw(st.sampled_from(fits))
            fn = BINARY[draw(st.sampled_from(sorted(BINARY)))]
            operands, shape = (a, b), joined(shapes[a], shapes[b])
        elif kind == "reduce":
            axis = draw(st.sampled_from([0, 1, -1]))
            name = draw(st.sampled_from(sorted(REDUCE)))
            fn, operands = with_axis(REDUCE[name], axis), (a,)
            shape = list(shapes[a])
            if name != "softmax":
                shape[axis] = 1
            shape = tuple(shape)
        elif kind == "view":
            fn, shape = draw(views(shapes[a]))
            operands = (a,)
        else:
            fits = [k for k, s in enumerate(shapes) if s[0] == shapes[a][1]]
            if not fits:
                continue
            b = draw(st.sampled_from(fits))
            fn, operands, shape = product, (a, b), (shapes[a][0], shapes[b][1])
        steps.append((fn, operands))
        shapes.append(shape)
    outputs = draw(st.lists(st.integers(4, len(shapes) - 1), min_size=1, max_size=4)) if steps else []
    return steps, outputs or [len(shapes) - 1]


def joined(a, b):
    """Broadcast shape, or None."""
    out = []
    for x, y in zip(a, b, strict=True):
        if x != y and 1 not in (x, y):
            return None
        out.append(y if x == 1 else x)
    return tuple(out)


def with_axis(fn, axis):
    return lambda x: fn(x, axis)


def product(x, y):
    return np.tanh(x) @ np.tanh(y) * 0.25


@st.composite
def views(draw, shape):
    kind = draw(st.sampled_from(["transpose", "flip", "double", "reshape", "expand"]))
    if kind == "transpose":
        return (lambda x: x.T), shape[::-1]
    if kind == "flip":
        return (lambda x: x[::-1, ::-1]), shape
    if kind == "double":
        return (lambda x: np.concatenate([x, x], axis=0)[: x.shape[0]]), shape
    if kind == "reshape":
        return (lambda x: x.reshape(-1).reshape(x.shape)), shape
    return (lambda x: x[:, None, :].sum(axis=1)), shape


def run(steps, outputs, inputs):
    values = list(inputs)
    for fn, operands in steps:
        values.append(fn(*(values[o] for o in operands)))
    return tuple(values[o] for o in outputs)


def inputs_for(sizes, seed):
    rng = np.random.default_rng(seed)
    n, m = sizes[N], sizes[M]
    shapes = [(n, m), (n, m), (1, m), (m, n)]
    return [rng.standard_normal(s).astype(np.float32) for s in shapes]


@settings(
    max_examples=int(os.environ.get("PROFUSE_RANDOM_GRAPHS", "25" if EVERY_CASE else "12")),
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(graphs())
def test_tiers_agree(graph):
    check_tiers(graph)


def check_tiers(graph):
    """Run a graph over three sizes; values, failures and compiles are checked. Returns counters."""
    steps, outputs = graph

    def fn(*inputs):
        return run(steps, outputs, inputs)

    f = pf.jit(fn, strategy=[("static", 1), ("dynamic", 1)])
    with np.errstate(all="ignore"):
        for seed, size in enumerate([0, 0, 1, 1, 2]):
            inputs = inputs_for(SIZES[size], seed)
            exact = fn(*[x.astype(np.float64) for x in inputs])
            plain = fn(*inputs)
            for ours, numpy, true in zip(f(*inputs), plain, exact, strict=True):
                agree(ours, numpy, true)
    counters = f.state().counters
    assert counters["compile_failures"] == 0, f.explain()
    assert counters["compiles"] <= 2 * counters["traces"]
    return counters


def agree(ours, numpy, true):
    assert ours.dtype == numpy.dtype
    assert ours.shape == numpy.shape
    finite = np.isfinite(numpy)
    np.testing.assert_array_equal(np.isfinite(ours), finite)
    scale = np.abs(true[finite]).max(initial=1.0)
    # Long chains amplify rounding: allow what NumPy's own float32 result loses, and a floor.
    lost = np.abs(numpy[finite] - true[finite]).max(initial=0.0)
    np.testing.assert_allclose(ours[finite], numpy[finite], rtol=0, atol=8 * lost + 2e-5 * scale)
