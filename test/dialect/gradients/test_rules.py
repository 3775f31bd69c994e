"""Gradients of every op: against central differences, forward against reverse mode, twice."""

import numpy as np
import profuse as pf
import pytest
from gradient_cases import CASES
from profuse.dialect.errors import InternalError
from profuse.dialect.ir.gradients import RULES, rule_of
from profuse.dialect.ir.op import OPS

STEP = 1e-6
EACH = pytest.mark.parametrize("case", CASES, ids=str)


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"), pf.knobs.override(cache=False):
        yield


def floats(case):
    return [k for k, x in enumerate(case.args) if np.asarray(x).dtype.kind in "fc"]


def weighed(case, seed=0):
    """The case as a function with one result, and arrays as large as its float arguments."""
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal(np.shape(case.fn(*case.args)))
    directions = [rng.standard_normal(np.shape(case.args[k])) for k in floats(case)]
    return lambda *args: (case.fn(*args) * weights).sum(), directions


def along(fn, case, directions):
    """The derivative along a direction, by a central difference."""

    def at(step):
        moved = list(case.args)
        for k, d in zip(floats(case), directions, strict=True):
            moved[k] = moved[k] + step * d
        return fn(*moved)

    return (at(STEP) - at(-STEP)) / (2 * STEP)


def test_every_op_states_its_gradient():
    for cls in OPS.values():
        assert rule_of(cls) in RULES


def test_an_op_that_states_nothing_or_twice_is_an_error():
    class Twice(OPS["profuse.add"]):
        no_gradient = True

    with pytest.raises(InternalError, match="states no_gradient and partials"):
        rule_of(Twice)


def test_every_rule_has_a_case():
    tried = {case.op for case in CASES}
    rules = {c.name for c in OPS.values() if rule_of(c) in ("partials", "linear", "vjp")}
    # `custom_result` has tests of its own.
    assert rules - tried <= {"autograd_add", "chunk", "custom_result"}


@EACH
def test_gradients_are_those_of_central_differences(case):
    fn, directions = weighed(case)
    grads = pf.grad(fn, wrt=tuple(floats(case)))(*case.args)
    for g, k in zip(grads, floats(case), strict=True):
        assert g.shape == np.shape(case.args[k])
        assert g.dtype == np.asarray(case.args[k]).dtype
    slope = sum((g * d).sum() for g, d in zip(grads, directions, strict=True))
    if case.op == "stop_gradient":
        np.testing.assert_allclose(slope * 2, along(fn, case, directions), rtol=1e-6)
    else:
        np.testing.assert_allclose(slope, along(fn, case, directions), rtol=2e-6, atol=1e-7)


@EACH
def test_forward_mode_agrees_with_reverse_mode(case):
    fn, directions = weighed(case, 1)
    tangents = [None] * len(case.args)
    for k, d in zip(floats(case), directions, strict=True):
        tangents[k] = d if isinstance(case.args[k], np.ndarray) else d[()]
    grads = pf.grad(fn, wrt=tuple(floats(case)))(*case.args)
    slope = sum((g * d).sum() for g, d in zip(grads, directions, strict=True))
    value, tangent = pf.jvp(fn, case.args, tangents)
    np.testing.assert_allclose(value, fn(*case.args), rtol=1e-12)
    np.testing.assert_allclose(tangent, slope, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("case", [c for c in CASES if c.second], ids=str)
def test_second_derivatives(case):
    fn, directions = weighed(case, 2)
    first = pf.grad(fn, wrt=tuple(floats(case)))

    def slope(*args):
        return sum((g * d).sum() for g, d in zip(first(*args), directions, strict=True))

    second = pf.grad(slope, wrt=tuple(floats(case)))(*case.args)
    found = sum((g * d).sum() for g, d in zip(second, directions, strict=True))
    np.testing.assert_allclose(found, along(slope, case, directions), rtol=2e-5, atol=2e-6)
