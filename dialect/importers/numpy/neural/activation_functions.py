"""Activations, softmax and its logarithm: elementwise functions and reductions along one axis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..capture import user_functions
from ..python.pausing import unwatched
from ..tracing.composites import recorded
from .layer_inputs import array, axis, choice, is_real, narrowed, widened

_TANH_CUBIC = 0.044715  # of the approximation by tanh (Hendrycks and Gimpel, 2016)


@unwatched
def relu(input: Any) -> Any:
    """``maximum(input, 0)``, elementwise, in the dtype and shape of ``input``.

    The gradient at 0 is 0. Raises ArgumentError unless ``input`` is an array.
    """
    return user_functions.relu(array("relu", "input", input))


@unwatched
def leaky_relu(input: Any, negative_slope: float = 0.01) -> Any:
    """``input`` where it is positive, ``negative_slope * input`` elsewhere, elementwise.

    Floats keep their dtype; f16 and bf16 are computed in f32. The gradient at 0 is ``negative_slope``.
    """
    x = widened(array("leaky_relu", "input", input))[0]
    y = np.where(x > 0, x, x * negative_slope)
    return of_input(input, y)


@unwatched
def elu(input: Any, alpha: float = 1.0) -> Any:
    """``input`` where it is positive, ``alpha * (exp(input) - 1)`` elsewhere, elementwise.

    Floats keep their dtype; f16 and bf16 are computed in f32.
    """
    x = widened(array("elu", "input", input))[0]
    # The exponential of what is positive, which nobody asks for, might overflow: so do gradients.
    y = np.where(x > 0, x, alpha * np.expm1(np.where(x > 0, 0, x)))
    return of_input(input, y)


@unwatched
def silu(input: Any) -> Any:
    """``input / (1 + exp(-input))``, elementwise. Floats keep their dtype; f16 and bf16 are computed in f32."""
    array("silu", "input", input)
    if is_real(input) and (y := recorded("silu", input)) is not None:
        return y
    x = widened(input)[0]
    y = x * user_functions.sigmoid(x)
    return of_input(input, y)


@unwatched
def gelu(input: Any, approximate: str = "none") -> Any:
    """``input`` times the distribution function of the normal distribution, elementwise.

    ``approximate``: ``"none"`` computes it by the error function, ``"tanh"`` by
    ``(1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3))) / 2``. Floats keep their dtype; f16 and bf16 are computed in
    f32. Raises ArgumentError for another text.
    """
    array("gelu", "input", input)
    form = choice("gelu", "approximate", approximate, ("none", "tanh"))
    if is_real(input) and (y := recorded("gelu", input, approximate=form)) is not None:
        return y
    x = widened(input)[0]
    if form == "tanh":
        y = 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + _TANH_CUBIC * x * x * x)))
    else:
        y = 0.5 * x * (1.0 + user_functions.erf(x * math.sqrt(0.5)))
    return of_input(input, y)


@unwatched
def softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """``exp(input)``, divided by its sum along axis ``dim``: positive, and of sum 1.

    The result has the shape of ``input``. With ``dtype``, ``input`` is converted first. f16 and bf16 are computed in
    f32 and rounded once. Where all along the axis is ``-inf``, the result is NaN, as everywhere in NumPy. Raises
    AxisError where there is no axis ``dim``.
    """
    x, at, out = _prepared("softmax", input, dim, dtype)
    if is_real(input) and dtype is None and (y := recorded("softmax", input, axis=at)) is not None:
        return y
    if not x.shape[at]:
        return narrowed(np.exp(x), out)
    e = np.exp(x - np.max(x, axis=at, keepdims=True))
    return narrowed(e / np.sum(e, axis=at, keepdims=True), out)


@unwatched
def log_softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """The logarithm of `softmax`, computed without losing small probabilities; arguments as there."""
    x, at, out = _prepared("log_softmax", input, dim, dtype)
    if is_real(input) and dtype is None and (y := recorded("log_softmax", input, axis=at)) is not None:
        return y
    if not x.shape[at]:
        return narrowed(np.exp(x), out)
    centred = x - np.max(x, axis=at, keepdims=True)
    return narrowed(centred - np.log(np.sum(np.exp(centred), axis=at, keepdims=True)), out)


def of_input(input: Any, y: Any) -> Any:
    """``y`` in the dtype of ``input``, if that is of floats."""
    return narrowed(y, input.dtype) if input.dtype.kind in "fV" else y


def _prepared(function: str, x: Any, dim: Any, dtype: Any) -> tuple[Any, int, Any]:
    array(function, "input", x)
    at = axis(function, "dim", dim, x.ndim)
    if dtype is not None:
        x = narrowed(x, np.dtype(dtype))
    wide = widened(x)[0]
    return wide, at, x.dtype if x.dtype.kind in "fcV" else np.dtype(np.float64)
