"""Gradients where functions of torch have kinks, ties and poles are torch's; skipped without torch."""

from __future__ import annotations

import math

import profuse as pf
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
F, vector_norm = torch.nn.functional, torch.linalg.vector_norm
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")

ZEROS, SIGNS, TIES = [0.0] * 3, [0.0, -0.0, 1.0, -1.0, 2.0], [1.0, 1.0, 2.0, 2.0, 0.0]
SYMMETRIC = [[2.0, 1.0], [5.0, 3.0]]  # by its lower triangle
AS_TORCH = {
    "abs": (torch.abs, SIGNS),
    "amax": (torch.amax, TIES),
    "angle": (torch.angle, SIGNS),
    "arctan2 at 0": (lambda x: torch.atan2(x, x.detach()), SIGNS),
    "clamp": (lambda x: torch.clamp(x, 0, 1), SIGNS),
    "dist": (lambda x: torch.dist(x, x.detach(), 3), SIGNS),
    "fmax": (lambda x: torch.fmax(x, torch.ones_like(x)), TIES),
    "fmax of the other": (lambda x: torch.fmax(x.detach(), x), TIES),
    "fmax of nan": (lambda x: torch.fmax(x, x * math.nan), TIES),
    "fmin": (lambda x: torch.fmin(x, torch.ones_like(x)), TIES),
    "logit": (torch.logit, [0.0, 1.0, 0.5]),
    "logsigmoid": (F.logsigmoid, SIGNS),
    "maximum": (lambda x: torch.maximum(x, torch.ones_like(x)), TIES),
    "median": (torch.median, TIES),
    "median of nan": (torch.median, [math.nan, 1.0, math.nan]),
    "median along an axis": (lambda x: torch.median(x, 0).values, TIES),
    "nanmedian": (torch.nanmedian, [math.nan, 1.0, 1.0]),
    "norm of order 0.5": (lambda x: vector_norm(x, 0.5), SIGNS),
    "norm of order 1.5": (lambda x: vector_norm(x, 1.5), ZEROS),
    "norm of order 2": (lambda x: vector_norm(x, 2), ZEROS),
    "norm of order 3": (lambda x: vector_norm(x, 3), ZEROS),
    "norm of order -1": (lambda x: vector_norm(x, -1), [1.0, 2.0]),
    "pinv of a symmetric matrix": (lambda x: torch.linalg.pinv(x, hermitian=True), SYMMETRIC),
    "pinv with a bound": (lambda x: torch.linalg.pinv(x, atol=1e-3, rtol=0.0), [[2.0, 4.0], [1.0, 2.0]]),
    "relu": (torch.relu, SIGNS),
    "sqrt": (torch.sqrt, [0.0, 4.0]),
    "std": (torch.std, ZEROS),
    "std with a mean": (lambda x: torch.std_mean(x, correction=0)[0], ZEROS),
}
# Ours, weighted, where torch promises nothing: no gradient reaches what does not decide, no power of what is not
# positive has one by its exponent, and of elements that write to one place the one that stays has the gradient.
OTHERS = {
    "a root that is not taken": (lambda x: torch.where(x > 0, torch.sqrt(x), 0.0), [0.0, 4.0], [0.0, 0.5]),
    "hypot at 0": (lambda x: torch.hypot(x, x.detach()), [0.0], [0.0]),
    "powers of negative numbers": (lambda x: (-2.0) ** x, [1.0, 2.0], [0.0, 0.0]),
    "places that are written to twice": (
        lambda x: torch.zeros(2, dtype=x.dtype).index_put((torch.tensor([0, 0, 1]),), x),
        [1.0, 2.0, 3.0],
        [0.0, 1.0, 2.0],
    ),
}


def gradients(run, inputs):
    """The gradient of each input, by a result of its own, the elements of which count differently."""
    leaves = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in inputs]
    results = run(*leaves)
    weights = [torch.arange(1.0, y.numel() + 1, dtype=torch.float64).reshape(y.shape) for y in results]
    return results, torch.autograd.grad(results, leaves, weights)


def test_gradients_at_edges_are_torchs():
    functions, inputs = zip(*AS_TORCH.values(), strict=True)

    def run(*leaves):
        return tuple(function(x) for function, x in zip(functions, leaves, strict=True))

    compiled = pf.torch.compile(run, background=False)
    values, expected = gradients(run, inputs)
    for _ in range(3):
        found, ours = gradients(compiled, inputs)
        for name, y, z, a, b in zip(AS_TORCH, found, values, ours, expected, strict=True):
            torch.testing.assert_close(y, z, equal_nan=True, msg=lambda text, name=name: f"{name}: {text}")
            torch.testing.assert_close(a, b, equal_nan=True, msg=lambda text, name=name: f"{name}: {text}")
    assert not compiled.calls.reasons and compiled.calls.counters["torch_calls"] == 0


@pytest.mark.parametrize("name", OTHERS)
def test_gradients_that_torch_does_not_promise(name):
    function, inputs, expected = OTHERS[name]
    compiled = pf.torch.compile(lambda x: (function(x),), background=False)
    _, (found,) = gradients(compiled, [inputs])
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64))
    assert not compiled.calls.reasons
