"""A transformer trained under compiled autograd, beside the eager tape (R4.7, R4.26, R4.42)."""

from __future__ import annotations

import contextlib
import importlib.util
from pathlib import Path

import numpy as np
import profuse as pf
import pytest

FILE = Path(pf.__file__).parent / "examples" / "chars.py"


@pytest.fixture(scope="module")
def chars():
    pytest.importorskip("matplotlib")
    pytest.importorskip("tqdm")
    spec = importlib.util.spec_from_file_location("chars_example", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.BATCH = 2
    return module


def trained(chars, steps, scope):
    """Losses, norms of gradients that hooks have logged, and captures after each step.

    With clipping by hooks, gradients summed over two batches, and a schedule for the rate.
    """
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
                [x.grad for x in parameters], trainer.first, trainer.second, rate,
                float(trainer.count),
            )  # fmt: skip
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


def test_captures_stop_when_the_functions_are_compiled_and_the_loss_falls(chars):
    wanted, _, _ = trained(chars, 8, contextlib.nullcontext)
    found, _, captures = trained(chars, 8, pf.compiled_autograd)
    np.testing.assert_allclose(found, wanted, rtol=2e-2)
    assert captures[4:] == captures[4:5] * 4
    state = pf.compiled_autograd.state().runs[-1].function.state()
    assert state.counters["kernel_launches"] > 0 and state.counters["compile_failures"] == 0
