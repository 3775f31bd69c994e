"""Convolutions, also transposed ones, and windows as columns: those of `profuse.nn`, and sums of them in 3D."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....numpy.neural import filters, transposed_filters
from ...window_axes import stuffed, turned_kernels
from ..aten_table import aten, refuse
from ..dimensions import each
from ..promotion import BOOL, category
from ..tensors.join_operators import padded
from ..tensors.product_operators import of_one_dtype


def _checked(x: Any, name: str) -> None:
    if category(x.dtype) == 3 or x.dtype == BOOL:
        raise refuse(name, f"on {x.dtype}")


@aten("convolution", "_convolution")
def convolution(
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    *flags: bool,
) -> Any:
    of_one_dtype("convolution", input, weight, bias)
    count = weight.ndim - 2
    strides, pads, steps = (each(v, count) for v in (stride, padding, dilation))
    if transposed:
        return _transposed(input, weight, bias, strides, pads, each(output_padding, count), groups, steps)
    return _convolved(input, weight, bias, strides, pads, steps, groups)


def _convolved(x: Any, w: Any, bias: Any, strides: Any, padding: Any, steps: Any, groups: int) -> Any:
    _checked(x, "convolution")
    count = w.ndim - 2
    if count == 1:
        return filters.conv1d(x, w, bias, strides, padding, steps, groups)
    if count == 2:
        return filters.conv2d(x, w, bias, strides, padding, steps, groups)
    if count != 3:
        raise refuse("convolution", f"with {count} spatial axes")
    return _convolved_3d(x, w, bias, each(strides, 3), padding, each(steps, 3), groups)


def _convolved_3d(x: Any, w: Any, bias: Any, strides: Any, padding: Any, steps: Any, groups: int) -> Any:
    """The sum of one convolution in the last two axes for each element of the kernel along the first."""
    images = x[None] if x.ndim == 4 else x
    spans = [d * (int(k) - 1) + 1 for d, k in zip(steps, w.shape[2:], strict=True)]
    if padding == "same":
        pairs = [((s - 1) // 2, s - 1 - (s - 1) // 2) for s in spans]
    else:
        pairs = [(p, p) for p in each(0 if padding == "valid" else padding, 3)]
    images = padded(images, [width for pair in reversed(pairs) for width in pair], "constant")
    n, c = images.shape[:2]
    depth = (int(images.shape[2]) - spans[0]) // strides[0] + 1
    y = None
    for k in range(int(w.shape[2])):
        part = images[:, :, k * steps[0] : k * steps[0] + (depth - 1) * strides[0] + 1 : strides[0]]
        flat = np.reshape(np.swapaxes(part, 1, 2), (n * depth, c, *part.shape[3:]))
        term = filters.conv2d(flat, w[:, :, k], None, strides[1:], 0, steps[1:], groups)
        y = term if y is None else y + term
    if y is None:
        raise refuse("convolution", "with an empty kernel")
    out = np.swapaxes(np.reshape(y, (n, depth, *y.shape[1:])), 1, 2)
    if bias is not None:
        out = out + np.reshape(bias, (-1, 1, 1, 1))
    return out[0] if x.ndim == 4 else out


def _transposed(x: Any, w: Any, bias: Any, strides: Any, pads: Any, behind: Any, groups: int, steps: Any) -> Any:
    _checked(x, "convolution")
    count = w.ndim - 2
    if count == 1:
        return transposed_filters.conv_transpose1d(x, w, bias, strides, pads, behind, groups, steps)
    if count == 2:
        return transposed_filters.conv_transpose2d(x, w, bias, strides, pads, behind, groups, steps)
    images = x[None] if x.ndim == count + 1 else x
    images = stuffed(images, strides)
    widths = []
    for k in reversed(range(count)):
        rim = steps[k] * (int(w.shape[k + 2]) - 1) - pads[k]
        widths += [rim, rim + behind[k]]
    images = padded(images, widths, "constant")
    y = _convolved(images, turned_kernels(w, groups), bias, (1,) * count, (0,) * count, steps, groups)
    return y[0] if x.ndim == count + 1 else y


def _conv(name: str) -> None:
    @aten(name)
    def conv(
        input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
    ) -> Any:
        return _convolved(input, weight, bias, stride, padding, dilation, groups)


def _conv_transpose(name: str) -> None:
    @aten(name)
    def conv_transpose(
        input: Any,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Any:
        options = (each(v, weight.ndim - 2) for v in (stride, padding, output_padding, dilation))
        strides, pads, behind, steps = options
        return _transposed(input, weight, bias, strides, pads, behind, groups, steps)


for _name in ("conv1d", "conv2d", "conv3d"):
    _conv(_name)
for _name in ("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"):
    _conv_transpose(_name)


@aten("im2col")
def im2col(self: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    return filters.unfold(self, tuple(kernel_size), tuple(dilation), tuple(padding), tuple(stride))
