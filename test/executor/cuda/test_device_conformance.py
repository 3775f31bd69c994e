"""Conformance cases through the whole run time: layouts on the device, guards' types, launches."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "dialect" / "ops"))
from compiled import run_batches
from test_compiled import is_complex, selected

MOST = 24  # calls per op; kernels themselves have tests of their own


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", ["exp", "clip", "transpose", "slice", "sum", "matmul", "take"])
def test_kernels_conform(device, name, dynamic):
    calls = selected(f"profuse.{name}", dynamic=dynamic)
    calls = [c for c in calls if not is_complex(c.case)][:MOST]
    wrong = run_batches(calls, dynamic=dynamic, device="cuda:0")
    assert not wrong, "\n".join(wrong[:20])
    assert device.calls["launch"] + device.calls["replay"] + device.calls["product"]
    assert device.held == 0
