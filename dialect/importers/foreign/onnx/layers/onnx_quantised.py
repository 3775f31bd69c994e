"""ONNX's quantised numbers and integer products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .....errors import DTypeError
from ....numpy.neural.layer_inputs import widened
from ...size_values import as_numbers
from ..onnx_table import NodeResults, onnx_op
from ..tensors.onnx_casts import cast, dtype_numbered
from .onnx_windows import Ints, convolved, spatial_sizes
from .window_geometry import axes_of

_U8, _F32, _F64, _I32 = (np.dtype(t) for t in (np.uint8, np.float32, np.float64, np.int32))


def _along(v: Any, x: Any, axis: int, block: int) -> Any:
    """A scale or a zero point, shaped so that it broadcasts against ``x``."""
    if v is None or v.ndim == 0:
        return v
    if v.ndim == 1 and v.shape[0] == 1:  # as older models have a scale of a whole tensor
        return np.reshape(v, ())
    if block:
        wide = np.repeat(v, block, axis)
        keys = [slice(None)] * x.ndim
        keys[axis] = slice(0, x.shape[axis])
        return wide[tuple(keys)]
    if v.ndim == 1:
        shape = [1] * max(x.ndim, 1)
        shape[axis] = -1
        return np.reshape(v, shape) if x.ndim else np.reshape(v, ())
    return v


def quantised(x: Any, scale: Any, zero: Any, dtype: np.dtype) -> Any:
    """``x / scale + zero``, rounded to even, saturated to an integer dtype of 16 bits or less."""
    if dtype.kind not in "iu" or dtype.itemsize > 2:
        raise DTypeError(f"quantised numbers of {dtype} are not supported")
    limits = np.iinfo(dtype)
    y = np.rint(x / scale)
    if zero is not None:
        y = y + cast(zero, y.dtype)
    return np.minimum(np.maximum(y, float(limits.min)), float(limits.max)).astype(dtype)


@onnx_op("QuantizeLinear", "com.microsoft.QuantizeLinear")
def _quantize_linear(
    call: Any,
    x: Any,
    scale: Any,
    zero: Any = None,
    /,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
) -> Any:
    dtype = zero.dtype if zero is not None else dtype_numbered(output_dtype) if output_dtype else _U8
    scale, zero = _along(scale, x, axis, block_size), _along(zero, x, axis, block_size)
    wide = _F32 if precision == 0 else dtype_numbered(precision)
    if x.dtype.kind in "iu" or x.dtype.itemsize < wide.itemsize:
        x = cast(x, wide)
    return quantised(x, cast(scale, x.dtype), zero, dtype)


@onnx_op("DequantizeLinear", "com.microsoft.DequantizeLinear")
def _dequantize_linear(
    call: Any, x: Any, scale: Any, zero: Any = None, /, *, axis: int = 1, block_size: int = 0, output_dtype: int = 0
) -> Any:
    dtype = dtype_numbered(output_dtype) if output_dtype else scale.dtype
    scale, zero = _along(scale, x, axis, block_size), _along(zero, x, axis, block_size)
    exact = _F32 if x.dtype.kind == "f" else _I32  # of narrow floats, or of integers
    difference = cast(x, exact)
    if zero is not None:
        difference = difference - cast(zero, exact)
    (wide,) = widened(scale)
    return cast(cast(difference, wide.dtype) * wide, dtype)


@onnx_op("DynamicQuantizeLinear")
def _dynamic_quantize_linear(call: Any, x: Any, /) -> Any:
    high, low = np.maximum(np.max(x), np.float32(0)), np.minimum(np.min(x), np.float32(0))
    scale = (high - low) / np.float32(255)
    scale = np.where(scale == 0, np.float32(1), scale)
    zero = np.rint(np.minimum(np.maximum(np.float32(0) - low / scale, np.float32(0)), np.float32(255)))
    return NodeResults((quantised(x, scale, zero, _U8), scale, zero.astype(_U8)))


def centred(x: Any, zero: Any, axis: int) -> Any:
    """Integers without their zero point, as f64, in which products of integers are exact."""
    wide = cast(x, _F64)
    if zero is None:
        return wide
    zero = cast(zero, _F64)
    if zero.ndim == 1 and zero.shape[0] != 1:
        shape = [1] * x.ndim
        shape[axis] = -1
        zero = np.reshape(zero, shape)
    return wide - (np.reshape(zero, ()) if zero.ndim == 1 and zero.shape[0] == 1 else zero)


@onnx_op("MatMulInteger")
def _mat_mul_integer(call: Any, a: Any, b: Any, zero_a: Any = None, zero_b: Any = None, /) -> Any:
    return np.matmul(centred(a, zero_a, -2), centred(b, zero_b, -1)).astype(np.int32)


@onnx_op("QLinearMatMul")
def _qlinear_mat_mul(
    call: Any, a: Any, scale_a: Any, zero_a: Any, b: Any, scale_b: Any, zero_b: Any, scale: Any, zero: Any, /
) -> Any:
    total = np.matmul(centred(a, zero_a, -2), centred(b, zero_b, -1))
    if scale_a.ndim == 1 and scale_a.shape[0] != 1:
        scale_a = np.reshape(scale_a, (-1, 1))
    factor = cast(scale_a, _F64) * cast(scale_b, _F64) / cast(scale, _F64)
    return quantised(total * factor, 1.0, zero, zero.dtype)


@onnx_op("ConvInteger")
def _conv_integer(
    call: Any,
    x: Any,
    w: Any,
    zero_x: Any = None,
    zero_w: Any = None,
    /,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints = None,
    group: int = 1,
    kernel_shape: Ints = None,
    pads: Ints = None,
    strides: Ints = None,
) -> Any:
    return _convolved(x, zero_x, w, zero_w, auto_pad, dilations, group, pads, strides).astype(np.int32)


@onnx_op("QLinearConv")
def _qlinear_conv(
    call: Any,
    x: Any,
    scale_x: Any,
    zero_x: Any,
    w: Any,
    scale_w: Any,
    zero_w: Any,
    scale: Any,
    zero: Any,
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
    total = _convolved(x, zero_x, w, zero_w, auto_pad, dilations, group, pads, strides)
    each = (-1, *(1,) * (x.ndim - 2))
    if b is not None:
        total = total + np.reshape(cast(b, _F64), each)
    scales = cast(scale_w, _F64)
    factor = cast(scale_x, _F64) * (np.reshape(scales, each) if scales.ndim else scales) / cast(scale, _F64)
    return quantised(total * factor, 1.0, zero, zero.dtype)


def _convolved(
    x: Any,
    zero_x: Any,
    w: Any,
    zero_w: Any,
    auto_pad: str,
    dilations: Sequence[int] | None,
    group: int,
    pads: Sequence[int] | None,
    strides: Sequence[int] | None,
) -> Any:
    axes = axes_of(spatial_sizes(x), as_numbers(tuple(w.shape[2:])), auto_pad, dilations, pads, strides)
    return convolved(centred(x, zero_x, 0), centred(w, zero_w, 0), None, axes, group)
