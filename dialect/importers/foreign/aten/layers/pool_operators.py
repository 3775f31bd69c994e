"""Pools over windows of one to three axes, with the indices that torch gives with maxima, and resampling."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ....numpy.neural import pooling
from ....numpy.neural.resampling import resampled
from ....numpy.tracing.handler_tables import created
from ...window_axes import window_count
from ..aten_table import aten, refuse
from ..dimensions import each
from ..promotion import INT64, cast, is_float, is_integral, widened
from ..tensors.binary_operators import truncated_division
from ..tensors.index_operators import scattered
from ..tensors.join_operators import padded

_MOST_CELLS = 256  # of adaptive pools whose windows differ in size


def strides_of(stride: Any, kernel: Sequence[int], count: int) -> tuple[int, ...]:
    """The distance of windows; torch's empty sequence, or None, stands for the size of the kernel."""
    is_missing = stride is None or (isinstance(stride, Sequence) and not stride)
    return tuple(kernel) if is_missing else each(stride, count)


def _windows(x: Any, kernel: Any, strides: Any, pads: Any, steps: Any, counts: Any, fill: Any) -> Any:
    """The windows of the last axes: their places, then one axis of the elements of each."""
    n = len(kernel)
    spans = tuple(d * (k - 1) + 1 for d, k in zip(steps, kernel, strict=True))
    sizes = [int(s) for s in x.shape[-n:]]
    behind = [
        max((c - 1) * s + w - p - z, 0) for c, s, w, p, z in zip(counts, strides, spans, pads, sizes, strict=True)
    ]
    if any((*pads, *behind)):
        widths = [w for k in reversed(range(n)) for w in (pads[k], behind[k])]
        x = padded(x, widths, "constant", fill)
    front = (slice(None),) * (x.ndim - n)
    windows = sliding_window_view(x, spans, axis=tuple(range(x.ndim - n, x.ndim)))
    every = tuple(slice(0, (c - 1) * s + 1, s) for c, s in zip(counts, strides, strict=True))
    windows = windows[(*front, *every, *(slice(None, None, d) for d in steps))]
    return np.reshape(windows, (*x.shape[: x.ndim - n], *counts, math.prod(kernel)))


def _max_pool(
    self: Any, count: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple[Any, Any]:
    kernel, pads, steps = (each(v, count) for v in (kernel_size, padding, dilation))
    strides = strides_of(stride, kernel, count)
    sizes = [int(s) for s in self.shape[-count:]]
    counts = [
        window_count(z, d * (k - 1) + 1, s, p, p, ceil_mode=ceil_mode)
        for z, d, k, s, p in zip(sizes, steps, kernel, strides, pads, strict=True)
    ]
    if min(counts) < 1 or any(2 * p > k for p, k in zip(pads, kernel, strict=True)):
        raise refuse("max_pool", f"with padding {pads} and kernels {kernel} on shape {tuple(sizes)}")
    lowest = np.iinfo(self.dtype).min if is_integral(self.dtype) else -np.inf
    windows = _windows(self, kernel, strides, pads, steps, counts, lowest)
    place = np.argmax(windows, axis=-1, keepdims=True)
    # By its place the gradient of a window goes to the first of its largest elements.
    value = np.squeeze(np.take_along_axis(windows, place, axis=-1), axis=-1)
    place = np.squeeze(place, axis=-1)
    index: Any = 0
    rest = math.prod(kernel)
    for k in range(count):
        rest //= kernel[k]
        start = created("arange", counts[k]) * strides[k] - pads[k]
        at = np.reshape(start, (counts[k], *(1,) * (count - k - 1))) + (place // rest % kernel[k]) * steps[k]
        index = index * sizes[k] + at
    return value, cast(index, INT64)


@aten("max_pool2d_with_indices_backward")
def max_pool2d_with_indices_backward(
    grad_output: Any,
    self: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    indices: Any,
) -> Any:
    front = tuple(self.shape[:-2])
    zeros = created("zeros", (*front, self.shape[-1] * self.shape[-2]), self.dtype)
    flat, places = (np.reshape(x, (*front, -1)) for x in (grad_output, indices))
    return np.reshape(scattered(zeros, -1, places, flat, "add"), tuple(self.shape))


def _avg_pool(
    self: Any, count: int, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, with_pad: bool, divisor: Any
) -> Any:
    kernel, pads = (each(v, count) for v in (kernel_size, padding))
    strides = strides_of(stride, kernel, count)
    if count < 3 and is_float(self.dtype) and divisor is None:
        pool = pooling.avg_pool1d if count == 1 else pooling.avg_pool2d
        return pool(self, kernel, strides, pads, ceil_mode, with_pad)
    sizes = [int(s) for s in self.shape[-count:]]
    counts = [
        window_count(z, k, s, p, p, ceil_mode=ceil_mode)
        for z, k, s, p in zip(sizes, kernel, strides, pads, strict=True)
    ]
    windows = _windows(self, kernel, strides, pads, (1,) * count, counts, 0)
    total = np.sum(windows, axis=-1)
    number: Any = divisor
    if divisor is None:
        number = np.ones((), np.int64)
        for k in range(count):
            start = np.arange(counts[k]) * strides[k] - pads[k]
            stop = np.minimum(start + kernel[k], sizes[k] + pads[k])
            if not with_pad:
                start, stop = np.maximum(start, 0), np.minimum(stop, sizes[k])
            number = number * np.reshape(stop - start, (counts[k], *(1,) * (count - k - 1)))
    if is_integral(self.dtype):
        return cast(truncated_division(total, cast(number, total.dtype)), self.dtype)
    return total / cast(number, total.dtype)


def _register_pools(count: int) -> None:
    """The pools over windows of so many axes."""

    @aten(f"max_pool{count}d_with_indices")
    def max_pool_with_indices(
        self: Any, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
    ) -> tuple[Any, Any]:
        return _max_pool(self, count, kernel_size, stride, padding, dilation, ceil_mode)

    @aten(f"max_pool{count}d")
    def max_pool(
        self: Any, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
    ) -> Any:
        if count == 3:
            return max_pool_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)[0]
        pool, kernel = pooling.max_pool1d if count == 1 else pooling.max_pool2d, each(kernel_size, count)
        return pool(self, kernel, strides_of(stride, kernel, count), padding, dilation, ceil_mode)

    @aten(f"avg_pool{count}d")
    def avg_pool(
        self: Any,
        kernel_size: Any,
        stride: Any = (),
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Any:
        return _avg_pool(self, count, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


for _count in (1, 2, 3):
    _register_pools(_count)


def _edges(length: int, count: int) -> list[tuple[int, int]]:
    """Where the windows that part an axis begin and end."""
    return [(j * length // count, -(-(j + 1) * length // count)) for j in range(count)]


def _adaptive_mean(self: Any, output_size: Any, count: int) -> Any:
    """Means of windows that part each of the last axes."""
    x = cast(self, widened(self.dtype))
    for k, size in enumerate(each(output_size, count)):
        axis = x.ndim - count + k
        length = int(x.shape[axis])
        parts = length if size is None else operator.index(size)
        if parts == length:
            continue
        if parts and length % parts == 0:
            x = np.mean(np.reshape(x, (*x.shape[:axis], parts, length // parts, *x.shape[axis + 1 :])), axis=axis + 1)
            continue
        front = (slice(None),) * axis
        means = [np.mean(x[(*front, slice(a, b))], axis=axis, keepdims=True) for a, b in _edges(length, parts)]
        x = np.concatenate(means, axis) if means else x[(*front, slice(0, 0))]
    return np.copy(x) if x is self else cast(x, self.dtype)


@aten("_adaptive_avg_pool2d", "adaptive_avg_pool2d")
def adaptive_avg_pool2d(self: Any, output_size: Any) -> Any:
    return _adaptive_mean(self, output_size, 2)


@aten("_adaptive_avg_pool3d", "adaptive_avg_pool3d")
def adaptive_avg_pool3d(self: Any, output_size: Any) -> Any:
    return _adaptive_mean(self, output_size, 3)


@aten("adaptive_avg_pool1d")
def adaptive_avg_pool1d(self: Any, output_size: Any) -> Any:
    return _adaptive_mean(self, output_size, 1)


def _adaptive_max(self: Any, output_size: Any, count: int) -> tuple[Any, Any]:
    sizes = [int(s) for s in self.shape[-count:]]
    counts = [z if c is None else operator.index(c) for z, c in zip(sizes, each(output_size, count), strict=True)]
    if all(c and z % c == 0 for z, c in zip(sizes, counts, strict=True)):
        kernel = tuple(z // c for z, c in zip(sizes, counts, strict=True))
        return _max_pool(self, count, kernel, kernel, 0, 1, False)
    if math.prod(counts) > _MOST_CELLS:
        raise refuse("adaptive_max_pool", f"from {tuple(sizes)} to {tuple(counts)}", "pass a divisor of each size")
    front = (slice(None),) * (self.ndim - count)
    values, places = [], []
    for cell in itertools.product(*(_edges(z, c) for z, c in zip(sizes, counts, strict=True))):
        part = self[(*front, *(slice(a, b) for a, b in cell))]
        flat = np.reshape(part, (*self.shape[: self.ndim - count], math.prod(b - a for a, b in cell)))
        place = np.argmax(flat, axis=-1, keepdims=True)
        values.append(np.take_along_axis(flat, place, axis=-1))
        index: Any = 0
        rest = int(flat.shape[-1])
        for (a, b), size in zip(cell, sizes, strict=True):
            rest //= b - a
            index = index * size + (place // rest % (b - a) + a)
        places.append(index)
    shape = (*self.shape[: self.ndim - count], *counts)
    value, index = (np.reshape(np.concatenate(x, axis=-1), shape) for x in (values, places))
    return value, index


@aten("adaptive_max_pool1d")
def adaptive_max_pool1d(self: Any, output_size: Any) -> tuple[Any, Any]:
    return _adaptive_max(self, output_size, 1)


@aten("adaptive_max_pool2d")
def adaptive_max_pool2d(self: Any, output_size: Any) -> tuple[Any, Any]:
    return _adaptive_max(self, output_size, 2)


@aten("adaptive_max_pool3d")
def adaptive_max_pool3d(self: Any, output_size: Any) -> tuple[Any, Any]:
    return _adaptive_max(self, output_size, 3)


def _fractional_max(self: Any, kernel_size: Any, output_size: Any, samples: Any, count: int) -> tuple[Any, Any]:
    """Maxima of windows whose places follow a random number for each channel and axis (Graham, 2014)."""
    kernel, counts = each(kernel_size, count), each(output_size, count)
    if self.dtype.itemsize < 4 or samples.dtype != self.dtype:
        raise refuse("fractional_max_pool", f"on {self.dtype} with random numbers of {samples.dtype}")
    x = self if self.ndim == count + 2 else self[None]
    sizes = [int(size) for size in x.shape[2:]]
    front = tuple(x.shape[:2])
    index: Any = 0
    for k, (size, span, windows) in enumerate(zip(sizes, kernel, counts, strict=True)):
        # Random numbers begin with the last axis of planes, and with the first one of volumes.
        sample = samples[..., count - 1 - k if count == 2 else k][..., None]
        starts = np.concatenate([_starts(sample, size - span, windows), np.full((*front, 1), size - span)], axis=-1)
        at = starts[..., None] + np.arange(span)
        ones = [1] * (2 * count)
        ones[k], ones[count + k] = windows, span
        index = index * size + np.reshape(at, (*front, *ones))
    shape = (*front, *counts, math.prod(kernel))
    index = np.reshape(np.broadcast_to(index, (*front, *counts, *kernel)), (*front, -1))
    elements = np.reshape(np.take_along_axis(np.reshape(x, (*front, -1)), index, -1), shape)
    place = np.argmax(elements, axis=-1, keepdims=True)
    results = (np.take_along_axis(y, place, -1)[..., 0] for y in (elements, np.reshape(index, shape)))
    value, index = results if self.ndim == count + 2 else (y[0] for y in results)
    return value, cast(index, INT64)


def _starts(sample: Any, last: int, windows: int) -> Any:
    """Where the windows but the last one begin."""
    if windows == 1:
        return np.zeros((*sample.shape[:-1], 0), np.int64)
    alpha = cast(cast(last, sample.dtype) / cast(windows - 1, sample.dtype), sample.dtype)
    steps = cast(np.arange(windows - 1), sample.dtype)
    return cast((steps + sample) * alpha, INT64) - cast(sample * alpha, INT64)


@aten("fractional_max_pool2d")
def fractional_max_pool2d(self: Any, kernel_size: Any, output_size: Any, random_samples: Any) -> tuple[Any, Any]:
    return _fractional_max(self, kernel_size, output_size, random_samples, 2)


@aten("fractional_max_pool3d")
def fractional_max_pool3d(self: Any, kernel_size: Any, output_size: Any, random_samples: Any) -> tuple[Any, Any]:
    return _fractional_max(self, kernel_size, output_size, random_samples, 3)


# --- resampling -----------------------------------------------------------------------------------------------


def _resample(self: Any, output_size: Any, scales: Any, mode: str, align_corners: bool) -> Any:
    count = self.ndim - 2
    factors: list[Any] = [None] * count if scales is None else list(scales)
    sizes = (
        [math.floor(int(self.shape[k + 2]) * float(factors[k])) for k in range(count)]
        if output_size is None
        else [operator.index(s) for s in output_size]
    )
    x = cast(self, widened(self.dtype)) if mode == "cubic" else self
    for k in range(count):
        have = int(x.shape[k + 2])
        scale = factors[k] if k < len(factors) else None
        step = have / sizes[k] if scale is None or scale <= 0 else 1.0 / scale
        if mode == "cubic":
            x = _cubic(x, k + 2, sizes[k], step, align_corners)
        else:
            x = resampled(x, k + 2, have, sizes[k], step, mode, align_corners)
    return np.copy(x) if x is self else cast(x, self.dtype)


def named_scales(args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The factors of each axis: one sequence, or one number each."""
    if "scale_factors" in named:
        return named["scale_factors"]
    if args and (args[0] is None or isinstance(args[0], Sequence)) and len(args) == 1:
        return args[0]
    scales = [*args, *(named[key] for key in ("scales", "scales_d", "scales_h", "scales_w") if key in named)]
    return scales or None


def _nearest(name: str, mode: str, *others: str) -> None:
    @aten(name, *others)
    def upsample(self: Any, output_size: Any, *scales: Any, **named: Any) -> Any:
        return _resample(self, output_size, named_scales(scales, named), mode, False)


def _linear(name: str) -> None:
    @aten(name)
    def upsample(self: Any, output_size: Any, align_corners: bool, *scales: Any, **named: Any) -> Any:
        if not is_float(self.dtype):
            raise refuse(name, f"on {self.dtype}")
        return _resample(self, output_size, named_scales(scales, named), "linear", bool(align_corners))


_CUBIC = -0.75  # torch's coefficient of the kernel (Keys, 1981)


def _cubic(x: Any, axis: int, out: int, step: float, align: bool) -> Any:
    """``x`` with ``out`` elements along an axis, each a mean of four that are weighted by Keys's kernel."""
    have = int(x.shape[axis])
    places = np.arange(out)
    source = places * ((have - 1) / (out - 1) if out > 1 else 0.0) if align else (places + 0.5) * step - 0.5
    low = np.floor(source)
    t = source - low
    a, shape = _CUBIC, (out, *(1,) * (x.ndim - axis - 1))

    def near(d: Any) -> Any:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: Any) -> Any:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    y = None
    for offset, weight in ((-1, far(t + 1)), (0, near(t)), (1, near(1 - t)), (2, far(2 - t))):
        place = np.clip(low.astype(np.int64) + offset, 0, have - 1)
        term = np.take(x, place, axis=axis) * np.reshape(weight.astype(x.dtype), shape)
        y = term if y is None else y + term
    return y


@aten("upsample_bicubic2d")
def upsample_bicubic2d(self: Any, output_size: Any, align_corners: bool, *scales: Any, **named: Any) -> Any:
    if not is_float(self.dtype):  # torch rounds the weights of small integers
        raise refuse("upsample_bicubic2d", f"on {self.dtype}")
    return _resample(self, output_size, named_scales(scales, named), "cubic", bool(align_corners))


for _count_of_axes in (1, 2, 3):
    _nearest(f"upsample_nearest{_count_of_axes}d", "nearest")
    _nearest(f"_upsample_nearest_exact{_count_of_axes}d", "nearest-exact")
for _name in ("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d"):
    _linear(_name)
