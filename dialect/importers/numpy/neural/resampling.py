"""Images of other sizes: with rows and columns around them, and interpolated between their elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..python.pausing import unwatched
from .layer_inputs import SPATIAL, array, choice, narrowed, number, real, widened, wrong_argument, wrong_shape

_PADS = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
_LOWEST = -(2**62)
# For these factors, the place i / factor in f32 is rounded down to i // factor, for all i below 10**7.
_EXACT_FACTORS = range(1, 33)
_MODES = {1: ("nearest", "nearest-exact", "linear"), 2: ("nearest", "nearest-exact", "bilinear")}
_LINEAR = ("linear", "bilinear")


@unwatched
def pad(input: Any, pad: Sequence[int], mode: str = "constant", value: Any = None) -> Any:
    """``input`` with elements added around it, or, by negative numbers, taken away.

    Args:
        input: an array of any shape.
        pad: how many elements are added before and behind the last axis, then before and behind the one in front of
            it, and so on.
        mode: ``"constant"``: they are ``value``; ``"reflect"``: what lies as far on the other side of the edge;
            ``"replicate"``: the element at the edge; ``"circular"``: what lies at the other end.
        value: of ``"constant"`` alone; None = 0.

    The result has the dtype of ``input``. Raises ShapeError where ``input`` has too few axes, or too few elements to
    reflect or to leave out; ArgumentError for other values.
    """
    array("pad", "input", input)
    choice("pad", "mode", mode, tuple(_PADS))
    if not isinstance(pad, (tuple, list)) or len(pad) % 2:
        raise wrong_argument(
            "pad", f"pad={pad!r} has no even number of entries", "pass two for each axis, the last first"
        )
    amounts = [number("pad", "pad", amount, _LOWEST) for amount in pad]
    if len(amounts) > 2 * input.ndim:
        raise wrong_shape("pad", f"pad={tuple(amounts)} is for more than the {input.ndim} axes of input", "pass fewer")
    if value is not None and mode != "constant":
        raise wrong_argument("pad", f"value={value!r} with mode={mode!r}", "leave value out, or pass mode='constant'")
    pairs = [(0, 0)] * (input.ndim - len(amounts) // 2)
    pairs += [(amounts[k], amounts[k + 1]) for k in reversed(range(0, len(amounts), 2))]
    for axis, (before, behind) in enumerate(pairs):
        if before or behind:
            _check_pad(axis, input.shape, before, behind, mode)
    x = input
    if mode == "circular":  # what is left out does not come back at the other end
        x, pairs = _cropped(x, pairs), [(max(before, 0), max(behind, 0)) for before, behind in pairs]
    widths = [(max(before, 0), max(behind, 0)) for before, behind in pairs]
    if any(map(any, widths)):
        own: dict[str, Any] = {"mode": _PADS[mode]}
        if mode == "constant":
            own["constant_values"] = 0 if value is None else value
        x = np.pad(x, widths, **own)
    return _cropped(x, pairs)


def _cropped(x: Any, pairs: Sequence[tuple[int, int]]) -> Any:
    if all(amount >= 0 for pair in pairs for amount in pair):
        return x
    return x[tuple(slice(max(-before, 0), min(behind, 0) or None) for before, behind in pairs)]


def _check_pad(axis: int, shape: tuple[int, ...], before: int, behind: int, mode: str) -> None:
    size, most = shape[axis], max(before, behind)
    hint = "pass smaller numbers, or mode='constant'"
    if size + before + behind < 0 or size < -before or size < -behind:
        raise wrong_shape(
            "pad", f"axis {axis} of input, shape {tuple(shape)}, has fewer elements than are left out", hint
        )
    if mode == "constant" or most <= 0:
        return
    if size < 1 or (mode == "reflect" and most >= size) or (mode == "circular" and most > size):
        raise wrong_shape(
            "pad",
            f"axis {axis} of input, shape {tuple(shape)}, has too few elements for mode={mode!r} and {most}",
            hint,
        )


@unwatched
def interpolate(
    input: Any,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Any:
    """Images with another number of rows and columns.

    Args:
        input: (N, C, H, W), or (N, C, L).
        size: of the result along H and W, or L: one integer, or one per axis.
        scale_factor: in place of ``size``, by what sizes are multiplied, and then rounded down.
        mode: ``"nearest"``: the element at the index times the scale, rounded down; ``"nearest-exact"``: the one
            nearest to the centre; ``"linear"`` of (N, C, L) and ``"bilinear"`` of (N, C, H, W): the means of the two
            nearest along each axis, weighted by distance.
        align_corners: of the linear modes: the centres of the first and the last elements stay where they are, not the
            edges of these.
        recompute_scale_factor: places follow from the sizes, not from ``scale_factor``.

    Floats keep their dtype; f16 and bf16 are computed in f32; the linear modes want floats. Graphs hold for the sizes
    of ``input`` behind C, but for "nearest" with an integer up to 32 as ``scale_factor``. Raises ShapeError for other
    shapes, ArgumentError for other values.
    """
    array("interpolate", "input", input, (3, 4), "(N, C, L) or (N, C, H, W)")
    count = input.ndim - 2
    choice("interpolate", "mode", mode, _MODES[count])
    if align_corners is not None and mode not in _LINEAR:
        raise wrong_argument(
            "interpolate", f"align_corners with mode={mode!r}", f"leave it out, or pass {_MODES[count][-1]!r}"
        )
    if (size is None) == (scale_factor is None):
        raise wrong_argument("interpolate", "not one of size and scale_factor is given", "pass one of them")
    if recompute_scale_factor and size is not None:
        raise wrong_argument("interpolate", "recompute_scale_factor=True with size", "leave it out")
    if mode in _LINEAR:
        real("interpolate", "input", input)
    x = widened(input)[0] if mode in _LINEAR else input
    sizes, scales = ((), _scales(scale_factor, count)) if size is None else (_sizes(size, count), ())
    for k, name in enumerate(SPATIAL[count]):
        axis = k + 2
        if scales and mode == "nearest" and scales[k] in _EXACT_FACTORS:
            x = np.repeat(x, int(scales[k]), axis=axis) if scales[k] > 1 else x
            continue
        have = number("interpolate", "input.shape", x.shape[axis], 1)
        out = math.floor(have * scales[k]) if scales else sizes[k]
        if out < 1:
            raise wrong_argument(
                "interpolate",
                f"scale_factor={scale_factor!r} leaves nothing of {have} along {name}",
                "pass a larger one",
            )
        step = 1.0 / scales[k] if scales and not recompute_scale_factor else have / out
        x = resampled(x, axis, have, out, step, mode, bool(align_corners))
    return narrowed(x, input.dtype)


def _scales(scale_factor: Any, count: int) -> Sequence[float]:
    each = list(scale_factor) if isinstance(scale_factor, (tuple, list)) else [scale_factor] * count
    are_numbers = all(isinstance(scale, (int, float, np.number)) for scale in each)
    if len(each) != count or not are_numbers or not all(0 < scale < math.inf for scale in each):
        raise wrong_argument(
            "interpolate", f"scale_factor={scale_factor!r}", f"pass a positive number, or {count}: one per axis"
        )
    return [float(scale) for scale in each]


def _sizes(size: Any, count: int) -> Sequence[int]:
    each = list(size) if isinstance(size, (tuple, list)) else [size] * count
    if len(each) != count:
        raise wrong_argument(
            "interpolate", f"size={size!r} has {len(each)} entries", f"pass one integer, or {count}: one per axis"
        )
    return [number("interpolate", "size", n, 1) for n in each]


def resampled(x: Any, axis: int, have: int, out: int, step: float, mode: str, align: bool) -> Any:
    """``x`` with ``out`` elements along an axis, in place of ``have``, which are ``step`` of these apart."""
    if out == have and mode != "nearest-exact":
        return x
    places = np.arange(out)
    if mode not in _LINEAR:
        # Places are f32 in all libraries for neural networks, which decides where they are rounded.
        shift = np.float32(0.5 if mode == "nearest-exact" else 0)
        index = np.floor((places.astype(np.float32) + shift) * np.float32(step)).astype(np.int64)
        is_doubled = mode == "nearest" and out == 2 * have
        return np.take(x, places // 2 if is_doubled else np.minimum(index, have - 1), axis=axis)
    if align:
        source = places * ((have - 1) / (out - 1) if out > 1 else 0.0)
    else:
        source = np.maximum((places + 0.5) * step - 0.5, 0.0)
    low = np.minimum(source.astype(np.int64), have - 1)
    share = np.clip(source - low, 0.0, 1.0).astype(x.dtype).reshape(out, *(1,) * (x.ndim - axis - 1))
    first, second = np.take(x, low, axis=axis), np.take(x, np.minimum(low + 1, have - 1), axis=axis)
    return first * (1 - share) + second * share
