"""Jitted steps of optimisers on arrays of the tape: kernels write the parameters in place."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.errors import GradientError

RNG = np.random.default_rng(11)
SHAPES = ((3, 4), (4,), (2, 1, 3))


def gradient_descent(params, grads):
    with pf.no_grad():
        for p, g in zip(params, grads, strict=True):
            p -= 0.1 * g


@pf.no_grad()
def with_decay(params, grads):
    for p, g in zip(params, grads, strict=True):
        np.subtract(p, 0.1 * (g + 0.01 * p), out=p)


def with_momentum(params, grads, speeds):
    with pf.no_grad():
        for p, g, v in zip(params, grads, speeds, strict=True):
            v *= 0.9
            v += g
            p[...] = p - 0.1 * v


def adam(params, grads, first, second, one, two):
    with pf.no_grad():
        for p, g, m, v in zip(params, grads, first, second, strict=True):
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            p -= 0.01 * (m / one) / (np.sqrt(v / two) + 1e-8)


def clipped(params, grads):
    with pf.no_grad():
        norm = np.sqrt(sum((g * g).sum() for g in grads))
        for p, g in zip(params, grads, strict=True):
            p -= g * np.minimum(1.0, 1.0 / norm)
    return norm


def zeros():
    return [np.zeros(shape) for shape in SHAPES]


STEPS = {
    "descent": (gradient_descent, 0),
    "decay": (with_decay, 0),
    "momentum": (with_momentum, 1),
    "adam": (adam, 2),
    "clipped": (clipped, 0),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("on_tape", [False, True], ids=["plain gradients", "gradients on the tape"])
@pytest.mark.parametrize("name", STEPS)
def test_steps_are_native(name, on_tape):
    step, states = STEPS[name]
    jitted = pf.jit(step, unsupported="python")
    values = [RNG.normal(size=shape) for shape in SHAPES]
    params = [pf.array(v.copy(), requires_grad=True) for v in values]
    expected = [pf.array(v.copy(), requires_grad=True) for v in values]
    nodes = [p.node for p in params]
    state, other = [zeros() for _ in range(states)], [zeros() for _ in range(states)]
    for k in range(8):
        grads = [RNG.normal(size=shape) for shape in SHAPES]
        given = [pf.array(g) for g in grads] if on_tape else grads
        more = (1 - 0.9 ** (k + 1), 1 - 0.999 ** (k + 1)) if name == "adam" else ()
        found = jitted(params, given, *state, *more)
        wanted = step(expected, grads, *other, *more)
        if wanted is not None:
            assert type(found) is (pf.Array if on_tape else type(wanted))
            np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-12)
        for p, q in zip(params, expected, strict=True):
            np.testing.assert_allclose(p.data, q.data, rtol=1e-12)
        if k == 2:
            before = jitted.state().counters
    after = jitted.state().counters
    assert [p.node for p in params] == nodes
    assert after.get("python_calls", 0) == 0
    for counter in ("profiled_runs", "compiles", "fallback_calls", "guard_misses", "evaluated_ops"):
        assert after.get(counter, 0) == before.get(counter, 0), counter
    assert after["kernel_launches"] > before["kernel_launches"]


def loss(params, x):
    w, b = params
    return ((x @ w + b - 1.0) ** 2).mean()


def test_a_loop_of_training_learns_what_it_learns_without_jit():
    step = pf.jit(gradient_descent, unsupported="python")
    graph = pf.jit(loss, unsupported="python")
    x = RNG.normal(size=(6, 3))
    seen = []
    for compute, change in ((loss, gradient_descent), (graph, step)):
        params = [pf.array(np.full((3, 4), 0.5), requires_grad=True), pf.array(np.zeros(4), requires_grad=True)]
        losses = []
        for _ in range(6):
            found = compute(params, x)
            found.backward()
            change(params, [p.grad for p in params])
            for p in params:
                p.grad = None
            losses.append(float(found.detach()))
        seen.append(losses)
    np.testing.assert_allclose(seen[1], seen[0], rtol=1e-12)
    assert seen[1][-1] < seen[1][0]
    assert step.state().counters["python_calls"] == 0


def noted(p, g):
    p -= 0.1 * g


def scaled(p, g):
    with pf.no_grad():
        p -= 0.1 * g
    p *= 0.5


def and_a_loss(p, g):
    with pf.no_grad():
        p -= 0.1 * g
    return (p * p).sum()


def and_a_view(p, g):
    with pf.no_grad():
        p -= 0.1 * g
    return p[:2]


@pytest.mark.parametrize("step", [noted, scaled, and_a_loss, and_a_view])
def test_what_the_tape_notes_is_pythons(step):
    jitted = pf.jit(step, unsupported="python")
    start, g = np.arange(1.0, 4.0), np.ones(3)
    for _ in range(4):
        gradients = []
        for run in (step, jitted):
            leaf = pf.array(start.copy(), requires_grad=True)
            p = leaf if step in (and_a_loss, and_a_view) else leaf * 2.0
            found = run(p, g)
            y = (p * p).sum() if found is None else found.sum()
            y.backward()
            gradients.append((np.array(leaf.grad), p.data.copy()))
        for a, b in zip(*gradients, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-12)
    assert jitted.state().counters["python_calls"] == 4


def test_the_tape_counts_what_kernels_write():
    step = pf.jit(gradient_descent, unsupported="python")
    for _ in range(4):
        p = pf.array(np.ones(3), requires_grad=True)
        y = (p * p).sum()
        step([p], [np.ones(3)])
        with pytest.raises(GradientError, match="written to"):
            y.backward()
    assert step.state().counters["python_calls"] == 0


def returning(p, g):
    p += g
    return p, g, p * 2.0, g * 2.0


def test_results_are_the_objects_that_python_returns():
    jitted = pf.jit(returning, unsupported="python")
    for _ in range(4):
        p, g = pf.array(np.ones(3), requires_grad=True), np.ones(3)
        with pf.no_grad():
            found = jitted(p, g)
        assert found[0] is p
        assert found[1] is g
        assert type(found[2]) is pf.Array
        assert not found[2].requires_grad
        assert type(found[3]) is np.ndarray
        np.testing.assert_array_equal(found[2].data, 4.0)
    assert jitted.state().counters["python_calls"] == 0


@dataclass
class Counted:
    steps: int = 0
    mean: np.ndarray = field(default_factory=lambda: np.zeros(3))

    def step(self, p, g):
        with pf.no_grad():
            p -= 0.1 * g
        self.steps += 1
        self.mean = 0.5 * self.mean + g


@pytest.mark.parametrize("on_tape", [False, True])
def test_what_a_step_assigns(on_tape):
    """An array that is made of arrays of the tape is one itself, which no graph assigns."""
    jitted, plain = Counted(), Counted()
    step = pf.jit(jitted.step, unsupported="python")
    for _ in range(4):
        g = pf.array(RNG.normal(size=3)) if on_tape else RNG.normal(size=3)
        p, q = (pf.array(np.ones(3), requires_grad=True) for _ in range(2))
        step(p, g)
        plain.step(q, g)
        np.testing.assert_allclose(p.data, q.data, rtol=1e-14)
        assert type(jitted.mean) is type(plain.mean)
    assert jitted.steps == plain.steps == 4
    assert (step.state().counters["python_calls"] == 0) is not on_tape
