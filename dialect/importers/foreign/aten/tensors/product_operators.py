"""Products of matrices and vectors, covariances, and attention."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....numpy.neural.attention import scaled_dot_product_attention
from ...on_host import on_host
from ..aten_table import aten, refuse
from ..demands import demanded
from ..promotion import BOOL, INT64, cast, category, is_integral, widened
from .binary_operators import add, div, mul, sub
from .reduction_operators import sum_


def of_one_dtype(name: str, *operands: Any) -> None:
    """Raise TraceError for operands of two dtypes, an error of torch's kernels of which its shapes do not tell."""
    dtypes = {x.dtype: None for x in operands if x is not None}
    if len(dtypes) > 1:
        raise refuse(name, f"on {' and '.join(map(str, dtypes))}")


def product(a: Any, b: Any) -> Any:
    """``a @ b`` in the dtype of both; sums of f16 and bf16 are made in f32."""
    of_one_dtype("matmul", a, b)
    dtype = a.dtype
    if dtype == BOOL:
        raise refuse("matmul", "on bools")
    wide = widened(dtype)
    return cast(np.matmul(cast(a, wide), cast(b, wide)), dtype)


@aten("mm", "bmm", "mv", "linalg_matmul")
def mm(self: Any, mat2: Any) -> Any:
    return product(self, mat2)


@aten("matmul", "__matmul__")
def matmul(self: Any, other: Any) -> Any:
    return product(self, other)


@aten("dot")
def dot(self: Any, tensor: Any) -> Any:
    return product(self, tensor)


@aten("vdot")
def vdot(self: Any, other: Any) -> Any:
    return product(np.conj(self) if category(self.dtype) == 3 else self, other)


@aten("linalg_vecdot")
def vecdot(x: Any, y: Any, *, dim: int = -1) -> Any:
    return sum_((np.conj(x) if category(x.dtype) == 3 else x) * y, dim, dtype=x.dtype)


def _times(x: Any, factor: Any) -> Any:
    return x if type(factor) in (int, float) and factor == 1 else x * cast(factor, x.dtype)


def _sum_of(self: Any, product_: Any, beta: Any, alpha: Any) -> Any:
    """``beta * self + alpha * product``; with beta 0, NaN of ``self`` does not count."""
    scaled = _times(product_, alpha)
    if type(beta) in (int, float, bool) and beta == 0:
        return scaled if self.ndim <= scaled.ndim else np.broadcast_to(scaled, self.shape)
    return _times(cast(self, scaled.dtype), beta) + scaled


@aten("addmm", "baddbmm", "addmv")
def addmm(self: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    of_one_dtype("addmm", self, mat1, mat2)
    return _sum_of(self, product(mat1, mat2), beta, alpha)


@aten("addbmm")
def addbmm(self: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    of_one_dtype("addbmm", self, batch1, batch2)
    return _sum_of(self, np.sum(product(batch1, batch2), axis=0, dtype=batch1.dtype), beta, alpha)


@aten("addr")
def addr(self: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    outer_product = mul(vec1[:, None], vec2)
    if self.dtype == outer_product.dtype == BOOL:
        scaled = outer_product if alpha else outer_product & False
        return scaled | self if beta else scaled
    if type(beta) in (int, float, bool) and beta == 0:
        return mul(outer_product, alpha)
    return add(mul(self, beta), mul(outer_product, alpha))


@aten("outer", "ger")
def outer(self: Any, vec2: Any) -> Any:
    return mul(self[:, None], vec2)


@aten("linear")
def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    of_one_dtype("linear", input, weight, bias)
    y = product(input, np.transpose(weight))
    return y if bias is None else y + bias


@aten("cov")
def cov(self: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    rows = self if self.ndim == 2 else np.reshape(self, (1, -1))
    if self.dtype == BOOL or self.ndim > 2 or not int(rows.shape[1]):
        raise refuse("cov", "of bools, of more than two axes, or of nothing")
    weights, total, norm = _weights_of_columns(int(rows.shape[1]), correction, fweights, aweights)
    x = sub(rows, div(sum_(_weighted(rows, weights), 1, True), total))
    y = _weighted(x, weights)
    y = div(product(x, np.transpose(np.conj(y) if category(y.dtype) == 3 else y)), norm)
    return np.squeeze(y, axis=tuple(k for k in range(2) if int(y.shape[k]) == 1))


def _weighted(x: Any, weights: Any) -> Any:
    return x if weights is None else mul(x, weights)


def _weights_of_columns(count: int, correction: int, fweights: Any, aweights: Any) -> tuple[Any, Any, Any]:
    """The weight of each observation, None for 1; the sum of the weights; and what a covariance is divided by."""
    if fweights is None and aweights is None:
        return None, count, max(count - correction, 0)
    if fweights is not None:
        fweights = demanded(fweights, fweights >= 0, "cov(): fweights cannot be negative")
    if aweights is not None:
        aweights = demanded(aweights, aweights >= 0, "cov(): aweights cannot be negative")
    weights = fweights if aweights is None else aweights if fweights is None else mul(fweights, aweights)
    total = sum_(weights)
    total = demanded(total, total != 0, "cov(): weights sum to zero, can't be normalized")
    lost: Any = correction
    if aweights is not None and correction:
        lost = mul(div(sum_(mul(weights, aweights)), total), correction)
    norm = sub(total, lost)
    return weights, total, np.maximum(norm, cast(0, norm.dtype))


@aten("corrcoef")
def corrcoef(self: Any) -> Any:
    y = cov(self)
    if not y.ndim:
        return y / y
    deviation = np.sqrt(np.real(np.diagonal(y)) if category(y.dtype) == 3 else np.diagonal(y))
    y = y / deviation[:, None] / deviation[None, :]
    if category(y.dtype) == 3:
        return np.clip(np.real(y), -1, 1) + cast(1j, y.dtype) * np.clip(np.imag(y), -1, 1)
    return np.minimum(np.maximum(y, cast(-1, y.dtype)), cast(1, y.dtype))


@aten("einsum")
def einsum(equation: str, tensors: Any, *, path: Any = None) -> Any:
    if len(tensors) == 1 and is_integral(tensors[0].dtype):  # of one tensor torch makes a sum, where an axis goes
        names, _, kept = equation.replace(" ", "").partition("->")
        if "->" not in equation or set(names) - set(kept):
            tensors = (cast(tensors[0], INT64),)
    return np.einsum(equation, *tensors)


@aten("_trilinear")
def trilinear(
    i1: Any, i2: Any, i3: Any, expand1: Any, expand2: Any, expand3: Any, sumdim: Any, unroll_dim: int = 1
) -> Any:
    ndim = i1.ndim + len(expand1)
    a, b, c = (
        np.expand_dims(x, tuple(dim % ndim for dim in dims)) if dims else x
        for x, dims in ((i1, expand1), (i2, expand2), (i3, expand3))
    )
    wide = widened(a.dtype)
    each = cast(a, wide) * cast(b, wide) * cast(c, wide)
    return cast(np.sum(each, axis=tuple(sumdim), dtype=wide) if sumdim else each, a.dtype)


@aten("scaled_dot_product_attention")
def attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    return scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )


@aten("_scaled_dot_product_flash_attention_for_cpu")
def flash_attention(
    query: Any,
    key: Any,
    value: Any,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Any = None,
    scale: float | None = None,
) -> tuple[Any, Any]:
    out = scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale=scale)
    return out, None  # the logarithms of sums are for torch's own backward alone


# --- products of groups, as of mixtures of experts ------------------------------------------------------------


@aten("transformers::grouped_mm_fallback")
def grouped_product(input: Any, weight: Any, offs: Any) -> Any:
    """Rows (S, I), in groups that end at ``offs`` (E,), each with its matrix of (E, I, O); zeros behind all groups."""
    dtype = input.dtype
    x, w = (cast(part, widened(dtype)) for part in (input, weight))
    return cast(on_host("profuse.grouped_product", x, w, offs), dtype)


@aten("_grouped_mm")
def grouped_mm(self: Any, mat2: Any, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Any:
    dtype = self.dtype if out_dtype is None else out_dtype
    ranks = self.ndim, mat2.ndim
    if bias is not None or (offs is None) != (ranks == (3, 3)) or ranks == (3, 2):
        raise refuse("_grouped_mm", f"of tensors with {ranks[0]} and {ranks[1]} axes, or with a bias")
    x, y = (cast(part, widened(part.dtype)) for part in (self, mat2))
    if ranks == (3, 3):
        return cast(np.matmul(x, y), dtype)
    if ranks == (2, 2):  # groups of what is summed over
        return cast(on_host("profuse.grouped_outer", np.swapaxes(x, 0, 1), y, offs), dtype)
    return cast(on_host("profuse.grouped_product", x, y, offs), dtype)
