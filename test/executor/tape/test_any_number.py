"""Numbers that change from step to step have one plan: the same gradients, and what tells them."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.ir.op import OPS
from profuse.dialect.ops import seldom  # noqa: F401  (fills the table of ops)
from profuse.executor.tape import plans
from profuse.executor.tape.operations import apply

RNG = np.random.default_rng(5)
BINARY = [
    op
    for op in OPS.values()
    if op.__module__.startswith("profuse")
    and (made := plans.elementwise_plans(op)) is not None
    and len(op.operands) == 2
    and not op.of_numbers
]


@pytest.fixture(autouse=True)
def _fresh():
    plans.forget()
    yield
    plans.forget()


def gradient(op, x, number, left):
    a = pf.array(x, requires_grad=True)
    y = apply(op, {}, (number, a) if left else (a, number))
    if getattr(y, "node", None) is None:
        return None, None
    plan = y.node.plan
    y.backward(np.linspace(0.5, 1.5, x.size, dtype=y.dtype).reshape(y.shape))
    return plan, np.array(a.grad)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("op", BINARY, ids=[op.name for op in BINARY])
def test_gradients_have_the_bits_that_they_have_with_a_plan_for_each_number(op, left):
    numbers = [*np.linspace(0.25, 3.0, 40).tolist(), -1.5, 1.0, -1.0, 0.0, 1e300]
    shared = 0
    with np.errstate(all="ignore"):
        for kind in (float, int):
            for dtype in (np.float64, np.float32):
                for shape in ((3, 4), ()):
                    x = RNG.uniform(0.3, 0.9, shape).astype(dtype)
                    values = numbers if kind is float else range(-3, 40)
                    many = [gradient(op, x, kind(n), left) for n in values]
                    many = [gradient(op, x, kind(n), left) for n in values]
                    for n, (plan, found) in zip(values, many, strict=True):
                        plans.forget()
                        own, wanted = gradient(op, x, kind(n), left)
                        assert (found is None) == (wanted is None)
                        if found is None:
                            continue
                        assert not own.any_number and found.dtype == wanted.dtype
                        assert found.tobytes() == wanted.tobytes(), n
                        shared += plan.any_number
    # Rules of the others ask for the number: they would compute with it what they need not.
    assert bool(shared) == (op.name not in ("pow", "maximum", "minimum"))


def test_numbers_that_are_not_like_others_have_their_own():
    x = pf.array(np.ones(3), requires_grad=True)
    for k in range(40):
        last = x * (k + 0.5)
    assert last.node.plan.any_number
    for number in (-0.0, np.inf, np.nan, True, 2**70):
        assert not (x * number).node.plan.any_number
    assert (x * 7).node.plan is not last.node.plan  # an int has another type
    assert not (x**3.25).node.plan.any_number


def test_a_number_that_changes_makes_no_plan():
    x = pf.array(np.ones(3), requires_grad=True)
    for k in range(40):
        y = x * (k + 0.5)
    (plan,) = {id((x * (k + 0.75)).node.plan) for k in range(1000)}
    assert plan == id(y.node.plan)
    known = plans.elementwise_plans(y.node.plan.op).known
    assert sum(map(len, known)) < 40
