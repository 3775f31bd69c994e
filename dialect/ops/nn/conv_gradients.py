"""Gradients of convolutions: those by the image are convolutions again, which run as products do."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dataclass import dataclass
from .operand_checks import is_open, known_sizes

if TYPE_CHECKING:
    from ...ir.gradients import GradientBuilder
    from ...ir.op import Attrs


FEW_CHANNELS = 8  # a convolution with fewer results is a product of few rows, which are slow


def image_gradient(b: GradientBuilder, attrs: Attrs, x: Any, weight: Any, g: Any) -> Any:
    """The gradient of `conv2d` by ``x``, for that of the result; None where it is none, or none that pays."""
    stride, padding, dilation, groups = (attrs[k] for k in ("stride", "padding", "dilation", "groups"))
    members, *window = np.shape(weight)[1:]
    if known_sizes(window) is None or is_open(members) or (groups == 1 and members < FEW_CHANNELS):
        return None

    def convolved(image: Any, weight: Any, **own: Any) -> Any:
        return b.op("conv2d", image, weight, groups=groups, window=known_sizes(np.shape(weight)[2:]) or (), **own)

    behind = tuple(step - 1 for step in stride)  # rows of the image that no window reaches
    return transposed_convolution(convolved, g, weight, stride, padding, dilation, groups, behind, np.shape(x)[2:])


def transposed_convolution(
    convolved: Callable[..., Any],
    g: Any,
    weight: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    behind: Sequence[int],
    sizes: Sequence[Any],
) -> Any:
    """The sums that each element of ``g`` adds to, by the weights: a convolution the other way.

    Args:
        convolved: ``convolved(image, weight, padding=, dilation=)`` convolves in ``groups``, with stride 1.
        g: (N, O, rows, columns).
        weight: (O, C / groups, kh, kw), of which the last two sizes are known.
        stride, padding, dilation, groups: of the convolution from (N, C, …) to (N, O, …) that is turned around.
        behind: rows and columns behind what windows reach, at most, that ``sizes`` ask for.
        sizes: rows and columns of the result.

    With stride 1 it is the convolution of ``g`` with the weight, turned around. With a larger stride, each remainder
    of a row by the stride has weights of its own, and so a convolution; the rows of all of them alternate.
    """
    turned = _turned(weight, groups)
    window = known_sizes(np.shape(weight)[2:])
    assert window is not None
    if tuple(stride) == (1, 1) and not any(behind):
        widths = [(size - 1) * step - p for size, step, p in zip(window, dilation, padding, strict=True)]
        added = tuple(max(width, 0) for width in widths)
        whole = convolved(g, turned, padding=added, dilation=tuple(dilation))
        return whole if min(widths) >= 0 else _part(whole, [max(-width, 0) for width in widths], sizes)
    more = [
        -(-((size - 1) * far + extra + 1) // step) - 1
        for size, far, extra, step in zip(window, dilation, behind, stride, strict=True)
    ]
    axes = [
        [_Remainder.of(size, step, far, first) for first in range(step)]
        for size, step, far in zip(window, stride, dilation, strict=True)
    ]
    rows = [
        np.stack([_remainder(convolved, g, turned, window, more, (up, left)) for left in axes[1]], axis=4)
        for up in axes[0]
    ]
    every = np.stack(rows, axis=3)  # (N, C, rows, remainders, columns, remainders)
    count, channels, high, _, wide, _ = np.shape(every)
    return _part(np.reshape(every, (count, channels, high * stride[0], wide * stride[1])), padding, sizes)


def _part(whole: Any, start: Sequence[int], sizes: Sequence[Any]) -> Any:
    """The rows and columns of an image within a larger one."""
    (up, left), (height, width) = start, sizes
    return whole[:, :, up : up + height, left : left + width]


def _turned(weight: Any, groups: int) -> Any:
    """The weight for the way back: (C, O / groups, kh, kw), its windows from the end to the beginning."""
    outs, members, *window = np.shape(weight)
    parts = np.reshape(weight, (groups, outs // groups, members, *window))
    parts = np.flip(np.swapaxes(parts, 1, 2), axis=(3, 4))
    return np.reshape(parts, (groups * members, outs // groups, *window))


@dataclass(frozen=True)
class _Remainder:
    """The rows of a padded image with one remainder by the stride, and the elements of windows that reach these.

    Attributes:
        first: the number of the first of these elements; they are ``step`` apart.
        step: see ``first``.
        count: how many they are.
        gap: the distance of the rows that two neighbours of them reach, among the rows with the remainder.
        offset: the number of the first row, among these, that the first window reaches.
    """

    first: int
    step: int
    count: int
    gap: int
    offset: int

    @classmethod
    def of(cls, size: int, stride: int, dilation: int, remainder: int) -> _Remainder:
        """For windows of ``size`` elements."""
        common = math.gcd(stride, dilation)
        step = stride // common
        firsts = [k for k in range(min(step, size)) if (k * dilation - remainder) % stride == 0]
        if not firsts:
            return cls(0, step, 0, 1, 0)
        (first,) = firsts
        count = len(range(first, size, step))
        return cls(first, step, count, dilation // common, (first * dilation - remainder) // stride)

    def turned(self, size: int) -> slice:
        """The elements in a window of ``size`` of them that is turned around."""
        return slice((size - 1 - self.first) % self.step, None, self.step)

    @property
    def added(self) -> int:
        """Zeros on each side of ``g``, for windows that begin before it."""
        return (self.count - 1) * self.gap


def _remainder(
    convolved: Callable[..., Any],
    g: Any,
    turned: Any,
    window: Sequence[int],
    more: Sequence[int],
    pair: tuple[_Remainder, _Remainder],
) -> Any:
    """The rows and columns of the padded image that have two remainders: ``more`` of them than of ``g``."""
    if any(not one.count for one in pair):
        count, _, high, wide = np.shape(g)
        return np.zeros((count, np.shape(turned)[0], high + more[0], wide + more[1]), g.dtype)
    up, left = (one.turned(size) for one, size in zip(pair, window, strict=True))
    own = {"padding": tuple(one.added for one in pair), "dilation": tuple(one.gap for one in pair)}
    part = convolved(g, turned[:, :, up, left], **own)
    around = [(one.offset, extra - one.offset - one.added) for one, extra in zip(pair, more, strict=True)]
    return np.pad(part, ((0, 0), (0, 0), *around)) if any(map(any, around)) else part


def depthwise_gradient(b: GradientBuilder, attrs: Attrs, x: Any, weight: Any, g: Any) -> Any:
    """The gradient of `conv2d` by the weight, where each channel has one window of weights of its own."""
    stride, padding, dilation = (attrs[k] for k in ("stride", "padding", "dilation"))
    if any(padding):
        x = np.pad(x, ((0, 0), (0, 0), *((p, p) for p in padding)))
    rows, columns = np.shape(g)[2:]
    channels, _, *sizes = np.shape(weight)
    window = known_sizes(sizes)
    assert window is not None
    sums = []
    for up in range(0, window[0] * dilation[0], dilation[0]):
        for left in range(0, window[1] * dilation[1], dilation[1]):
            down, right = up + (rows - 1) * stride[0] + 1, left + (columns - 1) * stride[1] + 1
            part = x[:, :, up : down : stride[0], left : right : stride[1]]
            sums.append((part * g).sum(axis=(0, 2, 3)))
    return np.reshape(np.stack(sums, axis=1), (channels, 1, *window))
