"""The functions of NumPy that have no family of their own here."""

from __future__ import annotations

from typing import Any

from .rule import Rule

_NAMES = (
    "array_equiv",
    "choose",
    "cumulative_prod",
    "cumulative_sum",
    "diag_indices_from",
    "diagflat",
    "ediff1d",
    "gradient",
    "i0",
    "iscomplex",
    "isreal",
    "ix_",
    "meshgrid",
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
    "select",
    "trapezoid",
    "tril_indices_from",
    "triu_indices_from",
    "unwrap",
    "matvec",
    "vecmat",
)
_INDICES: dict[str, Any] = {"neutral": {"shape": 3, "dims": 3}}

RULES = (
    *(Rule(f"numpy.{name}") for name in _NAMES),
    Rule("numpy.geomspace", neutral={"num": 3}),
    Rule("numpy.logspace", neutral={"num": 3}),
    Rule("numpy.unravel_index", **_INDICES),
    Rule("numpy.ravel_multi_index", **_INDICES),
)
