"""Joins and splits, pads, repeats and what moves elements to other places."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..aten_table import aten, refuse
from ..dimensions import axis_of
from ..promotion import cast, is_tensor, together


@aten("cat", "concat", "concatenate")
def cat(tensors: Any, dim: int = 0) -> Any:
    present = [x for x in tensors if x.ndim != 1 or not _is_empty(x)] or [tensors[0]]
    ndim = max(x.ndim for x in present)
    joined = tuple(x for x in together(*tensors) if x.ndim == ndim)
    return np.concatenate(joined, axis=axis_of(dim, ndim))


def _is_empty(x: Any) -> bool:
    return bool(x.shape[0] == 0)


@aten("stack")
def stack(tensors: Any, dim: int = 0) -> Any:
    return np.stack(together(*tensors), axis=axis_of(dim, tensors[0].ndim + 1))


@aten("hstack")
def hstack(tensors: Any) -> Any:
    return np.hstack(together(*tensors))


@aten("vstack", "row_stack")
def vstack(tensors: Any) -> Any:
    return np.vstack(together(*tensors))


@aten("dstack")
def dstack(tensors: Any) -> Any:
    return np.dstack(together(*tensors))


@aten("column_stack")
def column_stack(tensors: Any) -> Any:
    return np.column_stack(together(*tensors))


@aten("split_with_sizes", "split_with_sizes_copy", "unsafe_split_with_sizes")
def split_with_sizes(self: Any, split_sizes: Any, dim: int = 0) -> tuple[Any, ...]:
    front, parts, start = (slice(None),) * axis_of(dim, self.ndim), [], 0
    for size in split_sizes:
        parts.append(self[(*front, slice(start, start + size))])
        start = start + size
    return tuple(parts)


@aten("split", "unsafe_split", "split_copy")
def split(self: Any, split_size: Any, dim: int = 0) -> tuple[Any, ...]:
    if isinstance(split_size, Sequence):
        return split_with_sizes(self, split_size, dim)
    length, size = int(self.shape[axis_of(dim, self.ndim)]), operator.index(split_size)
    if not length or not size:
        return (self,)
    counts = [min(size, length - start) for start in range(0, length, size)]
    return split_with_sizes(self, counts, dim)


@aten("chunk", "unsafe_chunk")
def chunk(self: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    length = int(self.shape[axis_of(dim, self.ndim)])
    if not length:
        return (self,) * operator.index(chunks)
    return split(self, -(-length // operator.index(chunks)), dim)


@aten("hsplit")
def hsplit(self: Any, indices_or_sections: Any) -> tuple[Any, ...]:
    return tensor_split(self, indices_or_sections, 0 if self.ndim == 1 else 1)


@aten("dsplit")
def dsplit(self: Any, indices_or_sections: Any) -> tuple[Any, ...]:
    return tensor_split(self, indices_or_sections, 2)


@aten("tensor_split", "vsplit")
def tensor_split(self: Any, indices_or_sections: Any, dim: int = 0) -> tuple[Any, ...]:
    if is_tensor(indices_or_sections):
        raise refuse("tensor_split", "with a tensor of indices", "pass numbers")
    axis = axis_of(dim, self.ndim)
    if not isinstance(indices_or_sections, Sequence):
        length, count = int(self.shape[axis]), operator.index(indices_or_sections)
        small, rest = divmod(length, count)
        return split_with_sizes(self, [small + (k < rest) for k in range(count)], axis)
    edges = [None, *indices_or_sections, None]
    front = (slice(None),) * axis
    return tuple(self[(*front, slice(a, b))] for a, b in pairwise(edges))


@aten("unbind", "unbind_copy")
def unbind(self: Any, dim: int = 0) -> tuple[Any, ...]:
    axis = axis_of(dim, self.ndim)
    return tuple(self[(slice(None),) * axis + (k,)] for k in range(int(self.shape[axis])))


@aten("constant_pad_nd")
def constant_pad_nd(self: Any, pad: Any, value: Any = 0) -> Any:
    return padded(self, pad, "constant", value)


@aten("pad")
def pad(self: Any, pad: Any, mode: str = "constant", value: Any = None) -> Any:
    return padded(self, pad, mode, 0 if value is None else value)


@aten("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def reflection_pad(self: Any, padding: Any) -> Any:
    return padded(self, padding, "reflect")


@aten("replication_pad1d", "replication_pad2d", "replication_pad3d")
def replication_pad(self: Any, padding: Any) -> Any:
    return padded(self, padding, "replicate")


_MODES: dict[str, Any] = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def padded(self: Any, widths: Any, mode: str, value: Any = 0) -> Any:
    """A tensor with so much added, or where negative taken away, on both sides of its last axes."""
    pairs = [(0, 0)] * self.ndim
    for k in range(len(widths) // 2):
        pairs[self.ndim - 1 - k] = (widths[2 * k], widths[2 * k + 1])
    if mode != "constant" and any(w < 0 for pair in pairs for w in pair):
        return _padded_by_index(self, pairs, mode)
    if any(w < 0 for pair in pairs for w in pair):
        cut = tuple(slice(max(-a, 0), min(b, 0) or None) for a, b in pairs)
        self, pairs = self[cut], [(max(a, 0), max(b, 0)) for a, b in pairs]
    if not any(w for pair in pairs for w in pair):
        return np.copy(self)
    if mode == "constant":
        return np.pad(self, pairs, constant_values=cast(value, self.dtype))
    return np.pad(self, pairs, mode=_MODES[mode])


def _padded_by_index(self: Any, pairs: Any, mode: str) -> Any:
    """A tensor with elements taken away, or repeated, at both ends of its axes."""
    x = self
    for axis, (before, behind) in enumerate(pairs):
        if not (before or behind):
            continue
        length = int(x.shape[axis])
        places = np.arange(-before, length + behind)
        if mode == "circular":
            places = places % length
        elif mode == "replicate":
            places = np.clip(places, 0, length - 1)
        else:
            places = length - 1 - np.abs(length - 1 - np.abs(places))
        x = np.take(x, places, axis=axis)
    return x


@aten("repeat", "tile")
def repeat(self: Any, repeats: Any) -> Any:
    counts = (*(1,) * (self.ndim - len(repeats)), *repeats)
    if all(type(n) is int for n in counts):
        return np.tile(self, counts)
    sizes = (*(1,) * (len(counts) - self.ndim), *self.shape)
    wide = np.reshape(self, tuple(n for size in sizes for n in (1, size)))
    wide = np.broadcast_to(wide, tuple(n for pair in zip(counts, sizes, strict=True) for n in pair))
    return np.reshape(wide, tuple(count * size for count, size in zip(counts, sizes, strict=True)))


@aten("repeat_interleave")
def repeat_interleave(self: Any, repeats: Any = None, dim: int | None = None, *, output_size: Any = None) -> Any:
    if repeats is None:
        return np.repeat(np.arange(int(self.shape[0])), self)
    return np.repeat(self, repeats, axis=None if dim is None else axis_of(dim, self.ndim))


@aten("flip")
def flip(self: Any, dims: Any) -> Any:
    axes = tuple(axis_of(dim, self.ndim) for dim in dims)
    return np.flip(self, axes) if self.ndim and axes else np.copy(self)


@aten("fliplr")
def fliplr(self: Any) -> Any:
    return np.fliplr(self)


@aten("flipud")
def flipud(self: Any) -> Any:
    return np.flipud(self)


@aten("roll")
def roll(self: Any, shifts: Any, dims: Any = ()) -> Any:
    moves = tuple(shifts) if isinstance(shifts, Sequence) else (shifts,)
    axes = tuple(dims) if isinstance(dims, Sequence) else (dims,)
    if not self.ndim:
        return np.copy(self)
    return np.roll(self, moves, tuple(axis_of(d, self.ndim) for d in axes)) if axes else np.roll(self, moves[0])


@aten("rot90")
def rot90(self: Any, k: int = 1, dims: Any = (0, 1)) -> Any:
    return np.rot90(self, k, tuple(dims))


@aten("pixel_shuffle")
def pixel_shuffle(self: Any, upscale_factor: int) -> Any:
    r, (*batch, c, h, w) = upscale_factor, self.shape
    n = len(batch)
    parts = np.reshape(self, (*batch, c // (r * r), r, r, h, w))
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return np.reshape(np.transpose(parts, order), (*batch, c // (r * r), h * r, w * r))


@aten("pixel_unshuffle")
def pixel_unshuffle(self: Any, downscale_factor: int) -> Any:
    r, (*batch, c, h, w) = downscale_factor, self.shape
    n = len(batch)
    parts = np.reshape(self, (*batch, c, h // r, r, w // r, r))
    return np.reshape(
        np.transpose(parts, (*range(n), n, n + 2, n + 4, n + 1, n + 3)), (*batch, c * r * r, h // r, w // r)
    )


@aten("channel_shuffle", "native_channel_shuffle")
def channel_shuffle(self: Any, groups: int) -> Any:
    n, c, *rest = self.shape
    return np.reshape(np.swapaxes(np.reshape(self, (n, groups, c // groups, *rest)), 1, 2), (n, c, *rest))
