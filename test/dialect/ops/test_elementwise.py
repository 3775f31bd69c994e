"""Elementwise ops: what the conformance table does not reach."""

from __future__ import annotations

import numpy as np
import pytest
from profuse.dialect.errors import DTypeError, ShapeError
from profuse.dialect.ir.dtypes import BOOL, C128, F16, F32, F64, I8, I64, U8, U64
from profuse.dialect.ir.op import op_named
from profuse.dialect.ir.size_algebra import sym_max
from profuse.dialect.ir.symbolic import symbol
from profuse.dialect.ir.types import BOOL_SCALAR, FLOAT_SCALAR, INT_SCALAR, TENSOR, ListType, ScalarType, TensorType
from profuse.dialect.ops.broadcast import broadcast_shapes

S, T = symbol("s0"), symbol("s1")


def infer(name: str, *types):
    (out,) = op_named(name).infer(types, {})
    return out


def known(value) -> ScalarType:
    dtype = {bool: BOOL, int: I64, float: F64, complex: C128}.get(type(value), I64)
    return ScalarType(dtype, value)


# --- broadcasting -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([(2, 3), (3,)], (2, 3)),
        ([(4, 1), (1, 5), ()], (4, 5)),
        ([(0, 1), (1, 7)], (0, 7)),
        ([(S, 3), (1, 3)], (S, 3)),
        ([(S, T), (T,)], (S, T)),
        ([(S + 1,), (S + 1,)], (S + 1,)),
        ([(None, 3), (2, 3)], (2, 3)),
        ([(None, 3), (1, 3)], (None, 3)),
        ([(None,), (S,)], (None,)),
        ([(2,), None], None),
        ([()], ()),
        ([], ()),
    ],
)
def test_broadcast_shapes(shapes, expected):
    assert broadcast_shapes(*shapes) == expected


def test_broadcast_mismatch_in_numpys_words():
    with pytest.raises(ValueError) as numpy_error:
        np.add(np.ones((2, 3)), np.ones(4))
    with pytest.raises(ShapeError) as error:
        infer("add", TensorType(F64, (2, 3)), TensorType(F64, (4,)))
    assert error.value.what == str(numpy_error.value)


@pytest.mark.parametrize("shapes", [[(S,), (T,)], [(S,), (4,)], [(S + 1,), (S,)]])
def test_symbols_fit_only_themselves(shapes):
    with pytest.raises(ShapeError, match="are not known to be equal"):
        broadcast_shapes(*shapes)


# --- types ------------------------------------------------------------------------------------


def test_partial_knowledge():
    assert infer("add", TENSOR, TensorType(F32, (2,))) == TensorType(None, None)
    assert infer("add", TensorType(None, (2,)), TensorType(F32, (2,))) == TensorType(None, (2,))
    assert infer("exp", TensorType(F16)) == TensorType(F16)
    assert infer("exp", INT_SCALAR) == TensorType(F64, ())


def test_layout_is_not_inferred():
    strided = TensorType(F32, (2, 3), (6, 2), "cpu", False, True)
    assert infer("neg", strided) == TensorType(F32, (2, 3))


def test_refused_dtypes_name_numpys_reason():
    with pytest.raises(DTypeError, match="boolean subtract"):
        infer("sub", TensorType(BOOL, ()), TensorType(BOOL, ()))
    with pytest.raises(DTypeError, match="bitwise_and"):
        infer("bitwise_and", TensorType(F32, ()), INT_SCALAR)
    with pytest.raises(DTypeError, match="unsupported operand"):
        infer("bitwise_and", FLOAT_SCALAR, INT_SCALAR)
    with pytest.raises(DTypeError, match="list"):
        infer("neg", ListType())


# --- Python numbers ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("add", (2, 3), 5),
        ("add", (True, True), 2),
        ("add", (2, 0.5), 2.5),
        ("div", (1, 2), 0.5),
        ("floor_div", (-7, 2), -4),
        ("floor_div", (-7.0, 2), -4.0),
        ("remainder", (-7, 4), 1),
        ("pow", (2, 10), 1024),
        ("pow", (2, -1), 0.5),
        ("pow", (4, 0.5), 2.0),
        ("neg", (3,), -3),
        ("neg", (True,), -1),
        ("abs", (-2.5,), 2.5),
        ("lt", (2, 2.5), True),
        ("logical_not", (0,), True),
        ("bitwise_not", (True,), -2),
        ("maximum", (3, 2.5), 3.0),
        ("minimum", (3, 5), 3),
        ("shift_left", (3, 4), 48),
        ("select", (True, 1, 2.5), 1.0),
        ("clip", (7, 0, 5), 5),
        ("clip", (0.5, 1, 5), 1.0),
        ("add", (1j, 2), 2 + 1j),
    ],
)
def test_python_numbers(name, values, expected):
    """Results, their types, and values known at compile time agree."""
    found = op_named(name).evaluate({}, *values)
    assert found == expected and type(found) is type(expected)
    assert infer(name, *map(known, values)) == known(expected)
    without = infer(name, *(ScalarType(known(v).dtype) for v in values))
    assert without == ScalarType(known(expected).dtype) or (name, without) == ("pow", TENSOR)


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("add", (S, 1), S + 1),
        ("sub", (1, S), 1 - S),
        ("sub", (S, S), 0),
        ("mul", (S, T), S * T),
        ("neg", (S,), -S),
        ("floor_div", (S * 4, 2), S * 2),
        ("remainder", (S, 2), S % 2),
        ("maximum", (S, 4), sym_max(S, 4)),
        ("floor_div", (S, 0), None),
        ("remainder", (S, 0), None),
        ("pow", (S, 2), None),
        ("bitwise_and", (S, 1), None),
    ],
)
def test_symbolic_sizes(name, values, expected):
    assert infer(name, *map(known, values)) == ScalarType(I64, expected)


def test_symbols_lose_their_value_beside_floats():
    assert infer("mul", known(S), known(0.5)) == FLOAT_SCALAR
    assert infer("div", known(S), known(2)) == FLOAT_SCALAR
    assert infer("eq", known(S), known(S)) == BOOL_SCALAR


def test_python_errors_are_left_to_the_call():
    assert infer("div", known(1), known(0)) == FLOAT_SCALAR
    assert infer("shift_left", known(1), known(-1)) == INT_SCALAR
    with pytest.raises(ZeroDivisionError):
        op_named("div").evaluate({}, 1, 0)


def test_values_beyond_i64_are_not_kept():
    assert infer("mul", known(2**40), known(2**40)) == INT_SCALAR


def test_complex_power_of_real_numbers_is_an_error():
    with pytest.raises(DTypeError, match="is complex in Python"):
        op_named("pow").evaluate({}, -2.0, 0.5)


def test_maximum_of_python_numbers_propagates_nan():
    for name in ("maximum", "minimum"):
        for values in ((np.nan, 1.0), (1.0, float("nan"))):
            assert np.isnan(op_named(name).evaluate({}, *map(float, values)))


# --- weak integers out of range ---------------------------------------------------------------


def test_comparison_with_an_int_out_of_range_is_by_value():
    x = np.array([0, 200], np.uint8)
    lt = op_named("lt")
    assert lt.evaluate({}, -1, x).all() and lt.evaluate({}, x, 1000).all()
    assert lt.operand_dtypes([TensorType(U8, (2,)), INT_SCALAR], {}) == (I64, None)
    assert lt.operand_dtypes([TensorType(U64, (2,)), INT_SCALAR], {}) == (None, None)


def test_clip_bounds_out_of_range_do_not_bind():
    x = np.array([-100, 100], np.int8)
    assert op_named("clip").evaluate({}, x, -1000, 1000).tolist() == [-100, 100]
    wanted = op_named("clip").operand_dtypes([TensorType(I8, (2,)), INT_SCALAR, INT_SCALAR], {})
    assert wanted == (None, None, None)


# --- refusals ---------------------------------------------------------------------------------


def test_refusals_say_why():
    def reason(name: str, *types, **attrs) -> str | None:
        found = op_named(name).can_lower_types(types, attrs)
        return None if found is None else str(found)

    f32, i8, c128 = (TensorType(d, (2, S)) for d in (F32, I8, C128))
    assert reason("add", f32, f32) is None
    assert reason("add", f32, FLOAT_SCALAR) is None
    assert reason("add", c128, c128) is None
    assert reason("matmul", c128, c128) == "complex is not lowered"
    assert reason("add", TensorType(F32, (2, None)), f32) == "type is not known"
    assert reason("add", TENSOR, f32) == "type is not known"
    assert "broadcast" in str(reason("add", f32, TensorType(F32, (2, T))))
    assert reason("pow", i8, INT_SCALAR) is None
    assert reason("pow", f32, INT_SCALAR) is None
    assert "reciprocal" in str(reason("reciprocal", i8))
    assert reason("div", INT_SCALAR, INT_SCALAR) is None
    assert "Python raises" in str(reason("shift_left", INT_SCALAR, INT_SCALAR))
    assert reason("div", INT_SCALAR, known(2)) is None
    assert reason("cast", f32, dtype=C128) is None
    assert reason("cast", c128, dtype=F32) == "complex is not lowered"
    assert reason("cast", f32, dtype=I8) is None
