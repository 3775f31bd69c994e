"""Stress mode: guards fail on purpose, values stay, counts tell; off, it leaves no trace."""

from __future__ import annotations

import random

import numpy as np
import profuse as pf
import pytest
from every_case import EVERY_CASE
from hypothesis import HealthCheck, given, settings
from internals import last_executor
from profuse.executor.settings.knobs import Knobs
from profuse.executor.settings.stress import Stress, guard_failures, parse_stress
from test_random_graphs import check_tiers, graphs

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def test_random_graphs_keep_their_values():
    """R1.44: each random graph reaches fallbacks at shapes that its guards would have taken."""
    forced = reached = 0

    @settings(
        max_examples=12 if EVERY_CASE else 6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    @given(graphs(most=20))
    def check(graph):
        nonlocal forced, reached
        counters = check_tiers(graph)
        forced += counters["forced_misses"]
        reached += counters["fallback_calls"]

    with pf.knobs.override(stress="guards:k=2,seed=3"):
        check()
    assert forced >= (12 if EVERY_CASE else 6)
    assert reached >= forced


def run(f, calls):
    for _ in range(calls):
        np.testing.assert_allclose(f(X), np.exp(X) + 1, rtol=1e-6)
    return f.state()


def test_every_guard_fails_where_k_is_1():
    """R1.44: one shape walks the whole chain down to depth 0."""
    with pf.knobs.override(stress="guards:k=1"):
        f = pf.jit(lambda x: np.exp(x) + 1, strategy=[("static", 2)])
        state = run(f, 6)
    assert state.counters["compiles"] == 2
    assert [(s.hits, s.misses, s.forced) for s in state.specializations] == [(0, 5, 5), (0, 4, 4)]
    assert state.counters["forced_misses"] == state.counters["guard_misses"] == 9
    assert state.counters["guard_hits"] == state.counters["kernel_launches"] == 0
    assert "  0 hits, 5 misses, 5 of them forced by stress mode" in f.explain()


def test_the_seed_decides_which_guards_fail():
    def outcome(seed):
        with pf.knobs.override(stress=f"guards:k=3,seed={seed}"):
            f = pf.jit(lambda x: np.exp(x) + 1, strategy=[("static", 1)], name="f")
            return [run(f, 1).counters["guard_hits"] for _ in range(40)]

    assert outcome(1) == outcome(1)
    assert outcome(1) != outcome(2)
    assert 10 < outcome(1)[-1] < 39


def test_rate_of_failures():
    fails = guard_failures(Stress(4, 9), "f/0")
    assert 2200 < sum(fails() for _ in range(10_000)) < 2800


def test_off_leaves_no_trace_in_plans():
    f = pf.jit(lambda x: np.exp(x) + 1, name="plain")
    run(f, 3)
    with pf.knobs.override(stress="guards"):
        g = pf.jit(lambda x: np.exp(x) + 1, name="plain")
        run(g, 3)
    plain, stressed = last_executor(f).optimized.source, last_executor(g).optimized.source
    assert "forced" in stressed
    assert "forced" not in plain
    assert "fails" not in plain


def test_random_state_of_the_user_is_not_touched():
    random.seed(1)
    expected = random.Random(1).random()
    with pf.knobs.override(stress="guards:k=2"):
        run(pf.jit(lambda x: np.exp(x) + 1), 5)
    assert random.random() == expected


@pytest.mark.parametrize(
    ("text", "meaning"),
    [("", Stress()), ("guards", Stress(5, 0)), ("guards:k=3", Stress(3, 0)), ("guards:seed=7,k=2", Stress(2, 7))],
)
def test_texts(text, meaning, monkeypatch):
    assert parse_stress(text) == meaning
    assert parse_stress(str(meaning)) == meaning
    monkeypatch.setenv("PROFUSE_STRESS", text)
    assert Knobs().stress == meaning


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("all", "there is no stress mode 'all', expected guards[:k=5,seed=0]"),
        ("guards:k=0", "k=0: expected a number from 1 to 999999999"),
        ("guards:seed=-1", "seed=-1: expected a number from 0 to 999999999"),
        ("guards:k=two", "k=two: expected a number from 1 to 999999999"),
        ("guards:often=3", "guards has no option 'often', expected k or seed"),
        ("guards:", "guards has no option '', expected k or seed"),
    ],
)
def test_malformed(text, complaint, monkeypatch):
    monkeypatch.setenv("PROFUSE_STRESS", text)
    with pytest.raises(pf.KnobError) as raised:
        _ = Knobs().stress
    assert raised.value.what == f"PROFUSE_STRESS={text!r}: {complaint}"
    with pytest.raises(pf.KnobError), pf.knobs.override(stress=text):
        pass
