"""Cases of the ops of neural networks. References are written out in NumPy, step by step."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from cases import Attrs, array, laid_out, register
from profuse.dialect.ir.attrs import DYNAMIC
from profuse.dialect.ir.dtypes import BF16, F16, F32, F64, I64, DType
from reduction_cases import Args

FLOATS = (F16, BF16, F32, F64)
Arrays = tuple[np.ndarray, ...]


def wide(x: np.ndarray) -> np.ndarray:
    """What is computed of 16-bit floats is computed in f32."""
    return x.astype(np.float32) if x.itemsize == 2 else x


def parts(attrs: Attrs, values: Arrays, count: int) -> list[Any]:
    """Optional operands, None for those that ``given`` leaves out."""
    left = iter(values)
    return [next(left) if attrs.get("given", 0) >> k & 1 else None for k in range(count)]


def floats(rng: np.random.Generator, dtype: DType, *shapes: tuple[int, ...]) -> Arrays:
    return tuple(array(dtype, shape, rng) for shape in shapes)


def size_of(*args: Any) -> np.ndarray:
    """Terms of some tens are added up and cancel."""
    return np.asarray(32.0)


# --- activations and softmaxes ----------------------------------------------------------------


def gelu_reference(a: Attrs, x: np.ndarray) -> np.ndarray:
    from scipy.special import erf

    v = wide(x)
    if a.get("approximate") == "tanh":
        share = np.tanh((v + v * v * v * 0.044715) * math.sqrt(2 / math.pi))
    else:
        share = erf(v * math.sqrt(0.5))
    return (v * 0.5 * (share + 1.0)).astype(x.dtype)


@register("gelu", reference=gelu_reference, dtypes=FLOATS, tolerance=16, added=size_of)
def gelu(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for attrs in ({}, {"approximate": "tanh"}):
        yield attrs, (array(dtype, (4, 5), rng),)
        yield attrs, (laid_out("strided", dtype, (3, 7), rng),)
        yield attrs, (array(dtype, (0, 3), rng),)


def silu_reference(a: Attrs, x: np.ndarray) -> np.ndarray:
    from scipy.special import expit

    return (wide(x) * expit(wide(x))).astype(x.dtype)


@register("silu", reference=silu_reference, dtypes=FLOATS, tolerance=16, added=size_of)
def silu(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    yield {}, (array(dtype, (4, 5), rng),)
    yield {}, (laid_out("transposed", dtype, (3, 7), rng),)


def softmax_reference(a: Attrs, x: np.ndarray) -> np.ndarray:
    x = x if a.get("dtype") is None else x.astype(a["dtype"].numpy)
    v, axis = wide(x), a.get("axis", -1)
    e = np.exp(v - np.max(v, axis, keepdims=True))
    return (e / np.sum(e, axis, keepdims=True)).astype(x.dtype)


def log_softmax_reference(a: Attrs, x: np.ndarray) -> np.ndarray:
    x = x if a.get("dtype") is None else x.astype(a["dtype"].numpy)
    v, axis = wide(x), a.get("axis", -1)
    shifted = v - np.max(v, axis, keepdims=True)
    return (shifted - np.log(np.sum(np.exp(shifted), axis, keepdims=True))).astype(x.dtype)


def logits(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for axis in (0, -1):
        yield {"axis": axis}, (array(dtype, (4, 5), rng),)
        yield {"axis": axis}, (laid_out("strided", dtype, (2, 3, 4), rng),)
    yield {}, (array(dtype, (2, 1), rng) * 30,)
    yield {"dtype": F64}, (array(dtype, (3, 4), rng),)


register("softmax", reference=softmax_reference, dtypes=FLOATS, tolerance=16)(logits)
register("log_softmax", reference=log_softmax_reference, dtypes=FLOATS, tolerance=16, added=size_of)(logits)


def softmax_backward_reference(a: Attrs, g: np.ndarray, y: np.ndarray) -> np.ndarray:
    axis, out = a.get("axis", -1), g.dtype if a.get("dtype") is None else a["dtype"].numpy
    g, y = wide(g), wide(y)
    return (y * (g - np.sum(g * y, axis, keepdims=True))).astype(out)


def log_softmax_backward_reference(a: Attrs, g: np.ndarray, y: np.ndarray) -> np.ndarray:
    axis, out = a.get("axis", -1), g.dtype if a.get("dtype") is None else a["dtype"].numpy
    g, y = wide(g), wide(y)
    return (g - np.exp(y) * np.sum(g, axis, keepdims=True)).astype(out)


def shares(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for axis in (0, -1):
        yield {"axis": axis}, (array(dtype, (4, 5), rng), -abs(array(dtype, (4, 5), rng)) / 4)
    yield {"dtype": F32}, (array(dtype, (3, 4), rng), -abs(array(dtype, (3, 4), rng)))


register("softmax_backward", reference=softmax_backward_reference, dtypes=FLOATS, tolerance=16, added=size_of)(shares)
register("log_softmax_backward", reference=log_softmax_backward_reference, dtypes=FLOATS, tolerance=16, added=size_of)(
    shares
)


# --- normalisations ---------------------------------------------------------------------------


def normalised(x: np.ndarray, axes: tuple[int, ...], eps: float) -> Arrays:
    count = math.prod(x.shape[k] for k in axes)
    mean = np.add.reduce(x, axes, keepdims=True) / count
    d = x - mean
    rstd = np.reciprocal(np.sqrt(np.add.reduce(d * d, axes, keepdims=True) / count + eps))
    return d * rstd, mean, rstd


def layer_norm_reference(a: Attrs, x: np.ndarray, *rest: np.ndarray) -> Arrays:
    weight, bias = parts(a, rest, 2)
    if x.shape[-len(a["shape"]) :] != a["shape"]:
        raise ValueError("sizes")
    y, mean, rstd = normalised(wide(x), tuple(range(x.ndim - len(a["shape"]), x.ndim)), a.get("eps", 1e-5))
    y = y if weight is None else y * wide(weight)
    y = y if bias is None else y + wide(bias)
    return y.astype(x.dtype), mean, rstd


@register("native_layer_norm", reference=layer_norm_reference, dtypes=FLOATS, tolerance=16, added=size_of)
def layer_norm(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for shape, given in (((5,), 3), ((4, 5), 1), ((5,), 2), ((4, 5), 0)):
        present = floats(rng, dtype, *[shape] * given.bit_count())
        attrs = {"shape": shape} | ({"given": given} if given else {})
        yield attrs, (array(dtype, (3, 4, 5), rng), *present)
        yield attrs | {"eps": 0.5}, (laid_out("strided", dtype, (3, 4, 5), rng), *present)
    yield {"shape": (4,)}, (array(dtype, (3, 5), rng),)


def layer_norm_backward_reference(
    a: Attrs, grad: np.ndarray, x: np.ndarray, mean: np.ndarray, rstd: np.ndarray, *rest: np.ndarray
) -> Arrays:
    weight, bias = parts(a, rest, 2)
    lead = x.ndim - len(a["shape"])
    inner, outer = tuple(range(lead, x.ndim)), tuple(range(lead))
    count = math.prod(a["shape"])
    g, r = wide(grad), wide(rstd)
    n = (wide(x) - wide(mean)) * r
    h = g * wide(weight)
    over = lambda v: np.add.reduce(v, inner, keepdims=True) / count  # noqa: E731
    gx = r * (h - over(h) - n * over(h * n))
    results = gx.astype(x.dtype), np.add.reduce(g * n, outer).astype(weight.dtype)
    return *results, np.add.reduce(g, outer).astype(bias.dtype)


@register(
    "native_layer_norm_backward", reference=layer_norm_backward_reference, dtypes=FLOATS, tolerance=16, added=size_of
)
def layer_norm_backward(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    stats = F32 if dtype.bits == 16 else dtype
    for shape in ((5,), (4, 5)):
        sizes = (3, 4, 5)
        apart = (*sizes[: 3 - len(shape)], *(1,) * len(shape))
        args = (*floats(rng, dtype, sizes, sizes), *floats(rng, stats, apart, apart), *floats(rng, dtype, shape, shape))
        yield {"shape": shape, "given": 3}, args


def group_norm_reference(a: Attrs, x: np.ndarray, *rest: np.ndarray) -> Arrays:
    weight, bias = parts(a, rest, 2)
    count, channels, *others = x.shape
    if channels % a["groups"]:
        raise ValueError("groups")
    v = wide(x).reshape(count, a["groups"], channels // a["groups"], *others)
    y, mean, rstd = normalised(v, tuple(range(2, v.ndim)), a.get("eps", 1e-5))
    along = (a["groups"], channels // a["groups"], *(1,) * len(others))
    y = y if weight is None else y * wide(weight).reshape(along)
    y = y if bias is None else y + wide(bias).reshape(along)
    stats = (count, a["groups"])
    return y.reshape(x.shape).astype(x.dtype), mean.reshape(stats), rstd.reshape(stats)


@register(
    "native_group_norm", reference=group_norm_reference, dtypes=FLOATS, tolerance=16, added=size_of, symbolic=False
)
def group_norm(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for groups, given in ((3, 3), (2, 0), (1, 2), (4, 1)):
        attrs = {"groups": groups} | ({"given": given} if given else {})
        present = floats(rng, dtype, *[(6,)] * given.bit_count())
        yield attrs, (array(dtype, (2, 6, 3, 4), rng), *present)
        yield attrs, (array(dtype, (3, 6), rng), *present)


def by_channel(values: Any, x: np.ndarray) -> Any:
    return None if values is None else wide(values).reshape(1, -1, *(1,) * (x.ndim - 2))


def batch_norm_reference(a: Attrs, x: np.ndarray, *rest: np.ndarray) -> Arrays:
    """All results of `native_batch_norm`."""
    weight, bias, mean_before, var_before = parts(a, rest, 4)
    axes, v, eps = (0, *range(2, x.ndim)), wide(x), a.get("eps", 1e-5)
    count = x.size // x.shape[1]
    if a["training"]:
        if count == 1:
            raise ValueError("one value")
        count = v.dtype.type(count)
        total = np.add.reduce(v, axes, keepdims=True) / count
        d = v - total
        var = np.add.reduce(d * d, axes, keepdims=True) / count
        rstd = np.reciprocal(np.sqrt(var + eps))
        y, mean, rstd, var = d * rstd, total.reshape(-1), rstd.reshape(-1), var.reshape(-1)
        m = a.get("momentum", 0.1)
        mixed = lambda old, new: (wide(old) * (1 - m) + new * m).astype(old.dtype)  # noqa: E731
        none = np.empty(0, v.dtype)
        running = (
            (none, none)
            if mean_before is None
            else (mixed(mean_before, mean), mixed(var_before, var * (count / (count - 1))))
        )
        saved = mean, rstd
    else:
        rstd = np.reciprocal(np.sqrt(wide(var_before) + eps))
        y = (v - by_channel(mean_before, x)) * by_channel(rstd, x)
        saved, running = (np.empty(0, v.dtype),) * 2, (mean_before, var_before)
    y = y if weight is None else y * by_channel(weight, x)
    y = y if bias is None else y + by_channel(bias, x)
    return y.astype(x.dtype), *saved, *running


def batches(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for training in (True, False):
        for shape in ((4, 3), (2, 3, 4, 5)):
            for given in (15, 12):
                present = floats(rng, dtype, *[(3,)] * given.bit_count())
                attrs = {"training": training, "given": given}
                yield attrs, (array(dtype, shape, rng), *present[:-1], abs(present[-1]) + 1)
    yield {"training": True, "given": 12}, floats(rng, dtype, (1, 3, 1), (3,), (3,))
    yield {"training": True, "given": 1}, floats(rng, dtype, (4, 3, 2), (3,))


def indexed(a: Attrs, x: np.ndarray, *rest: np.ndarray) -> tuple[Any, ...]:
    y, mean, rstd, *running = batch_norm_reference(a, x, *rest)
    return y, mean, rstd, np.empty(0, np.uint8), 0, *running


_NORM = {"dtypes": FLOATS, "tolerance": 16, "added": size_of}
register("batch_norm", reference=lambda a, x, *r: batch_norm_reference(a, x, *r)[0], **_NORM)(batches)
register("native_batch_norm", reference=batch_norm_reference, **_NORM)(batches)
register("batch_norm_index", reference=indexed, **_NORM)(batches)


def count_reference(a: Attrs, count: int) -> Any:
    if count == 1:
        raise ValueError("one value")
    return a["dtype"].numpy.type(count)


@register("values_per_channel", reference=count_reference, dtypes=(F32, F64))
def values_per_channel(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for count in (0, 1, 2, 40):
        yield {"dtype": dtype}, (count,)


def batch_norm_backward_reference(a: Attrs, grad: np.ndarray, x: np.ndarray, *rest: np.ndarray) -> Arrays:
    weight, mean_before, var_before, mean, rstd = parts(a, rest, 5)
    axes, g, v = (0, *range(2, x.ndim)), wide(grad), wide(x)
    count = x.size // x.shape[1]
    if a["training"]:
        mean, rstd = wide(mean), wide(rstd)
    else:
        mean, rstd = wide(mean_before), np.reciprocal(np.sqrt(wide(var_before) + a.get("eps", 1e-5)))
    n = (v - by_channel(mean, x)) * by_channel(rstd, x)
    count = v.dtype.type(count)
    gb, gw = (np.add.reduce(t, axes, keepdims=True) for t in (g, g * n))
    inner = g - gb / count - n * (gw / count) if a["training"] else g
    gx = by_channel(rstd * wide(weight), x) * inner
    return gx.astype(x.dtype), gw.reshape(-1).astype(weight.dtype), gb.reshape(-1).astype(weight.dtype)


@register("native_batch_norm_backward", reference=batch_norm_backward_reference, **_NORM)
def batch_norm_backward(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    stats = F32 if dtype.bits == 16 else dtype
    for shape in ((4, 3), (2, 3, 4, 5)):
        x, g = floats(rng, dtype, shape, shape)
        w, m, v = floats(rng, stats, (3,), (3,), (3,))
        yield {"training": True, "given": 0b11001}, (g, x, w, m, abs(v))
        yield {"training": False, "given": 0b00111}, (g, x, w, m, abs(v))


@register(
    "batch_norm_index_backward",
    reference=lambda a, index, x, g, *r: batch_norm_backward_reference(a, g, x, *r[:-1]),
    **_NORM,
)
def batch_norm_index_backward(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for attrs, (g, x, *rest) in batch_norm_backward(dtype, rng):
        yield attrs, (0, x, g, *rest, np.empty(0, np.uint8))


# --- products ---------------------------------------------------------------------------------


def linear_reference(a: Attrs, x: np.ndarray, w: np.ndarray, *rest: np.ndarray) -> np.ndarray:
    y = np.matmul(wide(x), wide(w).T)
    return (y + wide(rest[0]) if rest else y).astype(x.dtype)


@register("linear", reference=linear_reference, dtypes=FLOATS, tolerance=16, added=size_of)
def linear(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    yield {}, floats(rng, dtype, (3, 4), (5, 4))
    yield {"given": 1}, floats(rng, dtype, (2, 3, 4), (5, 4), (5,))
    yield {"given": 1}, floats(rng, dtype, (2, 3, 4), (4,), ())
    yield {}, floats(rng, dtype, (3, 4), (5, 3))


_STEPS = (("stride", (1, 1)), ("padding", (0, 0)), ("dilation", (1, 1)))


def conv2d_reference(a: Attrs, x: np.ndarray, w: np.ndarray, *rest: np.ndarray) -> np.ndarray:
    """Sums over the elements of the window, one by one, in f64."""
    (sy, sx), (py, px), (dy, dx) = (
        a.get(k, d) for k, d in (("stride", (1, 1)), ("padding", (0, 0)), ("dilation", (1, 1)))
    )
    groups, (count, channels, _, _), (outs, members, kh, kw) = a.get("groups", 1), x.shape, w.shape
    if channels != members * groups or outs % groups:
        raise ValueError("channels")
    v = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (py, py), (px, px)))
    rows, columns = (
        (n - d * (k - 1) - 1) // s + 1 for n, d, k, s in zip(v.shape[2:], (dy, dx), (kh, kw), (sy, sx), strict=True)
    )
    if rows < 1 or columns < 1:
        raise ValueError("window")
    y = np.zeros((count, outs, rows, columns))
    for o in range(outs):
        first = o // (outs // groups) * members
        for i in range(kh):
            for k in range(kw):
                part = v[:, first : first + members, i * dy :: sy, k * dx :: sx][:, :, :rows, :columns]
                y[:, o] += np.einsum("nchw,c->nhw", part, w[o, :, i, k].astype(np.float64))
    if rest:
        y += rest[0].astype(np.float64).reshape(1, -1, 1, 1)
    return y.astype(x.dtype)


def images(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    x = array(dtype, (2, 4, 7, 6), rng)
    yield {}, (x, array(dtype, (3, 4, 3, 2), rng))
    yield {"stride": (2, 1), "padding": (1, 2), "given": 1}, (x, *floats(rng, dtype, (3, 4, 3, 2), (3,)))
    yield {"dilation": (2, 1), "groups": 2}, (x, array(dtype, (6, 2, 3, 2), rng))
    yield {"groups": 4, "padding": (1, 1), "stride": (2, 2), "dilation": (1, 2)}, (x, array(dtype, (4, 1, 3, 3), rng))
    yield {}, (x, array(dtype, (3, 4, 1, 1), rng))
    yield {}, (x, array(dtype, (3, 4, 8, 1), rng))
    yield {"groups": 3}, (x, array(dtype, (3, 4, 3, 2), rng))


# --- dropout ----------------------------------------------------------------------------------


def philox(seed: int, offset: int, count: int) -> np.ndarray:
    """Word 0 of Philox4x32-10, element by element, in Python's integers."""
    low = 0xFFFFFFFF
    words = []
    for i in range(count):
        c = [i & low, i >> 32, offset & low, offset >> 32 & low]
        k = [seed & low, seed >> 32 & low]
        for _ in range(10):
            p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [(q >> 32) ^ c[1] ^ k[0], q & low, (p >> 32) ^ c[3] ^ k[1], p & low]
            k = [k[0] + 0x9E3779B9 & low, k[1] + 0xBB67AE85 & low]
        words.append(c[0])
    return np.array(words, np.uint32)


def bits_reference(a: Attrs, seed: int, offset: int, *sizes: int) -> np.ndarray:
    rest = iter(sizes)
    shape = tuple(next(rest) if d == DYNAMIC else d for d in a["shape"])
    return philox(int(seed), int(offset), math.prod(shape)).reshape(shape)


@register("random_bits", reference=bits_reference, dtypes=(I64,))
def random_bits(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    yield {"shape": (4,)}, (0, 0)
    yield {"shape": (3, 5)}, (2**40 + 3, 7)
    yield {"shape": (2, 3, 2)}, (-1, -(2**63))
    yield {"shape": (DYNAMIC, 3)}, (12, 2**33, 4)
    yield {"shape": ()}, (1, 2)
    yield {"shape": (0, 3)}, (1, 2)


def dropout_reference(a: Attrs, x: np.ndarray, seed: int, offset: int) -> Arrays:
    u = (philox(seed, offset, x.size).astype(np.float64) // 256) * 2.0**-24
    mask = (u >= a["p"]).reshape(x.shape)
    if not a.get("train", True):
        return x, np.ones(x.shape, bool)
    if a["p"] == 1:
        return np.zeros_like(x), mask
    return np.where(mask, (wide(x) / (1 - a["p"])).astype(x.dtype), x.dtype.type(0)), mask


@register("native_dropout", reference=dropout_reference, dtypes=FLOATS, tolerance=1)
def dropout(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for p in (0.0, 0.25, 0.9, 1.0):
        yield {"p": p}, (array(dtype, (5, 7), rng), 2**35 + 1, 9)
    yield {"p": 0.5, "train": False}, (array(dtype, (5, 7), rng), 1, 9)
    yield {"p": 0.5}, (laid_out("transposed", dtype, (3, 4), rng), 1, 9)


@register(
    "native_dropout_backward",
    reference=lambda a, g, mask: np.where(mask, (wide(g) * a["scale"]).astype(g.dtype), g.dtype.type(0)),
    dtypes=FLOATS,
    tolerance=1,
)
def dropout_backward(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    yield {"scale": 1.25}, (array(dtype, (5, 7), rng), rng.random((5, 7)) < 0.5)


# --- copies, sums to sizes, chunks -------------------------------------------------------------


def sizes_of(values: tuple[int, ...], dynamic: tuple[int, ...]) -> tuple[int, ...]:
    rest = iter(dynamic)
    return tuple(next(rest) if v == DYNAMIC else v for v in values)


@register("reshape_copy", reference=lambda a, x, *d: np.reshape(x, sizes_of(a["shape"], d)).copy(), dtypes=(F32, I64))
def reshape_copy(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    x = array(dtype, (3, 4), rng)
    yield {"shape": (-1,)}, (x,)
    yield {"shape": (DYNAMIC, 2)}, (x, 6)
    yield {"shape": (5, 2)}, (x,)
    yield {"shape": (12,)}, (laid_out("transposed", dtype, (3, 4), rng),)


@register("squeeze_copy", reference=lambda a, x: np.squeeze(x, a.get("axes")).copy(), dtypes=(F32, I64))
def squeeze_copy(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    x = array(dtype, (1, 3, 1, 2), rng)
    yield {}, (x,)
    yield {"axes": (0, 2)}, (x,)
    yield {"axes": (1,)}, (x,)


@register("unsqueeze_copy", reference=lambda a, x: np.expand_dims(x, a["axes"]).copy(), dtypes=(F32, I64))
def unsqueeze_copy(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    yield {"axes": (0,)}, (array(dtype, (3, 2), rng),)
    yield {"axes": (-1, 1)}, (laid_out("strided", dtype, (3, 2), rng),)


def sum_to_size_reference(a: Attrs, x: np.ndarray) -> np.ndarray:
    sizes = a.get("sizes")
    if not sizes:
        return x
    if np.broadcast_shapes(x.shape, sizes) != x.shape:
        raise ValueError("sizes")
    lead = x.ndim - len(sizes)
    axes = (*range(lead), *(lead + k for k, d in enumerate(sizes) if d == 1 != x.shape[lead + k]))
    return np.add.reduce(wide(x), axes).reshape(sizes).astype(x.dtype)


@register("sum_to_size", reference=sum_to_size_reference, dtypes=FLOATS, tolerance=4, added=size_of)
def sum_to_size(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    x = array(dtype, (2, 3, 4), rng)
    for sizes in ((3, 1), (2, 3, 4), (1, 1, 4), (4,), (5,), (7, 2, 3, 4)):
        yield {"sizes": sizes}, (x,)
    yield {}, (x,)
    yield {"sizes": ()}, (x,)


def broadcasting_chunk_reference(a: Attrs, *xs: np.ndarray) -> Arrays:
    whole = np.broadcast_arrays(*xs)
    size = whole[0].shape[a.get("axis", 0)]
    step = -(-size // a["chunks"])
    if size <= step * (a["chunks"] - 1):
        raise ValueError("chunks")
    cuts = [k * step for k in range(1, a["chunks"])]
    return tuple(piece for x in whole for piece in np.split(x, cuts, a.get("axis", 0)))


@register("broadcasting_chunk", reference=broadcasting_chunk_reference, dtypes=(F32, I64))
def broadcasting_chunk(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    yield ({"axis": 1, "chunks": 3}, (array(dtype, (4, 5, 1), rng), array(dtype, (7,), rng)))
    yield {"axis": -1, "chunks": 3}, (array(dtype, (3, 7), rng), array(dtype, (7,), rng), array(dtype, (2, 1, 1), rng))
    yield {"chunks": 2}, (array(dtype, (4, 3), rng),)
    yield {"chunks": 3}, (array(dtype, (4, 3), rng),)


@register("add_optional", reference=lambda a, x, *rest: x + rest[0] if rest else x, dtypes=(F32, I64))
def add_optional(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    yield {"given": 1}, (array(dtype, (3, 4), rng), array(dtype, (4,), rng))
    yield {}, (array(dtype, (3, 4), rng),)
