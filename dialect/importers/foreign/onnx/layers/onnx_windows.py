"""ONNX's convolutions and pools, in any number of dimensions."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .....errors import ShapeError
from ....numpy.neural import filters, transposed_filters
from ....numpy.neural.layer_inputs import narrowed, shifted, widened
from ...array_values import constant_or_created, owned, taken
from ...size_values import as_numbers
from ...window_axes import convolved_windows, stuffed, turned_kernels
from ..onnx_table import NodeResults, onnx_op
from ..tensors.onnx_shapes import padded
from .window_geometry import Axis, axes_of

Ints = Sequence[int] | None


def spatial_sizes(x: Any) -> tuple[int, ...]:
    """The sizes of (N, C, ...) behind the channels, for which the graph then holds."""
    if x.ndim < 3:
        raise ShapeError(f"an operand with {x.ndim} axes, where (N, C, ...) is needed")
    return tuple(int(n) for n in x.shape[2:])


def convolved(x: Any, w: Any, b: Any, axes: Sequence[Axis], groups: int) -> Any:
    """The correlation of (N, C, ...) with kernels (O, C / groups, ...) in windows along these axes."""
    strides, steps = tuple(a.stride for a in axes), tuple(a.dilation for a in axes)
    same = all(a.before == a.behind == max(a.end, 0) or (a.before == a.behind and a.end <= a.behind) for a in axes)
    if len(axes) in (1, 2):
        if same:
            pads: Any = tuple(a.before for a in axes)
        else:
            x = padded(x, {k + 2: (a.before, a.behind) for k, a in enumerate(axes)})
            pads = (0,) * len(axes)
        function = filters.conv1d if len(axes) == 1 else filters.conv2d
        return function(x, w, b, strides, pads, steps, groups)
    x = padded(x, {k + 2: (a.before, a.behind) for k, a in enumerate(axes)})
    return convolved_windows(x, w, b, strides, steps, groups)


@onnx_op("Conv")
def _conv(
    call: Any,
    x: Any,
    w: Any,
    b: Any = None,
    /,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints = None,
    group: int = 1,
    kernel_shape: Ints = None,
    pads: Ints = None,
    strides: Ints = None,
) -> Any:
    kernel = as_numbers(tuple(w.shape[2:]))
    return convolved(x, w, b, axes_of(spatial_sizes(x), kernel, auto_pad, dilations, pads, strides), group)


@onnx_op("ConvTranspose")
def _conv_transpose(
    call: Any,
    x: Any,
    w: Any,
    b: Any = None,
    /,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints = None,
    group: int = 1,
    kernel_shape: Ints = None,
    output_padding: Ints = None,
    output_shape: Ints = None,
    pads: Ints = None,
    strides: Ints = None,
) -> Any:
    """The transpose of a convolution.

    That of `profuse.nn` where its arguments can say it. Else it is a convolution of the input, with zeros between
    its elements, with turned kernels.
    """
    sizes, kernel = spatial_sizes(x), as_numbers(tuple(w.shape[2:]))
    count = len(sizes)
    dilations, strides = dilations or (1,) * count, strides or (1,) * count
    extra, pads = output_padding or (0,) * count, pads or (0,) * (2 * count)
    shape = None if output_shape is None else tuple(output_shape)[-count:]
    axes, widths, cut = [], {}, []
    for k in range(count):
        span = dilations[k] * (kernel[k] - 1) + 1
        full = strides[k] * (sizes[k] - 1) + span + extra[k]
        before, behind = pads[k], pads[k + count]
        if shape is not None or auto_pad.startswith("SAME"):
            wanted = shape[k] if shape is not None else sizes[k] * strides[k]
            total = full - wanted
            before = total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
            behind = total - before
        elif auto_pad == "VALID":
            before = behind = 0
        cut.append((before, extra[k] + before - behind))  # at both ends alike, and elements behind that stay
        extent = strides[k] * (sizes[k] - 1) + 1
        widths[k + 2] = (span - 1 - before, span - 1 - behind + extra[k])
        size = extent + sum(widths[k + 2])
        axes.append(Axis(size, kernel[k], 1, dilations[k], 0, 0, size - span + 1))
    is_usual = all(before >= 0 and 0 <= more < max(strides[k], dilations[k]) for k, (before, more) in enumerate(cut))
    if count in (1, 2) and is_usual:
        function = transposed_filters.conv_transpose1d if count == 1 else transposed_filters.conv_transpose2d
        pads, extra = zip(*cut, strict=True)
        return function(x, w, b, strides, pads, extra, group, dilations)
    x = padded(stuffed(x, strides), widths)
    return convolved(x, turned_kernels(w, group), b, axes, group)


def _along(x: Any, axes: Sequence[Axis], fill: Any, combine: Callable) -> Any:
    """Windows combined by a function of two elements, one axis after the other."""
    x = padded(x, {k + 2: (a.before, max(a.end, 0)) for k, a in enumerate(axes)}, fill=fill)
    for k, a in enumerate(axes, start=2):
        if a.end < 0:
            x = x[(slice(None),) * k + (slice(0, (a.count - 1) * a.stride + a.span),)]
        x = functools.reduce(combine, [shifted(x, k, i * a.dilation, a.span, a.stride) for i in range(a.kernel)])
    return x


def _lowest(dtype: np.dtype) -> Any:
    return np.array(np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf, dtype)[()]


@onnx_op("MaxPool")
def _max_pool(
    call: Any,
    x: Any,
    /,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Ints = None,
    kernel_shape: Sequence[int],
    pads: Ints = None,
    storage_order: int = 0,
    strides: Ints = None,
) -> Any:
    sizes = spatial_sizes(x)
    axes = axes_of(sizes, kernel_shape, auto_pad, dilations, pads, strides, ceil_mode=ceil_mode)
    if len(call.node.results) == 1:
        return _along(x, axes, _lowest(x.dtype), np.maximum)
    values, places = _places(x, axes)
    strided = sizes[::-1] if storage_order else sizes
    flat: Any = 0
    for k in reversed(range(len(sizes))) if storage_order else range(len(sizes)):
        flat = flat * sizes[k] + places[k]
    plane = math.prod(strided)
    images = np.reshape(
        constant_or_created("arange", x.shape[0] * x.shape[1]), (x.shape[0], x.shape[1], *(1,) * len(sizes))
    )
    return NodeResults((values, images * plane + flat))


def _places(x: Any, axes: Sequence[Axis]) -> tuple[Any, list[Any]]:
    """The maximum of each window, and where it is along each axis: the first of several."""
    wide = padded(x, {k + 2: (a.before, max(a.end, 0)) for k, a in enumerate(axes)}, fill=_lowest(x.dtype))
    offsets = [*itertools.product(*(range(a.kernel) for a in axes))]
    parts = []
    for offset in offsets:
        part = wide
        for k, (a, i) in enumerate(zip(axes, offset, strict=True), start=2):
            part = part[
                (slice(None),) * k + (slice(i * a.dilation, i * a.dilation + (a.count - 1) * a.stride + 1, a.stride),)
            ]
        parts.append(part)
    stacked = np.stack(parts, -1)
    first = np.argmax(stacked, axis=-1)
    places = []
    for k, a in enumerate(axes):
        steps = np.array([offset[k] * a.dilation for offset in offsets], np.int64)
        start = np.arange(a.count, dtype=np.int64) * a.stride - a.before
        places.append(taken(steps, first, 0) + np.reshape(start, (-1, *(1,) * (len(axes) - 1 - k))))
    return np.max(stacked, axis=-1), places


@onnx_op("AveragePool")
def _average_pool(
    call: Any,
    x: Any,
    /,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Ints = None,
    kernel_shape: Sequence[int],
    pads: Ints = None,
    strides: Ints = None,
) -> Any:
    return average_pooled(x, auto_pad, ceil_mode, count_include_pad, dilations, kernel_shape, pads, strides)


def average_pooled(
    x: Any,
    auto_pad: str,
    ceil_mode: int,
    count_include_pad: int,
    dilations: Ints,
    kernel_shape: Sequence[int],
    pads: Ints,
    strides: Ints,
) -> Any:
    """`AveragePool` of (N, C, ...)."""
    axes = axes_of(spatial_sizes(x), kernel_shape, auto_pad, dilations, pads, strides, ceil_mode=ceil_mode)
    wide = widened(x)[0]
    total = _along(wide, axes, wide.dtype.type(0), np.add)
    counts: Any = 1
    for k, a in enumerate(axes):
        starts = np.arange(a.count)[:, None] * a.stride - a.before + np.arange(a.kernel) * a.dilation
        low, high = (-a.before, a.size + a.behind) if count_include_pad else (0, a.size)
        here = ((starts >= low) & (starts < high)).sum(1)
        counts = counts * here.reshape((-1, *(1,) * (len(axes) - 1 - k)))
    if (counts == counts.flat[0]).all():
        return narrowed(total / float(counts.flat[0]), x.dtype)
    return narrowed(total / counts.astype(wide.dtype), x.dtype)


@onnx_op("LpPool")
def _lp_pool(
    call: Any,
    x: Any,
    /,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Ints = None,
    kernel_shape: Sequence[int],
    p: float = 2,
    pads: Ints = None,
    strides: Ints = None,
) -> Any:
    axes = axes_of(spatial_sizes(x), kernel_shape, auto_pad, dilations, pads, strides, ceil_mode=ceil_mode)
    total = _along(_power(x, p), axes, x.dtype.type(0), np.add)
    return _root(total, p)


def _power(x: Any, p: float) -> Any:
    if p == 1:
        return np.abs(x)
    return x * x if p == 2 else np.abs(x) ** float(p)


def _root(total: Any, p: float) -> Any:
    if p == 1:
        return total
    return np.sqrt(total) if p == 2 else total ** (1.0 / p)


@onnx_op("GlobalAveragePool")
def _global_average_pool(call: Any, x: Any, /) -> Any:
    return narrowed(np.mean(widened(x)[0], axis=tuple(range(2, x.ndim)), keepdims=True), x.dtype)


@onnx_op("GlobalMaxPool")
def _global_max_pool(call: Any, x: Any, /) -> Any:
    return np.max(x, axis=tuple(range(2, x.ndim)), keepdims=True)


@onnx_op("GlobalLpPool")
def _global_lp_pool(call: Any, x: Any, /, *, p: float = 2) -> Any:
    return _root(np.sum(_power(x, p), axis=tuple(range(2, x.ndim)), keepdims=True), p)


@onnx_op("MaxUnpool", kept=(2,))
def _max_unpool(
    call: Any,
    x: Any,
    indices: Any,
    shape: Any = None,
    /,
    *,
    kernel_shape: Sequence[int],
    pads: Ints = None,
    strides: Ints = None,
) -> Any:
    sizes, count = spatial_sizes(x), len(kernel_shape)
    strides, pads = strides or (1,) * count, pads or (0,) * (2 * count)
    inner = [(n - 1) * s + k for n, s, k in zip(sizes, strides, kernel_shape, strict=True)]
    inner = [n - pads[k] - pads[k + count] for k, n in enumerate(inner)]
    own = (int(x.shape[0]), int(x.shape[1]), *inner)
    # Indices are those of an array of the inferred shape; a given one has more room behind.
    flat = owned(np.zeros(math.prod(own), x.dtype))
    flat[np.reshape(indices, (-1,))] = np.reshape(x, (-1,))
    y = np.reshape(flat, own)
    if shape is None:
        return y
    wanted = as_numbers(shape)
    return padded(y, {k: (0, n - own[k]) for k, n in enumerate(wanted)})


@onnx_op("Col2Im", kept=(1, 2))
def _col2im(
    call: Any, x: Any, image: Any, block: Any, /, *, dilations: Ints = None, pads: Ints = None, strides: Ints = None
) -> Any:
    """Columns added where they lie in an image: one sum of padded parts per element of a block."""
    sizes, kernel = as_numbers(image), as_numbers(block)
    axes = axes_of(sizes, kernel, "NOTSET", dilations, pads, strides)
    batch, channels = int(x.shape[0]), int(x.shape[1]) // math.prod(kernel)
    counts = tuple(a.count for a in axes)
    columns = np.reshape(x, (batch, channels, *kernel, *counts))
    total: Any = None
    for offset in itertools.product(*map(range, kernel)):
        key: tuple[Any, ...] = (slice(None), slice(None), *offset)
        part = stuffed(columns[key], [a.stride for a in axes])
        widths = {}
        for k, (a, i) in enumerate(zip(axes, offset, strict=True)):
            start = i * a.dilation - a.before
            widths[k + 2] = (start, a.size - start - ((a.count - 1) * a.stride + 1))
        part = padded(part, widths)
        total = part if total is None else total + part
    return total
