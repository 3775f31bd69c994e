"""ONNX's resizing and sampling of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .....errors import TraceError
from ....numpy.neural.layer_inputs import narrowed
from ....numpy.tracing.current import contents_error
from ...array_values import is_traced, taken
from ...sampling import arange, cubic_weights, grid_sampled, taps, weighted
from ..onnx_table import onnx_op
from ..size_values import as_number, as_numbers, as_sizes

_MOST_TAPS = 4096


@onnx_op("Resize", kept=(3,))
def _resize(
    call: Any,
    x: Any,
    roi: Any = None,
    scales: Any = None,
    sizes: Any = None,
    /,
    *,
    antialias: int = 0,
    axes: Sequence[int] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Any:
    chosen = [k % x.ndim for k in (range(x.ndim) if axes is None else axes)]
    transform = coordinate_transformation_mode
    factors, outs = _factors(x, chosen, scales, sizes, keep_aspect_ratio_policy)
    crops = roi is not None and transform == "tf_crop_and_resize"
    y, dtype = x, x.dtype
    outside: Any = None
    for k, axis in enumerate(chosen):
        size, out, factor = x.shape[axis], outs[k], factors[k]
        if not crops and not is_traced(out, factor) and factor == 1 and out == size:
            continue
        places = arange(out)
        if transform == "half_pixel":
            places = (places + 0.5) / factor - 0.5
        elif transform == "half_pixel_symmetric":
            adjustment = out / (factor * size)
            places = size / 2 * (1 - adjustment) + (places + 0.5) / factor - 0.5
        elif transform == "pytorch_half_pixel":
            places = (places + 0.5) / factor - 0.5 if as_number(out) > 1 else places * 0.0
        elif transform == "align_corners":
            # Scales may be such that the last place is not the last element.
            length = factor * size
            places = places * 0.0 if as_number(out) == 1 else places * ((size - 1) / (length - 1))
        elif transform == "asymmetric":
            places = places / factor
        elif crops:
            start, end = (
                np.float64(v) if not is_traced(v) else v.astype(np.float64) for v in _ends(roi, k, len(chosen))
            )
            length = factor * size
            span = (end - start) * (size - 1)
            places = start * (size - 1) + (places * (span / (length - 1)) if as_number(out) > 1 else 0.5 * span)
            beyond = (places < 0) | (places > size - 1)
            shape = [1] * x.ndim
            shape[axis] = -1
            beyond = np.reshape(beyond, shape)
            outside = beyond if outside is None else outside | beyond
        else:
            raise TraceError(f"Resize of {transform!r} is not supported")
        if mode == "nearest":
            whole = np.minimum(np.maximum(_nearest(places, nearest_mode), 0), size - 1).astype(np.int64)
            y = taken(y, whole, axis=axis)
            continue
        if dtype.kind not in "fV":
            raise TraceError(f"Resize of {dtype} between elements is not supported", hint="cast to floats before")
        if mode not in ("linear", "cubic"):
            raise TraceError(f"Resize of mode {mode!r} is not supported")
        is_number = not is_traced(factor) or (isinstance(factor, float) and not getattr(factor, "is_open", False))
        if antialias and is_number and factor < 1:
            sources = _wide_taps(places, float(factor), mode, cubic_coeff_a)
        elif antialias and not is_number:
            raise contents_error("the scales of Resize are known only at run time", "pass them as a tuple of numbers")
        else:
            sources = taps(places, mode, cubic_coeff_a)
        if exclude_outside:
            sources = _inside(sources, size)
        y = weighted(y, axis, sources, size)
    if outside is not None:
        y = np.where(outside, extrapolation_value, y)
    if y.dtype == dtype:
        return y
    return narrowed(y, dtype)


def _ends(roi: Any, k: int, count: int) -> tuple[Any, Any]:
    return roi[k], roi[k + count]


def _factors(x: Any, axes: list[int], scales: Any, sizes: Any, policy: str) -> tuple[list[Any], list[Any]]:
    """The scale and the new size of each axis."""
    if sizes is not None and not (hasattr(sizes, "size") and not is_traced(sizes) and sizes.size == 0):
        outs = list(as_sizes(sizes))
        factors = [out / (x.shape[axis] * 1.0) for out, axis in zip(outs, axes, strict=True)]
        if policy != "stretch":
            numbers = [as_number(out) / int(x.shape[axis]) for out, axis in zip(outs, axes, strict=True)]
            factor = min(numbers) if policy == "not_larger" else max(numbers)
            outs = [int(factor * int(x.shape[axis]) + 0.5) for axis in axes]
            factors = [factor] * len(axes)
        return factors, outs
    if scales is None:
        raise TraceError("Resize has neither scales nor sizes")
    if not is_traced(scales):
        factors = [float(s) for s in np.ravel(scales)]
        if any(is_traced(n) for n in x.shape):
            return factors, [int(np.floor(int(x.shape[a]) * s)) for s, a in zip(factors, axes, strict=True)]
        return factors, [int(np.floor(x.shape[a] * s)) for s, a in zip(factors, axes, strict=True)]
    wide = scales.astype(np.float64)
    factors = [wide[k] for k in range(len(axes))]
    outs = [np.floor(s * float(int(x.shape[a]))).astype(np.int64).item() for s, a in zip(factors, axes, strict=True)]
    return factors, outs


def _nearest(places: Any, mode: str) -> Any:
    if mode == "round_prefer_floor":
        return np.ceil(places - 0.5)
    if mode == "round_prefer_ceil":
        return np.floor(places + 0.5)
    if mode in ("floor", "ceil"):
        return np.floor(places) if mode == "floor" else np.ceil(places)
    raise TraceError(f"Resize of nearest_mode {mode!r} is not known")


def _inside(sources: list[tuple[Any, Any]], size: Any) -> list[tuple[Any, Any]]:
    """Taps outside of the axis have no weight, the others share it."""
    weights = [np.where((places >= 0) & (places <= size - 1), w, 0.0) for places, w in sources]
    total: Any = sum(weights[1:], weights[0])
    return [(places, w / total) for (places, _), w in zip(sources, weights, strict=True)]


def _wide_taps(places: Any, factor: float, mode: str, a: float) -> list[tuple[Any, Any]]:
    """The taps of a filter that is as much wider as the image becomes smaller."""
    reach = (1 if mode == "linear" else 2) / factor
    count = 2 * int(np.ceil(reach)) + 1
    if count > _MOST_TAPS:
        raise TraceError(f"Resize with antialias needs {count} elements for one")
    first = np.floor(places) - int(np.ceil(reach)) + 1
    sources = []
    for k in range(count):
        at = first + k
        distance = np.abs(at - places) * factor
        if mode == "linear":
            weight = np.maximum(1.0 - distance, 0.0)
        else:
            _, near, _, _ = cubic_weights(distance, a)
            far = cubic_weights(distance - 1.0, a)[0]
            weight = np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))
        sources.append((at, weight))
    total: Any = sum((weight for _, weight in sources[1:]), sources[0][1])
    return [(at, weight / total) for at, weight in sources]


@onnx_op("Resize-1", "Upsample")
def _resize_old(
    call: Any, x: Any, scales_of: Any = None, /, *, mode: str = "nearest", scales: Sequence[float] | None = None
) -> Any:
    factors = scales_of if scales is None else np.array(scales, np.float32)
    return _resize(
        call,
        x,
        None,
        factors,
        None,
        coordinate_transformation_mode="asymmetric",
        mode="linear" if mode == "bilinear" else mode,
        nearest_mode="floor",
    )


@onnx_op("GridSample")
def _grid_sample(
    call: Any, x: Any, grid: Any, /, *, align_corners: int = 0, mode: str = "linear", padding_mode: str = "zeros"
) -> Any:
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    if padding_mode not in ("zeros", "border", "reflection"):
        raise TraceError(f"GridSample with padding {padding_mode!r} is not known")
    return grid_sampled(x, grid, mode, padding_mode, align_corners=bool(align_corners), is_rounded_first=True)


@onnx_op("AffineGrid", kept=(1,))
def _affine_grid(call: Any, theta: Any, size: Any, /, *, align_corners: int = 0) -> Any:
    sizes = as_numbers(size)[2:]
    count = len(sizes)
    axes = []
    for k, n in enumerate(sizes):
        line = np.linspace(-1.0, 1.0, n) if align_corners and n > 1 else (np.arange(n) * 2.0 + 1.0) / n - 1.0
        shape = [1] * count
        shape[k] = -1
        axes.append(np.broadcast_to(line.reshape(shape), sizes))
    points = np.stack([*reversed(axes), np.ones(sizes)], -1).reshape(-1, count + 1).astype(theta.dtype)
    grid = np.matmul(points, np.swapaxes(theta, 1, 2))
    return np.reshape(grid, (theta.shape[0], *sizes, count))
