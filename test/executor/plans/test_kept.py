"""What a differentiable subgraph keeps between its halves, under a budget, and what is told."""

import re

import numpy as np
import profuse as pf
import pytest

RNG = np.random.default_rng(8)
X = np.float32(RNG.standard_normal((8, 16)))
W = np.float32(RNG.standard_normal((16, 32)))
V = np.float32(RNG.standard_normal((32, 4)))


def attention(x, w, v):
    h = np.tanh(x @ w)
    e = np.exp(h - h.max(1, keepdims=True))
    return ((e / e.sum(1, keepdims=True) @ v) ** 2).mean()


def trained(budget, profiling):
    """The function after some steps, with the gradients of each."""
    before = pf.set_profiling_mode(profiling)
    try:
        with pf.knobs.override(cache=False, background=False, activation_budget=budget):
            f, found = pf.jit(attention), []
            for _ in range(4):
                w, v = pf.array(W, requires_grad=True), pf.array(V, requires_grad=True)
                f(X, w, v).backward()
                found.append((w.grad, v.grad))
    finally:
        pf.set_profiling_mode(before)
    return f, found


def kept(f):
    (told,) = re.findall(r"keeps (\d+) bytes for its gradient", f.explain())
    return int(told)


@pytest.mark.parametrize("profiling", [True, False], ids=["profiling", "keyed"])
def test_a_smaller_budget_keeps_less_between_the_halves(profiling):
    wanted = pf.grad(attention, wrt=(1, 2))(X, W, V)
    sizes = []
    for budget in (1.0, 0.5, 0.0):
        f, found = trained(budget, profiling)
        sizes.append(kept(f))
        for gradients in found:
            for g, want in zip(gradients, wanted, strict=True):
                np.testing.assert_allclose(g, want, rtol=1e-4, atol=1e-6)
        assert f.state().counters["compile_failures"] == 0
    # Of products and statistics of rows; of one product; nothing beside arguments.
    assert sizes == [4 * (8 * 32 + 8 * 4 + 2 * 8), 4 * 8 * 4, 0]


def test_explain_tells_what_is_kept_and_why():
    told = trained(1.0, True)[0].explain()
    assert "beside 3 of its inputs" in told
    for text in (r"float32\[8, 32\]: matmul", r"float32\[8, 1\]: max", r"float32\[8, 1\]: sum"):
        assert re.search(rf"{text} at .*test_kept.py:\d+, which is not computed again", told)
