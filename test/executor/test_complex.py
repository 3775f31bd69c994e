"""Complex numbers fuse: programs and special values against NumPy, static and dynamic kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import profuse as pf
import pytest

DTYPES = [np.complex64, np.complex128]
PARTS = [0.0, -0.0, 1.0, -2.5, 0.3, 1e-30, -3e5, 89.0, -710.2, np.inf, -np.inf, np.nan]


def mandelbrot(c):
    z = np.zeros_like(c)
    rounds = np.zeros(c.shape, np.int32)
    for _ in range(20):
        z = z * z + c
        rounds = rounds + (np.abs(z) < 2)
    return rounds


def julia(z, c):
    rounds = np.zeros(z.shape, np.int32)
    for _ in range(15):
        inside = np.abs(z) < 2
        z = np.where(inside, z * z + c, z)
        rounds += inside
    return rounds


def plane(dtype, size: int = 65) -> np.ndarray:
    x, y = np.linspace(-2, 1, size), np.linspace(-1.5, 1.5, size)
    return (x[None] + 1j * y[:, None]).astype(dtype)


def specials(dtype) -> np.ndarray:
    return np.array([complex(x, y) for x in PARTS for y in PARTS], dtype)


def fused(fn: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """The results of a kernel, of which one launch has run nothing op by op."""
    f = pf.jit(fn, **options)
    with np.errstate(all="ignore"):
        f(*args), f(*args)
        before = f.state().counters
        out = f(*args)
    after = f.state().counters
    assert after["kernel_launches"] - before["kernel_launches"] == 1, f.explain()
    assert after["evaluated_ops"] == before["evaluated_ops"]
    return out


@pytest.mark.parametrize("dtype", DTYPES)
def test_sets_in_the_plane(dtype):
    c = plane(dtype)
    with np.errstate(all="ignore"):
        assert np.array_equal(fused(mandelbrot, c), mandelbrot(c))
        assert np.array_equal(fused(julia, c, -0.8 + 0.156j), julia(c, -0.8 + 0.156j))


def wrong(found: np.ndarray, expected: np.ndarray, ulps: float) -> np.ndarray:
    """Where a part differs in kind, or by more than ``ulps`` of the larger part."""
    assert found.dtype == expected.dtype
    if expected.dtype == bool:
        return found != expected
    bad = np.zeros(expected.shape, bool)
    sizes = [np.where(np.isfinite(p), abs(p), 0) for p in (expected.real, expected.imag)]
    slack = ulps * np.spacing(np.maximum(*sizes))
    for part in ("real", "imag"):
        f, e = getattr(found, part), getattr(expected, part)
        same = (f == e) | (np.isnan(f) & np.isnan(e))
        bad |= ~same & ~(np.isfinite(f) & np.isfinite(e) & (abs(f - e) <= slack))
    return bad


FUNCTIONS: dict[str, tuple[Callable[..., Any], float]] = {
    name: (getattr(np, name), ulps)
    for ulps, names in {
        0: ["negative", "conj", "square", "reciprocal", "real", "imag"],
        4: ["exp", "log", "sqrt", "sin", "cos", "sinh", "cosh", "abs", "angle"],
        8: ["tan", "tanh"],
    }.items()
    for name in names
}
FUNCTIONS |= {f"power {k}": (lambda z, k=k: z**k, 0) for k in (2, 3, 5, 16)} | {
    "i x": (lambda z: 1j * z.real, 0),
    "mixed": (lambda z: z * np.float32(2) + z.real, 0),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_special_values_of_functions(dtype, dynamic):
    z = specials(dtype)

    def all_of(z):
        return [function(z) for function, _ in FUNCTIONS.values()]

    found = fused(all_of, z, strategy=[("dynamic" if dynamic else "static", 1)])
    with np.errstate(all="ignore"):
        expected = all_of(z)
        for name, (_, ulps), f, e in zip(FUNCTIONS, FUNCTIONS.values(), found, expected, strict=True):
            bad = wrong(f, e, ulps)
            assert not bad.any(), (name, z[bad][:5], f[bad][:5], e[bad][:5])


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_values_of_pairs(dtype):
    one = specials(dtype)
    a, b = np.repeat(one, len(one)), np.tile(one, len(one))

    def pairs(a, b):
        return (
            a + b,
            a - b,
            a * b,
            a / b,
            np.where(a.real > 0, a, b),
            np.maximum(a, b),
            np.minimum(a, b),
            a == b,
            a != b,
            a < b,
            a <= b,
            a > b,
            a >= b,
            np.isnan(a),
            np.isinf(a),
            np.isfinite(b),
            np.logical_and(a, b),
            a.astype(bool),
        )

    with np.errstate(all="ignore"):
        for k, (f, e) in enumerate(zip(fused(pairs, a, b), pairs(a, b), strict=True)):
            bad = wrong(f, e, 0)
            assert not bad.any(), (k, a[bad][:5], b[bad][:5], f[bad][:5], e[bad][:5])


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_and_moves(dtype):
    rng = np.random.default_rng(0)
    z = (rng.standard_normal((70, 90)) + 1j * rng.standard_normal((70, 90))).astype(dtype)

    def fn(z, w):
        turned = (z.T + w[::-1].T)[::2, 1:]
        return (
            z.sum(),
            z.sum(axis=0),
            z.mean(axis=1),
            (z * w).mean(),
            z[:, :9].prod(axis=1),
            turned,
            np.concatenate([z, w], axis=1),
            np.full((3, 2), 1j),
            z.any(axis=0),
            (z * np.conj(z)).real.sum(axis=1),
            z.reshape(90, 70) * np.array([1j, 2]).repeat(35),
        )

    w = z[::-1].copy()
    tolerance = 1e-4 if dtype is np.complex64 else 1e-12
    for f, e in zip(fused(fn, z, w), fn(z, w), strict=True):
        assert f.dtype == e.dtype
        np.testing.assert_allclose(f, e, rtol=tolerance, atol=tolerance)


def test_a_cast_to_real_numbers_warns_as_it_does_in_numpy():
    f = pf.jit(lambda z: (z * 2).astype(np.float64))
    z = np.array([1 + 2j, 3j])
    for _ in range(3):
        with pytest.warns(np.exceptions.ComplexWarning):
            assert np.array_equal(f(z), [2.0, 0.0])


def test_a_complex_python_number_is_an_argument():
    f = pf.jit(lambda z, c: z * c + 1)
    z = specials(np.complex128)[:9]
    for c in (2j, 1 + 1j, 3 - 4j):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(f(z, c), z * c + 1)
    assert f.state().counters["kernel_launches"] >= 1
