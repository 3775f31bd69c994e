"""Small programs as users of torch write them, moved to NumPy and `pf.nn`: the same losses and gradients.

Each is one function of a library's functions (``F``), of what else differs (``L``), of parameters and inputs.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import profuse as pf
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
RNG = np.random.default_rng(21)
OURS = SimpleNamespace(tanh=np.tanh, join=np.concatenate, exp=np.exp, sqrt=np.sqrt, repeat=np.repeat)
TORCHS = SimpleNamespace(
    tanh=torch.tanh, join=torch.cat, exp=torch.exp, sqrt=torch.sqrt, repeat=torch.repeat_interleave
)


def normal(*shape: int) -> np.ndarray:
    return 0.5 * RNG.standard_normal(shape)


def perceptron(F, L, p, x, t):
    h = F.relu(F.linear(x, p["w0"], p["b0"]))
    return F.cross_entropy(F.linear(F.layer_norm(h, (16,), p["g"]), p["w1"]), t, label_smoothing=0.1)


def convolutional(F, L, p, x, t):
    h = F.max_pool2d(F.relu(F.conv2d(x, p["c0"], p["b0"], padding=1)), 2)
    h = F.avg_pool2d(F.elu(F.conv2d(h, p["c1"], stride=2, padding="valid")), (1, 1))
    return F.cross_entropy(F.linear(h.reshape(h.shape[0], -1), p["out"]), t)


def residual(F, L, p, x, t):
    y = F.batch_norm(F.conv2d(x, p["c0"], padding="same"), None, None, p["g0"], p["b0"], training=True)
    y = F.batch_norm(F.conv2d(F.relu(y), p["c1"], padding="same"), None, None, p["g1"], training=True)
    return F.mse_loss(F.relu(x + y).mean((2, 3)), t)


def mobile(F, L, p, x, t):
    y = F.silu(F.group_norm(F.conv2d(x, p["wide"]), 2, p["g"]))
    y = F.conv2d(F.silu(F.conv2d(y, p["deep"], padding=1, groups=8)), p["narrow"])
    return F.mse_loss((x + y).mean((2, 3)), t)


def stage_of_a_unet(F, L, p, x, t):
    down = F.gelu(F.conv2d(x, p["c0"], stride=2, padding=1))
    up = L.repeat(L.repeat(down, 2, 2), 2, 3)
    return F.mse_loss(F.conv2d(L.join([x, up], 1), p["c1"], padding=1), t)


def attentive(F, L, p, x, t):
    n, length, width = x.shape
    h = F.layer_norm(x, (width,), p["g0"], p["b0"])
    heads = [F.linear(h, p[k]).reshape(n, length, 2, width // 2).swapaxes(1, 2) for k in ("q", "k", "v")]
    mixed = F.scaled_dot_product_attention(*heads, is_causal=True).swapaxes(1, 2).reshape(n, length, width)
    x = x + F.linear(mixed, p["o"])
    x = x + F.linear(F.gelu(F.linear(F.layer_norm(x, (width,), p["g1"]), p["up"]), approximate="tanh"), p["down"])
    return F.cross_entropy(F.linear(x, p["out"]).swapaxes(1, 2), t)


def words(F, L, p, x, t):
    h = F.embedding(x, p["table"], padding_idx=0)
    return F.cross_entropy(F.linear(L.tanh(h.mean(1)), p["out"]), t, ignore_index=3)


def recurrent(F, L, p, x, t):
    h = F.linear(x[:, 0] * 0, p["in"])
    for k in range(5):
        h = L.tanh(F.linear(x[:, k], p["in"]) + F.linear(h, p["again"], p["b"]))
    return F.cross_entropy(F.linear(h, p["out"]), t, reduction="sum")


def sequence(F, L, p, x, t):
    h = F.leaky_relu(F.conv1d(x, p["c0"], p["b0"], dilation=2, padding="same"), 0.1)
    h = F.conv1d(h, p["c1"], stride=2)
    return -(F.log_softmax(h, 1) * F.softmax(t, 1)).sum()


def variational(F, L, p, x, t):
    h = F.silu(F.linear(x, p["in"]))
    mean, log_var = F.linear(h, p["mean"]), F.linear(h, p["var"])
    y = F.linear(mean + L.exp(0.5 * log_var) * t, p["out"])
    return F.mse_loss(y, x, reduction="sum") - 0.5 * (1 + log_var - mean * mean - L.exp(log_var)).sum()


def whole(high: int, *shape: int) -> np.ndarray:
    return RNG.integers(0, high, shape)


PROGRAMS: list[tuple[Any, dict[str, np.ndarray], np.ndarray, np.ndarray]] = [
    (
        perceptron,
        {"w0": normal(16, 6), "b0": normal(16), "g": normal(16), "w1": normal(4, 16)},
        normal(9, 6),
        whole(4, 9),
    ),
    (
        convolutional,
        {"c0": normal(5, 3, 3, 3), "b0": normal(5), "c1": normal(4, 5, 2, 2), "out": normal(3, 16)},
        normal(4, 3, 8, 8),
        whole(3, 4),
    ),
    (
        residual,
        {"c0": normal(4, 4, 3, 3), "c1": normal(4, 4, 3, 3), "g0": normal(4), "b0": normal(4), "g1": normal(4)},
        normal(3, 4, 5, 5),
        normal(3, 4),
    ),
    (
        mobile,
        {"wide": normal(8, 4, 1, 1), "g": normal(8), "deep": normal(8, 1, 3, 3), "narrow": normal(4, 8, 1, 1)},
        normal(2, 4, 5, 5),
        normal(2, 4),
    ),
    (stage_of_a_unet, {"c0": normal(4, 2, 3, 3), "c1": normal(2, 6, 3, 3)}, normal(2, 2, 6, 6), normal(2, 2, 6, 6)),
    (
        attentive,
        {k: normal(8, 8) for k in ("q", "k", "v", "o")}
        | {"g0": normal(8), "b0": normal(8), "g1": normal(8)}
        | {"up": normal(16, 8), "down": normal(8, 16), "out": normal(11, 8)},
        normal(2, 5, 8),
        whole(11, 2, 5),
    ),
    (words, {"table": normal(7, 4), "out": normal(4, 4)}, whole(7, 5, 6), np.array([0, 3, 1, 2, 3])),
    (
        recurrent,
        {"in": normal(6, 3), "again": normal(6, 6), "b": normal(6), "out": normal(4, 6)},
        normal(4, 5, 3),
        whole(4, 4),
    ),
    (sequence, {"c0": normal(6, 3, 3), "b0": normal(6), "c1": normal(4, 6, 3)}, normal(2, 3, 9), normal(2, 4, 4)),
    (
        variational,
        {"in": normal(8, 5), "mean": normal(2, 8), "var": normal(2, 8), "out": normal(5, 2)},
        normal(6, 5),
        normal(6, 2),
    ),
]


@pytest.mark.parametrize(("program", "p", "x", "t"), PROGRAMS, ids=lambda v: getattr(v, "__name__", ""))
def test_a_program_moved_from_torch_computes_the_same(program, p, x, t):
    theirs = {k: torch.tensor(v, requires_grad=True) for k, v in p.items()}
    expected = program(torch.nn.functional, TORCHS, theirs, torch.tensor(x), torch.tensor(t))
    expected.backward()

    def loss(p: Any, x: Any, t: Any) -> Any:
        return program(pf.nn, OURS, p, x, t)

    assert math.isclose(loss(p, x, t), expected.item(), rel_tol=1e-9)
    step = pf.value_and_grad(loss, background=False)
    for _ in range(4):
        value, grads = step(p, x, t)
        assert math.isclose(value, expected.item(), rel_tol=1e-9)
        for k, tensor in theirs.items():
            np.testing.assert_allclose(grads[k], tensor.grad.numpy(), rtol=1e-7, atol=1e-10)
    assert step.state().tier == "optimized", step.explain()
    leaves = {k: pf.array(v.copy(), requires_grad=True) for k, v in p.items()}
    loss(leaves, x, t).backward()
    for k, tensor in theirs.items():
        np.testing.assert_allclose(np.asarray(leaves[k].grad), tensor.grad.numpy(), rtol=1e-7, atol=1e-10)
