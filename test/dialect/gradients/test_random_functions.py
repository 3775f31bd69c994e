"""Random functions: derivatives against central differences, on all tiers, from run to run."""

import warnings
from collections import Counter

import differential
import numpy as np
import profuse as pf
import pytest
from differential import CALLS, check, ways
from every_case import spread
from internals import executor_of
from profuse.executor.settings.differentiation import subgraph_inlining
from random_functions import Plain, function

STEPS = (1e-6, 1e-5, 1e-7)
MODES = {
    "tier 0": ({"profiled_runs": 1_000_000}, {}),
    "static": ({"strategy": [("static", 2)]}, {}),
    "dynamic": ({"strategy": [("dynamic", 2)]}, {}),
    "keyed": ({}, {"profiling_mode": False}),
}


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"), pf.knobs.override(cache=False), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def slope(f, args, directions, step):
    """The derivative along directions by a central difference."""
    ahead, behind = (f(*(a + sign * step * d for a, d in zip(args, directions, strict=True))) for sign in (1, -1))
    return (ahead - behind) / (2 * step)


def total(grads, directions):
    return sum((g * d).sum() for g, d in zip(grads, directions, strict=True))


def drawn(seed, flow):
    """The function on arrays, traced and plain, its arguments and directions to move them."""
    made = function(seed, flow)
    f = made.compiled()
    rng = np.random.default_rng(seed)
    directions = tuple(rng.standard_normal(x.shape) for x in made.args)
    return (lambda *a: f(np, pf, *a)), (lambda *a: f(np, Plain, *a)), made.args, directions


def is_smooth(slopes):
    """Whether differences of several steps agree: no kink is near."""
    return all(np.isclose(s, slopes[0], rtol=1e-4, atol=1e-5) for s in slopes)


@pytest.mark.parametrize("flow", [False, True], ids=["straight", "flow"])
def test_gradients_are_those_of_central_differences(flow):
    compared = 0
    seeds = spread(range(60))
    for seed in seeds:
        traced, plain, args, directions = drawn(seed, flow)
        slopes = [slope(plain, args, directions, step) for step in STEPS]
        if not is_smooth(slopes):
            continue
        made = pf.value_and_grad(traced, wrt=tuple(range(len(args))), profiled_runs=9)
        value, grads = made(*args)
        text = f"function {seed}, flow={flow}"
        np.testing.assert_allclose(value, plain(*args), rtol=1e-9, atol=1e-12, err_msg=text)
        assert [g.shape for g in grads] == [x.shape for x in args], text
        found = total(grads, directions)
        np.testing.assert_allclose(found, slopes[0], rtol=1e-5, atol=1e-5, err_msg=text)
        compared += 1
    assert compared > 5 / 6 * len(seeds)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("flow", [False, True], ids=["straight", "flow"])
def test_forward_mode_and_second_derivatives(flow):
    for seed in spread(range(300, 312), 2):
        traced, plain, args, directions = drawn(seed, flow)
        if not is_smooth([slope(plain, args, directions, step) for step in STEPS]):
            continue
        every, text = tuple(range(len(args))), f"function {seed}, flow={flow}"
        first = pf.grad(traced, wrt=every, profiled_runs=99)
        found = total(first(*args), directions)
        tangent = pf.jvp(traced, args, directions)[1]
        np.testing.assert_allclose(tangent, found, rtol=1e-9, atol=1e-9, err_msg=text)

        def along(*a, first=first, directions=directions):
            return total(first(*a), directions)

        slopes = [slope(along, args, directions, step) for step in STEPS[:2]]
        if is_smooth(slopes):
            second = pf.grad(along, wrt=every, profiled_runs=9)(*args)
            np.testing.assert_allclose(total(second, directions), slopes[0], rtol=1e-4, atol=1e-4, err_msg=text)


@pytest.mark.sampled(8, each=("seed",))
@pytest.mark.parametrize("seed", [400, 402])
@pytest.mark.parametrize("mode", MODES)
def test_tiers_agree_and_repeat_their_bits(mode, seed):
    options, knobs = MODES[mode]
    traced, plain, args, directions = drawn(seed, True)
    wanted = [slope(plain, args, directions, step) for step in STEPS]
    with pf.knobs.override(**knobs):
        made = pf.value_and_grad(traced, wrt=tuple(range(len(args))), background=False, **options)
        runs = [made(*args) for _ in range(5)]
    for value, grads in runs:
        np.testing.assert_allclose(value, plain(*args), rtol=1e-9)
        if is_smooth(wanted):
            np.testing.assert_allclose(total(grads, directions), wanted[0], rtol=1e-5, atol=1e-5)
    for one, other in zip(runs[3][1], runs[4][1], strict=True):
        assert one.tobytes() == other.tobytes()
    assert not made.state().counters["compile_failures"]


# Each setting of `differential` twice, and each way to gradients three times.
NUMBERS = (0, 7, 14, 21, 4, 11, 12, 19, 2, 9, 16, 23)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("number", NUMBERS)
def test_all_ways_give_the_same_gradients(number):
    """R1.31, R2.15, R2.30: of several results, with other sizes, budgets, segments and stress."""
    counts = Counter()
    assert check(0, number, counts) == []
    assert counts["comparisons"] + 2 * counts["refused calls"] == 2 * CALLS


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("way", "number"), [("tape", 0), ("split", 6)])
def test_a_wrong_gradient_is_found(monkeypatch, way, number):
    def wrong(made):
        every = ways(made)
        right = every[way]
        every[way] = lambda args, gs: [g * (1 + 1e-6) for g in right(args, gs)]
        return every

    monkeypatch.setattr(differential, "ways", wrong)
    assert [found.way for found in check(0, number, Counter())] == [way]


TAPE_MODES = {
    "profiling": {},
    "keyed": {"profiling_mode": False},
    "stress": {"stress": "guards:k=2,seed=7"},
    "keyed stress": {"profiling_mode": False, "stress": "guards:k=3,seed=5"},
    "every subgraph": {},
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("mode", TAPE_MODES)
def test_calls_on_the_tape_give_the_gradients_of_the_joint_graph(mode):
    """R1.31, R1.44, R2.15, R2.30: at every call, on the way to compiled halves and after it."""
    graphs = 0
    for seed in spread(range(100, 112)):
        traced, _, args, _ = drawn(seed, bool(seed % 2))
        every = tuple(range(len(args)))
        want_value, want = pf.value_and_grad(traced, wrt=every, profiled_runs=9)(*args)
        with pf.knobs.override(**TAPE_MODES[mode], background=False), subgraph_inlining(mode != "every subgraph"):
            f = pf.jit(traced)
            for call in range(5):
                leaves = [pf.array(x, requires_grad=True) for x in args]
                value = f(*leaves)
                value.backward()
                note = f"seed {seed}, call {call}"
                np.testing.assert_allclose(value.data, want_value, rtol=1e-9, err_msg=note)
                for leaf, w in zip(leaves, want, strict=True):
                    got = np.zeros_like(w) if leaf.grad is None else leaf.grad
                    np.testing.assert_allclose(got, w, rtol=1e-7, atol=1e-8, err_msg=note)
        made = [s.plan for e in executor_of(f).chain() for s in e.compiled()]
        graphs += sum(len(plan.graphs) for plan in made)
        assert f.state().counters["compile_failures"] == 0
    assert graphs > 5
