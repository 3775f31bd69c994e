"""Polynomials given by their coefficients, the highest first."""

from __future__ import annotations

from ...ir.types import ScalarType, TensorType
from .rule import BoundCall, Rule, Shapes

_OUTSIDE = "call it outside of the traced function"


def _fit(call: BoundCall) -> Shapes | None:
    degree, y = call["deg"], call.shape("y")
    if type(degree) is not int or y is None or call["full"] or call["cov"]:
        return None
    return [(degree + 1, *y[1:])]


def _roots(call: BoundCall) -> tuple[str, str] | None:
    return "roots are real or complex, whatever the coefficients are", _OUTSIDE


def _poly(call: BoundCall) -> tuple[str, str] | None:
    zeros = call["seq_of_zeros"]
    dtype = zeros.dtype if isinstance(zeros, (TensorType, ScalarType)) else None
    if dtype is not None and dtype.kind != "c":
        return None
    return "coefficients are real where complex roots come in pairs", _OUTSIDE


def _order(call: BoundCall) -> tuple[str, str] | None:
    return None if call.number("m") != 0 else ("of order 0, it returns its argument", _OUTSIDE)


RULES = (
    Rule("numpy.polyfit", _fit, fill="ramp", neutral={"deg": 1}),
    Rule("numpy.polyval", None),
    Rule("numpy.polyadd", lambda call: [(None,)]),
    Rule("numpy.polysub", lambda call: [(None,)]),
    Rule("numpy.polymul", lambda call: [(None,)]),
    Rule("numpy.polydiv", lambda call: [(None,), (None,)]),
    Rule("numpy.polyder", neutral={"m": 1}, refuse=_order),
    Rule("numpy.polyint", neutral={"m": 1, "k": 0}, refuse=_order),
    Rule("numpy.poly", lambda call: [(None,)], refuse=_poly, fill="eye"),
    Rule("numpy.roots", refuse=_roots),
    Rule("numpy.vander", neutral={"N": 3}),
)
