"""Native bodies in corners that depend on constants, or on Python ints out of an array's range."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from cases import difference, edge_values, silent
from profuse.dialect.ir.dtypes import DTYPES, F16, F32, F64, I8, I64, U8, U64
from profuse.dialect.ir.op import op_named

sys.path.insert(0, str(Path(__file__).parents[2] / "lowering"))
from reference import run_scalar

INTS = [d for d in DTYPES if d.is_int]
POWERS = [-3.0, -2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 0.25]
BOUNDS = [-(2**63), -1000, -1, 0, 1, 1000, 2**63 - 1]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("dtype", [F16, F32, F64], ids=str)
def test_constant_powers(dtype, power):
    # Whose powers are next to the largest and the smallest numbers, too.
    most = float(np.log(np.finfo(dtype.numpy).max)) * 0.99
    spread = np.exp(np.linspace(-most, most, 2001)).astype(dtype.numpy)
    with silent():
        near = spread ** dtype.numpy.type(1 / power)
    x = np.concatenate([edge_values(dtype), spread, near, -spread])
    found = run_scalar(lambda a: op_named("pow").scalar(a, a.const(power)), dtype.numpy, x)
    with silent():
        assert not difference(found, np.power(x, dtype.numpy.type(power)), 2)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", INTS, ids=str)
@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparisons_with_ints_out_of_range(name, dtype):
    op, x = op_named(name), edge_values(dtype)
    wide = x if dtype.bits == 64 else x.astype(np.int64)
    a, b = (v.ravel() for v in np.meshgrid(wide, np.array(BOUNDS)))
    for args in ((a, b), (b, a)):
        found = run_scalar(op.scalar, bool, *args)
        exact = [v.astype(object) for v in args]
        expected = op.evaluate({}, *exact).astype(bool)
        assert not difference(found, expected)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [I8, U8, I64, U64], ids=str)
def test_clip_bounds_out_of_range(dtype):
    op, x = op_named("clip"), edge_values(dtype)
    low, high = int(np.iinfo(dtype.numpy).min), int(np.iinfo(dtype.numpy).max)
    for lo, hi in ((-(2**63), 2**63 - 1), (0, 100), (-1000, 5), (1, 1000)):
        bounds = np.full_like(x, lo, np.int64), np.full_like(x, hi, np.int64)
        found = run_scalar(op.scalar, dtype.numpy, x, *bounds)
        assert not difference(found, np.clip(x, max(lo, low), min(hi, high)))
