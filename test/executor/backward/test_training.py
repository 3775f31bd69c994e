"""A transformer trained under compiled autograd, beside the eager tape (R4.7, R4.26, R4.42)."""

from __future__ import annotations

import contextlib
import importlib.util
from pathlib import Path

import numpy as np
import profuse as pf
import pytest
from every_case import EVERY_CASE

FILE = Path(pf.__file__).parent / "examples" / "chars.py"


@pytest.fixture(scope="module")
def chars():
    pytest.importorskip("matplotlib")
    pytest.importorskip("tqdm")
    spec = importlib.util.spec_from_file_location("chars_example", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.BATCH, module.LENGTH, module.WIDTH = 2, 16, 32
    module.LATER = module.LATER[:16, :16].copy()
    module.LAYERS = 2 if EVERY_CASE else 1
    return module


def trained(chars, steps, scope):
    """Losses, norms of gradients that hooks have logged, and captures after each step.

    With clipping by hooks, gradients summed over two batches, and a schedule for the rate. All
    begins unprofiled and uncompiled.
    """
    for fn in (chars.block, chars.logits, chars.cross_entropy, chars.adam):
        fn.flush()
    pf.compiled_autograd.reset()
    rng = np.random.default_rng(3)
    data = chars.encoded(chars.text()[:5000])
    trainer, losses, norms, captures = chars.Trainer(rng), [], [], []
    parameters = list(chars.leaves(trainer.p))

    def clipped(g):
        norm = float(np.linalg.norm(g))
        norms.append(norm)
        return g * np.float32(min(1.0, 0.05 / (norm + 1e-9)))

    for x in parameters[:3]:
        x.register_hook(clipped)
    logged = []
    parameters[-1].register_post_accumulate_grad_hook(lambda x: logged.append(x.grad.copy()))
    for k in range(steps):
        for _ in range(2):
            x, y = chars.batch(data, rng)
            loss = chars.cross_entropy(chars.predict(trainer.p, x), y) * np.float32(0.5)
            with scope():
                loss.backward()
            losses.append(float(loss))
        trainer.count += 1
        rate = 6e-3 * (k + 1) / steps
        with pf.no_grad():
            changes, trainer.first, trainer.second = chars.adam(
                [x.grad for x in parameters], trainer.first, trainer.second, rate, float(trainer.count)
            )
            for x, change in zip(parameters, changes, strict=True):
                x -= change
                x.grad = None
        if k < 4:
            chars.settle()
            for made in pf.compiled_autograd.state().runs:
                made.function.wait()
        captures.append(pf.compiled_autograd.state().captures)
    assert len(logged) == 2 * steps and len(norms) == 6 * steps
    return losses, norms, captures


def test_losses_are_the_same_bit_for_bit_where_all_is_evaluated_by_numpy(chars):
    before = pf.set_optimize(False)
    try:
        wanted, norms, none = trained(chars, 5, contextlib.nullcontext)
        found, own, captures = trained(chars, 5, pf.compiled_autograd)
    finally:
        pf.set_optimize(before)
    assert none == [0] * 5
    assert found == wanted and own == norms
    assert captures == [1] * 5


def test_losses_are_the_same_bit_for_bit_where_kernels_are_exact(chars):
    """Profiled and compiled at the same steps, as jitted functions have gradients of their own."""
    with pf.knobs.override(exact=True, background=False):
        wanted, norms, _ = trained(chars, 6, contextlib.nullcontext)
        found, own, captures = trained(chars, 6, pf.compiled_autograd)
    assert found == wanted and own == norms
    assert captures[3:] == captures[3:4] * 3
    state = pf.compiled_autograd.state().runs[-1].function.state()
    assert state.counters["kernel_launches"] > 0 and state.counters["compile_failures"] == 0


def op_by_op(steps, scope):
    """Losses, norms and captures of a network of which nothing is jitted."""
    rng = np.random.default_rng(4)
    shapes = [(6, 16), (16,), (16, 16), (16,), (16, 3)]
    values = [rng.standard_normal(s).astype(np.float32) / 3 for s in shapes]
    p = [pf.array(x, requires_grad=True) for x in values]
    losses, norms, logged = [], [], []

    def clipped(g):
        norms.append(float(np.linalg.norm(g)))
        return g * np.float32(min(1.0, 0.1 / (norms[-1] + 1e-9)))

    for x in p[:3]:
        x.register_hook(clipped)
    p[-1].register_post_accumulate_grad_hook(lambda x: logged.append(np.array(x.grad)))
    for k in range(steps):
        for _ in range(2):
            x, y = rng.standard_normal((20, 6)).astype(np.float32), rng.integers(0, 3, 20)
            h = np.tanh(x @ p[0] + p[1])
            h = h - h.mean(axis=-1, keepdims=True)
            h = h / np.sqrt((h * h).mean(axis=-1, keepdims=True) + np.float32(1e-5))
            z = np.maximum(h @ p[2] + p[3], 0) @ p[4]
            z = z - z.max(axis=-1, keepdims=True)
            loss = (np.log(np.exp(z).sum(axis=-1)) - z[np.arange(20), y]).mean() * np.float32(0.5)
            with scope():
                loss.backward()
            losses.append(float(loss))
        with pf.no_grad():
            for x in p:
                x -= np.float32(0.5 * (k + 1) / steps) * x.grad
                x.grad = None
        pf.compiled_autograd.wait(60)
    return losses, norms, [g.tobytes() for g in logged]


def test_what_is_not_jitted_is_the_same_bit_for_bit_beside_the_program():
    """Whatever runs eagerly meanwhile, is profiled, or has kernels (R4.7)."""
    pf.compiled_autograd.reset()
    with pf.knobs.override(exact=True, background=True):
        wanted = op_by_op(8, contextlib.nullcontext)
        found = op_by_op(8, pf.compiled_autograd)
        state = pf.compiled_autograd.state()
    assert found == wanted and wanted[0][-1] < wanted[0][0]
    assert state.captures == 1 and state.hits >= 10
    counters = state.runs[0].function.state().counters
    assert counters["kernel_launches"] > 0 and counters["guard_misses"] == 0


def test_kernels_that_are_not_exact_change_gradients_by_little():
    """What products fused with sums and the order of sums make of them, in single precision."""
    pf.compiled_autograd.reset()
    with pf.knobs.override(background=False):
        wanted = op_by_op(4, contextlib.nullcontext)
        found = op_by_op(4, pf.compiled_autograd)
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-5)
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-4)


def test_captures_stop_when_the_functions_are_compiled_and_the_loss_falls(chars):
    wanted, _, _ = trained(chars, 8, contextlib.nullcontext)
    found, _, captures = trained(chars, 8, pf.compiled_autograd)
    np.testing.assert_allclose(found, wanted, rtol=2e-2)
    assert captures[4:] == captures[4:5] * 4
    state = pf.compiled_autograd.state().runs[-1].function.state()
    assert state.counters["kernel_launches"] > 0 and state.counters["compile_failures"] == 0
