"""Rules that run often become straight code, which computes the same bits."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from gradient_cases import CASES
from profuse.executor.tape import plans, straight

TAPED = [case for case in CASES if case.op not in ("full", "item")]


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
