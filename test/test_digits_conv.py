"""The example that trains a convolutional network, for a few steps: values, native code, the same numbers again."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import profuse as pf
import pytest

FILE = Path(pf.__file__).parent / "examples" / "digits_conv.py"


@pytest.fixture
def example():
    for name in ("matplotlib", "tqdm", "sklearn"):
        pytest.importorskip(name, reason="the extra examples is not installed")
    spec = importlib.util.spec_from_file_location("digits_conv_example", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where jitted functions are looked up by name
    with pf.knobs.override(unsupported="python"):  # a step writes the running statistics
        spec.loader.exec_module(module)
        yield module
    del sys.modules[spec.name]


def few_steps(example, count=8):
    pf.manual_seed(3)
    rng = np.random.default_rng(3)
    images, labels = example.digits(rng)
    *state, statistics = example.initial(rng)
    losses = []
    for k in range(count):
        part = slice(32 * k, 32 * k + 32)
        value, *state = example.step(*state, statistics, images[part], labels[part], 2e-3, float(k + 1))
        losses.append(float(value))
    return losses, state[0], statistics, (images, labels)


def test_steps_are_native_and_learn(example):
    losses, p, statistics, (images, labels) = few_steps(example)
    counters = example.step.state().counters
    assert counters["traces"] == 1 and counters["compiles"] == 1, example.step.explain()
    assert counters["python_calls"] <= 1 and counters["guard_misses"] == 0, example.step.explain()
    assert losses[-1] < losses[0] / 2
    assert all(np.abs(statistics[f"mean{k}"]).max() > 0 for k in range(3)), "batch norm has written them"
    right = (example.predicted(p, statistics, images[:64]) == labels[:64]).mean()
    assert right > 0.3


def test_a_seed_gives_the_same_numbers(example):
    first, second = (few_steps(example, 4)[0] for _ in range(2))
    np.testing.assert_allclose(first, second, rtol=1e-3)  # the first calls are NumPy's
    third = few_steps(example, 4)[0]
    assert second == third


def test_images_are_moved_by_a_pixel(example):
    images = np.arange(2 * 64.0).reshape(2, 1, 8, 8)
    moved = example.moved(images, np.random.default_rng(0))
    assert moved.shape == images.shape
    wide = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    for k in range(2):
        parts = [wide[k, :, up : up + 8, left : left + 8] for up in range(3) for left in range(3)]
        assert any(np.array_equal(moved[k], part) for part in parts)
