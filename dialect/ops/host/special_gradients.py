"""Derivatives of ufuncs of `scipy.special`, by name: one for each operand, from operands and result.

They are written in functions of NumPy and SciPy, which record or compute, whatever the arrays are. A function that has
no derivative by one of its operands says None there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.op import Values
from .call_text import CallTemplate, OperandPlace, arguments_text
from .rule import SCIPY, BoundCall

if TYPE_CHECKING:
    from ...ir.gradients import GradientBuilder

Partials = Callable[["GradientBuilder", Sequence[Any], Any], Sequence[Any]]
_ROOT_PI = math.sqrt(math.pi)
_ROOT_2PI = math.sqrt(2 * math.pi)


def _zeta(b: GradientBuilder, n: Any, x: Any) -> Any:
    """Hurwitz' zeta function, of which SciPy's own ufunc is not public; ``n`` is a number or an array."""
    is_number = isinstance(n, (int, float, np.number))
    places = (float(n), OperandPlace(0)) if is_number else (OperandPlace(0), OperandPlace(1))
    operands = (x,) if is_number else (n, x)
    arguments = arguments_text(CallTemplate(places, {}))
    return b.op("host_call", *operands, function=f"{SCIPY}_ufuncs._zeta", arguments=arguments)


def _of_zeta(b: GradientBuilder, xs: Sequence[Any], y: Any) -> Sequence[Any]:
    n, x = xs
    return None, _zeta(b, n + 1, x) * -n


def _trigamma(b: GradientBuilder, x: Any) -> Any:
    """The derivative of psi: Hurwitz' zeta function of 2, by reflection where ``x`` is negative."""
    is_negative = x < 0
    right = _zeta(b, 2.0, np.where(is_negative, 1 - x, x))
    sine = np.sin(np.where(is_negative, x, 0.5) * math.pi)
    return np.where(is_negative, (math.pi / sine) ** 2 - right, right)


def _at_zero(x: Any, other: float, at: float) -> Any:
    """1 / x, where x is not 0, and a term that is right there; both as factors and terms."""
    is_zero = x == 0
    return np.where(is_zero, other, 1 / np.where(is_zero, 1, x)), np.where(is_zero, at, 0)


def _bessel_one(before: Any, x: Any, y: Any) -> Any:
    """The derivative of J1 and I1: that of order 0 less ``y / x``, which is 0.5 at 0."""
    inverse, half = _at_zero(x, 0.0, -0.5)
    return before - y * inverse + half


def _special(name: str) -> Any:
    from scipy import special

    return getattr(special, name)


def _by_x(function: Callable[..., Any]) -> Partials:
    return lambda b, xs, y: (function(xs[0], y),)


def _psi(x: Any) -> Any:
    return _special("psi")(x)


def _beta_parts(xs: Sequence[Any]) -> tuple[Any, Any]:
    whole = _psi(xs[0] + xs[1])
    return _psi(xs[0]) - whole, _psi(xs[1]) - whole


def _gamma_density(b: GradientBuilder, xs: Sequence[Any], y: Any) -> Sequence[Any]:
    a, x = xs
    return None, np.exp(_special("xlogy")(a - 1, x) - x - _special("gammaln")(a))


def _complement(b: GradientBuilder, xs: Sequence[Any], y: Any) -> Sequence[Any]:
    return None, -_gamma_density(b, xs, y)[1]


_PARTIALS: dict[str, Partials] = {
    "gammaln": _by_x(lambda x, y: _psi(x)),
    "gamma": _by_x(lambda x, y: y * _psi(x)),
    "rgamma": _by_x(lambda x, y: -y * _psi(x)),
    "psi": lambda b, xs, y: (_trigamma(b, xs[0]),),
    "beta": lambda b, xs, y: [y * part for part in _beta_parts(xs)],
    "betaln": lambda b, xs, y: _beta_parts(xs),
    "gammainc": _gamma_density,
    "gammaincc": _complement,
    "erfc": _by_x(lambda x, y: np.exp(-x * x) * (-2 / _ROOT_PI)),
    "erfcx": _by_x(lambda x, y: 2 * x * y - 2 / _ROOT_PI),
    "erfinv": _by_x(lambda x, y: np.exp(y * y) * (_ROOT_PI / 2)),
    "erfcinv": _by_x(lambda x, y: np.exp(y * y) * (-_ROOT_PI / 2)),
    "ndtr": _by_x(lambda x, y: np.exp(-x * x / 2) / _ROOT_2PI),
    "ndtri": _by_x(lambda x, y: np.exp(y * y / 2) * _ROOT_2PI),
    "log_ndtr": _by_x(lambda x, y: np.exp(-x * x / 2 - y) / _ROOT_2PI),
    "logit": _by_x(lambda x, y: 1 / (x * (1 - x))),
    "log_expit": _by_x(lambda x, y: _special("expit")(-x)),
    "xlogy": lambda b, xs, y: (np.log(xs[1]), xs[0] / xs[1]),
    "xlog1py": lambda b, xs, y: (np.log1p(xs[1]), xs[0] / (1 + xs[1])),
    "entr": _by_x(lambda x, y: -np.log(x) - 1),
    "rel_entr": lambda b, xs, y: (np.log(xs[0] / xs[1]) + 1, -xs[0] / xs[1]),
    "kl_div": lambda b, xs, y: (np.log(xs[0] / xs[1]), 1 - xs[0] / xs[1]),
    "exp10": _by_x(lambda x, y: y * math.log(10)),
    "i0": _by_x(lambda x, y: _special("i1")(x)),
    "i0e": _by_x(lambda x, y: _special("i1e")(x) - np.sign(x) * y),
    "i1e": _by_x(lambda x, y: _bessel_one(_special("i0e")(x), x, y) - np.sign(x) * y),
    "i1": _by_x(lambda x, y: _bessel_one(_special("i0")(x), x, y)),
    "j0": _by_x(lambda x, y: -_special("j1")(x)),
    "j1": _by_x(lambda x, y: _bessel_one(_special("j0")(x), x, y)),
    "y0": _by_x(lambda x, y: -_special("y1")(x)),
    "y1": _by_x(lambda x, y: _special("y0")(x) - y / x),
    "k0": _by_x(lambda x, y: -_special("k1")(x)),
    "k1": _by_x(lambda x, y: -_special("k0")(x) - y / x),
    "k0e": _by_x(lambda x, y: y - _special("k1e")(x)),
    "k1e": _by_x(lambda x, y: y - _special("k0e")(x) - y / x),
    "_ufuncs._zeta": _of_zeta,
}
PARTIALS = {SCIPY + name: partials for name, partials in _PARTIALS.items()}
"""By the name of the function, as graphs have it."""


def of_ufunc(
    b: GradientBuilder, call: BoundCall, xs: Values, ys: Values, gs: Values, partials: Partials, refused: Any
) -> Sequence[Any]:
    """The gradients of the operands of a ufunc by its derivatives.

    ``refused`` makes the error for what has none: a complex operand, or one by which none is known.
    """
    arguments, named = call.arguments.filled(xs.__getitem__)
    if named or any(np.dtype(x.dtype).kind == "c" for x in xs):
        raise refused(f"{call.rule.shown} of complex numbers, or with {', '.join(named) or 'these'}")
    gradients: list[Any] = [None] * len(xs)
    derivatives = partials(b, arguments, ys[0])
    for place, derivative in zip(call.arguments.positional, derivatives, strict=True):
        if not isinstance(place, OperandPlace) or not b.wants(place.index):
            continue
        if derivative is None:
            raise refused(f"{call.rule.shown} by the argument {place.index}")
        gradient = b.like(b.absorbing_product(gs[0], derivative), xs[place.index])
        before = gradients[place.index]
        gradients[place.index] = gradient if before is None else before + gradient
    return gradients
