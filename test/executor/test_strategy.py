"""Settings: knobs and the fusion strategy."""

from __future__ import annotations

import profuse as pf
import pytest
from profuse.executor.knobs import Knobs, knobs
from profuse.executor.strategy import behavior_at, normalize, total_depth

DEFAULT = (("static", 2), ("dynamic", 10))


def test_behavior_at_depth():
    """R1.6: entries are counted from the last one; beyond the total it warns and is static."""
    expected = {12: "static", 11: "static", **dict.fromkeys(range(1, 11), "dynamic")}
    assert {d: behavior_at(DEFAULT, d) for d in expected} == expected
    seen = len(pf.events())
    assert behavior_at(DEFAULT, 13) == "static"
    assert pf.events()[seen:][-1].kind == "strategy-exceeded"


def test_total_depth():
    """R1.5"""
    assert total_depth(DEFAULT) == 12
    assert total_depth(()) == 0


@pytest.mark.parametrize(
    "bad", [[("fast", 1)], [("static", -1)], [("static",)], 3, [("static", "x")]]
)
def test_malformed_strategy(bad):
    with pytest.raises(pf.KnobError, match="fusion strategy"):
        normalize(bad)


def test_environment(monkeypatch):
    monkeypatch.setenv("PROFUSE_PROFILED_RUNS", "4")
    monkeypatch.setenv("PROFUSE_VERIFY_EACH", "yes")
    fresh = Knobs()
    assert fresh.profiled_runs == 4
    assert fresh.verify_each is True
    # R1.2: the variable is read once, on first access
    monkeypatch.setenv("PROFUSE_PROFILED_RUNS", "9")
    assert fresh.profiled_runs == 4


def test_bad_environment(monkeypatch):
    monkeypatch.setenv("PROFUSE_PROFILED_RUNS", "many")
    with pytest.raises(pf.KnobError, match="PROFUSE_PROFILED_RUNS='many'"):
        _ = Knobs().profiled_runs


def test_override_restores():
    before = knobs.min_fusion_size
    with knobs.override(min_fusion_size=5):
        assert knobs.min_fusion_size == 5
    assert knobs.min_fusion_size == before
    with pytest.raises(pf.KnobError):
        knobs.exchange("min_fusion_size", 0)
    with pytest.raises(pf.KnobError):
        knobs.exchange("no_such_knob", 0)
