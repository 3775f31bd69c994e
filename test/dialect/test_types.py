"""Merging two records of one observer (R1.19)."""

from dataclasses import fields, replace

import numpy as np
import pytest
from profuse.dialect.ir.dtypes import F32, F64
from profuse.dialect.ir.symbolic import symbol
from profuse.dialect.ir.types import TENSOR, TensorType, merge_types, type_of

S0 = symbol("s0")
A = TensorType(F32, (4, 8), (8, 1), "cpu", False, True)


def test_r1_19_equal_types_survive():
    assert merge_types(A, A) == A


@pytest.mark.parametrize(
    ("field", "other"), [("dtype", F64), ("device", "cuda:0"), ("requires_grad", True), ("defined", False)]
)
def test_r1_19_an_unequal_property_is_blanked_alone(field, other):
    assert merge_types(A, replace(A, **{field: other})) == replace(A, **{field: None})
    assert merge_types(A, replace(A, **{field: None})) == replace(A, **{field: None})


@pytest.mark.parametrize(
    ("a", "b", "merged"),
    [
        ((4, 8), (4, 8), (4, 8)),
        ((4, 8), (5, 8), (None, 8)),
        ((4, 8), (5, 9), (None, None)),
        ((4, None), (4, 8), (4, None)),
        ((S0, 8), (S0, 8), (S0, 8)),
        ((S0, 8), (4, 8), (None, 8)),
        ((4, 8), (4, 8, 1), None),
        ((), (1,), None),
        ((4, 8), None, None),
    ],
)
def test_r1_19_sizes(a, b, merged):
    assert merge_types(TensorType(F32, a), TensorType(F32, b)) == TensorType(F32, merged)
    assert merge_types(TensorType(F32, b), TensorType(F32, a)) == TensorType(F32, merged)


@pytest.mark.parametrize(
    ("a", "b", "merged"),
    [
        ((8, 1), (8, 1), (8, 1)),
        ((8, 1), (16, 1), (None, 1)),
        ((8, 1), (1, 4), (None, None)),
        ("contiguous", "contiguous", "contiguous"),
        ("contiguous", (8, 1), (8, 1)),
        ("contiguous", (16, 1), (None, 1)),
        ("contiguous", (1, 4), (None, None)),
        ("contiguous", None, None),
        ((8, 1), None, None),
    ],
)
def test_r1_19_stride_properties_per_dimension(a, b, merged):
    """R1.19"""
    assert merge_types(replace(A, strides=a), replace(A, strides=b)).strides == merged
    assert merge_types(replace(A, strides=b), replace(A, strides=a)).strides == merged


def test_r1_19_contiguous_strides_of_their_own_sizes():
    """R1.19: each type's strides are those of its own sizes, unknown behind an unknown one."""
    four, five = (TensorType(F32, (n, 8, 2), "contiguous") for n in (4, 5))
    assert merge_types(four, five) == TensorType(F32, (None, 8, 2), "contiguous")
    gaps = replace(five, strides=(32, 2, 1))
    assert merge_types(four, gaps) == TensorType(F32, (None, 8, 2), (None, 2, 1))
    unknown = TensorType(F32, (4, None, 2), "contiguous")
    assert merge_types(unknown, replace(four, strides=(16, 2, 1))).strides == (None, 2, 1)


def test_r1_19_a_rank_mismatch_drops_strides_too():
    other = replace(A, shape=(4, 8, 1), strides=(8, 1, 1))
    assert merge_types(A, other) == replace(A, shape=None, strides=None)


def test_r1_18_two_trips_of_a_loop():
    merged = merge_types(type_of(np.zeros((3, 5))), type_of(np.zeros((4, 5))))
    assert merged.shape == (None, 5)
    assert merged.strides == "contiguous"


def test_merging_with_the_bare_type_leaves_the_bare_type():
    assert all(getattr(merge_types(A, TENSOR), f.name) is None for f in fields(TensorType))
