"""Every op and random programs: captured runs give what the eager tape gives, bit for bit."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import profuse as pf
import pytest
from captured_programs import captured
from profuse.dialect.ir.op import OPS, Op
from profuse.dialect.ops.nn.composite import Composite

sys.path[:0] = [str(Path(__file__).parents[2] / "dialect" / "gradients")]

from gradient_cases import TAPED  # noqa: E402
from random_functions import Function, function  # noqa: E402


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"), pf.knobs.override(cache=False):
        yield


def gradients(fn, args):
    leaves = [pf.array(x, requires_grad=True) if np.asarray(x).dtype.kind in "fc" else x for x in args]
    value = fn(*leaves)
    return pf.gradients(value, [x for x in leaves if type(x) is pf.Array], allow_unused=True)


def check(fn, args, tolerance=0):
    wanted = gradients(fn, args)
    for _ in range(2):
        with captured():
            found = gradients(fn, args)
        for a, b in zip(found, wanted, strict=True):
            if b is None:
                assert a is None
            else:
                assert a.dtype == b.dtype
                np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("case", TAPED, ids=str)
def test_every_op(case):
    rng = np.random.default_rng(3)
    weights = rng.standard_normal(np.shape(case.fn(*case.args)))
    # Gradients of compositions are added up in another order, where they cancel in part.
    tolerance = 1e-11 if issubclass(OPS.get(f"profuse.{case.op}", Op), Composite) else 0
    check(lambda *args: (case.fn(*args) * weights).sum(), case.args, tolerance)


def test_nearly_every_op_is_recorded_by_its_rule():
    """R4.20, R4.21: nodes that are called as they are, are few."""
    opaque = set()
    for case in TAPED:
        pf.compiled_autograd.reset()
        with captured():
            gradients(lambda *args, fn=case.fn: fn(*args).sum(), case.args)
        text = pf.compiled_autograd.state().runs[-1].ir()
        if "call_backward" in text:
            opaque.add(case.op)
    assert opaque <= ALLOWED, opaque - ALLOWED


ALLOWED = {"conform", "slice_scatter", "pick_scatter"}  # writes into views (R4.28)


@pytest.mark.parametrize("seed", range(0, 40, 2))
def test_random_functions(seed):
    made = function(seed, flow=False)
    text = re.sub(r"np\.zeros\((\(.*?\))\)", r"control.array(np.zeros(\1))", made.text)
    text = re.sub(r"np\.full\(\(2, 2\), (np.sum\(\w+\))\)", r"np.broadcast_to(\1, (2, 2))", text)
    taped = Function(text, made.args).compiled()
    check(lambda *args: taped(np, pf, *args), made.args)
