"""torch's promotion in plain Python: what differs from NumPy's, and every pair of dtypes where torch is installed."""

from __future__ import annotations

import importlib.util
import itertools

import ml_dtypes
import numpy as np
import profuse as pf
import pytest
from profuse.dialect.importers.foreign.aten.promotion import (
    BFLOAT16,
    BOOL,
    COMPLEX64,
    COMPLEX128,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT64,
    cast,
    float_dtype,
    promoted,
    result_dtype,
    summed,
)

INT8, INT32, UINT8 = np.dtype(np.int8), np.dtype(np.int32), np.dtype(np.uint8)


def tensor(dtype, ndim=1):
    return np.ones((1,) * ndim, dtype)


@pytest.mark.parametrize(
    ("operands", "dtype"),
    [
        ((tensor(INT32), tensor(FLOAT16)), FLOAT16),
        ((tensor(INT64), tensor(FLOAT32)), FLOAT32),
        ((tensor(INT8), tensor(UINT8)), np.dtype(np.int16)),
        ((tensor(BFLOAT16), tensor(FLOAT16)), FLOAT32),
        ((tensor(COMPLEX64), tensor(FLOAT64)), COMPLEX128),
        ((tensor(FLOAT32), tensor(FLOAT64, 0)), FLOAT32),
        ((tensor(INT32), tensor(FLOAT64, 0)), FLOAT64),
        ((tensor(INT32), tensor(INT64, 0)), INT32),
        ((tensor(FLOAT64), tensor(COMPLEX64, 0)), COMPLEX128),
        ((tensor(INT32), 1.5), FLOAT32),
        ((tensor(FLOAT16), 1.5), FLOAT16),
        ((tensor(FLOAT64), 1j), COMPLEX128),
        ((tensor(UINT8), 300), UINT8),
        ((tensor(BOOL), 2), INT64),
        ((tensor(BOOL), True), BOOL),
        ((tensor(INT32, 0), 2), INT32),
        ((1, 2.0), FLOAT32),
    ],
)
def test_result_dtype(operands, dtype):
    assert result_dtype(*operands) == dtype == result_dtype(*operands[::-1])


def test_derived_dtypes():
    assert float_dtype(tensor(INT64), 2) == FLOAT32 and float_dtype(tensor(FLOAT16), 2) == FLOAT16
    assert summed(BOOL) == summed(INT8) == INT64 and summed(FLOAT16) == FLOAT16
    with pytest.raises(pf.TraceError, match="to no dtype"):
        promoted(np.dtype(np.uint16), INT32)


def test_casts_wrap_and_drop():
    assert cast(300, UINT8) == 44 and cast(-1, UINT8) == 255 and cast(2**63, INT64) == -(2**63)
    assert cast(1 + 2j, FLOAT32) == 1 and cast(np.array([2j, 0j]), BOOL).tolist() == [True, False]
    x = np.ones(2, np.float32)
    assert cast(x, FLOAT32) is x
    assert cast(0.1, BFLOAT16).dtype == ml_dtypes.bfloat16


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_all_pairs_are_promoted_as_by_torch():
    import torch

    names = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64")
    dtypes = {name: np.dtype(name) for name in (*names, "complex128")} | {"bfloat16": BFLOAT16}
    operands = [
        *(
            (np.ones((1,) * ndim, d), torch.ones((1,) * ndim, dtype=getattr(torch, n)))
            for n, d in dtypes.items()
            for ndim in (0, 1)
        ),
        *((x, x) for x in (True, 2, 1.5, 1j)),
    ]
    count = 0
    for (a, first), (b, second) in itertools.product(operands, repeat=2):
        wanted = str(torch.result_type(first, second)).removeprefix("torch.")
        if wanted == "complex32":  # no dtype of NumPy's
            with pytest.raises(pf.TraceError, match="complex numbers of half precision"):
                result_dtype(a, b)
        else:
            assert result_dtype(a, b) == dtypes[wanted], (a, b)
        count += 1
    assert count == 28**2
