"""Losses: numbers that say how far results are from what they should be."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..python.pausing import unwatched
from .activation_functions import log_softmax
from .bounded_activations import log_of_sigmoid
from .layer_inputs import array, choice, narrowed, real, vector, widened, wrong_argument, wrong_dtype, wrong_shape
from .projections import in_range

_REDUCTIONS = ("mean", "sum", "none")


@unwatched
def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """The squared differences of two arrays.

    Args:
        input, target: arrays of one shape.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for an array of the shape of both.

    f16 and bf16 are computed in f32. Raises ShapeError for other shapes: nothing is broadcast.
    """
    x, t, dtype = _pair("mse_loss", input, target, reduction)
    difference = x - t
    loss = _reduced(difference * difference, reduction)
    return narrowed(loss, dtype) if dtype.kind in "fV" else loss


@unwatched
def smooth_l1_loss(input: Any, target: Any, reduction: str = "mean", beta: float = 1.0) -> Any:
    """The differences of two arrays, squared where they are small.

    Args:
        input, target: arrays of one shape.
        reduction: as of `mse_loss`.
        beta: differences ``d`` below it count as ``d ** 2 / (2 * beta)``, the others as ``d - beta / 2``.

    f16 and bf16 are computed in f32. Raises ShapeError for other shapes, ArgumentError for a negative ``beta``.
    """
    x, t, dtype = _pair("smooth_l1_loss", input, target, reduction)
    if not beta >= 0:
        raise wrong_argument("smooth_l1_loss", f"beta={beta!r} is negative", "pass a number >= 0")
    distance = np.abs(x - t)
    each = distance - 0.5 * beta
    if beta:
        each = np.where(distance < beta, 0.5 * distance * distance / beta, each)
    loss = _reduced(each, reduction)
    return narrowed(loss, dtype) if dtype.kind in "fV" else loss


@unwatched
def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, *, reduction: str = "mean", pos_weight: Any = None
) -> Any:
    """The cross-entropy of yes and no with the sigmoid of scores.

    Args:
        input: scores, floats of any scale.
        target: of the shape of ``input``, the probabilities of yes, 0 or 1 in most cases.
        weight: by which the result of each element is multiplied, broadcast to the shape of ``input``.
        reduction: as of `mse_loss`.
        pos_weight: by which the share of yes is multiplied, broadcast likewise.

    The result has the dtype of ``input``; f16 and bf16 are computed in f32. Raises ShapeError where shapes do not fit.
    """
    function = "binary_cross_entropy_with_logits"
    x, t, _ = _pair(function, input, target, reduction)
    real(function, "input", input)
    w, positive = widened(weight, pos_weight)
    for name, each in (("weight", w), ("pos_weight", positive)):
        if each is not None and not _broadcasts(array(function, name, each).shape, input.shape):
            raise wrong_shape(
                function,
                f"{name} has shape {tuple(each.shape)}, input {tuple(input.shape)}",
                f"pass a {name} that broadcasts to the shape of input",
            )
    log_share = log_of_sigmoid(x)
    if positive is not None:
        log_share = log_share * ((positive - 1) * t + 1)
    loss = (1 - t) * x - log_share
    return narrowed(_reduced(loss if w is None else loss * w, reduction), input.dtype)


@unwatched
def nll_loss(input: Any, target: Any, weight: Any = None, *, ignore_index: int = -100, reduction: str = "mean") -> Any:
    """What the logarithms of probabilities say against the classes: `cross_entropy` of `log_softmax`.

    Args:
        input: logarithms of probabilities (N, C), (C,) or (N, C, ...), floats.
        target, weight, ignore_index, reduction: as of `cross_entropy`; ``target`` of classes alone.

    The result has the dtype of ``input``; f16 and bf16 are computed in f32. Raises as `cross_entropy`.
    """
    function = "nll_loss"
    at = _class_axis(function, input, target, weight, reduction)
    x, w = widened(input, weight)
    loss = _of_classes(function, input, -x, target, w, None, at, reduction, 0.0, ignore_index)
    return narrowed(loss, input.dtype)


def _pair(function: str, x: Any, target: Any, reduction: str) -> tuple[Any, Any, Any]:
    """Two arrays of one shape, widened, and the dtype of their difference."""
    array(function, "input", x)
    array(function, "target", target)
    choice(function, "reduction", reduction, _REDUCTIONS)
    if tuple(x.shape) != tuple(target.shape):
        raise wrong_shape(
            function,
            f"input has shape {tuple(x.shape)}, target {tuple(target.shape)}",
            "pass both of one shape: np.broadcast_to(target, input.shape)",
        )
    return *widened(x, target), np.result_type(x.dtype, target.dtype)


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """True if arrays of a shape are broadcast to another one."""
    pairs = zip(reversed(shape), reversed(to), strict=False)
    return len(shape) <= len(to) and all(own in (1, other) for own, other in pairs)


def _class_axis(function: str, x: Any, target: Any, weight: Any, reduction: str) -> int:
    """The axis of the classes in scores, which are looked at; raises as `cross_entropy`."""
    array(function, "input", x)
    array(function, "target", target)
    real(function, "input", x)
    choice(function, "reduction", reduction, _REDUCTIONS)
    if not x.ndim:
        raise wrong_shape(function, "input has no axes", "pass it as (N, C) or (C,)")
    at = 0 if x.ndim == 1 else 1
    if not x.shape[at]:
        raise wrong_shape(function, f"input of shape {tuple(x.shape)} has no classes", "pass it as (N, C)")
    vector(function, "weight", weight, x.shape[at], "classes")
    return at


@unwatched
def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """The cross-entropy of classes with the softmax of scores.

    Args:
        input: scores (N, C), (C,) or (N, C, ...), floats of any scale.
        target: the classes, integers of shape (N,), () or (N, ...); or their probabilities, floats of the shape of
            ``input``.
        weight: (C,), the weights of the classes; None = ones.
        ignore_index: the class of elements that do not count; of probabilities none is.
        reduction: ``"mean"``: the mean over what counts, weighted by the weights of its classes (of probabilities: the
            sum over the number of elements); ``"sum"``; ``"none"``: an array of the shape of ``target`` without C.
        label_smoothing: from 0 to 1; so much of each target is shared by all classes alike.

    The result has the dtype of ``input``; f16 and bf16 are computed in f32. The mean over nothing is NaN. Raises
    ShapeError for other shapes, BoundsError for an integer that is no class (IndexError inside a graph), ArgumentError
    for other values.
    """
    at = _class_axis("cross_entropy", input, target, weight, reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise wrong_argument("cross_entropy", f"label_smoothing={label_smoothing}", "pass a number from 0 to 1")
    classes = input.shape[at]
    x, w = widened(input, weight)
    costs = -log_softmax(x, at)
    weights = None if w is None else np.reshape(w, (classes, *(1,) * (input.ndim - at - 1)))
    if target.dtype.kind in "fV":
        loss = _of_probabilities(input, costs, target, weights, at, reduction, label_smoothing)
    else:
        loss = _of_classes(
            "cross_entropy", input, costs, target, w, weights, at, reduction, label_smoothing, ignore_index
        )
    return narrowed(loss, input.dtype)


def _of_probabilities(x: Any, costs: Any, target: Any, weights: Any, at: int, reduction: str, smoothing: float) -> Any:
    if tuple(target.shape) != tuple(x.shape):
        raise wrong_shape(
            "cross_entropy",
            f"target, of floats, has shape {tuple(target.shape)}, input {tuple(x.shape)}",
            "pass one probability for each score, or integers as classes",
        )
    p = widened(target)[0]
    if smoothing:
        p = p * (1.0 - smoothing) + smoothing / x.shape[at]
    each = np.sum(costs * p if weights is None else costs * p * weights, axis=at)
    return _reduced(each, reduction)


def _of_classes(
    function: str,
    x: Any,
    costs: Any,
    target: Any,
    w: Any,
    weights: Any,
    at: int,
    reduction: str,
    smoothing: float,
    ignore_index: int,
) -> Any:
    expected = (*x.shape[:at], *x.shape[at + 1 :])
    if target.dtype.kind not in "iu":
        raise wrong_dtype(function, f"target is of {target.dtype}", "pass integers, or floats for probabilities")
    if tuple(target.shape) != tuple(expected):
        raise wrong_shape(
            function,
            f"target, of integers, has shape {tuple(target.shape)}, where input of shape {tuple(x.shape)} needs "
            f"{tuple(expected)}",
            "pass one class for each element; or floats as probabilities",
        )
    counts = target != ignore_index
    index = in_range(function, "target", np.where(counts, target, 0), x.shape[at])
    each = np.squeeze(np.take_along_axis(costs, np.expand_dims(index, at), axis=at), axis=at)
    of_class = None if w is None else w[index]
    if of_class is not None:
        each = each * of_class
    if smoothing:
        spread = np.sum(costs if weights is None else costs * weights, axis=at)
        each = each * (1.0 - smoothing) + spread * (smoothing / x.shape[at])
    each = np.where(counts, each, 0)
    if reduction != "mean":
        return _reduced(each, reduction)
    shares = counts.astype(costs.dtype) if of_class is None else np.where(counts, of_class, 0)
    return np.sum(each) / np.sum(shares)


def _reduced(each: Any, reduction: str) -> Any:
    if reduction == "none":
        return each
    if reduction == "sum":
        return np.sum(each)
    return np.mean(each) if each.size else np.sum(each) * np.nan
