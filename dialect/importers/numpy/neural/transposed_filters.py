"""Transposed convolutions: what gradients of convolutions by their images are, with weights of their own."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....ops.nn.conv_gradients import FEW_CHANNELS, transposed_convolution
from ..capture import user_functions
from ..python.pausing import unwatched
from ..tracing.handler_tables import created
from .filters import KERNEL, conv2d, kernel_of
from .layer_inputs import (
    SPATIAL,
    array,
    images_of,
    narrowed,
    number,
    numbers,
    result_dtype,
    vector,
    widened,
    wrong_argument,
    wrong_shape,
)


@unwatched
def conv_transpose1d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Any:
    """`conv_transpose2d` along one axis.

    Args:
        input: (N, C, L), or (C, L).
        weight: (C, O / groups, k).
        bias: (O,), or None.
        stride, padding, output_padding, groups, dilation: as of `conv_transpose2d`, one integer each.

    The result is (N, O, L') or (O, L').
    """
    return _turned("conv_transpose1d", 1, input, weight, bias, stride, padding, output_padding, groups, dilation)


@unwatched
def conv_transpose2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Any:
    """The gradient of `conv2d` by its image: each element of ``input`` adds a kernel, times itself, to the result.

    Args:
        input: (N, C, H, W), or (C, H, W).
        weight: (C, O / groups, kh, kw).
        bias: (O,), or None.
        stride: the distance of the places that neighbours add to; one integer or two, as in all that follows.
        padding: so many rows and columns of the result are left out on each side.
        output_padding: rows and columns behind, less than ``stride`` or ``dilation``.
        groups: channels fall into so many groups, each with C / groups kernels of its own.
        dilation: the distance of the elements of a kernel.

    The result is (N, O, H', W') or (O, H', W') with
    ``H' = (H - 1) * stride - 2 * padding + dilation * (kh - 1) + output_padding + 1``, of the dtype that NumPy gives to
    the product. f16 and bf16 are summed in f32. Raises ShapeError where sizes do not fit or nothing is left,
    ArgumentError for other values.
    """
    return _turned("conv_transpose2d", 2, input, weight, bias, stride, padding, output_padding, groups, dilation)


def _turned(
    function: str,
    count: int,
    x: Any,
    w: Any,
    b: Any,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: Any,
    dilation: Any,
) -> Any:
    images, is_single = images_of(function, x, count)
    array(function, "weight", w, (count + 2,), f"(C, O / groups, {', '.join(KERNEL[count])})")
    strides = numbers(function, "stride", stride, count, 1)
    pads = numbers(function, "padding", padding, count, 0)
    behind = numbers(function, "output_padding", output_padding, count, 0)
    steps = numbers(function, "dilation", dilation, count, 1)
    parts = number(function, "groups", groups, 1)
    channels, each = images.shape[1], w.shape[1]
    if w.shape[0] != channels:
        raise wrong_shape(
            function,
            f"input of shape {tuple(x.shape)} has {channels} channels, where weight has shape {tuple(w.shape)}",
            f"pass weight of shape {(channels, *w.shape[1:])}",
        )
    if channels % parts:
        raise wrong_argument(
            function, f"groups={parts} does not divide the {channels} channels of input", "pass a divisor"
        )
    vector(function, "bias", b, each * parts, "output channels")
    kernel = kernel_of(function, w)
    sizes = []
    for k, name in enumerate(SPATIAL[count]):
        if behind[k] >= max(strides[k], steps[k]):
            raise wrong_argument(
                function,
                f"output_padding={behind[k]} is not below stride={strides[k]} or dilation={steps[k]}",
                "pass a smaller output_padding, or pad the result",
            )
        size = (images.shape[k + 2] - 1) * strides[k] - 2 * pads[k] + steps[k] * (kernel[k] - 1) + behind[k] + 1
        if size < 1:
            raise wrong_shape(function, f"the result would have {size} elements along {name}", "pass a smaller padding")
        sizes.append(size)
    dtype = result_dtype(x, w, b)
    images, w, b = widened(images, w, b)
    if count == 1:
        images, w, sizes = images[:, :, None], w[:, :, None], [1, *sizes]
        kernel = (1, *kernel)
        strides, steps, pads, behind = ((n, *m) for n, m in ((1, strides), (1, steps), (0, pads), (0, behind)))
    if parts == 1 and each < FEW_CHANNELS:
        y = _added_products(images, w, kernel, strides, pads, steps, sizes)
    else:
        convolved = functools.partial(conv2d, groups=parts)
        y = transposed_convolution(convolved, images, w, strides, pads, steps, parts, behind, sizes)
    if b is not None:
        y = y + np.reshape(b, (each * parts, 1, 1))
    if count == 1:
        y = np.reshape(y, (*y.shape[:2], y.shape[3]))
    return narrowed(y[0] if is_single else y, dtype)


def _added_products(
    x: Any,
    w: Any,
    kernel: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    steps: Sequence[int],
    sizes: Sequence[int],
) -> Any:
    """One product of matrices per image, of which each element is added where its window has it.

    For few channels: a convolution would be a product of few rows.
    """
    n, channels, *spatial = x.shape
    each = w.shape[1]
    products = np.swapaxes(np.reshape(w, (channels, -1)), 0, 1) @ np.reshape(x, (n, channels, spatial[0] * spatial[1]))
    # Of rows (kh, 1, H, 1), of columns (kw, 1, W): the axes of the products.
    rows, columns = (
        np.reshape(created("arange", size, dtype=np.int64) * step, (size, *(1,) * (2 + after)))
        + np.reshape(created("arange", extent, dtype=np.int64) * stride, (extent, *(1,) * after))
        for size, step, extent, stride, after in zip(kernel, steps, spatial, strides, (1, 0), strict=True)
    )
    whole = created(
        "zeros", (n, each, *(size + 2 * pad for size, pad in zip(sizes, pads, strict=True))), dtype=products.dtype
    )
    values = np.reshape(products, (n, each, *kernel, *spatial))
    y = user_functions.op("index_add")(whole, values, rows, columns, axes=(2, 3))
    return y[:, :, pads[0] : pads[0] + sizes[0], pads[1] : pads[1] + sizes[1]]
