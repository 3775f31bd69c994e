"""Gradients of every op: against central differences, forward against reverse mode, twice."""

import re

import numpy as np
import profuse as pf
import pytest
from gradient_cases import CASES
from profuse.dialect.errors import InternalError
from profuse.dialect.ir.gradients import RULES, rule_of
from profuse.dialect.ir.op import OPS
from profuse.dialect.ops import seldom  # noqa: F401  (fills the table of ops)

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
    # `custom_result` and calls of the host have tests of their own; bits have no gradient.
    assert rules - tried <= {"autograd_add", "chunk", "custom_result", "host_call", "python_call", "random_bits"}


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


@pytest.mark.sampled(8, each=())
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


@pytest.mark.sampled(13, each=())
@pytest.mark.parametrize("case", [c for c in CASES if c.second], ids=str)
def test_second_derivatives(case):
    fn, directions = weighed(case, 2)
    first = pf.grad(fn, wrt=tuple(floats(case)))

    def slope(*args):
        return sum((g * d).sum() for g, d in zip(first(*args), directions, strict=True))

    second = pf.grad(slope, wrt=tuple(floats(case)))(*case.args)
    found = sum((g * d).sum() for g, d in zip(second, directions, strict=True))
    np.testing.assert_allclose(found, along(slope, case, directions), rtol=2e-5, atol=2e-6)


def _ops(fn, *args):
    """Names of the ops of a gradient's graph, with the shape of each result."""
    f = pf.grad(fn, wrt=tuple(range(len(args))), background=False)
    for _ in range(2):
        f(*args)
    text = f.ir("optimized")
    return re.findall(r'"profuse\.(\w+)"\(.*-> tensor<([\dx]*)', text)


def test_products_of_the_same_factors_are_computed_once():
    """The terms of the derivative of a cube differ in the order of the factors alone."""
    y = np.linspace(-1, 1, 40).reshape(5, 8)
    ops = _ops(lambda y: np.tanh(0.3 * y * y * y).sum(), y)
    # 0.3 * y, that times y, that times y; the square of tanh; and the gradient by one product.
    whole = [name for name, shape in ops if name == "mul" and shape == "5x8x"]
    assert len(whole) <= 6, ops
    found = pf.grad(lambda y: np.tanh(0.3 * y * y * y).sum())(y)
    np.testing.assert_allclose(found, (1 - np.tanh(0.3 * y**3) ** 2) * 0.9 * y**2, rtol=1e-12)


def test_products_of_other_factors_are_not_taken_for_them():
    """Numbers, dtypes and powers tell products apart."""
    y = np.linspace(0.5, 1, 8)
    w = np.linspace(1, 2, 8).astype(np.float32)
    for f, slope in (
        (lambda y: (2 * y * y + 3 * y * y).sum(), 10 * y),
        (lambda y: (y * y * y + 2 * y * y).sum(), 3 * y**2 + 4 * y),
        (lambda y: (y * w * w * y * y).sum(), 3 * y**2 * w.astype("f8") ** 2),
        (lambda y: (y * 2 * (y * 2.0) + np.sin(y * 2 * y)).sum(), 8 * y + 4 * y * np.cos(2 * y * y)),
    ):
        np.testing.assert_allclose(pf.grad(f)(y), slope, rtol=1e-6)


def test_elements_are_not_divided_for_the_gradient_of_a_divisor_per_row():
    x, s = np.linspace(-1, 1, 40).reshape(5, 8), np.linspace(1, 2, 5).reshape(5, 1)
    ops = _ops(lambda x, s: np.sin(x / s).sum(), x, s)
    assert [shape for name, shape in ops if name == "div" and shape == "5x8x"] == ["5x8x"], ops


def test_a_gradient_of_0_stays_0_where_a_divisor_is():
    x, s = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[0.0], [2.0]])
    with np.errstate(all="ignore"):
        gx, gs = pf.grad(lambda x, s: np.where(s != 0, x / s, 0).sum(), wrt=(0, 1))(x, s)
    np.testing.assert_array_equal(gx, [[0, 0], [0.5, 0.5]])
    np.testing.assert_array_equal(gs, [[0], [-7 / 4]])


def test_a_finite_number_absorbs_nothing():
    ops = _ops(lambda x: np.sin(x / 8).sum(), np.linspace(-1, 1, 40).reshape(5, 8))
    assert "absorbing_mul" not in [name for name, _ in ops]
