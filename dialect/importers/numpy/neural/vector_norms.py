"""Vectors along axes of an array: of length 1, and how well two of them agree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..python.pausing import unwatched
from .layer_inputs import array, axis, narrowed, real, widened, wrong_argument, wrong_shape


@unwatched
def normalize(input: Any, p: float = 2.0, dim: int | Sequence[int] = 1, eps: float = 1e-12) -> Any:
    """``input`` over its p-norm along axes.

    Args:
        input: a float array.
        p: of the norm, positive; ``inf``: the largest absolute value.
        dim: the axis of the vectors, or several.
        eps: what is divided by, where the norm is smaller.

    The result has the dtype and shape of ``input``; f16 and bf16 are computed in f32. Vectors of zeros stay zeros, and
    have gradients. Raises AxisError where there is no axis ``dim``, ArgumentError for another ``p``.
    """
    array("normalize", "input", input)
    real("normalize", "input", input)
    if not p > 0:
        raise wrong_argument("normalize", f"p={p!r} is not positive", "pass a positive number, or np.inf")
    dims = dim if isinstance(dim, (tuple, list)) else (dim,)
    axes = tuple(axis("normalize", "dim", one, input.ndim) for one in dims)
    x = widened(input)[0]
    return narrowed(x / _at_least(_norm(x, p, axes), eps), input.dtype)


@unwatched
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """The cosines of the angles between vectors: their products over the products of their lengths.

    Args:
        x1, x2: float arrays, which are broadcast.
        dim: the axis of the vectors, in what they are broadcast to.
        eps: what is divided by in place of each length, where that is smaller.

    The result has their shape without the axis, of the dtype that NumPy gives to products; f16 and bf16 are computed in
    f32. Raises ShapeError where shapes do not fit, AxisError where there is no axis ``dim``.
    """
    function = "cosine_similarity"
    for name, x in (("x1", x1), ("x2", x2)):
        array(function, name, x)
        real(function, name, x)
    ndim = max(x1.ndim, x2.ndim)
    at = axis(function, "dim", dim, ndim) - ndim
    try:
        np.broadcast_shapes(tuple(x1.shape), tuple(x2.shape))
    except ValueError:
        raise wrong_shape(
            function, f"x1 has shape {tuple(x1.shape)}, x2 {tuple(x2.shape)}", "pass shapes that broadcast"
        ) from None
    dtype = np.result_type(x1.dtype, x2.dtype)
    first, second = np.broadcast_arrays(*widened(x1, x2))
    units = [x / _at_least(_norm(x, 2.0, (at,)), eps) for x in (first, second)]
    return narrowed(np.sum(units[0] * units[1], axis=at), dtype)


def _norm(x: Any, p: float, axes: tuple[int, ...]) -> Any:
    """The p-norm along axes, which stay; the gradient of a vector of zeros is 0."""
    if p == math.inf:
        return np.max(np.abs(x), axis=axes, keepdims=True)
    if p == 1:
        return np.sum(np.abs(x), axis=axes, keepdims=True)
    powers = np.sum(x * x if p == 2 else np.abs(x) ** p, axis=axes, keepdims=True)
    is_zero = powers == 0  # roots have no slope there
    roots = np.where(is_zero, 1, powers)
    return np.where(is_zero, 0, np.sqrt(roots) if p == 2 else roots ** (1.0 / p))


def _at_least(norms: Any, eps: float) -> Any:
    """Norms, none of which is below ``eps``; NaN stays NaN."""
    return np.where(norms < eps, eps, norms)
