"""Functions on arrays as sets."""

from __future__ import annotations

from .rule import Rule
from .shapes import same

RULES = (
    Rule("numpy.union1d", lambda call: [(None,)]),
    Rule("numpy.intersect1d"),
    Rule("numpy.setdiff1d", lambda call: [(None,)]),
    Rule("numpy.setxor1d", lambda call: [(None,)]),
    Rule("numpy.isin", same("element"), neutral={"element": 1}),
)
