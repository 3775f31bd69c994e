"""Maxima and means over windows of images, one axis after the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....dataclass import dataclass
from ..python.pausing import unwatched
from .layer_inputs import (
    SPATIAL,
    images_of,
    narrowed,
    number,
    numbers,
    shifted,
    widened,
    wrong_argument,
    wrong_dtype,
    wrong_shape,
)


@dataclass(frozen=True)
class _Along:
    """The windows along one axis.

    Attributes:
        kernel: elements of a window.
        stride: the distance of windows.
        padding: what is added on each side.
        dilation: the distance of the elements of a window.
        size: of the axis.
        count: how many windows there are.
        ceil_mode: the last window may reach further than the padding.
    """

    kernel: int
    stride: int
    padding: int
    dilation: int
    size: int
    count: int
    ceil_mode: bool

    @property
    def span(self) -> int:
        """How many elements lie between the first of a window and the last, both counted."""
        return self.dilation * (self.kernel - 1) + 1

    @property
    def behind(self) -> int:
        """How much is added behind the axis: with ``ceil_mode`` so much that the last window is whole."""
        if not self.ceil_mode:
            return self.padding
        return max((self.count - 1) * self.stride + self.span - self.padding - self.size, 0)

    def part(self, x: Any, axis: int, k: int) -> Any:
        """The elements number ``k`` of all windows."""
        return shifted(x, axis, k * self.dilation, self.span, self.stride)

    def counts(self, *, padded: bool) -> np.ndarray:
        """How many elements of each window are in the axis; if ``padded``, in what the padding makes of it."""
        start = np.arange(self.count) * self.stride - self.padding
        stop = np.minimum(start + self.kernel, self.size + self.padding)
        if not padded:
            start, stop = np.maximum(start, 0), np.minimum(stop, self.size)
        return stop - start


@dataclass(frozen=True)
class _Pooling:
    """Images, and the windows that a function makes one element of.

    Attributes:
        function: its name, for messages.
        images: the input, with an axis for images.
        along: the windows along each axis of an image.
        is_single: the input is one image, and so is the result.
    """

    function: str
    images: Any
    along: tuple[_Along, ...]
    is_single: bool


@unwatched
def max_pool2d(
    input: Any,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
) -> Any:
    """The largest element of each window.

    Args:
        input: (N, C, H, W), or (C, H, W), of numbers other than complex ones.
        kernel_size: the size of windows; one integer or two, as in all that follows.
        stride: their distance; None = ``kernel_size``.
        padding: so far windows reach over each side, at most half of their size; nothing there is a maximum.
        dilation: the distance of the elements of a window.
        ceil_mode: also windows that reach further over the end, but begin before it.

    The result has the dtype of ``input``. NaN is larger than anything. The gradient of a window goes to the first of
    its largest elements. Raises ShapeError where no window fits, ArgumentError for other values.
    """
    return _largest(_pooling("max_pool2d", 2, input, kernel_size, stride, padding, ceil_mode, dilation))


@unwatched
def max_pool1d(
    input: Any,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
) -> Any:
    """`max_pool2d` along one axis: ``input`` is (N, C, L), or (C, L), and each other argument one integer."""
    return _largest(_pooling("max_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, dilation))


@unwatched
def avg_pool2d(
    input: Any,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    """The mean of each window.

    Args:
        input: (N, C, H, W), or (C, H, W).
        kernel_size, stride, padding, ceil_mode: as of `max_pool2d`; what is added is zero.
        count_include_pad: the zeros of ``padding`` count as elements.
        divisor_override: what sums are divided by; None = the number of elements.

    Floats keep their dtype; f16 and bf16 are summed in f32. Raises as `max_pool2d`.
    """
    if divisor_override is not None:
        divisor_override = number("avg_pool2d", "divisor_override", divisor_override, 1)
    pooling = _pooling("avg_pool2d", 2, input, kernel_size, stride, padding, ceil_mode)
    return _averaged(pooling, count_include_pad, divisor_override)


@unwatched
def avg_pool1d(
    input: Any,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:
    """`avg_pool2d` along one axis: ``input`` is (N, C, L), or (C, L), and each other argument one integer."""
    return _averaged(_pooling("avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode), count_include_pad)


@unwatched
def adaptive_avg_pool2d(input: Any, output_size: int | Sequence[int | None] | None) -> Any:
    """The means of so many windows that the result has a given size.

    Args:
        input: (N, C, H, W), or (C, H, W).
        output_size: of the result along H and W, one integer or two; None = as that of ``input``.

    Window ``i`` of ``n`` along an axis of size ``s`` reaches from ``floor(i * s / n)`` to ``ceil((i + 1) * s / n)``.
    Floats keep their dtype; f16 and bf16 are summed in f32. Graphs hold for the sizes H and W, but for
    ``output_size=1``. Raises ArgumentError for another size.
    """
    function = "adaptive_avg_pool2d"
    images, is_single = images_of(function, input, 2)
    pair = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size, output_size)
    if len(pair) != 2:
        raise wrong_argument(function, f"output_size={output_size!r} has {len(pair)} entries", "pass one integer, or 2")
    y = widened(images)[0]
    for axis, size in zip((3, 2), reversed(pair), strict=True):
        if size is not None:
            y = _averaged_to(function, y, axis, number(function, "output_size", size, 1))
    if images.dtype.kind in "fcV":
        y = narrowed(y, images.dtype)
    return y[0] if is_single else y


def _averaged_to(function: str, x: Any, axis: int, count: int) -> Any:
    """The means of ``count`` windows along an axis."""
    if count == 1:
        return np.mean(x, axis=axis, keepdims=True)
    size = number(function, "input.shape", x.shape[axis], 1)
    before, behind = x.shape[:axis], x.shape[axis + 1 :]
    if size % count == 0:
        return np.mean(np.reshape(x, (*before, count, size // count, *behind)), axis=axis + 1)
    numerators = np.arange(count) * size
    start, stop = numerators // count, -(-(numerators + size) // count)
    lengths = stop - start
    places = start[:, None] + np.arange(lengths.max())
    inside = np.reshape(places < stop[:, None], (*places.shape, *(1,) * len(behind)))
    parts = np.take(x, np.minimum(places, size - 1), axis=axis)  # windows that are shorter have more than theirs
    sums = np.sum(np.where(inside, parts, 0), axis=axis + 1)
    dtype = sums.dtype if sums.dtype.kind in "fc" else np.float64
    return sums / np.reshape(lengths, (count, *(1,) * len(behind))).astype(dtype)


def _largest(pooling: _Pooling) -> Any:
    images, along = pooling.images, pooling.along
    if images.dtype.kind == "c":
        what = f"input is of {images.dtype}, which has no order"
        raise wrong_dtype(pooling.function, what, "pass the absolute values")
    y = _over_windows(_padded(images, along, _lowest(images.dtype)), along, _larger)
    return y[0] if pooling.is_single else y


def _averaged(pooling: _Pooling, count_include_pad: Any, divisor: int | None = None) -> Any:
    images, along = pooling.images, pooling.along
    wide = widened(images)[0]
    y = _over_windows(_padded(wide, along, 0), along, np.add)
    if divisor is not None:
        y = y / divisor
    elif (count_include_pad or not any(one.padding for one in along)) and not along[0].ceil_mode:
        y = y / math.prod(one.kernel for one in along)
    else:
        counts = np.ones((), np.int64)
        for one in along:
            counts = counts[..., None] * one.counts(padded=bool(count_include_pad))
        y = y / counts.astype(wide.dtype if wide.dtype.kind in "fc" else np.float64)
    if images.dtype.kind in "fcV":
        y = narrowed(y, images.dtype)
    return y[0] if pooling.is_single else y


def _pooling(
    function: str, count: int, x: Any, kernel_size: Any, stride: Any, padding: Any, ceil_mode: Any, dilation: Any = 1
) -> _Pooling:
    steps = numbers(function, "dilation", dilation, count, 1)
    images, is_single = images_of(function, x, count)
    kernels = numbers(function, "kernel_size", kernel_size, count, 1)
    strides = kernels if stride is None else numbers(function, "stride", stride, count, 1)
    pads = numbers(function, "padding", padding, count, 0)
    along = []
    for k in range(count):
        if 2 * pads[k] > kernels[k]:
            raise wrong_argument(
                function,
                f"padding={pads[k]} is more than half of the kernel's {kernels[k]}",
                "pass a smaller padding, or pad the input with np.pad",
            )
        size, span = x.shape[k - count], steps[k] * (kernels[k] - 1) + 1
        windows = _count(size, span, strides[k], pads[k], bool(ceil_mode))
        if windows < 1:
            raise wrong_shape(
                function,
                f"the window spans {span} along {SPATIAL[count][k]}, the padded input {size + 2 * pads[k]}",
                "pass a smaller kernel_size, or pad the input with np.pad",
            )
        along.append(_Along(kernels[k], strides[k], pads[k], steps[k], size, windows, bool(ceil_mode)))
    return _Pooling(function, images, tuple(along), is_single)


def _count(size: int, span: int, stride: int, padding: int, ceil_mode: bool) -> int:
    room = size + 2 * padding - span
    if not ceil_mode:
        return room // stride + 1
    count = -(-room // stride) + 1
    return count - 1 if (count - 1) * stride >= size + padding else count  # it would begin behind the end


def _padded(x: Any, along: Sequence[_Along], value: Any) -> Any:
    pads = ((0, 0), (0, 0), *((one.padding, one.behind) for one in along))
    return np.pad(x, pads, constant_values=value) if any(map(any, pads)) else x


def _over_windows(x: Any, along: Sequence[_Along], combined: Callable[[Any, Any], Any]) -> Any:
    """The elements of each window, combined in C order."""
    for axis, one in reversed(list(enumerate(along, 2))):
        y = one.part(x, axis, 0)
        for k in range(1, one.kernel):
            y = combined(y, one.part(x, axis, k))
        x = y
    return x


def _larger(first: Any, later: Any) -> Any:
    """The larger of two, the first of equal ones: so is the gradient's way. NaN is larger than numbers."""
    if later.dtype.kind in "fV":
        return np.where((later > first) | (later != later), later, first)
    return np.where(later > first, later, first)


def _lowest(dtype: Any) -> Any:
    if dtype.kind in "fV":
        return -np.inf
    return False if dtype.kind == "b" else np.iinfo(dtype).min
