"""What random training programs have found (see `fuzz.training`), as small programs."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest

X = np.array([0.3, -1.2, 2.1])
# A jitted function runs op by op to the end, or is compiled after a call.
OPTIONS = pytest.mark.parametrize("options", [{"profiled_runs": 10**6}, {}], ids=["traced", "compiled"])


def leaf(values=X):
    return pf.array(values, requires_grad=True)


def test_results_are_written_to_out():
    x, y = leaf(), leaf(X[::-1])
    z = x * 2.0
    np.add(z, y, out=z)
    np.negative(z, out=z)
    z.sum().backward()
    np.testing.assert_array_equal(x.grad, [-2.0] * 3)
    np.testing.assert_array_equal(y.grad, [-1.0] * 3)


@OPTIONS
def test_a_jitted_function_is_a_checkpoint(options):
    """Its rule runs outside of a trace while the function runs op by op."""

    @pf.checkpoint
    def cell(x, n, scale):
        return np.tanh(x) * scale, (x * scale).sum() * n

    f = pf.jit(lambda x, s: cell(x, 2, s), background=False, **options)
    plain, s = leaf(), leaf(np.array(0.7))
    y, z = cell(plain, 2, s)
    ((y**2).sum() + z).backward()
    for _ in range(5):
        x, t = leaf(), leaf(np.array(0.7))
        y, z = f(x, t)
        ((y**2).sum() + z).backward()
        np.testing.assert_allclose(x.grad, plain.grad)
        np.testing.assert_allclose(t.grad, s.grad)


@OPTIONS
def test_gradients_through_a_checkpoint_have_gradients(options):
    cell = pf.checkpoint(lambda x, y: np.sin(x) * y)
    f = pf.jit(lambda x: cell(x, x * x), background=False, **options)
    for _ in range(4):
        x = leaf()
        (g,) = pf.gradients(f(x).sum(), [x], create_graph=True)
        np.testing.assert_allclose(np.array(g.data), np.cos(X) * X**2 + 2 * X * np.sin(X))
        (h,) = pf.gradients(g.sum(), [x])
        np.testing.assert_allclose(h, (2 - X**2) * np.sin(X) + 4 * X * np.cos(X))


@OPTIONS
def test_a_rule_that_gives_no_gradient_gives_zeros(options):
    @pf.custom_vjp
    class gate:
        def forward(x, y):
            return np.sin(x) * y, (x, y)

        def backward(saved, g):
            return None, g * np.sin(saved[0])

    f = pf.jit(lambda x, y: gate(x, y), background=False, **options)
    for _ in range(5):
        x, y = leaf(), leaf(X[::-1])
        f(x, y).sum().backward()
        np.testing.assert_array_equal(x.grad, np.zeros(3))
        np.testing.assert_allclose(y.grad, np.sin(X))
