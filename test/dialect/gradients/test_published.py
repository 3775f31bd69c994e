"""Training programs as people publish them: gradients against central differences."""

import dataclasses
from typing import Any

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.trees.pytree import flatten, unflatten
from published_programs import PROGRAMS
from random_functions import Plain

STEP = 1e-6


@pytest.fixture(autouse=True)
def _no_cache():
    with pf.knobs.override(cache=False):
        yield


def directions_of(tree, seed=1):
    """An array for each float array of a tree, None in the place of all other leaves."""
    rng = np.random.default_rng(seed)
    leaves, spec = flatten(tree)
    drawn = [rng.standard_normal(np.shape(x)) if np.asarray(x).dtype.kind == "f" else None for x in leaves]
    return drawn, unflatten(spec, drawn)


def moved(tree, directions, step):
    leaves, spec = flatten(tree)
    pairs = zip(leaves, directions, strict=True)
    return unflatten(spec, [x if d is None else x + step * d for x, d in pairs])


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_of_central_differences(name):
    program = PROGRAMS[name]
    first, *rest = program.args
    drawn, tree = directions_of(first)

    def plain(step):
        return program.fn(np, Plain, moved(first, drawn, step), *rest)

    def loss(*args):
        return program.fn(np, pf, *args)

    wanted = (plain(STEP) - plain(-STEP)) / (2 * STEP)
    made = pf.value_and_grad(loss, background=False)
    for _ in range(3):
        value, grads = made(*program.args)
        np.testing.assert_allclose(value, plain(0.0), rtol=1e-9)
        leaves = [g for g in flatten(grads)[0] if g is not None]
        assert len(leaves) == sum(d is not None for d in drawn)
        found = sum((g * d).sum() for g, d in zip(leaves, filter(_is_array, drawn), strict=True))
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8)
    counters = made.state().counters
    assert counters["kernel_launches"] > 0
    assert counters["compile_failures"] == 0
    _, tangent = pf.jvp(loss, program.args, (tree, *[None] * len(rest)))
    np.testing.assert_allclose(tangent, wanted, rtol=1e-6, atol=1e-8)


def _is_array(x: Any) -> bool:
    return x is not None


def test_hyperparameters_through_steps_of_training():
    """The gradient of a loss after some steps of descent by the rate and the decay."""
    rng = np.random.default_rng(2)
    x, y, w0 = rng.standard_normal((8, 3)), rng.standard_normal(8), rng.standard_normal(3)

    def loss(w, decay):
        return ((x @ w - y) ** 2).mean() + decay * (w * w).sum()

    def after(hyper):
        w, velocity = w0, np.zeros(3)
        for _ in range(4):
            velocity = 0.9 * velocity - hyper["rate"] * pf.grad(loss)(w, hyper["decay"])
            w = w + velocity
        return ((x @ w - y) ** 2).mean()

    at = {"rate": 0.05, "decay": 0.1}
    found = pf.grad(after)(at)
    for name in at:
        ahead, behind = (after(at | {name: at[name] + s * STEP}) for s in (1, -1))
        np.testing.assert_allclose(found[name], (ahead - behind) / (2 * STEP), rtol=1e-6)


@dataclasses.dataclass
class Weights:
    w: Any
    b: Any
    power: int = 2


def test_hessian_vector_products_of_trees_in_both_ways():
    """Forward over reverse takes a gradient, with None for integers, as a tangent."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((6, 3))
    at = Weights(rng.standard_normal((3, 2)), rng.standard_normal(2))

    def loss(p):
        return (np.tanh(x @ p.w + p.b) ** p.power).sum()

    gradient = pf.grad(loss)(at)
    assert gradient.power is None
    _, forward = pf.jvp(pf.grad(loss), (at,), (gradient,))

    def along(p):
        g = pf.grad(loss)(p)
        return (g.w * gradient.w).sum() + (g.b * gradient.b).sum()

    reverse = pf.grad(along)(at)
    for name in ("w", "b"):
        ahead, behind = (pf.grad(loss)(Weights(at.w + s * gradient.w, at.b + s * gradient.b)) for s in (STEP, -STEP))
        wanted = (getattr(ahead, name) - getattr(behind, name)) / (2 * STEP)
        np.testing.assert_allclose(getattr(forward, name), wanted, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(getattr(reverse, name), wanted, rtol=1e-5, atol=1e-7)


def test_expectation_maximisation_is_a_gradient_step():
    """The M step of a mixture's means, by the responsibilities that a gradient gives."""
    rng = np.random.default_rng(8)
    x, means = rng.standard_normal(40), np.array([-1.0, 0.5])

    def log_joint(logits, means):
        return logits[None] - 0.5 * (x[:, None] - means[None]) ** 2

    def likelihood(joint):
        top = joint.max(1, keepdims=True)
        return (np.log(np.exp(joint - top).sum(1)) + top[:, 0]).sum()

    joint = log_joint(np.zeros(2), means)
    shares = pf.grad(likelihood)(joint)
    np.testing.assert_allclose(shares.sum(1), 1)
    np.testing.assert_allclose(shares, np.exp(joint) / np.exp(joint).sum(1, keepdims=True))
    step = pf.grad(lambda m: likelihood(log_joint(np.zeros(2), m)))(means) / shares.sum(0)
    np.testing.assert_allclose(means + step, (shares * x[:, None]).sum(0) / shares.sum(0))
