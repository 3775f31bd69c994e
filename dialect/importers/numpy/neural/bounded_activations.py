"""Activations that are linear somewhere and bend elsewhere: soft and hard forms of bounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..capture import user_functions
from ..python.pausing import unwatched
from .activation_functions import elu, of_input
from .layer_inputs import array, axis, widened, wrong_argument, wrong_shape

# So that means stay 0 and variances 1 from layer to layer (Klambauer et al., 2017).
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


@unwatched
def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """``log(1 + exp(beta * input)) / beta``, elementwise; ``input`` itself where ``beta * input > threshold``.

    Floats keep their dtype; f16 and bf16 are computed in f32. Raises ArgumentError for ``beta=0``.
    """
    x = widened(array("softplus", "input", input))[0]
    if beta == 0:
        raise wrong_argument("softplus", "beta=0, by which is divided", "pass another number")
    return of_input(input, _softplus(x, beta, threshold))


def _softplus(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    scaled = x * beta
    is_linear = scaled > threshold
    # The exponential of what is large, which nobody asks for, might overflow: so do gradients.
    return np.where(is_linear, x, np.log1p(np.exp(np.where(is_linear, 0, scaled))) / beta)


@unwatched
def logsigmoid(input: Any) -> Any:
    """``-log(1 + exp(-input))``, elementwise. Floats keep their dtype; f16 and bf16 are computed in f32."""
    return of_input(input, log_of_sigmoid(widened(array("logsigmoid", "input", input))[0]))


def log_of_sigmoid(x: Any) -> Any:
    """The logarithm of a sigmoid, of which no exponential overflows."""
    is_negative = x < 0
    return np.where(is_negative, x, 0) - np.log1p(np.exp(np.where(is_negative, x, -x)))


@unwatched
def mish(input: Any) -> Any:
    """``input * tanh(softplus(input))``, elementwise. Floats keep their dtype; f16 and bf16 are computed in f32."""
    x = widened(array("mish", "input", input))[0]
    return of_input(input, x * np.tanh(_softplus(x)))


@unwatched
def selu(input: Any) -> Any:
    """`elu` with alpha 1.6733, times 1.0507. Floats keep their dtype; f16 and bf16 are computed in f32."""
    x = widened(array("selu", "input", input))[0]
    return of_input(input, elu(x, _SELU_ALPHA) * _SELU_SCALE)


@unwatched
def celu(input: Any, alpha: float = 1.0) -> Any:
    """``input`` where it is positive, ``alpha * (exp(input / alpha) - 1)`` elsewhere, elementwise.

    Floats keep their dtype; f16 and bf16 are computed in f32. Raises ArgumentError for ``alpha=0``.
    """
    x = widened(array("celu", "input", input))[0]
    if alpha == 0:
        raise wrong_argument("celu", "alpha=0, by which is divided", "pass another number, or call relu")
    return of_input(input, np.where(x > 0, x, alpha * np.expm1(np.where(x > 0, 0, x) / alpha)))


@unwatched
def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    """``input``, but at least ``min_val`` and at most ``max_val``, elementwise.

    The gradient at the bounds is 0. Floats keep their dtype. Raises ArgumentError unless ``min_val <= max_val``.
    """
    x = widened(array("hardtanh", "input", input))[0]
    if not min_val <= max_val:
        raise wrong_argument("hardtanh", f"min_val={min_val!r} is above max_val={max_val!r}", "exchange them")
    return of_input(input, _bounded(x, x, min_val, max_val, min_val, max_val))


@unwatched
def hardsigmoid(input: Any) -> Any:
    """``input / 6 + 1 / 2``, but at least 0 and at most 1, elementwise; the gradient at -3 and 3 is 0.

    Floats keep their dtype; f16 and bf16 are computed in f32.
    """
    x = widened(array("hardsigmoid", "input", input))[0]
    return of_input(input, _bounded(x, (x + 3.0) / 6.0, -3.0, 3.0, 0.0, 1.0))


@unwatched
def hardswish(input: Any) -> Any:
    """``input * hardsigmoid(input)``, elementwise. Floats keep their dtype; f16 and bf16 are computed in f32."""
    x = widened(array("hardswish", "input", input))[0]
    return of_input(input, _bounded(x, x * (x + 3.0) / 6.0, -3.0, 3.0, 0.0, x))


def _bounded(x: Any, y: Any, least: float, most: float, below: Any, above: Any) -> Any:
    """``y`` where ``x`` is between two numbers, else ``below`` and ``above``; NaN stays NaN."""
    return np.where(x <= least, below, np.where(x >= most, above, y))


@unwatched
def glu(input: Any, dim: int = -1) -> Any:
    """The first half of ``input`` along axis ``dim``, times the sigmoid of the second.

    Floats keep their dtype; f16 and bf16 are computed in f32. Raises AxisError where there is no axis ``dim``,
    ShapeError where it has no two halves.
    """
    x = widened(array("glu", "input", input))[0]
    at = axis("glu", "dim", dim, x.ndim)
    size = x.shape[at]
    if size % 2:
        raise wrong_shape("glu", f"input has shape {tuple(input.shape)}, an odd size along {at}", "pass an even size")
    before = (slice(None),) * at
    first, second = x[(*before, slice(None, size // 2))], x[(*before, slice(size // 2, None))]
    return of_input(input, first * user_functions.sigmoid(second))
