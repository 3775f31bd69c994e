"""Run-time guards: what `check_types` compares (R1.39) and what `generalize` keeps (R1.40)."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from profuse.dialect.errors import InternalError
from profuse.dialect.guards.checks import Kind, checks_of, generalize, table
from profuse.dialect.guards.free_sizes import FreeSizes
from profuse.dialect.guards.mismatch import check_types, mismatches
from profuse.dialect.guards.seen import seen_type
from profuse.dialect.ir.dtypes import F32, I64
from profuse.dialect.ir.symbolic import symbol
from profuse.dialect.ir.types import BOOL_SCALAR, INT_SCALAR, TENSOR, ListType, TensorType, type_of
from profuse.dialect.ops.speculation import DynamicGuard, TypeCheck

S0, S1 = symbol("s0"), symbol("s1")
X = np.zeros((4, 8), np.float32)
EXPECTED = type_of(X)


def told(types, values):
    """All failing checks in words; there are none exactly where `check_types` is true."""
    found = mismatches(types, [seen_type(value) for value in values])
    assert check_types(types, values) == (not found)
    return [m.text for m in found]


def why(type_, value):
    return told([type_], [value])[0].removeprefix("operand 0: ")


def test_r1_39_the_recorded_value_passes():
    assert check_types([EXPECTED], [X])
    assert check_types([EXPECTED], [X + 1])


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (X.astype(np.float64), "dtype is f64, specialised for f32"),
        (X.astype(">f4"), "dtype is f32 in foreign byte order, specialised for f32"),
        (X.astype(str), "dtype is <U32, specialised for f32"),
        (X[0], "rank is 1, specialised for 2"),
        (np.zeros((4, 7), np.float32), "size of dimension 1 is 7, specialised for 8"),
        (np.zeros((5, 8), np.float32), "size of dimension 0 is 5, specialised for 4"),
        (np.zeros((8, 4), np.float32).T, "is not contiguous, specialised for contiguous"),
        (np.zeros((4, 16), np.float32)[:, ::2], "is not contiguous, specialised for contiguous"),
        (np.zeros((4, 8), np.float32)[::-1], "is not contiguous, specialised for contiguous"),
        (1.0, "is a Python f64, specialised for a tensor"),
        ("x", "is a string, specialised for a tensor"),
        ([X], "is a list, specialised for a tensor"),
    ],
)
def test_r1_39_one_property_at_a_time(value, reason):
    assert why(EXPECTED, value) == reason
    assert not check_types([EXPECTED], [value])


def test_r1_39_device_and_requires_grad():
    assert why(replace(EXPECTED, device="cuda:0"), X) == "is on cpu, specialised for cuda:0"
    assert why(replace(EXPECTED, requires_grad=True), X) == ("requires_grad is false, specialised for true")


@pytest.mark.parametrize("field", ["dtype", "strides", "device", "requires_grad", "defined"])
def test_r1_39_what_is_not_known_is_not_compared(field):
    assert check_types([replace(EXPECTED, **{field: None})], [X])


def test_r1_39_unknown_dtype_or_stride_admits_any():
    assert check_types([replace(EXPECTED, dtype=None)], [X.astype(np.int32)])
    assert check_types([replace(EXPECTED, strides=None)], [np.zeros((8, 4), np.float32).T])
    assert check_types([replace(EXPECTED, strides=(None, 1))], [np.zeros((4, 9), "f4")[:, :8]])
    assert not check_types([replace(EXPECTED, strides=(None, 1))], [np.zeros((8, 4), "f4").T])


def test_r1_39_sizes_count_only_when_all_are_known():
    partial = TensorType(F32, (None, 8))
    assert check_types([partial], [np.zeros((3, 5), np.float32)])
    assert TypeCheck.infer([TENSOR], {"types": (partial,)}) == (TensorType(F32), BOOL_SCALAR)


def test_r1_39_undefined_tensors_pass():
    assert check_types([EXPECTED], [None])
    assert check_types([replace(EXPECTED, defined=False)], [None])
    assert not check_types([replace(EXPECTED, defined=False)], [X])


def test_r1_39_bare_types_admit_every_tensor():
    assert check_types([TENSOR, TENSOR], [X, np.array(["text"])])


def test_wrong_number_of_arguments_is_a_mismatch():
    assert not check_types([TENSOR], [])
    assert not check_types([TENSOR], [X, X])


def test_strides_of_size_one_dimensions_do_not_matter():
    row = TensorType(F32, (1, 8), (8, 1))
    assert check_types([row], [np.zeros((4, 8), np.float32)[::4]])
    assert check_types([replace(row, strides="contiguous")], [np.zeros((4, 8), np.float32)[::4]])


def test_strides_of_empty_arrays_do_not_matter():
    empty = TensorType(F32, (0, 8), (8, 1))
    assert check_types([empty], [np.zeros((8, 0), np.float32).T])
    assert check_types([replace(empty, strides="contiguous")], [np.zeros((8, 0), np.float32).T])


def test_contiguous_means_c_contiguous():
    type_ = TensorType(F32, (4, 4), "contiguous")
    assert check_types([type_], [np.zeros((4, 4), np.float32)])
    assert why(type_, np.zeros((4, 4), np.float32).T) == ("is not contiguous, specialised for contiguous")


@pytest.mark.parametrize("strides", ["contiguous", (1,), (None,)])
def test_data_must_be_aligned_when_strides_are_specified(strides):
    unaligned = np.zeros(17, np.uint8)[1:].view(np.float32)
    assert why(TensorType(F32, (4,), strides), unaligned) == ("data is not aligned to 4 bytes")
    assert check_types([TensorType(F32, (4,))], [unaligned])


@pytest.mark.parametrize("strides", [(1,), (None,)])
def test_strides_must_be_multiples_of_the_item_size(strides):
    field = np.zeros(4, np.dtype([("a", "f4"), ("b", "u1")]))["a"]
    assert why(TensorType(F32, (4,), strides), field) == ("stride of dimension 0 is no multiple of the item size")


def test_numpy_scalars_are_tensors_of_rank_zero():
    assert check_types([type_of(np.float32(1))], [np.float32(2)])
    assert check_types([type_of(np.float32(1))], [np.array(2, np.float32)])
    assert not check_types([type_of(np.float32(1))], [np.float64(2)])


def test_scalars_and_lists_are_compared_by_kind():
    assert check_types([INT_SCALAR, ListType()], [3, [X]])
    assert why(INT_SCALAR, 3.0) == "is a Python f64, specialised for a Python i64"
    assert why(INT_SCALAR, True) == "is a Python bool, specialised for a Python i64"
    assert why(INT_SCALAR, None) == "is an undefined tensor, specialised for a Python i64"
    assert why(ListType(), X) == "is a tensor, specialised for a list"


def test_r1_40_equal_symbols_need_equal_sizes():
    types = [TensorType(F32, (S0, 3)), TensorType(F32, (S0, 1))]
    ones = [np.zeros((4, 3), np.float32), np.zeros((4, 1), np.float32)]
    assert check_types(types, ones)
    assert told(types, [ones[0], np.zeros((5, 1), np.float32)]) == [
        "operand 1: size of dimension 0 is 5, must equal dimension 0 of operand 0, which is 4"
    ]
    assert told(types, [ones[0], np.zeros((4, 2), np.float32)]) == [
        "operand 1: size of dimension 1 is 2, specialised for 1"
    ]


@pytest.mark.parametrize("size", [1, 2, 1000])
def test_r1_40_a_symbol_admits_any_size_but_0(size):
    types = [TensorType(F32, (S0, S0))]
    assert check_types(types, [np.zeros((size, size), np.float32)])
    assert told(types, [np.zeros((0, 0), np.float32)]) == [
        f"operand 0: size of dimension {axis} is 0, specialised for sizes of at least 1" for axis in (0, 1)
    ]


def test_size_expressions_are_checked_once_symbols_are_bound():
    types = [TensorType(F32, (S0 + 1,)), TensorType(F32, (S0,))]
    two, three, four = (np.zeros(n, np.float32) for n in (2, 3, 4))
    assert check_types(types, [four, three])
    assert told(types, [four, two]) == ["operand 0: size of dimension 0 is 4, must be s0 + 1 = 3"]
    assert told([TensorType(F32, (S0 + 1,))], [four]) == [
        "operand 0: size of dimension 0 is 4, and nothing tells what s0 + 1 stands for"
    ]


def test_multiples_of_a_symbol_bind_it():
    double, single = TensorType(F32, (S0 * 2,)), TensorType(F32, (S0,))
    two, three, four = (np.zeros(n, np.float32) for n in (2, 3, 4))
    assert check_types([double], [four]) and check_types([double, single], [four, two])
    assert check_types([single, double], [two, four])
    assert told([double], [three]) == ["operand 0: size of dimension 0 is 3, must be a multiple of 2"]
    assert told([double, single], [four, three]) == [
        "operand 1: size of dimension 0 is 3, must be 2, as dimension 0 of operand 0 is 4"
    ]
    assert told([double, double], [four, two]) == [
        "operand 1: size of dimension 0 is 2, must equal dimension 0 of operand 0, which is 4"
    ]


def test_r1_40_example():
    types = generalize([type_of(np.zeros((2, 3))), type_of(np.zeros((2, 1)))])
    assert [t.shape for t in types] == [(S0, S1), (S0, 1)]
    assert check_types(types, [np.zeros((4, 3)), np.zeros((4, 1))])
    assert not check_types(types, [np.zeros((4, 3)), np.zeros((4, 2))])
    assert not check_types(types, [np.zeros((4, 3)), np.zeros((5, 1))])
    assert not check_types(types, [np.zeros((4, 3), "f4"), np.zeros((4, 1))])


def test_r1_40_sizes_zero_and_one_stay_literal():
    (type_,) = generalize([type_of(np.zeros((0, 1, 5)))])
    assert type_.shape == (0, 1, S0)


@pytest.mark.parametrize(
    ("array", "strides"),
    [
        (np.zeros((4, 8)), "contiguous"),
        (np.zeros(()), "contiguous"),
        (np.zeros((4, 8)).T, (1, None)),
        (np.zeros((4, 9))[:, :8], (None, 1)),
        (np.zeros((4, 16))[:, ::2], (None, 2)),
        (np.zeros((5, 16))[:, ::-1], (None, -1)),
        (np.zeros((4, 40))[:, ::5], (None, None)),
        (np.zeros((9, 3)).T, (1, None)),  # 3 is a size that may change
        (np.broadcast_to(np.zeros(8), (4, 8)), (0, 1)),
        (np.zeros((6, 8))[::6], "contiguous"),
        (np.zeros((8, 1, 4)).transpose(2, 1, 0), (1, 0, None)),
    ],
)
def test_r1_40_stride_classes(array, strides):
    types = generalize([type_of(array)])
    assert types[0].strides == strides
    assert check_types(types, [array])


def test_r1_40_refusals():
    assert generalize([TENSOR]) is None
    assert generalize([TensorType(F32)]) is None
    assert generalize([TensorType(F32, (2, None))]) is None
    assert generalize([replace(EXPECTED, requires_grad=True)]) is None
    assert generalize([replace(EXPECTED, defined=False)]) is None
    assert generalize([EXPECTED, replace(EXPECTED, device="cuda:0")]) is None


def test_r1_40_recorded_symbols_are_renamed_and_shared():
    types = generalize([TensorType(I64, (symbol("n"), 4)), TensorType(I64, (4, symbol("n")))])
    assert [t.shape for t in types] == [(S0, S1), (S1, S0)]


def test_guard_ops_evaluate_to_operands_and_answer():
    attrs = {"types": (EXPECTED,)}
    for op in (TypeCheck, DynamicGuard):
        value, passed = op.evaluate(attrs, X)
        assert value is X
        assert passed is True
        assert op.evaluate(attrs, X[:2])[1] is False


def test_symbols_stand_for_the_first_size_that_is_there():
    """R1.39, R1.40: of an undefined tensor, or of one of another rank, no size is known."""
    types = [TensorType(F32, (S0,))] * 3
    two, three = np.zeros(2, np.float32), np.zeros(3, np.float32)
    assert told(types, [None, two, two]) == []
    differing = "operand 2: size of dimension 0 is 3, must equal dimension 0 of operand 1"
    assert told(types, [None, two, three]) == [f"{differing}, which is 2"]
    assert told(types, [X, two, three]) == ["operand 0: rank is 2, specialised for 1", f"{differing}, which is 2"]


def test_arrays_of_any_dtype_are_seen():
    """R1.39: guards answer, and a miss is kept, whatever the value is."""
    for value in (np.zeros(3, "V0"), np.zeros(3, "M8[s]"), np.zeros(3, object), object(), None):
        assert check_types([TensorType(F32, (3,), (1,))], [value]) is (value is None)
        assert seen_type(value) == seen_type(value)
    assert why(TensorType(None, (3,), "contiguous"), np.zeros(3, ">f4")) == (
        "dtype is f32 in foreign byte order, specialised for native byte order"
    )
    assert check_types([TensorType(None, (3,), "contiguous")], [np.zeros(3, object)])


EVERY = [
    INT_SCALAR,
    ListType(),
    replace(EXPECTED, defined=False),
    EXPECTED,
    replace(EXPECTED, dtype=None),
    TensorType(F32, (S0, S0 + 1), (None, 1)),
]


def test_every_kind_of_check_is_listed_and_folded():
    found = {c.kind for c in checks_of(EVERY)}
    free = FreeSizes(fit=("s0_0 == 4",))
    found |= {c.kind for c in checks_of([EXPECTED, TENSOR], relaxed=True, free=free)}
    assert found == set(get_args(Kind))
    entries = dict.fromkeys(get_args(Kind), 0)
    assert table(entries) is entries
    with pytest.raises(InternalError, match="differs in stride"):
        table({kind: entry for kind, entry in entries.items() if kind != "stride"})
