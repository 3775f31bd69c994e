"""Layer, group, batch and instance normalisation, with the statistics that torch's operators give."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....numpy.neural import normalisations as nn
from ..aten_table import aten, refuse
from ..promotion import cast, widened
from ..tensors.reduction_operators import vector_norm


def _standard(x: Any, axes: tuple[int, ...], eps: float, sizes: Any = None) -> tuple[Any, Any, Any]:
    """``x`` with mean 0 and variance 1 over these axes, its mean, and one over its standard deviation.

    ``sizes``: of these axes, where the operator tells them: those of a trace may be known at run time only.
    """
    if any(size == 0 for size in (sizes or [x.shape[k] for k in axes])):
        raise refuse("a normalisation", "of nothing", "its mean is not defined")
    mean = np.mean(x, axis=axes, keepdims=True)
    centred = x - mean
    rstd = cast(1, x.dtype) / np.sqrt(np.mean(centred * centred, axis=axes, keepdims=True) + cast(eps, x.dtype))
    return centred * rstd, mean, rstd


def _scaled(y: Any, weight: Any, bias: Any, shape: Any = None) -> Any:
    for parameter, apply in ((weight, np.multiply), (bias, np.add)):
        if parameter is not None:
            p = cast(parameter, y.dtype)
            y = apply(y, p if shape is None else np.reshape(p, shape))
    return y


@aten("native_layer_norm")
def native_layer_norm(input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> tuple[Any, Any, Any]:
    x = cast(input, widened(input.dtype))
    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    y, mean, rstd = _standard(x, axes, eps, normalized_shape)
    return cast(_scaled(y, weight, bias), input.dtype), cast(mean, input.dtype), cast(rstd, input.dtype)


@aten("layer_norm")
def layer_norm(
    input: Any,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Any:
    if not input.size:
        return np.copy(input)
    return nn.layer_norm(input, tuple(normalized_shape), weight, bias, eps)


@aten("rms_norm")
def rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    return rms_norm_with_statistics(input, normalized_shape, weight, eps)[0]


@aten("_fused_rms_norm")
def rms_norm_with_statistics(
    input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None
) -> tuple[Any, Any]:
    x = cast(input, widened(input.dtype))
    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    least = float(np.finfo(input.dtype).eps) if eps is None else eps
    rms = cast(1, x.dtype) / np.sqrt(np.mean(x * x, axis=axes, keepdims=True) + cast(least, x.dtype))
    return cast(_scaled(x * rms, weight, None), input.dtype), rms


@aten("native_group_norm")
def native_group_norm(
    input: Any, weight: Any, bias: Any, N: Any, C: Any, HxW: Any, group: int, eps: float
) -> tuple[Any, Any, Any]:
    x = cast(input, widened(input.dtype))
    y, mean, rstd = _standard(np.reshape(x, (N, group, C // group * HxW)), (2,), eps)
    y = _scaled(np.reshape(y, input.shape), weight, bias, (1, C, *(1,) * (input.ndim - 2)))
    return cast(y, input.dtype), *(cast(np.reshape(s, (N, group)), input.dtype) for s in (mean, rstd))


@aten("group_norm")
def group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, cudnn_enabled: bool = True
) -> Any:
    return nn.group_norm(input, num_groups, weight, bias, eps) if input.size else np.copy(input)


def _batch_statistics(x: Any, eps: float) -> tuple[Any, Any, Any, Any]:
    """Normalised input, mean, one over the standard deviation, and the unbiased variance, per channel."""
    axes = (0, *range(2, x.ndim))
    y, mean, rstd = _standard(x, axes, eps)
    count: Any = 1
    for k in axes:
        count = count * x.shape[k]
    centred = x - mean
    variance = np.sum(centred * centred, axis=axes) / cast(count - 1, x.dtype)
    channels = x.shape[1]
    return y, np.reshape(mean, (channels,)), np.reshape(rstd, (channels,)), variance


def _channels(x: Any) -> tuple[Any, ...]:
    return (x.shape[1], *(1,) * (x.ndim - 2))


def _as_statistics(input: Any, parameters: tuple[Any, ...], *values: Any) -> tuple[Any, ...]:
    """Statistics in the dtype in which torch's CPU operators give them: that of the parameters, if there are any."""
    dtype = next((p.dtype for p in parameters if p is not None), input.dtype)
    return tuple(cast(x, dtype) for x in values)


def _moved(running: Any, new: Any, momentum: float) -> Any:
    return cast(
        running * cast(1.0 - momentum, running.dtype) + cast(new * cast(momentum, new.dtype), running.dtype),
        running.dtype,
    )


def _by_running(input: Any, weight: Any, bias: Any, mean: Any, var: Any, eps: float) -> Any:
    x = cast(input, widened(input.dtype))
    shape = _channels(x)
    scale = cast(1, x.dtype) / np.sqrt(cast(var, x.dtype) + cast(eps, x.dtype))
    y = (x - np.reshape(cast(mean, x.dtype), shape)) * np.reshape(scale, shape)
    return cast(_scaled(y, weight, bias, shape), input.dtype)


@aten("_native_batch_norm_legit_functional")
def batch_norm_functional(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float, eps: float
) -> tuple[Any, ...]:
    if not training:
        y, *rest = batch_norm_no_training(input, weight, bias, running_mean, running_var, momentum, eps)
        return y, *rest, np.copy(running_mean), np.copy(running_var)
    x = cast(input, widened(input.dtype))
    y, mean, rstd, variance = _batch_statistics(x, eps)
    y = cast(_scaled(y, weight, bias, _channels(x)), input.dtype)
    statistics = _as_statistics(input, (weight, bias, running_mean), mean, rstd)
    return y, *statistics, _moved(running_mean, mean, momentum), _moved(running_var, variance, momentum)


@aten("_batch_norm_with_update_functional")
def batch_norm_with_update_functional(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, momentum: float, eps: float
) -> tuple[Any, ...]:
    results = batch_norm_functional(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return *results[:3], np.zeros((0,), np.uint8), *results[3:]


@aten("_native_batch_norm_legit_no_training")
def batch_norm_no_training(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, momentum: float, eps: float
) -> tuple[Any, Any, Any]:
    nothing = np.zeros((0,), input.dtype)
    statistics = _as_statistics(input, (weight, bias, running_mean), nothing, nothing)
    return _by_running(input, weight, bias, running_mean, running_var, eps), *statistics


@aten("native_batch_norm", "_native_batch_norm_legit")
def native_batch_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, *numbers: Any, **named: Any
) -> tuple[Any, Any, Any]:
    momentum, eps = (*numbers, *(named[n] for n in ("momentum", "eps") if n in named))
    if not training:
        return batch_norm_no_training(input, weight, bias, running_mean, running_var, momentum, eps)
    x = cast(input, widened(input.dtype))
    y, mean, rstd, variance = _batch_statistics(x, eps)
    if running_mean is not None:
        running_mean[...] = _moved(running_mean, mean, momentum)
        running_var[...] = _moved(running_var, variance, momentum)
    statistics = _as_statistics(input, (weight, bias, running_mean), mean, rstd)
    return cast(_scaled(y, weight, bias, _channels(x)), input.dtype), *statistics


@aten("_batch_norm_with_update")
def batch_norm_with_update(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, momentum: float, eps: float
) -> tuple[Any, ...]:
    results = native_batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return *results, np.zeros((0,), np.uint8)


@aten("_batch_norm_no_update")
def batch_norm_no_update(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, momentum: float, eps: float
) -> tuple[Any, ...]:
    results = batch_norm_no_training(input, weight, bias, running_mean, running_var, momentum, eps)
    return *results, np.zeros((0,), np.uint8)


@aten("_native_batch_norm_legit.no_stats")
def batch_norm_no_stats(
    input: Any, weight: Any, bias: Any, training: bool, momentum: float, eps: float
) -> tuple[Any, Any, Any]:
    return native_batch_norm(input, weight, bias, None, None, True, momentum, eps)


@aten("batch_norm")
def batch_norm(
    input: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Any:
    return native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


@aten("instance_norm")
def instance_norm(
    input: Any,
    weight: Any = None,
    bias: Any = None,
    running_mean: Any = None,
    running_var: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Any:
    if not use_input_stats:
        return _by_running(input, weight, bias, running_mean, running_var, eps)
    x = cast(input, widened(input.dtype))
    axes = tuple(range(2, x.ndim))
    y, mean, _ = _standard(x, axes, eps)
    if running_mean is not None:
        count: Any = 1
        for k in axes:
            count = count * x.shape[k]
        centred = x - mean
        variance = np.sum(centred * centred, axis=axes) / cast(count - 1, x.dtype)
        running_mean[...] = _moved(running_mean, np.mean(mean, axis=(0, *axes)), momentum)
        running_var[...] = _moved(running_var, np.mean(variance, axis=0), momentum)
    return cast(_scaled(y, weight, bias, _channels(x)), input.dtype)


@aten("renorm")
def renorm(self: Any, p: Any, dim: int, maxnorm: Any) -> Any:
    axes = tuple(k for k in range(self.ndim) if k != dim % self.ndim)
    size = vector_norm(self, p, axes, True)
    factor = cast(maxnorm, size.dtype) / (size + cast(1e-7, size.dtype))
    return self * cast(np.where(size > cast(maxnorm, size.dtype), factor, cast(1, size.dtype)), self.dtype)
