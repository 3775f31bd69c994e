"""The example that trains on the tape, for a few steps: values, gradients, what runs natively."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import profuse as pf
import pytest

FILE = Path(pf.__file__).parent / "examples" / "chars.py"


@pytest.fixture(scope="module")
def chars():
    for name in ("matplotlib", "tqdm"):
        pytest.importorskip(name, reason="the extra examples is not installed")
    spec = importlib.util.spec_from_file_location("chars_example", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where jitted functions are looked up by name
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture(scope="module")
def data(chars):
    return chars.encoded(chars.text())


def traced(chars):
    """The loss of the example as one function of plain arrays, for `pf.value_and_grad`."""

    def loss(p, characters, targets):
        x = p["characters"][characters] + p["positions"]
        for k in range(chars.LAYERS):
            x = chars.block.__wrapped__(p[f"block{k}"], x)
        return chars.cross_entropy.__wrapped__(chars.logits.__wrapped__(p["head"], x), targets)

    return pf.value_and_grad(loss)


def mapped(fn, p):
    return {k: mapped(fn, v) if isinstance(v, dict) else fn(v) for k, v in p.items()}


def counted(chars, what):
    functions = (chars.block, chars.logits, chars.cross_entropy)
    return [f.state().counters[what] for f in functions]


def test_the_text_is_printable_and_long_enough(chars, data):
    assert len(data) == chars.SIZE and set(chars.text()) <= set(chars.VOCABULARY)
    assert data.min() >= 0 and data.max() < len(chars.VOCABULARY)


def test_no_position_sees_a_later_one(chars, data):
    """Scores at a position are the same whatever follows it, as `sample` takes for granted."""
    p = chars.initial(np.random.default_rng(1))
    first, second = data[None, : chars.LENGTH].copy(), data[None, : chars.LENGTH].copy()
    second[0, 20:] = 0
    with pf.no_grad():
        a, b = (np.asarray(chars.predict(p, x)) for x in (first, second))
    # Equal up to rounding: the first call runs in NumPy, the second one natively.
    np.testing.assert_allclose(a[0, :20], b[0, :20], atol=1e-4)
    assert np.abs(a[0, 20:] - b[0, 20:]).max(axis=-1).min() > 1e-2


def test_gradients_on_the_tape_are_those_of_the_traced_loss(chars, data):
    """R1.27: in the profiled step, in the one that compiles, and natively after these."""
    rng = np.random.default_rng(2)
    trainer, value_and_grad = chars.Trainer(rng), traced(chars)
    launches = []
    for _ in range(5):
        characters, targets = chars.batch(data, rng)
        loss = chars.cross_entropy(chars.predict(trainer.p, characters), targets)
        loss.backward()
        double = mapped(lambda x: x.data.astype(float), trainer.p)
        value, wanted = value_and_grad(double, characters, targets)
        np.testing.assert_allclose(float(loss), value, rtol=1e-5)
        pairs = zip(chars.leaves(trainer.p), chars.leaves(wanted), strict=True)
        for x, gradient in pairs:
            assert x.grad.dtype == np.float32 and x.grad.shape == x.shape
            np.testing.assert_allclose(x.grad, gradient, rtol=1e-4, atol=1e-5 * np.abs(gradient).max())
            x.grad = None
        trainer.step(characters, targets, 1e-3)
        launches.append(counted(chars, "kernel_launches"))
    # Two forward and two backward runs a round; the block is called twice in each.
    early, late = np.diff(launches[-3:], axis=0)
    np.testing.assert_array_equal(early, late)
    assert (late >= 4).all(), "each function's forward and reverse half is native"
    assert counted(chars, "guard_misses") == counted(chars, "fallback_calls") == [0, 0, 0]
    assert counted(chars, "compile_failures") == [0, 0, 0]
    assert not any("was baked" in reason for reason in chars.block.state().reasons)


def test_the_loss_falls_and_samples_are_text(chars, data):
    trainer, losses = chars.train(data, 40, np.random.default_rng(0))
    assert len(losses) == 40 == trainer.count
    assert losses[0] > 4.3, "the logarithm of the number of characters is 4.6"
    assert np.mean(losses[-5:]) < 3.5
    drawn = chars.sample(trainer.p, "The ", 12, np.random.default_rng(0))
    assert drawn.startswith("The ") and len(drawn) == 16 and set(drawn) <= set(chars.VOCABULARY)
    assert all(x.grad is None for x in chars.leaves(trainer.p))
    assert drawn == chars.sample(trainer.p, "The ", 12, np.random.default_rng(0))
