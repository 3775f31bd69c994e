"""Attention and encoder layers as single operators, which modules of torch take in evaluation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..aten_table import aten, refuse
from ..promotion import BOOL, cast
from ..tensors.product_operators import linear
from .activation_operators import gelu, relu, softmax
from .norm_operators import layer_norm


def _masked(scores: Any, mask: Any, mask_type: int | None) -> Any:
    """Scores (N, H, T, S) with -inf where a mask is not 0.

    Masks of type 0 are (T, S), of type 1 (N, S), of type 2 (N, H, T, S).
    """
    ranks = {0: 2, 1: 2, 2: 4}
    if mask_type not in ranks or mask.ndim != ranks[mask_type]:
        raise refuse("_native_multi_head_attention", f"with a mask of {mask.ndim} axes and type {mask_type}")
    mask = mask if mask.dtype == BOOL else mask != cast(0, mask.dtype)
    if mask_type == 1:
        mask = np.expand_dims(mask, (1, 2))
    return np.where(mask, cast(-math.inf, scores.dtype), scores)


@aten("_native_multi_head_attention")
def native_multi_head_attention(
    query: Any,
    key: Any,
    value: Any,
    embed_dim: int,
    num_head: int,
    qkv_weight: Any,
    qkv_bias: Any,
    proj_weight: Any,
    proj_bias: Any,
    mask: Any = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Any, Any]:
    parts = zip((query, key, value), np.split(qkv_weight, 3), np.split(qkv_bias, 3), strict=True)
    q, k, v = (_heads(linear(x, weight, bias), num_head) for x, weight, bias in parts)
    scores = np.matmul(q * cast(1 / math.sqrt(embed_dim // num_head), q.dtype), np.swapaxes(k, -1, -2))
    weights = softmax(scores if mask is None else _masked(scores, mask, mask_type), -1)
    joined = np.swapaxes(np.matmul(weights, v), 1, 2)
    out = linear(np.reshape(joined, (*joined.shape[:2], embed_dim)), proj_weight, proj_bias)
    if not need_weights:
        return out, None
    return out, np.mean(weights, axis=1) if average_attn_weights else weights


def _heads(x: Any, count: int) -> Any:
    return np.swapaxes(np.reshape(x, (*x.shape[:2], count, x.shape[2] // count)), 1, 2)


@aten("_transformer_encoder_layer_fwd")
def transformer_encoder_layer(
    src: Any,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Any,
    qkv_bias: Any,
    proj_weight: Any,
    proj_bias: Any,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Any,
    norm_bias_1: Any,
    norm_weight_2: Any,
    norm_bias_2: Any,
    ffn_weight_1: Any,
    ffn_bias_1: Any,
    ffn_weight_2: Any,
    ffn_bias_2: Any,
    mask: Any = None,
    mask_type: int | None = None,
) -> Any:
    def first_norm(x: Any) -> Any:
        return layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def second_norm(x: Any) -> Any:
        return layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    x = first_norm(src) if norm_first else src
    attention = (embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias)
    x = src + native_multi_head_attention(x, x, x, *attention, mask, need_weights=False, mask_type=mask_type)[0]
    if not norm_first:
        x = first_norm(x)
    inner = linear(second_norm(x) if norm_first else x, ffn_weight_1, ffn_bias_1)
    x = x + linear(gelu(inner) if use_gelu else relu(inner), ffn_weight_2, ffn_bias_2)
    return x if norm_first else second_norm(x)


__all__: list[str] = []
