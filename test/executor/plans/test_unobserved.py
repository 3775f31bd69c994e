"""Operands that no observer of a fused op has seen: of host calls, in branches and in loops."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from internals import noted_executor_of
from profuse.dialect.reasons import Effect, Kind

RNG = np.random.default_rng(4)
X, W = RNG.normal(size=5), RNG.normal(size=5)


@pf.custom_vjp
class product:
    def forward(x, y):
        return x * y, (x, y)

    def backward(saved, g):
        return g * saved[1], g * saved[0]


def first_by_host(x, w):
    return (np.tanh(x) * 2).sum() + np.cos(np.sort(w) * 3).sum()


def nested_in_host(x, w):
    return (np.tanh(x) * 2).sum() + np.sort(np.fft.fftshift(w))[1:3].sum() * 3


def own_rule(x, w):
    return (np.tanh(product(x, w)) * 2).sum()


def either(x, w):
    """What is read in branches alone, one of which runs."""
    taken = pf.cond(x.sum() > -1e9, lambda: (w * x).sum() * 2, lambda: np.sin(w).sum())
    return taken + (np.tanh(x) * 2).sum()


def masked(x, w):
    return (np.tanh(x) * 2).sum() + (w[w > 0] ** 2).sum() * 3


def rounds(x, w):
    """What is read in the rounds of a loop alone."""
    total = x[0] * 0
    for k in range(40):
        total = total * 0.5 + np.sin(w[k % 5]) * (k + 1)
    return total + (np.tanh(x) * 2).sum()


FUNCTIONS = [first_by_host, nested_in_host, own_rule, either, masked, rounds]


def leaves(*data):
    return [pf.array(x, requires_grad=True) for x in data]


def plain_gradients(f, x, w, step=1e-6):
    found = []
    for k, a in enumerate((x, w)):
        g = np.zeros_like(a)
        for place in range(len(a)):
            sides = []
            for sign in (1, -1):
                moved = [x.copy(), w.copy()]
                moved[k][place] += sign * step
                sides.append(float(f(*moved)))
            g[place] = (sides[0] - sides[1]) / (2 * step)
        found.append(g)
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("profiling", [True, False], ids=["profiled", "keyed"])
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_gradients_are_there_and_computed_by_kernels(f, profiling):
    with pf.knobs.override(background=False, profiling_mode=profiling):
        jitted = pf.jit(f)
        wanted = plain_gradients(f, X, W)
        for call in range(5):
            x, w = leaves(X, W)
            jitted(x, w).backward()
            for g, expected in zip((x.grad, w.grad), wanted, strict=True):
                assert g is not None, call
                np.testing.assert_allclose(g, expected, rtol=1e-5, atol=1e-6)
    assert jitted.state().counters["python_calls"] == 0
    if profiling:
        on_tape = noted_executor_of(jitted)
        assert sum(len(e.result.kernels) for e in on_tape.chain() if e.result is not None) >= 2
        assert not [r for r in on_tape.result.refusals if r.kind is Kind.UNOBSERVED]


def sides(x, w):
    """One branch is not taken in the profiled run; it alone reads ``w``."""
    chosen = pf.cond(x.sum() > 0, lambda: (w * x).sum() * 2, lambda: (x * 3).sum())
    return chosen + (np.tanh(x) * 2).sum()


def test_a_branch_that_never_ran_stays_outside_of_the_subgraphs_and_has_its_gradient():
    f = pf.jit(sides, background=False)
    low, high = -np.abs(X), np.abs(X)
    for x0 in (low, low, low, low, high, low, high, high):
        x, w = leaves(x0, W)
        f(x, w).backward()
        expected = plain_gradients(sides, x0, W)
        np.testing.assert_allclose(x.grad, expected[0], rtol=1e-5, atol=1e-6)
        if x0 is high:
            np.testing.assert_allclose(w.grad, expected[1], rtol=1e-5, atol=1e-6)
        else:
            assert w.grad is None or not w.grad.any()
    on_tape = noted_executor_of(f)
    told = [r for r in on_tape.result.refusals if r.kind is Kind.UNOBSERVED]
    assert [(r.op, r.effect) for r in told] == [("scf.if", Effect.APART)]
    assert sum(len(e.result.kernels) for e in on_tape.chain() if e.result is not None) >= 2
    assert "scf.if: what it reads was never observed" in f.explain()
