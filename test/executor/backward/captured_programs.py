"""Small training steps, run by the eager tape and captured, step for step."""

from __future__ import annotations

import contextlib

import numpy as np
import profuse as pf

WEIGHTS = np.random.default_rng(0).standard_normal((3, 5))
INTERPRETED = lambda made: made.interpret  # noqa: E731 - one compiler, so one cache


def register(kind, x, y):
    """Register a hook of a kind, which changes nothing, on the leaf ``x`` or on ``y``."""
    if kind == "tensor":
        y.register_hook(lambda g: None)
    elif kind == "pre":
        y.node.register_prehook(lambda gs: None)
    elif kind == "post":
        y.node.register_hook(lambda found, gs: None)
    elif kind == "accumulated":
        x.register_post_accumulate_grad_hook(lambda x: None)


def captured(compiler=INTERPRETED, dynamic=False):
    return pf.compiled_autograd(compiler, dynamic)


def compiled(run):
    """A jitted function with compiled halves; ``run(f)``: how it is called until then."""

    @pf.jit
    def f(x):
        return np.tanh(x * 2) + np.exp(x) * x

    for _ in range(4):
        run(f)
        f.wait()
    return f


def two_results(x, w):
    """A jitted function with compiled halves; its second result alone depends on ``w``."""

    @pf.jit
    def both(x, w):
        y = np.tanh(x * 2) * np.exp(x)
        return y * x + x, np.exp(w * w) * y * y + w * y

    for _ in range(4):
        first, second = both(x, w)
        (first + second).sum().backward()
        both.wait()
    assert len(both(x, w)[0].node.metas) == 2
    return both


def steps(program, count, scope, weights=WEIGHTS):
    """Gradients after each step, what was logged, and how many runs were captured."""
    log, found = [], []
    before = pf.compiled_autograd.state().captures
    w = pf.array(weights.copy(), requires_grad=True)
    for k in range(count):
        loss = program(w, log, k)
        with scope():
            loss.backward()
        found.append(None if w.grad is None else np.array(w.grad))
    return found, log, pf.compiled_autograd.state().captures - before


def both(program, count=3, compiler=INTERPRETED, weights=WEIGHTS):
    """The captures of a program, whose gradients and hooks are those of the eager tape."""
    wanted, log, none = steps(program, count, contextlib.nullcontext, weights)
    assert none == 0
    found, own, captures = steps(program, count, lambda: captured(compiler), weights)
    assert own == log
    for a, b in zip(found, wanted, strict=True):
        # Kernels may round in another way than NumPy; the interpreter does not.
        np.testing.assert_allclose(a, b, rtol=0 if compiler is INTERPRETED else 1e-12)
    return captures
