"""Reductions of half of an array's elements: the others take what changes no result.

Beside those for which compilers may do something else then stand the same with another number
(``…_beside``): they should take as long.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .kernel import kernel
from .reductions import softmax_of

OTHER = 5.0


def _kept(d, n, m):
    return d.normal(n, m), d.integers(2, n, m, dtype="bool")


def _logsumexp(np: Any, x: Any) -> Any:
    top = np.max(x, axis=-1, keepdims=True)
    return np.log(np.sum(np.exp(x - top), axis=-1, keepdims=True)) + top


def _masked(name: str, reduced: Callable[[Any, Any], Any], value: float, make=_kept) -> None:
    """Register a reduction of rows."""

    def fn(np: Any, x: Any, keep: Any) -> Any:
        return reduced(np, np.where(keep, x, value))

    fn.__name__ = f"masked_{name}"
    kernel(make)(fn)


_masked("sum", lambda np, x: np.sum(x, axis=-1), 0.0)
_masked("average", lambda np, x: np.mean(x, axis=-1), 0.0)
_masked("argmax", lambda np, x: np.argmax(x, axis=-1), -math.inf)
_masked("any", lambda np, x: np.any(x, axis=-1), 0.0)
_masked("all", lambda np, x: np.all(x, axis=-1), 1.0)
_masked(
    "product",
    lambda np, x: np.prod(x, axis=-1),
    1.0,
    lambda d, n, m: (d.positive(n, m, low=0.9, high=1.1), d.integers(2, n, m, dtype="bool")),
)
for _name, _value, _reduced in (
    ("max", -math.inf, lambda np, x: np.max(x, axis=-1)),
    ("min", math.inf, lambda np, x: np.min(x, axis=-1)),
    ("scores", -math.inf, softmax_of),
    ("logsumexp", -math.inf, _logsumexp),
):
    _masked(_name, _reduced, _value)
    _masked(f"{_name}_beside", _reduced, OTHER)
