"""ONNX's operators for finding objects: boxes that do not overlap, parts of images in boxes, moved windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .....errors import TraceError
from ....numpy.neural.layer_inputs import narrowed, widened
from ...array_values import captured, constant_or_created, item_of
from ...size_values import as_array, as_size
from ...time_steps import steps
from ..onnx_table import onnx_op
from .onnx_windows import Ints, spatial_sizes
from .window_geometry import axes_of


@onnx_op("NonMaxSuppression", kept=(2,))
def _non_max_suppression(
    call: Any,
    boxes: Any,
    scores: Any,
    most: Any = None,
    most_overlap: Any = None,
    least_score: Any = None,
    /,
    *,
    center_point_box: int = 0,
) -> Any:
    """For each image and class the boxes with the highest scores that overlap none before: (image, class, box).

    A round takes the best box of each image and class that is left, and drops what it overlaps. How many boxes there
    are is known at run time only.
    """
    if most is None:
        return np.zeros((0, 3), np.int64)
    boxes, scores = captured(boxes), captured(scores)
    overlaps = _overlaps(boxes, bool(center_point_box)) > _number(most_overlap, 0.0)
    count = scores.shape[2]
    images = np.reshape(constant_or_created("arange", boxes.shape[0]), (-1, 1))
    numbers = constant_or_created("arange", count)
    left = np.ones_like(scores, np.bool_) if least_score is None else scores > _number(least_score, 0.0)

    def chosen(at: Any, state: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        (left,) = state
        best = np.argmax(np.where(left, scores, -np.inf), axis=-1)
        dropped = item_of(overlaps, (images, best)) | (numbers == best[..., None])
        return (left & ~dropped,), (np.where(np.any(left, axis=-1), best, -1),)

    limit = as_size(most)
    is_open = getattr(limit, "is_open", False)
    rounds = np.minimum(as_array(limit), as_array(count)).item() if is_open else limit if limit < count else count
    _, (taken,) = steps(rounds, (left,), chosen)
    taken = np.moveaxis(taken, 0, 2)
    image, class_, place = np.nonzero(taken >= 0)
    return np.stack([image, class_, item_of(taken, (image, class_, place))], 1)


def _number(x: Any, default: float) -> Any:
    return np.float32(default) if x is None else np.reshape(x, ())


def _overlaps(boxes: Any, are_centres: bool) -> Any:
    """For each image the share that two boxes have in common, as (images, boxes, boxes)."""
    a, b, c, d = (boxes[..., k] for k in range(4))
    if are_centres:  # x, y, width, height
        left, right, top, bottom = a - c / 2, a + c / 2, b - d / 2, b + d / 2
    else:  # the ends of any diagonal, y first
        top, bottom, left, right = np.minimum(a, c), np.maximum(a, c), np.minimum(b, d), np.maximum(b, d)

    def common(low: Any, high: Any) -> Any:
        inner = np.minimum(high[:, :, None], high[:, None, :]) - np.maximum(low[:, :, None], low[:, None, :])
        return np.maximum(inner, np.float32(0))

    areas = (right - left) * (bottom - top)
    both = common(left, right) * common(top, bottom)
    union = areas[:, :, None] + areas[:, None, :] - both
    return np.where(both > 0, both / np.where(union == 0, np.float32(1), union), np.float32(0))


@onnx_op("RoiAlign")
def _roi_align(call: Any, x: Any, boxes: Any, images: Any, /, **attributes: Any) -> Any:
    return _aligned(x, boxes, images, **{"coordinate_transformation_mode": "half_pixel", **attributes})


@onnx_op("RoiAlign-1")
def _roi_align_old(call: Any, x: Any, boxes: Any, images: Any, /, **attributes: Any) -> Any:
    return _aligned(x, boxes, images, **{"coordinate_transformation_mode": "output_half_pixel", **attributes})


def _aligned(
    x: Any,
    boxes: Any,
    images: Any,
    *,
    coordinate_transformation_mode: str,
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Any:
    """Parts of images in boxes (left, top, right, bottom): each element is the mean, or maximum, of points."""
    if sampling_ratio <= 0:
        raise TraceError(
            "RoiAlign with as many points as the boxes are large is not supported", hint="export a sampling_ratio"
        )
    if mode not in ("avg", "max") or coordinate_transformation_mode not in ("half_pixel", "output_half_pixel"):
        raise TraceError(f"RoiAlign of {mode!r} with {coordinate_transformation_mode!r} is not known")
    wide, boxes = widened(x, boxes)
    is_half = coordinate_transformation_mode == "half_pixel"
    by_axis = []
    for first, count, size in ((1, output_height, x.shape[2]), (0, output_width, x.shape[3])):
        start = boxes[:, first] * spatial_scale - (0.5 if is_half else 0.0)
        length = (boxes[:, first + 2] - boxes[:, first]) * spatial_scale
        length = length if is_half else np.maximum(length, 1.0)
        points = (np.arange(count * sampling_ratio) + 0.5) / (count * sampling_ratio)
        by_axis.append(_box_taps(start[:, None] + length[:, None] * points.astype(wide.dtype), size))
    by_channel = np.moveaxis(wide, 1, -1)
    parts = []
    for rows, of_rows in by_axis[0]:
        for columns, of_columns in by_axis[1]:
            part = item_of(by_channel, (np.reshape(images, (-1, 1, 1)), rows[:, :, None], columns[:, None, :]))
            parts.append(part * (of_rows[:, :, None] * of_columns[:, None, :])[..., None])
    points = np.maximum(np.maximum(parts[0], parts[1]), np.maximum(parts[2], parts[3])) if mode == "max" else sum(parts)
    shape = (boxes.shape[0], output_height, sampling_ratio, output_width, sampling_ratio, x.shape[1])
    points = np.reshape(points, shape)
    result = np.max(points, axis=(2, 4)) if mode == "max" else np.mean(points, axis=(2, 4))
    return narrowed(np.moveaxis(result, -1, 1), x.dtype)


def _box_taps(places: Any, size: Any) -> list[tuple[Any, Any]]:
    """The two elements around each place, and their weights; places more than one element outside have none."""
    inside = ((places >= -1.0) & (places <= size * 1.0)).astype(places.dtype)
    bounded = np.minimum(np.maximum(places, 0.0), (size - 1) * 1.0)
    below = np.floor(bounded)
    ratio = bounded - below
    first = below.astype(np.int64)
    return [(first, (1.0 - ratio) * inside), (np.minimum(first + 1, size - 1), ratio * inside)]


@onnx_op("DeformConv")
def _deform_conv(
    call: Any,
    x: Any,
    w: Any,
    offset: Any,
    b: Any = None,
    mask: Any = None,
    /,
    *,
    dilations: Ints = None,
    group: int = 1,
    kernel_shape: Ints = None,
    offset_group: int = 1,
    pads: Ints = None,
    strides: Ints = None,
) -> Any:
    """A convolution whose elements are read at places that are moved, between others, and zero outside."""
    sizes, kernel = spatial_sizes(x), tuple(int(n) for n in w.shape[2:])
    if len(sizes) != 2:
        raise TraceError(f"DeformConv over {len(sizes)} axes is not supported")
    axes = axes_of(sizes, kernel, "NOTSET", dilations, pads, strides)
    batch, channels, out = int(x.shape[0]), int(x.shape[1]), int(w.shape[0])
    counts, elements = tuple(a.count for a in axes), kernel[0] * kernel[1]
    dtype = x.dtype
    x, w, b, offset, mask = widened(x, w, b, offset, mask)
    moves = np.reshape(offset, (batch, offset_group, elements, 2, *counts))
    grid = np.meshgrid(*(np.arange(k) * a.dilation for k, a in zip(kernel, axes, strict=True)), indexing="ij")
    places = []
    for k, (a, inner) in enumerate(zip(axes, grid, strict=True)):
        shape = (-1, 1) if k == 0 else (1, -1)
        outer = np.reshape(np.arange(a.count) * a.stride - a.before, shape)
        places.append(moves[:, :, :, k] + (np.reshape(inner, (-1, 1, 1)) + outer).astype(x.dtype))
    each = channels // offset_group
    by_group = np.moveaxis(np.reshape(x, (batch, offset_group, each, *sizes)), 2, -1)
    images = np.arange(batch).reshape(-1, 1, 1, 1, 1)
    groups = np.arange(offset_group).reshape(1, -1, 1, 1, 1)
    total: Any = None
    for rows, of_rows in _moved_taps(places[0], sizes[0]):
        for columns, of_columns in _moved_taps(places[1], sizes[1]):
            part = item_of(by_group, (images, groups, rows, columns)) * (of_rows * of_columns)[..., None]
            total = part if total is None else total + part
    if mask is not None:
        total = total * np.reshape(mask, (batch, offset_group, elements, *counts))[..., None]
    read = np.transpose(total, (0, 1, 5, 2, 3, 4))  # images, groups, channels, elements of windows, places
    columns_of = np.reshape(read, (batch, group, channels // group * elements, counts[0] * counts[1]))
    y = np.reshape(np.reshape(w, (group, out // group, -1)) @ columns_of, (batch, out, *counts))
    return narrowed(y if b is None else y + np.reshape(b, (-1, 1, 1)), dtype)


def _moved_taps(places: Any, size: int) -> Sequence[tuple[Any, Any]]:
    """The two elements around each place, and their weights, which are zero outside."""
    below = np.floor(places)
    ratio = places - below

    def tap(at: Any, weight: Any) -> tuple[Any, Any]:
        inside = ((at >= 0) & (at <= size - 1)).astype(places.dtype)
        return np.minimum(np.maximum(at, 0), size - 1).astype(np.int64), weight * inside

    return tap(below, 1.0 - ratio), tap(below + 1.0, ratio)
