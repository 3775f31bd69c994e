"""Attention: means of values, weighted by how well their keys fit a query."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..python.pausing import unwatched
from ..tracing.handler_tables import created
from .dropout_masks import kept, numbers_drawn
from .layer_inputs import (
    array,
    detached,
    narrowed,
    real,
    result_dtype,
    widened,
    wrong_argument,
    wrong_dtype,
    wrong_shape,
)


@unwatched
def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """``softmax(query @ key.T * scale + attn_mask) @ value``, over the last two axes.

    Args:
        query: (..., L, E), floats.
        key: (..., S, E); the axes in front are broadcast.
        value: (..., S, V).
        attn_mask: broadcast to (..., L, S): bools, False where a query does not see a key; or floats to add, ``-inf``
            for the same. None = every query sees every key.
        dropout_p: the probability with which a weight is zero, the others being divided by ``1 - dropout_p``; it draws
            as `dropout` does, also in evaluation: pass 0 there.
        is_causal: a query at position l sees keys up to l alone; with no ``attn_mask``.
        scale: None = ``1 / sqrt(E)``.
        enable_gqa: key and value have fewer heads (axis -3) than query; each serves as many of its heads in a row.

    The result is (..., L, V), of the dtype that NumPy gives to the products; f16 and bf16 are computed in f32. A query
    that sees no key has a result of zeros, and no gradient. Raises ShapeError where sizes do not fit, ArgumentError for
    other values.
    """
    function = "scaled_dot_product_attention"
    for name, x in (("query", query), ("key", key), ("value", value)):
        array(function, name, x)
        if x.ndim < 2:
            raise wrong_shape(function, f"{name} has shape {tuple(x.shape)}", "pass it with two axes or more")
        real(function, name, x)
    if not 0.0 <= dropout_p <= 1.0:
        raise wrong_argument(function, f"dropout_p={dropout_p!r} is no probability", "pass a number from 0 to 1")
    if is_causal and attn_mask is not None:
        raise wrong_argument(function, "attn_mask with is_causal=True", "pass one of them")
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise wrong_shape(
            function,
            f"query has shape {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}",
            "pass them as (..., L, E), (..., S, E) and (..., S, V)",
        )
    if enable_gqa:
        key, value = (_for_heads(function, name, x, query) for name, x in (("key", key), ("value", value)))
    dtype = result_dtype(query, key, value)
    q, k, v = widened(query, key, value)
    length, keys = query.shape[-2], key.shape[-2]
    if scale is None:
        scale = 1.0 / math.sqrt(query.shape[-1]) if query.shape[-1] else 1.0
    scores = (q * scale) @ np.swapaxes(k, -1, -2)
    mask = attn_mask
    if is_causal:
        mask = created("arange", keys, dtype=np.int64) <= np.reshape(
            created("arange", length, dtype=np.int64), (length, 1)
        )
    if mask is not None:
        scores = _masked(function, scores, mask)
    weights = _weights(scores, masked=mask is not None) if keys else scores
    if dropout_p == 1.0:
        weights = weights * 0
    elif dropout_p:
        weights = np.where(kept(weights.shape, dropout_p, numbers_drawn()), weights / (1.0 - dropout_p), 0)
    return narrowed(weights @ v, dtype)


def _for_heads(function: str, name: str, x: Any, query: Any) -> Any:
    heads = query.shape[-3] if query.ndim > 2 else 0
    own = x.shape[-3] if x.ndim > 2 else 0
    if not own or heads % own:
        raise wrong_shape(
            function,
            f"enable_gqa=True with query of shape {tuple(query.shape)} and {name} of shape {tuple(x.shape)}",
            f"pass a {name} of which the number of heads, axis -3, divides that of query",
        )
    return np.repeat(x, heads // own, axis=-3)


def _masked(function: str, scores: Any, mask: Any) -> Any:
    array(function, "attn_mask", mask)
    pairs = zip(mask.shape[::-1], scores.shape[::-1], strict=False)
    if mask.ndim > scores.ndim or not all(size == count or size == 1 for size, count in pairs):
        raise wrong_shape(
            function,
            f"attn_mask has shape {tuple(mask.shape)}, where there are {tuple(scores.shape)} pairs",
            "pass a mask that broadcasts to (..., L, S)",
        )
    if mask.dtype.kind == "b":
        return np.where(mask, scores, -np.inf)
    if mask.dtype.kind not in "fV":
        raise wrong_dtype(function, f"attn_mask is of {mask.dtype}", "pass bools, or floats to add")
    return scores + narrowed(mask, scores.dtype)


def _weights(scores: Any, *, masked: bool) -> Any:
    """The softmax of scores; zeros in a row of ``-inf``."""
    top = detached(np.max(scores, axis=-1, keepdims=True))
    if not masked:
        e = np.exp(scores - top)
        return e / np.sum(e, axis=-1, keepdims=True)
    e = np.exp(scores - np.where(top == -np.inf, 0, top))
    total = np.sum(e, axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total)
