"""Rules that run often become straight code, which computes the same bits."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from gradient_cases import TAPED
from profuse.executor.tape import plans, straight

OFTEN = plans.OFTEN


@pytest.fixture
def anew(monkeypatch):
    """A function that forgets all plans, and has rules be recorded after so many runs."""

    def forget(often):
        monkeypatch.setattr(plans, "OFTEN", often)
        plans.forget()

    yield forget
    plans.forget()


@pytest.fixture
def recorded(monkeypatch):
    """The names of the ops whose rules have become straight code."""
    names = []

    def noting(op, *args, **how):
        found = straight.straight(op, *args, **how)
        if found is not None:
            names.append(op.name)
        return found

    monkeypatch.setattr(plans, "straight", noting)
    return names


def gradients(case):
    floats = [k for k, x in enumerate(case.args) if np.asarray(x).dtype.kind in "fc"]
    args = [pf.array(x, requires_grad=True) if k in floats else x for k, x in enumerate(case.args)]
    rng = np.random.default_rng(3)
    out = case.fn(*args)
    value = (out * rng.standard_normal(np.shape(out))).sum()
    return pf.gradients(value, [args[k] for k in floats], allow_unused=True)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", TAPED, ids=str)
def test_straight_code_computes_the_same_bits(case, anew, recorded):
    with np.errstate(all="ignore"):
        anew(10**9)
        wanted = gradients(case)
        assert not recorded
        anew(1)
        gradients(case)
        assert recorded
        found = gradients(case)
    for g, w in zip(found, wanted, strict=True):
        if w is None:
            assert g is None
            continue
        assert type(g) is type(w) and g.dtype == w.dtype and g.shape == w.shape
        assert np.ascontiguousarray(g).tobytes() == np.ascontiguousarray(w).tobytes()


def slopes(f, *xs):
    """The gradients of the sum of ``f`` of leaves."""
    leaves = [pf.array(x, requires_grad=True) for x in xs]
    return pf.gradients(f(*leaves).sum(), leaves)


def test_a_rule_is_recorded_once_it_runs_often(anew, recorded):
    anew(OFTEN)
    x = np.linspace(0.5, 2, 6)
    for k in range(3 * OFTEN):
        (g,) = slopes(np.tanh, x)
        np.testing.assert_allclose(g, 1 - np.tanh(x) ** 2)
        assert ("tanh" in recorded) == (k >= OFTEN - 1)
    assert sorted(recorded) == ["sum", "tanh"]


def test_elementwise_rules_are_recorded_for_all_sizes(anew, recorded):
    anew(OFTEN)
    for n in range(1, 3 * OFTEN):
        x = np.linspace(0.5, 2, n)
        np.testing.assert_allclose(slopes(np.exp, x)[0], np.exp(x))
        (g,) = slopes(lambda x: np.exp(x[0]), np.array([0.5]))  # a scalar
        np.testing.assert_allclose(g, np.exp([0.5]))
    assert recorded.count("exp") == 2  # with axes and without


def test_other_rules_are_recorded_for_sizes_that_come_often(anew, recorded):
    anew(OFTEN)
    for n in range(1, 3 * OFTEN):
        a, b = np.ones((n, 2)), np.full((2, 3), 0.5)
        f, g = slopes(lambda a, b: a @ b, a, b)
        np.testing.assert_array_equal(f, np.full((n, 2), 1.5))
        np.testing.assert_array_equal(g, np.full((2, 3), n))
    assert not recorded
    for _ in range(OFTEN):
        slopes(lambda a, b: a @ b, a, b)
    assert sorted(recorded) == ["matmul", "sum"]


def test_numbers_that_change_are_recorded_once(anew, recorded):
    anew(OFTEN)
    x = np.linspace(0.5, 2, 3)
    for k in range(1, 3 * OFTEN):
        np.testing.assert_array_equal(slopes(lambda x, k=k: x * (k / 8), x)[0], [k / 8] * 3)
    assert recorded.count("mul") == 1, "for all of them, after many"
    for _ in range(OFTEN):
        np.testing.assert_array_equal(slopes(lambda x: x * 3.25, x)[0], [3.25] * 3)
    assert recorded.count("mul") == 1


def test_zeros_of_both_signs_are_two_numbers(anew):
    anew(1)
    x = np.array([1.0, -2.0])
    for _ in range(3):
        np.testing.assert_array_equal(slopes(lambda x: np.copysign(x, 0.0), x)[0], [1, -1])
        np.testing.assert_array_equal(slopes(lambda x: np.copysign(x, -0.0), x)[0], [-1, 1])


def test_dtypes_that_differ_have_plans_of_their_own(anew):
    anew(1)
    a, b = np.array([1.5, 2.5], np.float32), np.array([2.0, 4.0])
    for _ in range(3):
        f, g = slopes(lambda a, b: a * b, a, b)
        assert f.dtype == np.float32 and g.dtype == np.float64
        np.testing.assert_array_equal(f, b)
        np.testing.assert_array_equal(g, a)
        f, g = slopes(lambda a, b: a * b, b, b[0])  # one is broadcast
        np.testing.assert_array_equal(f, [2, 2])
        assert g == 6
        f, g = slopes(lambda a, b: a * b, a, a)
        assert f.dtype == g.dtype == np.float32


def test_what_is_saved_is_checked_and_unpacked_as_before(anew):
    anew(1)
    x = np.array([0.5, 1.5])
    slopes(np.exp, x)
    packed = []

    def pack(y):
        packed.append(y)
        return len(packed) - 1

    leaf = pf.array(x, requires_grad=True)
    with pf.saved_arrays_hooks(pack, packed.__getitem__):
        y = np.exp(leaf)
    assert len(packed) == 1
    packed[0] = packed[0] * 2
    np.testing.assert_allclose(pf.gradients(y.sum(), leaf), 2 * np.exp(x))

    y = np.exp(leaf)
    z = y.sum()
    y += 1
    with pytest.raises(pf.GradientError, match=r"test_straight\.py:\d+.*exp needs was written to"):
        z.backward()

    y = np.exp(leaf).sum()
    y.backward()
    with pytest.raises(pf.GradientError, match=r"sum.*was freed"):
        y.backward()


def test_higher_orders_go_by_the_rule(anew):
    anew(1)
    x = np.array([0.5, 1.5])
    for _ in range(3):
        leaf = pf.array(x, requires_grad=True)
        (g,) = pf.gradients(np.sin(leaf).sum(), [leaf], create_graph=True)
        np.testing.assert_allclose(g.data, np.cos(x))
        np.testing.assert_allclose(pf.gradients(g.sum(), leaf), -np.sin(x))


def test_memory_is_reused_that_nothing_else_reads(anew):
    """A derivative of many steps changes neither what is saved nor what comes in."""
    anew(1)
    x, seed = np.linspace(-2, 2, 12).reshape(3, 4), np.full((3, 4), 0.25)
    leaf = pf.array(x, requires_grad=True)
    y = np.arctan(leaf) * np.tanh(leaf)
    wanted = seed * (np.tanh(x) / (1 + x * x) + np.arctan(x) * (1 - np.tanh(x) ** 2))
    before = y.data.copy()
    for _ in range(4):
        g = pf.gradients(y, leaf, seed, retain_graph=True)
        np.testing.assert_allclose(g, wanted)
    np.testing.assert_array_equal(y.data, before)
    np.testing.assert_array_equal(leaf.data, x)
    np.testing.assert_array_equal(seed, np.full((3, 4), 0.25))


def test_anomalies_are_found_in_straight_code(anew):
    anew(1)
    for _ in range(3):
        slopes(np.arcsin, np.array([0.0, 0.5]))
    leaf = pf.array([2.0], requires_grad=True)
    with np.errstate(all="ignore"):
        y = np.arcsin(leaf).sum()
    with pf.detect_anomaly(), pytest.raises(pf.GradientError, match=r"asin.*has a NaN"):
        y.backward()


def test_gradients_of_gradients_have_plans_once_for_all_steps(anew, recorded):
    """What a rule reads the shape of alone was a new operand in each step, with a plan of its own."""
    anew(OFTEN)
    x, w, b = (np.linspace(-1, 1, n) for n in (6, 6, 2))

    def step():
        leaves = w_leaf, b_leaf = [pf.array(w.reshape(3, 2), requires_grad=True), pf.array(b, requires_grad=True)]
        h = np.tanh(x.reshape(2, 3) @ w_leaf + b_leaf)
        inner = pf.gradients((h**2).sum(), leaves, create_graph=True)
        return pf.gradients(sum((g**2).sum() for g in inner), leaves)

    def count():
        return sum(len(p.known) for p in list(plans._known.values()))

    wanted = step()
    for _ in range(2 * OFTEN):
        step()
    before = count()
    for _ in range(2 * OFTEN):
        for found, other in zip(step(), wanted, strict=True):
            np.testing.assert_allclose(found, other, rtol=1e-12)
    assert count() == before
    assert "sum_to" in recorded
