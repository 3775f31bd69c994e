"""Special functions, which run on the host: those of SciPy, and NumPy's functions without an op."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...on_host import on_host
from ..aten_table import aten
from ..promotion import FLOAT64, cast, float_dtype, together, widened


def _special(function: str, *names: str) -> None:
    """A function of one float tensor, computed in f32 at least."""

    @aten(*names)
    def call(self: Any) -> Any:
        dtype = float_dtype(self)
        return cast(on_host(f"scipy.special.{function}", cast(self, widened(dtype))), dtype)


_special("erfc", "erfc", "special_erfc")
_special("erfinv", "erfinv", "special_erfinv")
_special("erfcx", "special_erfcx")
_special("ndtr", "special_ndtr")
_special("ndtri", "special_ndtri")
_special("log_ndtr", "special_log_ndtr")
_special("i0", "i0", "special_i0", "special_modified_bessel_i0")
_special("i0e", "special_i0e")
_special("i1", "special_i1", "special_modified_bessel_i1")
_special("i1e", "special_i1e")
_special("j0", "special_bessel_j0")
_special("j1", "special_bessel_j1")
_special("y0", "special_bessel_y0")
_special("y1", "special_bessel_y1")
_special("k0", "special_modified_bessel_k0")
_special("k1", "special_modified_bessel_k1")
_special("k0e", "special_scaled_modified_bessel_k0")
_special("k1e", "special_scaled_modified_bessel_k1")


@aten("lgamma", "special_gammaln")
def lgamma(self: Any) -> Any:
    x = cast(self, widened(float_dtype(self)))
    y = on_host("scipy.special.gammaln", x)
    return cast(np.where(np.isinf(x), np.abs(x), y), float_dtype(self))  # of -inf SciPy has it infinite below


@aten("digamma", "special_digamma", "special_psi")
def digamma(self: Any) -> Any:
    x = cast(self, float_dtype(self))
    y = on_host("scipy.special.psi", cast(x, widened(x.dtype)))
    zero = cast(0, x.dtype)
    pole = np.where(np.signbit(x), cast(math.inf, x.dtype), cast(-math.inf, x.dtype))
    return np.where(x == zero, pole, cast(y, x.dtype))


@aten("polygamma", "special_polygamma")
def polygamma(n: int, self: Any) -> Any:
    if n == 0:
        return digamma(self)
    x = cast(self, float_dtype(self))
    wide = cast(x, FLOAT64)
    factor = (-1.0) ** (n + 1) * math.gamma(n + 1.0)
    return cast(cast(factor, FLOAT64) * on_host("scipy.special._ufuncs._zeta", cast(n + 1.0, FLOAT64), wide), x.dtype)


@aten("special_zeta")
def zeta(self: Any, other: Any) -> Any:
    dtype = float_dtype(self, other)
    a, b = together(self, other, dtype=FLOAT64)
    return cast(on_host("scipy.special._ufuncs._zeta", a, b), dtype)


@aten("igamma", "special_gammainc")
def igamma(self: Any, other: Any) -> Any:
    a, b = together(self, other)
    return cast(on_host("scipy.special.gammainc", a, b), a.dtype)


@aten("igammac", "special_gammaincc")
def igammac(self: Any, other: Any) -> Any:
    a, b = together(self, other)
    return cast(on_host("scipy.special.gammaincc", a, b), a.dtype)


@aten("special_entr")
def entr(self: Any) -> Any:
    x = cast(self, float_dtype(self))
    zero, one = cast(0, x.dtype), cast(1, x.dtype)
    inside = -x * np.log(np.where(x > zero, x, one))
    return np.where(x != x, x, np.where(x > zero, inside, np.where(x == zero, zero, cast(-math.inf, x.dtype))))


@aten("special_spherical_bessel_j0")
def spherical_bessel_j0(x: Any) -> Any:
    y = cast(x, float_dtype(x))
    is_zero = y == cast(0, y.dtype)
    safe = np.where(is_zero, cast(1, y.dtype), y)
    return np.where(is_zero, cast(1, y.dtype), np.sin(safe) / safe)


@aten("special_airy_ai")
def airy_ai(x: Any) -> Any:
    dtype = float_dtype(x)
    return cast(on_host("scipy.special.airy", cast(x, FLOAT64))[0], dtype)


def _polynomial(function: str, name: str) -> None:
    """A family of orthogonal polynomials, of whole degrees."""

    @aten(name)
    def polynomial(x: Any, n: Any) -> Any:
        dtype = float_dtype(x, n)
        degree = np.trunc(cast(n, FLOAT64))
        values = on_host(
            f"scipy.special.{function}", cast(np.maximum(degree, 0.0), np.dtype(np.int64)), cast(x, FLOAT64)
        )
        return cast(np.where(degree < 0.0, 0.0, values), dtype)


_polynomial("eval_chebyt", "special_chebyshev_polynomial_t")
_polynomial("eval_chebyu", "special_chebyshev_polynomial_u")
_polynomial("eval_hermite", "special_hermite_polynomial_h")
_polynomial("eval_hermitenorm", "special_hermite_polynomial_he")
_polynomial("eval_laguerre", "special_laguerre_polynomial_l")
_polynomial("eval_legendre", "special_legendre_polynomial_p")


_polynomial("eval_sh_chebyt", "special_shifted_chebyshev_polynomial_t")
_polynomial("eval_sh_chebyu", "special_shifted_chebyshev_polynomial_u")


def _by_second_kind(name: str, sign: float, *, is_shifted: bool) -> None:
    """Chebyshev's polynomials of the third and fourth kinds, which follow from those of the second."""

    @aten(name)
    def polynomial(x: Any, n: Any) -> Any:
        dtype = float_dtype(x, n)
        degree, at = np.trunc(cast(n, FLOAT64)), cast(x, FLOAT64)
        if is_shifted:
            at = at + at - 1.0
        whole = cast(np.maximum(degree, 0.0), np.dtype(np.int64))
        before = on_host("scipy.special.eval_chebyu", np.maximum(whole - 1, 0), at)
        values = on_host("scipy.special.eval_chebyu", whole, at) + sign * np.where(degree > 0.0, before, 0.0)
        return cast(np.where(degree < 0.0, 0.0, values), dtype)


_by_second_kind("special_chebyshev_polynomial_v", -1.0, is_shifted=False)
_by_second_kind("special_chebyshev_polynomial_w", 1.0, is_shifted=False)
_by_second_kind("special_shifted_chebyshev_polynomial_v", -1.0, is_shifted=True)
_by_second_kind("special_shifted_chebyshev_polynomial_w", 1.0, is_shifted=True)


@aten("frexp")
def frexp(self: Any) -> tuple[Any, Any]:
    mantissa, exponent = on_host("numpy.frexp", self)
    return mantissa, cast(exponent, np.dtype(np.int32))


@aten("nextafter")
def nextafter(self: Any, other: Any) -> Any:
    return on_host("numpy.nextafter", *together(self, other))


def _integers(function: str) -> Callable[[Any, Any], Any]:
    @aten(function)
    def call(self: Any, other: Any) -> Any:
        return on_host(f"numpy.{function}", *together(self, other))

    return call


_integers("gcd")
_integers("lcm")


@aten("logcumsumexp")
def logcumsumexp(self: Any, dim: int) -> Any:
    if not self.ndim:
        return np.copy(self)
    return on_host("numpy.logaddexp.accumulate", self, dim)
