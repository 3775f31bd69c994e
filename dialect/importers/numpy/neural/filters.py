"""Convolutions in one and two dimensions: products of a matrix with windows, or sums of shifted products."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ..python.pausing import unwatched
from ..tracing.composites import composite, is_traced
from .layer_inputs import (
    SPATIAL,
    array,
    images_of,
    is_real,
    narrowed,
    number,
    numbers,
    result_dtype,
    shifted,
    vector,
    widened,
    wrong_argument,
    wrong_shape,
)

Padding = str | int | Sequence[int]
KERNEL = {1: ("k",), 2: ("kh", "kw")}
_MOST_SHIFTS = 49  # products of a depthwise convolution, one per element of a kernel


@unwatched
def conv1d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Any:
    """`conv2d` along one axis.

    Args:
        input: (N, C, L), or (C, L).
        weight: (O, C / groups, k).
        bias: (O,), or None.
        stride, padding, dilation, groups: as of `conv2d`, one integer each.

    The result is (N, O, L') or (O, L').
    """
    return _convolved("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


@unwatched
def conv2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Any:
    """The correlation of images with kernels, as all libraries for neural networks call convolution.

    Args:
        input: (N, C, H, W), or (C, H, W).
        weight: (O, C / groups, kh, kw).
        bias: (O,), or None.
        stride: the distance of windows; one integer or two, as in all that follows.
        padding: so many zeros on each side; ``"valid"``: none; ``"same"``: as many as keep H and W, the odd one
            behind, with a stride of 1.
        dilation: the distance of the elements of a kernel.
        groups: channels fall into so many groups, each with O / groups kernels of its own.

    The result is (N, O, H', W') or (O, H', W') with ``H' = (H + 2 * padding - dilation * (kh - 1) - 1) // stride + 1``,
    of the dtype that NumPy gives to the product. f16 and bf16 are summed in f32. Raises ShapeError where sizes do not
    fit or a kernel is larger than the padded image, ArgumentError for other values.
    """
    return _convolved("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


@unwatched
def unfold(
    input: Any,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Any:
    """The windows of images as columns, by which a convolution is a product of matrices.

    Args:
        input: (N, C, H, W), or (C, H, W).
        kernel_size, dilation, padding, stride: of windows, as of `conv2d`.

    The result is (N, C * kh * kw, L) or (C * kh * kw, L) with one column for each of the L windows, in the dtype of
    ``input``. Raises ShapeError where no window fits, ArgumentError for other values.
    """
    images, is_single = images_of("unfold", input, 2)
    kernel, steps, strides = (
        numbers("unfold", name, value, 2, 1)
        for name, value in (("kernel_size", kernel_size), ("dilation", dilation), ("stride", stride))
    )
    pads = tuple((p, p) for p in numbers("unfold", "padding", padding, 2, 0))
    spans = _spans("unfold", 2, input, kernel, steps, pads)
    if any(map(any, pads)):
        images = np.pad(images, ((0, 0), (0, 0), *pads))
    windows = _windows(images, kernel, strides, steps, spans)
    (n, c), (h, w) = windows.shape[:2], windows.shape[-2:]
    y = np.reshape(windows, (n, c * math.prod(kernel), h * w))
    return y[0] if is_single else y


def _convolved(
    function: str, count: int, x: Any, w: Any, b: Any, stride: Any, padding: Any, dilation: Any, groups: Any
) -> Any:
    images_of(function, x, count)
    array(function, "weight", w, (count + 2,), f"(O, C / groups, {', '.join(KERNEL[count])})")
    strides = numbers(function, "stride", stride, count, 1)
    steps = numbers(function, "dilation", dilation, count, 1)
    parts = number(function, "groups", groups, 1)
    channels, out = x.shape[-count - 1], w.shape[0]
    _check_channels(function, x, w, parts, channels)
    vector(function, "bias", b, out, "output channels")
    kernel = kernel_of(function, w)
    pads = _padding(function, padding, kernel, steps, strides)
    spans = _spans(function, count, x, kernel, steps, pads)
    dtype = result_dtype(x, w, b)
    images, is_single = images_of(function, x, count)
    if count == 1:
        images, w = images[:, :, None], w[:, :, None]
        kernel = (1, *kernel)
        strides, steps, spans, pads = ((n, *m) for n, m in ((1, strides), (1, steps), (1, spans), ((0, 0), pads)))
    if is_real(x, w, b) and is_traced(x, w, b):
        # The op has gradients of its own, which are convolutions: those of the composition add up windows.
        pad = tuple(before for before, _ in pads)
        if any(before != behind for before, behind in pads):
            images, pad = np.pad(images, ((0, 0), (0, 0), *pads)), (0, 0)
        how = {"stride": strides, "padding": pad, "dilation": steps, "groups": parts, "window": kernel}
        y = composite("conv2d", images, w, b, **how)
    else:
        images, w, b = widened(images, w, b)
        if any(map(any, pads)):
            images = np.pad(images, ((0, 0), (0, 0), *pads))
        shifts = parts == channels and channels > 1 and math.prod(kernel) <= _MOST_SHIFTS
        y = (_shifted if shifts else _by_product)(images, w, kernel, parts, strides, steps, spans)
        if b is not None:
            y = y + b.reshape(out, 1, 1)
    if count == 1:
        y = y.reshape(y.shape[0], out, y.shape[3])
    return narrowed(y[0] if is_single else y, dtype)


def kernel_of(function: str, w: Any) -> tuple[int, ...]:
    """The sizes of a kernel, for which graphs hold."""
    kernel = tuple(number(function, "weight.shape", size, 0) for size in w.shape[2:])
    if min(kernel) < 1:
        raise wrong_shape(function, f"weight has shape {tuple(w.shape)}, a kernel without elements", "pass sizes >= 1")
    return kernel


def _check_channels(function: str, x: Any, w: Any, groups: int, channels: int) -> None:
    if channels % groups or w.shape[0] % groups:
        raise wrong_argument(
            function,
            f"groups={groups} divides not both the {channels} channels of input and the {w.shape[0]} of the result",
            "pass a common divisor",
        )
    if w.shape[1] * groups != channels:
        raise wrong_shape(
            function,
            f"input of shape {tuple(x.shape)} has {channels} channels, where weight of shape {tuple(w.shape)} with "
            f"groups={groups} needs {w.shape[1] * groups}",
            f"pass weight of shape {(w.shape[0], channels // groups, *w.shape[2:])}",
        )


def _spans(
    function: str, count: int, x: Any, kernel: Sequence[int], steps: Sequence[int], pads: Sequence[tuple[int, int]]
) -> tuple[int, ...]:
    """How far windows reach along each axis; raises ShapeError where they do not fit into the padded ``x``."""
    spans = tuple(d * (k - 1) + 1 for d, k in zip(steps, kernel, strict=True))
    for k, (size, span, (before, behind)) in enumerate(zip(x.shape[-count:], spans, pads, strict=True)):
        if size + before + behind < span:
            raise wrong_shape(
                function,
                f"the kernel spans {span} along {SPATIAL[count][k]}, the padded input {size + before + behind}",
                "pad the input, or pass a smaller kernel or dilation",
            )
    return spans


def _padding(
    function: str, padding: Any, kernel: Sequence[int], steps: Sequence[int], strides: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    """How many zeros there are before and behind each axis."""
    count = len(kernel)
    if not isinstance(padding, str):
        return tuple((p, p) for p in numbers(function, "padding", padding, count, 0))
    if padding == "valid":
        return ((0, 0),) * count
    if padding != "same":
        raise wrong_argument(function, f"padding={padding!r} is not known", "pass 'same', 'valid' or integers")
    if any(s != 1 for s in strides):
        raise wrong_argument(
            function, f"padding='same' with stride={tuple(strides)}", "pass a stride of 1, or padding in numbers"
        )
    whole = [d * (k - 1) for d, k in zip(steps, kernel, strict=True)]
    return tuple((zeros // 2, zeros - zeros // 2) for zeros in whole)


def _by_product(
    x: Any,
    w: Any,
    kernel: Sequence[int],
    groups: int,
    strides: Sequence[int],
    steps: Sequence[int],
    spans: Sequence[int],
) -> Any:
    """One product of matrices per image and group: kernels with columns, which are windows of the image."""
    n = x.shape[0]
    (out, each), (kh, kw) = w.shape[:2], kernel
    windows = _windows(x, kernel, strides, steps, spans)
    h, width = windows.shape[-2:]
    columns = np.reshape(windows, (n, groups, each * kh * kw, h * width))
    kernels = np.reshape(w, (groups, out // groups, each * kh * kw))
    return np.reshape(kernels @ columns, (n, out, h, width))


def _windows(x: Any, kernel: Sequence[int], strides: Sequence[int], steps: Sequence[int], spans: Sequence[int]) -> Any:
    """The elements of each window: (N, C, kh, kw, rows, columns), of kernels of one element (N, C, rows, columns)."""
    if math.prod(kernel) == 1:
        return x if tuple(strides) == (1, 1) else x[:, :, :: strides[0], :: strides[1]]
    windows = sliding_window_view(x, tuple(spans), axis=(2, 3))
    if any(step != 1 for step in (*strides, *steps)):
        windows = windows[:, :, :: strides[0], :: strides[1], :: steps[0], :: steps[1]]
    return np.transpose(windows, (0, 1, 4, 5, 2, 3))


def _shifted(
    x: Any,
    w: Any,
    kernel: Sequence[int],
    groups: int,
    strides: Sequence[int],
    steps: Sequence[int],
    spans: Sequence[int],
) -> Any:
    """One product per element of the kernels, where each channel has kernels of its own."""
    (kh, kw), out = kernel, w.shape[0]
    each = operator.index(out // groups)
    kernels = np.reshape(w, (groups, each, kh, kw, 1, 1) if each > 1 else (groups, kh, kw, 1, 1))
    y = None
    for i in range(kh):
        for j in range(kw):
            part = shifted(shifted(x, 2, i * steps[0], spans[0], strides[0]), 3, j * steps[1], spans[1], strides[1])
            term = part[:, :, None] * kernels[:, :, i, j] if each > 1 else part * kernels[:, i, j]
            y = term if y is None else y + term
    if each == 1:
        return y
    assert y is not None
    return np.reshape(y, (x.shape[0], out, *y.shape[3:]))
