"""Tier 0: what an op computes, and whose line an error names."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from profuse.executor.interpret.evaluate import evaluate
from small_graphs import add_graph


def test_tier_0_is_numpy():
    x, y = np.arange(6.0).reshape(2, 3), np.float32(2)
    (out,) = evaluate(add_graph(), [x, y])
    np.testing.assert_array_equal(out, x + y)


def test_errors_carry_the_users_line():
    with pytest.raises(pf.ShapeError, match=r"model\.py:3.*broadcast") as caught:
        evaluate(add_graph(), [np.ones(3), np.ones(4)])
    assert isinstance(caught.value, ValueError)
