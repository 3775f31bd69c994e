"""Activations, softmax and dropout in evaluation: functions of `profuse.nn`, and compositions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....numpy.capture.user_functions import op
from ....numpy.neural import activation_functions as nn
from ....numpy.neural.dropout_masks import dropout as random_dropout
from ....numpy.neural.dropout_masks import kept, numbers_drawn
from ..aten_table import aten, refuse
from ..dimensions import axis_of
from ..promotion import cast, category, is_float, widened
from ..tensors.binary_operators import clamp
from ..tensors.creation_operators import uniform_numbers
from ..tensors.unary_operators import sigmoid

_relu = op("relu")


@aten("relu")
def relu(self: Any) -> Any:
    return _relu(self)


@aten("relu6")
def relu6(self: Any) -> Any:
    return hardtanh(self, 0, 6)


@aten("hardtanh")
def hardtanh(self: Any, min_val: Any = -1, max_val: Any = 1) -> Any:
    low, high = cast(min_val, self.dtype), cast(max_val, self.dtype)
    # Gradients at the edges are 0.
    return np.where(self <= low, low, np.where(self >= high, high, self))


@aten("leaky_relu")
def leaky_relu(self: Any, negative_slope: float = 0.01) -> Any:
    return nn.leaky_relu(self, negative_slope)


@aten("prelu", "_prelu_kernel")
def prelu(self: Any, weight: Any) -> Any:
    if weight.ndim == 1 and self.ndim > 1:
        weight = np.reshape(weight, (-1, *(1,) * (self.ndim - 2)))
    return np.where(self > 0, self, self * weight)


@aten("rrelu")
def rrelu(self: Any, lower: float = 0.125, upper: float = 1 / 3, training: bool = False, generator: Any = None) -> Any:
    return rrelu_with_noise(self, None, lower, upper, training)[0]


@aten("rrelu_with_noise_functional")
def rrelu_with_noise(
    self: Any, noise: Any, lower: float = 0.125, upper: float = 1 / 3, training: bool = False, generator: Any = None
) -> tuple[Any, Any]:
    """The slopes of what is not positive are random in training; the second result are all slopes."""
    if not training:
        return nn.leaky_relu(self, (lower + upper) / 2), noise
    drawn = uniform_numbers(self.shape, self.dtype) * cast(upper - lower, self.dtype) + cast(lower, self.dtype)
    slopes = np.where(self > 0, cast(1, self.dtype), drawn)
    return self * slopes, slopes


@aten("elu")
def elu(self: Any, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Any:
    x = cast(self, widened(self.dtype))
    down = np.expm1(np.where(x > 0, cast(0, x.dtype), x) * cast(input_scale, x.dtype))
    return cast(np.where(x > 0, x * cast(scale, x.dtype), cast(alpha * scale, x.dtype) * down), self.dtype)


@aten("celu")
def celu(self: Any, alpha: Any = 1.0) -> Any:
    return elu(self, alpha, 1.0, 1.0 / alpha)


@aten("selu")
def selu(self: Any) -> Any:
    return elu(self, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1.0)


@aten("gelu")
def gelu(self: Any, *, approximate: str = "none") -> Any:
    return nn.gelu(self, approximate)


@aten("silu")
def silu(self: Any) -> Any:
    if category(self.dtype) == 3:
        return self / (cast(1, self.dtype) + np.exp(-self))
    return nn.silu(self)


@aten("mish")
def mish(self: Any) -> Any:
    return self * np.tanh(softplus(self))


@aten("softplus")
def softplus(self: Any, beta: Any = 1, threshold: Any = 20) -> Any:
    scale, bound = cast(beta, self.dtype), cast(threshold, self.dtype)
    scaled = self * scale
    small = np.where(scaled > bound, cast(0, self.dtype), scaled)
    return np.where(scaled > bound, self, np.log1p(np.exp(small)) / scale)


@aten("log_sigmoid")
def log_sigmoid(self: Any) -> Any:
    zero = cast(0, self.dtype)
    is_negative = self < zero
    # No absolute value, whose gradient is 0 at 0, where that of the result is 0.5.
    return np.where(is_negative, self, zero) - np.log1p(np.exp(np.where(is_negative, self, -self)))


@aten("log_sigmoid_forward")
def log_sigmoid_forward(self: Any) -> tuple[Any, Any]:
    return log_sigmoid(self), np.zeros((0,), self.dtype)


@aten("hardsigmoid")
def hardsigmoid(self: Any) -> Any:
    return hardtanh(self + cast(3, self.dtype), 0, 6) / cast(6, self.dtype)


@aten("hardswish")
def hardswish(self: Any) -> Any:
    return self * hardtanh(self + cast(3, self.dtype), 0, 6) / cast(6, self.dtype)


@aten("hardshrink")
def hardshrink(self: Any, lambd: Any = 0.5) -> Any:
    bound = cast(lambd, self.dtype)
    return np.where((self >= -bound) & (self <= bound), cast(0, self.dtype), self)


@aten("softshrink")
def softshrink(self: Any, lambd: Any = 0.5) -> Any:
    bound = cast(lambd, self.dtype)
    inner = np.where(self != self, self, cast(0, self.dtype))
    return np.where(self > bound, self - bound, np.where(self < -bound, self + bound, inner))


@aten("threshold")
def threshold(self: Any, threshold: Any, value: Any) -> Any:
    return np.where(self <= cast(threshold, self.dtype), cast(value, self.dtype), self)


@aten("glu")
def glu(self: Any, dim: int = -1) -> Any:
    first, second = np.split(cast(self, widened(self.dtype)), 2, axis=axis_of(dim, self.ndim))
    return cast(first * sigmoid(second), self.dtype)


def _softmax_input(self: Any, dtype: Any) -> Any:
    x = self if dtype is None else cast(self, dtype)
    return x if is_float(x.dtype) else cast(x, np.dtype(np.float32))


@aten("softmax", "special_softmax")
def softmax(self: Any, dim: int, dtype: Any = None) -> Any:
    x = _softmax_input(self, dtype)
    return nn.softmax(x, axis_of(dim, x.ndim)) if x.ndim else np.where(x == x, cast(1, x.dtype), x)


@aten("log_softmax", "special_log_softmax")
def log_softmax(self: Any, dim: int, dtype: Any = None) -> Any:
    x = _softmax_input(self, dtype)
    return nn.log_softmax(x, axis_of(dim, x.ndim)) if x.ndim else np.where(x == x, cast(0, x.dtype), x)


@aten("_safe_softmax")
def safe_softmax(self: Any, dim: int, dtype: Any = None) -> Any:
    is_masked = np.all(self == -math.inf, axis=axis_of(dim, self.ndim) if self.ndim else None, keepdims=True)
    # What is masked has no gradient, also none that is not a number.
    y = softmax(np.where(is_masked, cast(0, self.dtype), self), dim, dtype)
    return np.where(is_masked, cast(0, y.dtype), y)


@aten("_softmax")
def softmax_of(self: Any, dim: int, half_to_float: Any = None) -> Any:
    return softmax(self, dim, np.dtype(np.float32) if half_to_float is True else None)


@aten("_log_softmax")
def log_softmax_of(self: Any, dim: int, half_to_float: bool) -> Any:
    return log_softmax(self, dim, np.dtype(np.float32) if half_to_float else None)


@aten("dropout")
def dropout(input: Any, p: float, train: bool) -> Any:
    return random_dropout(input, p, train)


def _dropped(input: Any, p: float, train: bool, *, of_channels: bool, is_alpha: bool) -> Any:
    """Dropout of elements or of channels, by zeros or by what keeps mean and variance (Klambauer et al., 2017)."""
    if of_channels and input.ndim < 2:
        raise refuse("feature_dropout", "of a tensor without channels")
    if not train or not p:
        return input
    if p == 1.0:
        return input * np.zeros((), input.dtype)
    shape = (*input.shape[:2], *(1,) * (input.ndim - 2)) if of_channels else input.shape
    mask = cast(kept(shape, p, numbers_drawn()), input.dtype)
    if not is_alpha:
        return input * (mask / cast(1.0 - p, input.dtype))
    scale = 1.0 / math.sqrt((_SELU * _SELU * p + 1.0) * (1.0 - p))
    shift = (mask - cast(1, input.dtype)) * cast(_SELU * scale, input.dtype) + cast(_SELU * scale * p, input.dtype)
    return input * (mask * cast(scale, input.dtype)) + shift


_SELU = 1.7580993408473766  # minus the limit of SELU on the left


@aten("feature_dropout")
def feature_dropout(input: Any, p: float, train: bool) -> Any:
    return _dropped(input, p, train, of_channels=True, is_alpha=False)


@aten("alpha_dropout")
def alpha_dropout(input: Any, p: float, train: bool) -> Any:
    return _dropped(input, p, train, of_channels=False, is_alpha=True)


@aten("feature_alpha_dropout")
def feature_alpha_dropout(input: Any, p: float, train: bool) -> Any:
    return _dropped(input, p, train, of_channels=True, is_alpha=True)


@aten("native_dropout")
def native_dropout(input: Any, p: float, train: bool | None) -> tuple[Any, Any]:
    if train is False or p == 0.0:
        return np.copy(input), np.ones_like(input, dtype=bool)
    if p == 1.0:
        return np.zeros_like(input), np.zeros_like(input, dtype=bool)
    mask = kept(input.shape, p, numbers_drawn())
    scale = cast(1.0 / (1.0 - p), input.dtype)
    return np.where(mask, input * scale, cast(0, input.dtype)), mask


__all__ = ["clamp", "gelu", "hardtanh", "log_sigmoid", "log_softmax", "relu", "softmax", "softplus"]
