"""Special values against NumPy: kernels, static and dynamic, and tier 0, through `pf.jit`.

The conformance table (`cases`) has every op alone; here are the functions that tracing composes,
and what tolerances hide there: the signs of zeros, which numbers overflow, where NaN comes from.

Left out, since NumPy's results depend on the platform: floats as integers that they do not fit,
which of two zeros is the larger (`+ 0` makes them equal), and SciPy's float32 sigmoid below -88.7,
which is 0 as `exp(-x)` overflows (ours is subnormal, as the function). Where NumPy's vector code
deviated, C99's Annex F would count; it does not for any value here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import profuse as pf
import pytest
from cases import silent

BF16 = np.dtype(ml_dtypes.bfloat16)
# Units in the last place, for finite results that are not 0. logaddexp cancels, in NumPy as well.
TOLERANCE = 4
TOLERANCES = {"logaddexp": 128}


def specials(dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        values = [0, 1, 2, 3, 7, info.bits - 1, info.bits, info.max, info.max - 1, info.max // 2]
        signed = [-1, -2, -3, -7, info.min, info.min + 1] if dtype.kind == "i" else []
        return np.array(values + signed, dtype)
    limits = ml_dtypes.finfo(dtype)
    sizes = [0.0, limits.smallest_subnormal, limits.tiny, limits.eps, 0.3, 0.5, 1 - limits.eps / 2]
    sizes += [1.0, 1 + limits.eps, 1.5, 2.0, 2.5, 3.0, np.pi, 10.0, 100.0, 2.0**limits.nmant - 0.5]
    values = np.array([float(v) for v in [*sizes, limits.max, np.inf]]).astype(dtype)
    return np.concatenate([values, -values, np.array([np.nan], dtype)])


UNARY: dict[str, Callable[..., Any]] = {
    name: getattr(np, name)
    for name in [
        "exp",
        "exp2",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "sin",
        "cos",
        "tan",
        "arcsin",
        "arccos",
        "arctan",
        "sinh",
        "cosh",
        "tanh",
        "arcsinh",
        "arccosh",
        "arctanh",
        "sqrt",
        "reciprocal",
        "sign",
        "rint",
        "fix",
        "signbit",
        "fabs",
        "deg2rad",
        "rad2deg",
        "modf",
        "nan_to_num",
        "sinc",
        "isposinf",
        "isneginf",
    ]
}
UNARY |= {
    "erf": pf.erf,
    "rsqrt": pf.rsqrt,
    "round to 1": lambda x: np.round(x, 1),
    "round to -1": lambda x: np.round(x, -1),
    "power 0": lambda x: x**0,
    "power -1": lambda x: x**-1,
    "power 1.5": lambda x: x**1.5,
    "power 0.5": lambda x: x**0.5,
    "power -0.5": lambda x: x**-0.5,
    "clip": lambda x: np.clip(x, -1, 2),
    "crossed clip": lambda x: np.clip(x, 2, -1),
    "clip to nan": lambda x: np.clip(x, np.nan, 1.0),
    "as float16": lambda x: x.astype(np.float16),
    "as float32": lambda x: x.astype(np.float32),
    "as bool": lambda x: x.astype(bool),
}
BINARY: dict[str, Callable[..., Any]] = {
    name: getattr(np, name)
    for name in [
        "divide",
        "floor_divide",
        "remainder",
        "fmod",
        "divmod",
        "power",
        "float_power",
        "arctan2",
        "hypot",
        "copysign",
        "logaddexp",
        "heaviside",
        "isclose",
        "left_shift",
        "right_shift",
    ]
}
BINARY |= {
    "clip": lambda x, y: np.clip(x, y, 2) + 0,
    "fmax": lambda x, y: np.fmax(x, y) + 0,
    "fmin": lambda x, y: np.fmin(x, y) + 0,
    "heaviside of half": lambda x, y: np.heaviside(x, 0.5),
    "isclose of nan": lambda x, y: np.isclose(x, y, equal_nan=True),
}
REDUCTIONS: dict[str, Callable[..., Any]] = {
    f"{name} over {axis}": lambda x, name=name, axis=axis: getattr(np, name)(x, axis=axis) + 0
    for name in ["sum", "prod", "max", "min", "mean", "argmax", "argmin", "any", "all", "cumsum", "ptp"]
    for axis in (0, 1)
}


@silent()
def wrong(found: Any, expected: Any, tolerance: float) -> str | None:
    """How a result differs; finite results that are not 0 may be off by ``tolerance``."""
    if isinstance(expected, tuple):
        parts = (wrong(a, e, tolerance) for a, e in zip(found, expected, strict=True))
        return next((p for p in parts if p), None)
    a, e = np.asarray(found), np.asarray(expected)
    if (a.dtype, a.shape) != (e.dtype, e.shape):
        return f"is {a.dtype}{a.shape}, not {e.dtype}{e.shape}"
    if e.dtype.kind in "biu":
        bad = a != e
    else:
        limits = ml_dtypes.finfo(e.dtype)
        a, e = a.astype(np.float64), e.astype(np.float64)
        special = ~np.isfinite(e) | (e == 0)
        same = ((a == e) & (np.signbit(a) == np.signbit(e))) | (np.isnan(a) & np.isnan(e))
        slack = tolerance * np.maximum(float(limits.eps) * abs(e), float(limits.smallest_subnormal))
        bad = np.where(special, ~same, ~(abs(a - e) <= slack))
    if not bad.any():
        return None
    at = tuple(np.argwhere(bad)[0])
    return f"is {a[at]!r}, not {e[at]!r}, at {at} ({int(bad.sum())} wrong)"


def check(table: dict[str, Callable[..., Any]], kind: str, *args: np.ndarray) -> None:
    """Everything in a table as one kernel; what NumPy refuses for the dtype is left out."""
    functions, expected = [], []
    with silent():
        for name, function in table.items():
            try:
                value = function(*args)
            except TypeError:
                continue
            functions.append((name, function))
            expected.append(value)
        jitted = pf.jit(
            lambda *xs: tuple(function(*xs) for _, function in functions), background=False, strategy=[(kind, 1)]
        )
        interpreted = jitted(*args)
        jitted(*args)
        evaluated = jitted.state().counters["evaluated_ops"]
        compiled = jitted(*args)
    counters = jitted.state().counters
    assert counters["evaluated_ops"] == evaluated
    assert counters["guard_misses"] == counters["fallback_calls"] == 0
    assert counters["kernel_launches"] >= 1
    found = [
        f"{where} {name} {difference}"
        for where, results in (("tier 0:", interpreted), ("kernel:", compiled))
        for (name, _), a, e in zip(functions, results, expected, strict=True)
        if (difference := wrong(a, e, TOLERANCES.get(name, TOLERANCE)))
    ]
    assert not found, "\n".join(found)


def described(value: Any) -> str:
    return value if isinstance(value, str) else np.dtype(value).name


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("dtype", "kind"),
    [(np.float32, "dynamic"), (np.float64, "static"), (np.float16, "dynamic"), (BF16, "static")],
    ids=described,
)
def test_floats(dtype, kind):
    x = specials(np.dtype(dtype))
    check(UNARY, kind, x)
    check(BINARY, "static" if kind == "dynamic" else "dynamic", x[:, None], x[None, :])


INTEGER_UNARY = ("sign", "rint", "fabs", "deg2rad", "sinc", "modf", "clip", "as float16", "sqrt")
INTEGER_BINARY = [name for name in BINARY if name not in ("power", "clip")]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("dtype", "kind"),
    [(np.int8, "static"), (np.int64, "dynamic"), (np.uint64, "static"), (np.uint8, "dynamic")],
    ids=described,
)
def test_integers(dtype, kind):
    x = specials(np.dtype(dtype))
    table = {name: BINARY[name] for name in INTEGER_BINARY}
    table |= {f"{n} of one": lambda x, y, f=UNARY[n]: f(x) for n in INTEGER_UNARY}
    check(table, kind, x[:, None], x[None, :])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16], ids=described)
def test_reductions(dtype):
    nan, inf, largest = np.nan, np.inf, float(np.finfo(dtype).max)
    rows = [[1, 2, 3, 4], [nan, 1, 2, 3], [1, 2, 3, nan], [inf, -inf, 0, 1], [-inf, 1, 2, -inf]]
    rows += [[-0.0, -0.0, -0.0, -0.0], [0.0, -0.0, 0.0, -0.0], [largest, largest, 1, -largest]]
    rows += [[largest, largest, largest, largest], [nan, inf, -inf, nan], [0, 0, 0, 0], [5, 5, 5, 5]]
    table = REDUCTIONS
    if dtype is np.float16:  # whose running sums are float32 until they are stored
        table = {name: f for name, f in REDUCTIONS.items() if "cumsum" not in name}
    check(table, "dynamic", np.array(rows, dtype))


def test_reductions_of_nothing():
    table = {n: f for n, f in REDUCTIONS.items() if n.endswith("0") and n[:3] not in ("max", "min")}
    table = {n: f for n, f in table.items() if n[:3] not in ("arg", "ptp")}
    check(table, "static", np.zeros((0, 3), np.float32))


TIES = np.array(
    [
        65504,
        65519.99,
        65520,
        65536,
        2049,
        2051,
        2.0**-24,
        2.0**-25,
        1.5 * 2.0**-25,
        2.0**-14 - 2.0**-25,
        1 + 2.0**-11,
        1 + 3 * 2.0**-11,
        1e-45,
        3e38,
        np.inf,
        np.nan,
        257,
        259,
        3.39e38,
        2.0**-133,
        2.0**-134,
        1.5 * 2.0**-134,
        0.0,
    ]
)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=described)
def test_casts_to_halves_round_ties_to_even(dtype):
    x = np.concatenate([TIES, -TIES]).astype(dtype)
    casts = {str(d): lambda x, d=d: x.astype(d) for d in (np.dtype(np.float16), BF16)}
    with silent():
        expected = {name: cast(x) for name, cast in casts.items()}
    jitted = pf.jit(lambda x: tuple(c(x) for c in casts.values()), background=False)
    for found in (jitted(x), jitted(x), jitted(x)):
        for a, e in zip(found, expected.values(), strict=True):
            keep = ~np.isnan(e.astype(np.float64))
            np.testing.assert_array_equal(a[keep].view(np.uint16), e[keep].view(np.uint16))
            assert np.isnan(a[~keep].astype(np.float64)).all()
    assert jitted.state().counters["kernel_launches"] >= 1
