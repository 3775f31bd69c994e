"""`Scalar` computes what NumPy computes, for every dtype, in the corners too."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from profuse.dialect.errors import InternalError
from profuse.dialect.ir.dtypes import DTYPES, F16, I32, dtype_of
from profuse.lowering.linalg import scalar
from reference import run_lowering, run_scalar

INTS = [d.numpy for d in DTYPES if d.is_int]
FLOATS = [d.numpy for d in DTYPES if d.is_float]
REAL = [d.numpy for d in DTYPES if d.kind != "c"]


def corners(dtype):
    """Interesting values of a dtype."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        wanted = {info.min, info.min + 1, info.max, info.max - 1, info.max // 2, 0, 1, 2, 3, 7}
        if dtype.kind == "i":
            wanted |= {-1, -2, -3, -7}
        return np.array(sorted(wanted), dtype)
    finite = [0.0, 0.5, 1.0, 1.5, 2.5, 3.0, 7.0, 100.25, 300.0, 65504.0]
    wide = [*finite, 2.0**31, 2.0**32, 2.0**63, 2.0**64, 1e10, 1e30, np.inf]
    with np.errstate(over="ignore"):
        return np.array([*wide, *(-v for v in wide), np.nan, 1e-3, 1e-7], dtype)


def pairs(dtype):
    """All pairs of corners, as two arrays."""
    values = corners(dtype)
    a, b = np.meshgrid(values, values)
    return a.ravel(), b.ravel()


def same(got, expected):
    """Equal dtype and elements; NaNs equal, zeros with their signs."""
    assert got.dtype == expected.dtype
    if got.dtype.kind not in "biu":
        got, expected = (v.astype("f8") for v in (got, expected))
        np.testing.assert_array_equal(np.signbit(got[got == 0]), np.signbit(expected[got == 0]))
    np.testing.assert_array_equal(got, expected)


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


ARITHMETIC = {
    np.add: lambda a, b: a + b,
    np.subtract: lambda a, b: a - b,
    np.multiply: lambda a, b: a * b,
    np.floor_divide: lambda a, b: a // b,
    np.remainder: lambda a, b: a % b,
    np.fmod: lambda a, b: a.fmod(b),
    np.maximum: lambda a, b: a.maximum(b),
    np.minimum: lambda a, b: a.minimum(b),
}
UNSIGNED_ZERO = (np.maximum, np.minimum)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("ufunc", ARITHMETIC, ids=lambda u: u.__name__)
@pytest.mark.parametrize("dtype", INTS + FLOATS, ids=str)
def test_arithmetic(ufunc, dtype):
    a, b = pairs(dtype)
    expected = ufunc(a, b)
    got = run_scalar(ARITHMETIC[ufunc], dtype, a, b)
    if ufunc in UNSIGNED_ZERO:
        got, expected = got + got.dtype.type(0), expected + got.dtype.type(0)
    same(got, expected)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_division_and_negation(dtype):
    a, b = pairs(dtype)
    same(run_scalar(lambda x, y: x / y, dtype, a, b), a / b)
    same(run_scalar(lambda x: -x, dtype, a), -a)
    same(run_scalar(abs, dtype, a), abs(a))
    for fn, ufunc in (
        (scalar.Scalar.isnan, np.isnan),
        (scalar.Scalar.isinf, np.isinf),
        (scalar.Scalar.isfinite, np.isfinite),
    ):
        same(run_scalar(fn, bool, a), ufunc(a))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_bits_and_shifts(dtype):
    a, b = pairs(dtype)
    same(run_scalar(lambda x, y: x & y, dtype, a, b), a & b)
    same(run_scalar(lambda x, y: x | y, dtype, a, b), a | b)
    same(run_scalar(lambda x, y: x ^ y, dtype, a, b), a ^ b)
    same(run_scalar(lambda x: ~x, dtype, a), ~a)
    same(run_scalar(lambda x: -x, dtype, a), -a)
    same(run_scalar(abs, dtype, a), abs(a))
    same(run_scalar(lambda x, y: x.shl(y), dtype, a, b), np.left_shift(a, b))
    same(run_scalar(lambda x, y: x.shr(y), dtype, a, b), np.right_shift(a, b))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_comparisons(dtype):
    a, b = pairs(dtype)
    same(run_scalar(lambda x, y: x < y, bool, a, b), a < b)
    same(run_scalar(lambda x, y: x <= y, bool, a, b), a <= b)
    same(run_scalar(lambda x, y: x > y, bool, a, b), a > b)
    same(run_scalar(lambda x, y: x >= y, bool, a, b), a >= b)
    same(run_scalar(lambda x, y: x.eq(y), bool, a, b), a == b)
    same(run_scalar(lambda x, y: x.ne(y), bool, a, b), a != b)


def test_bool_arithmetic():
    a, b = pairs(bool)
    same(run_scalar(lambda x, y: x + y, bool, a, b), a + b)
    same(run_scalar(lambda x, y: x * y, bool, a, b), a * b)
    same(run_scalar(lambda x, y: x ^ y, bool, a, b), a ^ b)
    same(run_scalar(lambda x: ~x, bool, a), ~a)
    same(run_scalar(lambda x, y: x.maximum(y), bool, a, b), a | b)
    with pytest.raises(InternalError):
        run_scalar(lambda x, y: x - y, bool, a, b)


def test_any_nonzero_byte_is_true():
    a = np.array([0, 1, 2, 255], "u1").view(bool)
    same(run_scalar(lambda x: x.cast(I32), "i4", a), np.array([0, 1, 1, 1], "i4"))


@pytest.mark.sampled(9)
@pytest.mark.parametrize("source", REAL, ids=str)
def test_casts(source):
    x = corners(source)
    for target in REAL:
        got = run_scalar(lambda v, to=target: v.cast(dtype_of(to)), target, x)
        # One at a time: NumPy's vector loops answer differently for what does not fit.
        expected = np.array([v.astype(target) for v in x.reshape(-1, 1)]).ravel()
        same(got, expected)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target", REAL, ids=str)
def test_casts_of_constants(target):
    x = np.zeros(1)
    for value in (True, 3, -3, 2.75, 1e-3):
        if isinstance(value, float) or value >= 0 or target.kind != "u":
            got = run_scalar(lambda _, v=value: scalar.constant(v, dtype_of(type(v))).cast(dtype_of(target)), target, x)
            same(got, np.array([value]).astype(target))


def test_f64_to_f16_rounds_once():
    # Half way between two f16 values, and a little above: rounding to f32 first would lose it.
    x = np.array(
        [
            1 + 2**-11 + 2**-40,
            1 + 3 * 2**-11 - 2**-40,
            -(1 + 2**-11 + 2**-40),
            2**-25,
            2**-25 + 2**-60,
            65519.999999999,
            65520.0,
            1e300,
            -1e300,
        ]
    )
    x = np.concatenate([x, np.random.default_rng(0).standard_normal(2000)])
    same(run_scalar(lambda v: v.cast(F16), "f2", x), x.astype("f2"))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_integer_powers(dtype):
    a, b = pairs(dtype)
    a, b = a[b >= 0], b[b >= 0]
    same(run_scalar(lambda x, y: x.ipow(y), dtype, a, b), np.power(a, b))
    for k in (0, 1, 2, 3, 5, 10):
        same(run_scalar(lambda x, k=k: x.ipow(k), dtype, a), np.power(a, np.array(k, dtype)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_math(dtype):
    x = np.array([-0.9, -0.5, -0.0, 0.0, 0.25, 0.5, 0.75, 1.0, 2.5], dtype)
    got = run_scalar(lambda v: v.math("floor"), dtype, x)
    same(got, np.floor(x))
    same(run_scalar(lambda v: v.math("roundeven"), dtype, x), np.rint(x))
    wide = np.float32 if np.dtype(dtype).itemsize == 2 else dtype
    for name, ufunc in (("exp", np.exp), ("tanh", np.tanh), ("sin", np.sin), ("log1p", np.log1p), ("atan", np.arctan)):
        got = run_scalar(lambda v, n=name: v.math(n), dtype, x).astype("f8")
        expected = ufunc(x.astype(wide)).astype(dtype).astype("f8")
        tolerance = 4 * float(ml_dtypes.finfo(np.dtype(dtype)).eps)
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=0)
    a, b = pairs(dtype)
    same(run_scalar(lambda v, w: v.math("copysign", w), dtype, a, b), np.copysign(a, b))


def test_numbers_take_the_dtype_of_the_scalar():
    x = np.array([1, 2, 250], "u1")
    same(run_scalar(lambda v: 10 - v + 3, "u1", x), (10 - x + 3).astype("u1"))
    f = np.array([0.5, 2.0], "f2")
    same(run_scalar(lambda v: 1 / v + 0.1, "f2", f), (1 / f + np.float16(0.1)).astype("f2"))
    same(run_scalar(lambda v: (v > 1).select(2.0, v), "f2", f), np.array([0.5, 2], "f2"))
    same(run_scalar(lambda v: (v > 1).select(v, 2.0), "f2", f), np.array([2, 2], "f2"))


def test_mixed_dtypes_are_an_error():
    x, y = np.zeros(1, "f4"), np.zeros(1, "f8")
    with pytest.raises(InternalError, match="differ in dtype"):
        run_scalar(lambda a, b: a + b, "f4", x, y)


def test_bodies_must_yield_the_dtype():
    with pytest.raises(InternalError, match="yields"):
        run_lowering(lambda b, x: b.pointwise(lambda v: v < 0, [x], x.type), ("f4", (1,)), np.zeros(1, "f4"))


def test_every_pair_of_corners_is_covered():
    a, b = pairs("i1")
    assert set(itertools.product(corners("i1"), repeat=2)) == set(zip(b, a, strict=True))
