"""Losses, with reductions as torch numbers them: 0 none, 1 the mean, 2 the sum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....numpy.neural.losses import cross_entropy
from ....numpy.tracing.current import current
from ....numpy.tracing.traced_control import required
from ..aten_table import aten
from ..promotion import INT64, cast, together
from ..tensors.binary_operators import add, mul, sub, xlogy
from ..tensors.product_operators import linear
from ..tensors.reduction_operators import mean, sum_
from .activation_operators import log_sigmoid


def reduced(each: Any, reduction: int) -> Any:
    """The mean or the sum of losses, or all of them."""
    return mean(each) if reduction == 1 else sum_(each) if reduction == 2 else each


def _pointwise(name: str, function: Callable[..., Any]) -> None:
    @aten(name)
    def loss(self: Any, target: Any, reduction: int = 1, *options: Any, **named: Any) -> Any:
        a, b = together(self, target)
        return reduced(function(a, b, *options, **named), reduction)


_pointwise("mse_loss", lambda a, b: (a - b) * (a - b))
_pointwise("l1_loss", lambda a, b: np.abs(a - b))
_pointwise("soft_margin_loss", lambda a, b: np.log1p(np.exp(-b * a)))


def _smooth_l1(a: Any, b: Any, beta: float = 1.0) -> Any:
    distance = np.abs(a - b)
    if beta == 0:
        return distance
    bound, half = cast(beta, a.dtype), cast(0.5, a.dtype)
    return np.where(distance < bound, half * distance * distance / bound, distance - half * bound)


def _huber(a: Any, b: Any, delta: float = 1.0) -> Any:
    distance, bound, half = np.abs(a - b), cast(delta, a.dtype), cast(0.5, a.dtype)
    return np.where(distance <= bound, half * distance * distance, bound * (distance - half * bound))


_pointwise("smooth_l1_loss", _smooth_l1)
_pointwise("huber_loss", _huber)


@aten("kl_div")
def kl_div(self: Any, target: Any, reduction: int = 1, *, log_target: bool = False) -> Any:
    each = np.exp(target) * (target - self) if log_target else xlogy(target, target) - target * self
    return reduced(each, reduction)


@aten("binary_cross_entropy")
def binary_cross_entropy(self: Any, target: Any, weight: Any = None, reduction: int = 1) -> Any:
    one, least = cast(1, self.dtype), cast(-100, self.dtype)
    if current() is not None:
        holds = np.all((self >= cast(0, self.dtype)) & (self <= one))
        self = required(self, holds, "all elements of input should be between 0 and 1")
    yes, no = np.log(self), np.log1p(-self)
    each = (target - one) * np.maximum(no, least) - target * np.maximum(yes, least)
    return reduced(each if weight is None else each * weight, reduction)


@aten("binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(
    self: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: int = 1
) -> Any:
    one, log_yes = cast(1, self.dtype), log_sigmoid(self)
    if pos_weight is not None:
        factor = (pos_weight - one) * target + one
        each = (one - target) * self - factor * log_yes
    else:
        each = (one - target) * self - log_yes
    return reduced(each if weight is None else each * weight, reduction)


@aten("nll_loss_forward", "nll_loss2d_forward")
def nll_loss_forward(self: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> tuple[Any, Any]:
    axis = 0 if self.ndim == 1 else 1
    counted = target != ignore_index
    place = np.where(counted, cast(target, INT64), 0)
    each = -np.squeeze(np.take_along_axis(self, np.expand_dims(place, axis), axis), axis=axis)
    weights = cast(counted, self.dtype)
    if weight is not None:
        weights = np.where(counted, np.take(weight, place), cast(0, self.dtype))
    each = np.where(counted, each * weights, cast(0, self.dtype))
    total_weight = sum_(weights)
    if reduction == 0:
        return each, np.zeros((), self.dtype)
    return (sum_(each) / total_weight if reduction == 1 else sum_(each)), total_weight


@aten("nll_loss", "nll_loss2d", "nll_loss_nd")
def nll_loss(self: Any, target: Any, weight: Any = None, reduction: int = 1, ignore_index: int = -100) -> Any:
    return nll_loss_forward(self, target, weight, reduction, ignore_index)[0]


@aten("cross_entropy_loss")
def cross_entropy_loss(
    self: Any,
    target: Any,
    weight: Any = None,
    reduction: int = 1,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Any:
    return cross_entropy(
        self,
        target,
        weight,
        ignore_index=ignore_index,
        reduction=("none", "mean", "sum")[reduction],
        label_smoothing=label_smoothing,
    )


@aten("torch_nn::_linear_cross_entropy_batch_chunked")
def chunked_cross_entropy(
    input: Any,
    linear_weight: Any,
    target: Any,
    linear_bias: Any,
    weight: Any,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
    batch_chunk_size: int,
    acc_policy: str,
    acc_dtype: Any,
    *options: Any,
    **named: Any,
) -> tuple[Any, None, None, None]:
    """The loss of the scores of a linear layer, whole; the gradients that torch keeps with it are left out."""
    wide = np.dtype(acc_dtype)
    bias, weights = (x if x is None else cast(x, wide) for x in (linear_bias, weight))
    scores = linear(cast(input, wide), cast(linear_weight, wide), bias)
    number = ("none", "mean", "sum").index(reduction)
    loss = cross_entropy_loss(scores, target, weights, number, ignore_index, label_smoothing)
    return cast(loss, input.dtype), None, None, None


@aten("torch_nn::_linear_cross_entropy_batch_chunked_no_reduction")
def chunked_cross_entropies(
    input: Any,
    linear_weight: Any,
    target: Any,
    linear_bias: Any,
    weight: Any,
    ignore_index: int,
    *options: Any,
    acc_dtype: Any = None,
    **named: Any,
) -> Any:
    dtype = options[2] if len(options) > 2 else acc_dtype
    return chunked_cross_entropy(
        input, linear_weight, target, linear_bias, weight, "none", ignore_index, 0.0, 0, "", dtype
    )[0]


@aten("margin_ranking_loss")
def margin_ranking_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: int = 1) -> Any:
    x = add(mul(-target, sub(input1, input2)), margin)
    return reduced(np.where(x > 0, x, cast(0, x.dtype)), reduction)
