"""Functions users call beside NumPy's, on arrays and inside traced functions alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .... import ops as _table  # noqa: F401 - fills the op table
from ....ir.op import op_named
from ..tracing import traced
from ..tracing.traced import Traced
from ..tracing.traced_scalar import TracedScalar


def op(name: str) -> Callable[..., Any]:
    """Any op of the table as a function of arrays and traced values; attributes by keyword.

    >>> softsign = op("sigmoid")

    Raises IRError for an unknown op, and what the op itself raises when called.
    """
    cls = op_named(name)

    def call(*operands: Any, **attrs: Any) -> Any:
        if any(isinstance(x, (Traced, TracedScalar)) for x in operands):
            return traced.op(name, *map(_traced_tensor, operands), **attrs)
        return cls.evaluate(cls.full_attrs(attrs), *map(_tensor, operands))

    call.__name__ = call.__qualname__ = cls.name
    call.__doc__ = cls.__doc__
    return call


def _traced_tensor(x: Any) -> Any:
    return traced.op("to_tensor", x) if isinstance(x, TracedScalar) else x


def _tensor(x: Any) -> Any:
    return x if isinstance(x, (np.ndarray, np.generic)) else np.asarray(x)[()]


def _apply(name: str, x: Any) -> Any:
    return op(name)(x)


def erf(x: Any) -> Any:
    """Error function, elementwise."""
    return _apply("erf", x)


def sigmoid(x: Any) -> Any:
    """``1 / (1 + exp(-x))``, elementwise."""
    return _apply("sigmoid", x)


def relu(x: Any) -> Any:
    """``maximum(x, 0)`` in the dtype of ``x``, elementwise."""
    return _apply("relu", x)


def rsqrt(x: Any) -> Any:
    """``1 / sqrt(x)``, elementwise."""
    return _apply("rsqrt", x)
