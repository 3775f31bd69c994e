"""The relaxed guard and size checks, one property at a time (R3.42, R3.43)."""

from dataclasses import replace

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.guards.mismatch import fits_relaxed, mismatches
from profuse.dialect.guards.relaxed import sizes_match
from profuse.dialect.ir.dtypes import F32
from profuse.dialect.ir.op import op_named
from profuse.dialect.ir.symbolic import symbol
from profuse.dialect.ir.types import TensorType, type_of

CONTIGUOUS = TensorType(F32, (4, 8), "contiguous", "cpu", False, True)


def zeros(*shape):
    return np.zeros(shape, np.float32)


def guard(type_, value):
    """What the op answers, which also says why not."""
    *same, passed = op_named("cuda_guard").evaluate({"types": (type_,)}, value)
    assert same[0] is value
    assert passed == fits_relaxed((type_,), (value,))
    if isinstance(value, np.ndarray):
        assert passed == (not mismatches([type_], [type_of(value)], relaxed=True))
    return passed


def test_sizes_are_free():
    """R3.42"""
    assert guard(CONTIGUOUS, zeros(4, 8))
    assert guard(CONTIGUOUS, zeros(16, 32))


@pytest.mark.parametrize(
    "value",
    [
        zeros(1, 8),
        zeros(4, 1),
        zeros(0, 8),
        zeros(8, 4).T,
        zeros(4, 16)[:, ::2],
        zeros(8, 8)[::2],
        zeros(4, 8).astype(np.float64),
        zeros(4, 8, 1),
        zeros(8),
        3.0,
        None,
        [zeros(4, 8)],
    ],
    ids=[
        "one row",
        "one column",
        "empty",
        "transposed",
        "gaps in rows",
        "gaps between rows",
        "dtype",
        "higher rank",
        "lower rank",
        "number",
        "undefined",
        "list",
    ],
)
def test_all_else_is_compared(value):
    """R3.42"""
    assert not guard(CONTIGUOUS, value)


@pytest.mark.parametrize(
    "field, value, text",
    [
        ("device", "cuda:0", "is on cpu, specialised for cuda:0"),
        ("requires_grad", True, "requires_grad is false, specialised for true"),
    ],
)
def test_device_and_gradients(field, value, text):
    """R3.42"""
    other = replace(CONTIGUOUS, **{field: value})
    assert not guard(other, zeros(4, 8))
    (found,) = mismatches([other], [type_of(zeros(4, 8))], relaxed=True)
    assert found.text == f"operand 0: {text}"


@pytest.mark.parametrize("size", [0, 1])
def test_sizes_of_0_and_1_stay(size):
    type_ = replace(CONTIGUOUS, shape=(4, size))
    assert guard(type_, zeros(7, size))
    assert not guard(type_, zeros(7, 2))


def test_strides_of_size_1_axes_do_not_matter():
    row = replace(CONTIGUOUS, shape=(1, 8))
    assert guard(row, zeros(5, 8)[2:3])
    assert guard(row, np.lib.stride_tricks.as_strided(zeros(16), (1, 16), (4000, 4)))


def test_the_order_of_strides_stays():
    columns = type_of(zeros(8, 4).T)
    assert guard(columns, zeros(32, 16).T)
    assert not guard(columns, zeros(4, 8))
    assert guard(columns, zeros(1, 9).repeat(3, 0).T)


def test_zero_strides_are_in_no_order():
    broadcast = np.broadcast_to(zeros(8), (4, 8))
    assert guard(type_of(broadcast), np.broadcast_to(zeros(9), (5, 9)))
    assert guard(type_of(broadcast), zeros(5, 9))
    assert guard(type_of(broadcast), zeros(9, 5).T) is False  # rows without gaps stay so


def test_contiguity_is_asked_for_only_where_it_was_profiled():
    gaps = type_of(zeros(4, 16)[:, ::2])
    assert guard(gaps, zeros(4, 16)[:, ::2])
    assert guard(gaps, zeros(4, 8))
    padded = type_of(zeros(4, 16)[:, :8])
    assert guard(padded, zeros(9, 20)[:, :7])
    assert not guard(padded, zeros(9, 20)[:, ::2])


@pytest.mark.parametrize("field", ["dtype", "shape", "device"])
def test_incomplete_types_fit_nothing(field):
    incomplete = replace(CONTIGUOUS, **{field: None}, strides=None)
    assert not fits_relaxed((incomplete,), (zeros(4, 8),))


def test_symbols_and_unknown_sizes_are_sizes_like_others():
    assert guard(replace(CONTIGUOUS, shape=(symbol("s0"), None)), zeros(9, 9))
    assert not guard(replace(CONTIGUOUS, shape=(symbol("s0"), 8)), zeros(1, 9))


def test_every_operand_counts():
    types = (CONTIGUOUS, CONTIGUOUS)
    assert fits_relaxed(types, (zeros(4, 8), zeros(9, 9)))
    assert not fits_relaxed(types, (zeros(4, 8), zeros(1, 9)))
    assert not fits_relaxed(types, (zeros(4, 8),))


@pytest.mark.parametrize(
    "sizes, reference, expected",
    [
        (None, (), True),
        ([], (), False),
        ([4], (), False),
        (None, (4,), False),
        ([4, 8], (4, 8), True),
        ([5, 9], (4, 8), True),
        ([4], (4, 8), False),
        ([1, 8], (1, 3), True),
        ([8, 1], (1, 3), False),
        ([4, 8], (1, 3), False),
    ],
)
def test_size_checks(sizes, reference, expected):
    """R3.43"""
    evaluate = op_named("size_eq").evaluate
    assert evaluate({"reference": reference}, sizes) is expected
    assert pf.set_size_checks(False) is True
    try:
        assert evaluate({"reference": reference}, sizes) is True
        assert not pf.get_size_checks()
    finally:
        assert pf.set_size_checks(True) is False


def test_r3_43_targets_that_do_not_fit_what_is_summed_never_match():
    """A6: whether positions are 1 may be switched off, this may not."""
    assert sizes_match((1, 6), (1, 3), (4, 6))
    assert sizes_match((6,), (3,), (4, 6))
    assert sizes_match(None, (), (4, 6))
    for on in (True, False):
        before = pf.set_size_checks(on)
        try:
            assert not sizes_match((1, 5), (1, 3), (4, 6))
            assert not sizes_match((1, 4, 6), (1, 4, 6), (4, 6))
            assert sizes_match((4, 1), (1, 3), (4, 6)) is not on
        finally:
            pf.set_size_checks(before)
