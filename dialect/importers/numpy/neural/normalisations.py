"""Normalisations: arrays with the means and variances of some of their axes taken out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..python.pausing import unwatched
from ..tracing.composites import recorded
from ..world.own_draws import runs_again
from .layer_inputs import array, detached, is_real, narrowed, number, real, vector, widened, wrong_argument, wrong_shape


@unwatched
def batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """``input`` with mean 0 and variance 1 in each channel, times ``weight``, plus ``bias``.

    Args:
        input: (N, C, ...), a float array.
        running_mean, running_var: (C,), means and variances over many batches; None where ``training`` needs none.
        weight, bias: (C,); None = ones, zeros.
        training: take mean and variance of this batch, and **write** ``running_mean`` and ``running_var`` in place:
            each becomes ``(1 - momentum)`` times itself plus ``momentum`` times that of the batch, where the variance
            is the unbiased one. Else ``running_mean`` and ``running_var`` are taken, and nothing is written.
        momentum: see ``training``.
        eps: what is added to variances.

    The result has the dtype and shape of ``input``; f16 and bf16 are computed in f32. Gradients flow through mean and
    variance of the batch, and none into the running ones. Raises ShapeError for other sizes, and in training where a
    channel has fewer than two elements; ArgumentError where running statistics are missing.
    """
    array("batch_norm", "input", input)
    if input.ndim < 2:
        raise wrong_shape("batch_norm", f"input has shape {tuple(input.shape)}", "pass it as (N, C, ...)")
    running = (running_mean, running_var)
    channels = _check_channels_of("batch_norm", input, *running, weight, bias, ("training", bool(training)))
    x, w, b = widened(input, weight, bias)
    axes = (0, *range(2, input.ndim))
    each = (channels, *(1,) * (input.ndim - 2))
    if training:
        count = 1
        for k in axes:
            count *= input.shape[k]
        if count < 2:
            raise wrong_shape(
                "batch_norm",
                f"a channel of input, shape {tuple(input.shape)}, has {count} elements in training",
                "pass a larger batch, or training=False",
            )
    if is_real(input, weight, bias, *running):
        attrs = {"training": bool(training), "momentum": momentum, "eps": eps}
        results = recorded("native_batch_norm", input, weight, bias, *running, **attrs)
        if results is not None:
            if training and running_mean is not None:
                _write(running_mean, results[3])
                _write(running_var, results[4])
            return results[0]
    if training:
        mean = np.mean(x, axis=axes)
        centred = x - np.reshape(mean, each)
        var = np.mean(centred * centred, axis=axes)
        if running_mean is not None:
            old_mean, old_var = widened(*running)
            _write(running_mean, (1.0 - momentum) * old_mean + momentum * mean)
            _write(running_var, (1.0 - momentum) * old_var + momentum * (var * (count / (count - 1))))
    else:
        mean, var = widened(running_mean, running_var)
        centred = x - np.reshape(mean, each)
    scale = 1.0 / np.sqrt(var + eps)
    if w is not None:
        scale = scale * w
    y = centred * np.reshape(scale, each)
    return narrowed(y if b is None else y + np.reshape(b, each), input.dtype)


def _write(running: Any, content: Any) -> None:
    """Write a running statistic; where the function is run once more, for its gradient, it is written already."""
    if not runs_again():
        running[...] = detached(narrowed(content, running.dtype))


@unwatched
def layer_norm(
    input: Any, normalized_shape: int | Sequence[int], weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """``input`` with mean 0 and variance 1 over its last axes, times ``weight``, plus ``bias``.

    Args:
        input: (..., *normalized_shape), a float array.
        normalized_shape: the sizes of these axes; an integer is that of the last one.
        weight, bias: of shape ``normalized_shape``; None = ones, zeros.
        eps: what is added to variances.

    The result has the dtype and shape of ``input``; f16 and bf16 are computed in f32. Raises ShapeError for other
    sizes.
    """
    shape = _last_axes("layer_norm", input, normalized_shape, weight=weight, bias=bias)
    x, w, b = widened(input, weight, bias)
    if is_real(input, weight, bias):
        results = recorded("native_layer_norm", input, weight, bias, shape=shape, eps=eps)
        if results is not None:
            return results[0]
    y = _standard(x, tuple(range(-len(shape), 0)), eps)
    if w is not None:
        y = y * w
    return narrowed(y if b is None else y + b, input.dtype)


@unwatched
def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """``input`` with mean 0 and variance 1 in each group of channels of an image, times ``weight``, plus ``bias``.

    Args:
        input: (N, C, ...), a float array.
        num_groups: a divisor of C; group k has the channels from ``k * C / num_groups`` on.
        weight, bias: (C,); None = ones, zeros.
        eps: what is added to variances.

    The result has the dtype and shape of ``input``; f16 and bf16 are computed in f32. Raises ShapeError for other
    sizes, ArgumentError for no divisor.
    """
    array("group_norm", "input", input)
    if input.ndim < 2:
        raise wrong_shape("group_norm", f"input has shape {tuple(input.shape)}", "pass it as (N, C, ...)")
    real("group_norm", "input", input)
    channels, groups = input.shape[1], number("group_norm", "num_groups", num_groups, 1)
    if channels % groups:
        raise wrong_argument("group_norm", f"num_groups={groups} does not divide {channels} channels", "pass a divisor")
    vector("group_norm", "weight", weight, channels, "channels")
    vector("group_norm", "bias", bias, channels, "channels")
    x, w, b = widened(input, weight, bias)
    if is_real(input, weight, bias):
        results = recorded("native_group_norm", input, weight, bias, groups=groups, eps=eps)
        if results is not None:
            return results[0]
    rest = input.shape[2:]
    grouped = np.reshape(x, (input.shape[0], groups, channels // groups, *rest))
    y = np.reshape(_standard(grouped, tuple(range(2, grouped.ndim)), eps), input.shape)
    each = (channels, *(1,) * len(rest))
    if w is not None:
        y = y * np.reshape(w, each)
    return narrowed(y if b is None else y + np.reshape(b, each), input.dtype)


@unwatched
def instance_norm(
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """``input`` with mean 0 and variance 1 in each channel of each image, times ``weight``, plus ``bias``.

    Args:
        input: (N, C, ...) with one axis or more behind C, a float array.
        running_mean, running_var: (C,), as of `batch_norm`; None where ``use_input_stats`` needs none.
        weight, bias: (C,); None = ones, zeros.
        use_input_stats: take mean and variance of each image, and **write** ``running_mean`` and ``running_var`` in
            place, with the means over the images. Else these are taken, and nothing is written.
        momentum, eps: as of `batch_norm`.

    The result has the dtype and shape of ``input``; f16 and bf16 are computed in f32. Raises as `batch_norm`.
    """
    array("instance_norm", "input", input)
    if input.ndim < 3:
        raise wrong_shape("instance_norm", f"input has shape {tuple(input.shape)}", "pass it as (N, C, L) or more axes")
    running = (running_mean, running_var)
    statistics = ("use_input_stats", bool(use_input_stats))
    channels = _check_channels_of("instance_norm", input, *running, weight, bias, statistics)
    axes = tuple(range(2, input.ndim))
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, eps=eps)
    count = math.prod(input.shape[2:])
    if count < 2:
        raise wrong_shape(
            "instance_norm",
            f"a channel of an image, input of shape {tuple(input.shape)}, has {count} elements",
            "pass larger images, or use_input_stats=False",
        )
    if running_mean is not None:
        x, old_mean, old_var = widened(input, running_mean, running_var)
        mean = np.mean(x, axis=axes, keepdims=True)
        var = np.mean((x - mean) * (x - mean), axis=axes)
        _write(running_mean, (1.0 - momentum) * old_mean + momentum * np.mean(mean, axis=(0, *axes)))
        _write(running_var, (1.0 - momentum) * old_var + momentum * (np.mean(var, axis=0) * (count / (count - 1))))
    return group_norm(input, channels, weight, bias, eps)


@unwatched
def rms_norm(input: Any, normalized_shape: int | Sequence[int], weight: Any = None, eps: float | None = None) -> Any:
    """``input`` over the root of the mean of its squares along its last axes, times ``weight``.

    Args:
        input: (..., *normalized_shape), a float array.
        normalized_shape: the sizes of these axes; an integer is that of the last one.
        weight: of shape ``normalized_shape``; None = ones.
        eps: what is added to means of squares; None = the distance from 1 to the next number of the dtype that is
            computed in.

    The result has the dtype and shape of ``input``; f16 and bf16 are computed in f32. Raises ShapeError for other
    sizes.
    """
    shape = _last_axes("rms_norm", input, normalized_shape, weight=weight)
    x, w = widened(input, weight)
    if eps is None:
        eps = float(np.finfo(x.dtype).eps)
    squares = np.mean(x * x, axis=tuple(range(-len(shape), 0)), keepdims=True)
    y = x * (1.0 / np.sqrt(squares + eps))
    return narrowed(y if w is None else y * w, input.dtype)


def _last_axes(function: str, x: Any, normalized_shape: Any, **parameters: Any) -> tuple[int, ...]:
    """The sizes of the axes that a norm is over, which parameters have as well; raises as `layer_norm`."""
    array(function, "input", x)
    real(function, "input", x)
    sizes = normalized_shape if isinstance(normalized_shape, (tuple, list)) else (normalized_shape,)
    shape = tuple(number(function, "normalized_shape", size, 0) for size in sizes)
    if not shape or tuple(x.shape[-len(shape) :]) != shape:
        raise wrong_shape(
            function,
            f"input has shape {tuple(x.shape)}, which does not end in normalized_shape={shape}",
            "pass the sizes of the last axes",
        )
    for name, parameter in parameters.items():
        if parameter is not None and tuple(array(function, name, parameter).shape) != shape:
            raise wrong_shape(function, f"{name} has shape {tuple(parameter.shape)}", f"pass it of shape {shape}")
    return shape


def _check_channels_of(
    function: str, x: Any, mean: Any, var: Any, weight: Any, bias: Any, statistics: tuple[str, bool]
) -> int:
    """The number of channels, one entry for each of which all of these have; raises as `batch_norm`.

    ``statistics``: the argument that asks for those of ``x``, by name, and its value.
    """
    real(function, "input", x)
    channels = x.shape[1]
    for name, each in (("running_mean", mean), ("running_var", var), ("weight", weight), ("bias", bias)):
        vector(function, name, each, channels, "channels")
    name, are_own = statistics
    if (mean is None) != (var is None) or (mean is None and not are_own):
        raise wrong_argument(
            function, "running_mean or running_var is None", f"pass both; or, with {name}=True, neither"
        )
    return channels


def _standard(x: Any, axes: tuple[int, ...], eps: float) -> Any:
    """``x`` with mean 0 and variance 1 over these axes."""
    centred = x - np.mean(x, axis=axes, keepdims=True)
    var = np.mean(centred * centred, axis=axes, keepdims=True)
    return centred * (1.0 / np.sqrt(var + eps))
