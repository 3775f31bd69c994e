"""Convolutions and reductions over windows in StableHLO."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....errors import TraceError
from ...numpy.neural.filters import conv1d, conv2d
from ...numpy.tracing.operators import op
from ..array_values import is_constant, is_number, owned
from ..interpreter import NodeContext
from ..size_values import as_array
from ..window_axes import convolved_windows
from .hlo_elementwise import CUSTOM_CALLS, STABLEHLO
from .hlo_reductions import combination, reduced_by
from .hlo_shapes import padded
from .hlo_values import arrays, settled_sizes

_MOST_SHIFTS = 4096  # elements of a window that is combined slice by slice


@STABLEHLO.register("stablehlo.convolution")
def _convolution(
    call: NodeContext,
    x: Any,
    kernel: Any,
    *,
    dimension_numbers: tuple[tuple[str, ...], ...],
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    window_strides: tuple[int, ...] | None = None,
    padding: Any = None,
    lhs_dilation: tuple[int, ...] | None = None,
    rhs_dilation: tuple[int, ...] | None = None,
    window_reversal: tuple[bool, ...] | None = None,
    **_: Any,
) -> Any:
    """A convolution: in one or two dimensions that of `profuse.nn`, in others a product of windows."""
    assert call.type is not None and call.type.dtype is not None
    inputs, kernels, outputs = dimension_numbers
    count = len(inputs) - 2
    if call.type.shape is not None and 0 in call.type.shape:  # a kernel that is larger than the padded input
        return np.zeros(tuple(n or 0 for n in call.type.shape), call.type.dtype)
    space = [str(k) for k in range(count)]
    x = np.transpose(x, [inputs.index(k) for k in ("b", "f", *space)])
    kernel = np.transpose(kernel, [kernels.index(k) for k in ("o", "i", *space)])
    if window_reversal and any(window_reversal):
        kernel = np.flip(kernel, tuple(2 + k for k, flips in enumerate(window_reversal) if flips))
    ones = (1,) * count
    pads = np.zeros((count, 2), int) if padding is None else np.asarray(padding)
    spread = tuple(n - 1 for n in (lhs_dilation or ones))
    low, high = (tuple(int(n) for n in pads[:, side]) for side in (0, 1))
    zero = np.zeros((), x.dtype)
    if any(spread) or low != high or min(low, default=0) < 0 or count not in (1, 2):
        x = padded(x, zero, (0, 0, *low), (0, 0, *high), (0, 0, *spread))
        low = (0,) * count
    if batch_group_count > 1:
        parts = np.split(x, batch_group_count, 0)
        x = np.concatenate(parts, 1)  # groups of images become groups of channels
        feature_group_count = batch_group_count
    strides, dilation = window_strides or ones, rhs_dilation or ones
    if count not in (1, 2):
        result = convolved_windows(x, kernel, None, strides, dilation, feature_group_count)
    else:
        convolved = conv1d if count == 1 else conv2d
        result = convolved(x, kernel, None, strides, low, dilation, feature_group_count)
    result = np.transpose(result, [("b", "f", *space).index(k) for k in outputs])
    return result if result.dtype == call.type.dtype else result.astype(call.type.dtype)


@STABLEHLO.register("stablehlo.reduce_window")
def _reduce_window(
    call: NodeContext,
    *operands: Any,
    window_dimensions: tuple[int, ...],
    window_strides: tuple[int, ...] | None = None,
    base_dilations: tuple[int, ...] | None = None,
    window_dilations: tuple[int, ...] | None = None,
    padding: Any = None,
) -> Any:
    if len(operands) != 2:
        raise TraceError("stablehlo.reduce_window of several arrays is not supported")
    ones = (1,) * operands[0].ndim
    pads = np.zeros((len(ones), 2), int) if padding is None else np.asarray(padding)
    low, high = (tuple(int(n) for n in pads[:, side]) for side in (0, 1))
    return _reduced(
        call,
        *arrays(operands),
        window_dimensions,
        window_strides or ones,
        base_dilations or ones,
        window_dilations or ones,
        low,
        high,
    )


def _reduced(call: NodeContext, x: Any, init: Any, window_dimensions: tuple, *layout: tuple) -> Any:
    """The reduction over windows; a window's layout is its strides, the spread of ``x``, its own, and the padding."""
    strides, base_dilations, dilations, low, high = layout
    rank = x.ndim
    ones = (1,) * rank
    name = combination(call.node.blocks[0])
    spread = tuple(n - 1 for n in base_dilations)
    if name in ("add", "multiply") and base_dilations == ones:
        line = _running(name, x, window_dimensions, strides, dilations, low, high)
        if line is not None:
            return line
    if not all(type(n) is int for n in (*window_dimensions, *low, *high)):
        raise TraceError("windows whose sizes depend on those of arguments are supported for running sums only")
    x = padded(x, init, low, high, spread)
    if name is not None and dilations == ones and math.prod(window_dimensions) > 16:
        axes = tuple(d for d in range(rank) if window_dimensions[d] > 1)
        widths = tuple(window_dimensions[d] for d in axes)
        windows = np.lib.stride_tricks.sliding_window_view(x, widths, axes)
        windows = windows[tuple(slice(None, None, s) for s in strides)]
        reduced = reduced_by(name, windows, range(rank, rank + len(axes)))
        if reduced is not None:
            return _combine(call, as_array(init, x.dtype), reduced) if not _is_neutral(name, init) else reduced
    return _by_shifts(call, x, init, window_dimensions, strides, dilations)


def _dynamic_reduce_window(call: NodeContext, *operands: Any) -> Any:
    """A reduction whose window and strides are vectors of sizes."""
    x, init, window, strides, base, dilations, pads = operands
    low_and_high = settled_sizes(np.reshape(pads, (-1,)) if is_constant(pads) else pads)
    return _reduced(
        call,
        x,
        init,
        settled_sizes(window),
        settled_sizes(strides),
        settled_sizes(base),
        settled_sizes(dilations),
        low_and_high[::2],
        low_and_high[1::2],
    )


CUSTOM_CALLS["stablehlo.dynamic_reduce_window"] = _dynamic_reduce_window


def _is_neutral(name: str, init: Any) -> bool:
    return is_number(init) and name in ("add", "multiply") and init == (0 if name == "add" else 1)


def _running(name: str, x: Any, window: Sequence[int], *layout: Sequence[int]) -> Any:
    """Running sums and products along one axis, as `jax.numpy.cumsum` writes them; None = something else."""
    strides, dilations, low, high = layout
    axes = [d for d, width in enumerate(window) if width != 1]
    if len(axes) != 1 or set(strides) != {1} or set(dilations) != {1}:
        return None
    (axis,) = axes
    others = [d for d in range(x.ndim) if d != axis]
    if window[axis] != x.shape[axis] or any(low[d] or high[d] for d in others):
        return None
    function = np.cumsum if name == "add" else np.cumprod
    if (low[axis], high[axis]) == (window[axis] - 1, 0):
        return function(x, axis=axis, dtype=x.dtype)
    if (low[axis], high[axis]) == (0, window[axis] - 1):
        return np.flip(function(np.flip(x, axis), axis=axis, dtype=x.dtype), axis)
    return None


def _by_shifts(
    call: NodeContext, x: Any, init: Any, window: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> Any:
    """The reduction by any region: slices of the array, one for each element of the window, are combined."""
    if math.prod(window) > _MOST_SHIFTS:
        raise TraceError(f"stablehlo.reduce_window with a window of {tuple(window)} is not supported for this region")
    counts = [
        max((x.shape[d] - (window[d] - 1) * dilations[d] - 1) // strides[d] + 1, 0) if x.shape[d] > 0 else 0
        for d in range(x.ndim)
    ]
    if 0 in counts:
        return owned(np.broadcast_to(as_array(init, x.dtype), tuple(counts)))
    result: Any = None
    for offsets in itertools.product(*map(range, window)):
        starts = [k * step for k, step in zip(offsets, dilations, strict=True)]
        part = x[
            tuple(slice(s, s + (n - 1) * step + 1, step) for s, n, step in zip(starts, counts, strides, strict=True))
        ]
        result = part if result is None else _combine(call, result, part)
    return _combine(call, as_array(init, x.dtype), result)


def _combine(call: NodeContext, x: Any, y: Any) -> Any:
    name = combination(call.node.blocks[0])
    if name in ("maximum", "minimum") and x.dtype != np.bool_:
        return op(name, x, y)
    return call.run_block(0, *np.broadcast_arrays(x, y) if x.shape != y.shape else (x, y))[0]


@STABLEHLO.register("stablehlo.select_and_scatter")
def _select_and_scatter(
    call: NodeContext,
    x: Any,
    source: Any,
    init: Any,
    *,
    window_dimensions: tuple[int, ...],
    window_strides: tuple[int, ...] | None = None,
    padding: Any = None,
) -> Any:
    """Each window's greatest (smallest) element gets the window's source added."""
    select, scatter = call.node.blocks
    direction = _selected(select)
    if direction is None or combination(scatter) != "add":
        raise TraceError("stablehlo.select_and_scatter with these regions is not supported")
    rank = x.ndim
    pads = np.zeros((rank, 2), int) if padding is None else np.asarray(padding)
    low, high = (tuple(int(n) for n in pads[:, side]) for side in (0, 1))
    strides = window_strides or (1,) * rank
    size = x.size
    outside = np.asarray(-np.inf if direction == "GE" else np.inf, x.dtype)
    zeros = (0,) * rank
    wide = padded(x, outside, low, high, zeros)
    numbers = padded(np.reshape(np.arange(size), x.shape), np.asarray(size), low, high, zeros)
    steps = tuple(slice(None, None, s) for s in strides)
    widths = tuple(window_dimensions)
    flat = (*source.shape, math.prod(widths))
    windows, places = (
        np.reshape(np.lib.stride_tricks.sliding_window_view(a, widths, tuple(range(rank)))[steps], flat)
        for a in (wide, numbers)
    )
    index = (np.argmax if direction == "GE" else np.argmin)(windows, axis=-1)
    place = np.take_along_axis(places, np.expand_dims(index, -1), axis=-1)
    line = owned(np.broadcast_to(as_array(init, x.dtype), (size + 1,)))
    np.add.at(line, np.reshape(place, (-1,)), np.reshape(source, (-1,)))
    return np.reshape(line[:size], x.shape)


def _selected(block: Any) -> str | None:
    """``"GE"`` or ``"LE"``, if a region compares its two arguments so; else None."""
    if len(block.nodes) != 1 or block.nodes[0].op != "stablehlo.compare":
        return None
    (node,) = block.nodes
    is_plain = [getattr(x, "number", None) for x in node.operands] == list(block.inputs)
    direction = node.attributes.get("comparison_direction")
    return direction if is_plain and direction in ("GE", "LE") else None
