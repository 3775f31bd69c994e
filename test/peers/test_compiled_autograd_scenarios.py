"""Regions of compiled autograd, ours and torch's, and both eager tapes: the same observations.

Each scenario of `region_hooks` and `region_programs` is played five times: on torch's eager tape,
captured by torch, on the tape, and captured, with the graph interpreted and compiled. Where torch's
captured runs do otherwise, `region.DIFFERENCES` says why.
"""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest

pytest.importorskip("torch", reason="torch is not installed")

import region_hooks  # noqa: F401 - enters scenarios
import region_programs  # noqa: F401
from profuse.executor.backward.compile import compiled
from region import DIFFERENCES, SCENARIOS, ours, played, torchs
from test_tape_torch import _agree

pytestmark = pytest.mark.filterwarnings("ignore")
NAMES = pytest.mark.parametrize("name", SCENARIOS)


def differs(name, what):
    return DIFFERENCES.get(name, ("",))[0] == what


def test_there_are_many():
    assert len(SCENARIOS) >= 60 and set(DIFFERENCES) < set(SCENARIOS)
    assert len(DIFFERENCES) <= len(SCENARIOS) // 6


@NAMES
def test_captured_runs_do_what_those_of_torch_do(name):
    wanted, theirs = played(torchs(True), SCENARIOS[name])
    found, captures = played(ours(True), SCENARIOS[name])
    assert found and captures
    if differs(name, "notes"):
        assert not _agree(found, wanted), "the two agree now: it is no difference any more"
    else:
        assert _agree(found, wanted), f"ours {found}, torch's {wanted}"
    if differs(name, "captures"):
        assert captures != theirs, "the two agree now: it is no difference any more"
    elif not differs(name, "notes"):
        assert captures == theirs


@NAMES
def test_captured_runs_do_what_the_eager_tapes_do(name):
    """Bit for bit what ours does, where it is interpreted."""
    wanted, none = played(ours(False), SCENARIOS[name])
    assert not any(none)
    found, _ = played(ours(True), SCENARIOS[name])
    assert found == wanted
    assert _agree(wanted, played(torchs(False), SCENARIOS[name])[0]) or name in EAGER


@NAMES
def test_compiled_graphs_do_what_interpreted_ones_do(name):
    """Up to what kernels round otherwise than NumPy."""
    wanted, captures = played(ours(True), SCENARIOS[name])
    with pf.knobs.override(background=False):
        found, own = played(ours(True, compiled), SCENARIOS[name])
    assert _near(found, wanted), f"compiled {found}, interpreted {wanted}"
    assert own == captures


def _near(a, b):
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_near, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return bool(np.isclose(a, b, rtol=1e-12, atol=1e-15))
    return type(a) is type(b) and a == b


EAGER: dict[str, str] = {}
"""Scenarios in which the two eager tapes differ, and why."""
