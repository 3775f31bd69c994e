"""Calls whose graphs are cut into device groups, on the host (R3.14 to R3.27)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import profuse as pf
import pytest

SHAPES = [(4, 8), (4, 8), (4, 8), (6, 12), (8, 8), (3, 2), (1, 8)]


@pytest.fixture
def on_host() -> Iterator[None]:
    pf.set_device_fusion(True, host=True)
    yield
    pf.set_device_fusion(None)


def gate(x, y):
    a, b = np.split(x * y, 2, axis=1)
    return a * np.tanh(b), b


def joined(x, y):
    z = np.concatenate([x + 1, y * 2], axis=1)
    return np.exp(z - z.max(axis=1, keepdims=True)), x.T


def written(x, y):
    z = x + y
    w = np.tanh(z)
    z += 1
    return w * z, z[:, ::-1]


def beside(x, y):
    return x.sum(axis=0) + y.mean(), (x * 2).max(), np.where(x > y, x, -y)


FUNCTIONS = (gate, joined, written, beside)


def arrays(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    make = np.random.default_rng(sum(shape))
    x, y = (make.standard_normal(shape).astype(np.float32) for _ in range(2))
    return x, y


@pytest.mark.parametrize("function", FUNCTIONS)
def test_r3_18_partitioned_calls_of_the_host_are_right_for_all_sizes(on_host, function):
    f = pf.jit(function, background=False)
    for shape in SHAPES:
        x, y = arrays(shape)
        for result, expected in zip(f(x, y), function(x.copy(), y), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
    counters = f.state().counters
    assert (counters["compiles"], counters["kernels_compiled"]) == (1, 1), "one group, and one kernel for all sizes"
    assert counters["guard_hits"] == len(SHAPES) - 2, "the first call is profiled; (1, 8) has another axis of size 1"


def test_exact_results_are_the_general_fusers(on_host):
    with pf.knobs.override(exact=True):
        f = pf.jit(lambda x, y: (x * y + 1) / 3, background=False)
        x, y = arrays((4, 8))
        for _ in range(3):
            np.testing.assert_array_equal(f(x, y), (x * y + 1) / 3)
        assert not any("device groups" in str(reason) for reason in f.state().reasons)
        assert f.state().counters["kernels_compiled"] == 1
