"""Calls whose graphs are cut into device groups, on an emulated device (R3.14 to R3.27)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import fakelib as xp
import numpy as np
import profuse as pf
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from test_partitioned_calls import FUNCTIONS, SHAPES, arrays


@pytest.fixture
def on_device(device) -> Iterator[None]:
    pf.set_device_fusion(True)
    yield
    pf.set_device_fusion(None)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_r3_18_partitioned_calls_of_a_device_are_right_for_all_sizes(on_device, function):
    f = pf.jit(function, background=False)
    for shape in SHAPES:
        x, y = arrays(shape)
        results = [r.get() if hasattr(r, "get") else r for r in f(xp.array(x), xp.array(y))]
        for result, expected in zip(results, function(x.copy(), y), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
    counters = f.state().counters
    assert (counters["compiles"], counters["kernels_compiled"]) == (1, 1)
    assert counters["device_fallbacks"] == 0
