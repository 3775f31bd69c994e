"""Functions users call beside NumPy's, on arrays and inside traced functions alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base import op_named
from .traced import Traced, TracedScalar, op


def _apply(name: str, x: Any) -> Any:
    if isinstance(x, (Traced, TracedScalar)):
        return op(name, op("to_tensor", x) if isinstance(x, TracedScalar) else x)
    value = x if isinstance(x, (np.ndarray, np.generic)) else np.asarray(x)[()]
    return op_named(name).evaluate({}, value)


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
