"""Views and rearrangements: shapes, axes, slices, joins and splits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....numpy.tracing.handler_tables import created
from ..aten_table import aten, refuse
from ..dimensions import axis_of
from ..promotion import cast, is_tensor

_END = 2**63 - 1  # what torch passes for the end of an axis


@aten("view", "reshape", "_unsafe_view", "view_copy", "_reshape_alias", "_reshape_copy")
def view(self: Any, size: Any, stride: Any = None) -> Any:
    if isinstance(size, np.dtype):
        if size == self.dtype:
            return self
        raise refuse("view", "with another dtype")
    return np.reshape(self, tuple(size))


@aten("view_as", "reshape_as")
def view_as(self: Any, other: Any) -> Any:
    return np.reshape(self, tuple(other.shape))


@aten("flatten")
def flatten(self: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    first, last = axis_of(start_dim, self.ndim), axis_of(end_dim, self.ndim)
    if first == last and self.ndim:
        return self
    inner = 1
    for size in self.shape[first : last + 1]:
        inner = inner * size
    return np.reshape(self, (*self.shape[:first], inner, *self.shape[last + 1 :]))


@aten("unflatten")
def unflatten(self: Any, dim: int, sizes: Any) -> Any:
    axis = axis_of(dim, self.ndim)
    shape = tuple(sizes)
    if any(type(size) is int and size == -1 for size in shape):
        rest = math.prod(int(size) for size in shape if not (type(size) is int and size == -1))
        shape = tuple(int(self.shape[axis]) // rest if type(size) is int and size == -1 else size for size in shape)
    return np.reshape(self, (*self.shape[:axis], *shape, *self.shape[axis + 1 :]))


@aten("ravel")
def ravel(self: Any) -> Any:
    return np.reshape(self, (-1,))


@aten("expand", "expand_copy", "broadcast_to")
def expand(self: Any, size: Any, *, implicit: bool = False) -> Any:
    new = len(size) - self.ndim
    kept = (self.shape[k - new] if type(s) is int and s == -1 else s for k, s in enumerate(size))
    return np.broadcast_to(self, tuple(kept))


@aten("expand_as")
def expand_as(self: Any, other: Any) -> Any:
    return np.broadcast_to(self, tuple(other.shape))


@aten("broadcast_tensors")
def broadcast_tensors(tensors: Any) -> tuple[Any, ...]:
    return tuple(np.broadcast_arrays(*tensors))


@aten("permute", "permute_copy")
def permute(self: Any, dims: Any) -> Any:
    return np.transpose(self, tuple(axis_of(dim, self.ndim) for dim in dims)) if self.ndim else self


@aten("transpose", "swapaxes", "swapdims", "transpose_copy")
def transpose(self: Any, dim0: int, dim1: int) -> Any:
    return np.swapaxes(self, axis_of(dim0, self.ndim), axis_of(dim1, self.ndim)) if self.ndim else self


@aten("t", "t_copy", "numpy_T")
def t(self: Any) -> Any:
    return np.transpose(self)


@aten("mT")
def matrix_transposed(self: Any) -> Any:
    return np.swapaxes(self, -1, -2)


@aten("matrix_H", "mH", "adjoint")
def adjoint(self: Any) -> Any:
    y = np.swapaxes(self, -1, -2)
    return np.conj(y) if self.dtype.kind == "c" else y


@aten("movedim", "moveaxis")
def movedim(self: Any, source: Any, destination: Any) -> Any:
    if not self.ndim:
        return self
    sources, destinations = (x if isinstance(x, Sequence) else (x,) for x in (source, destination))
    return np.moveaxis(self, tuple(sources), tuple(destinations))


@aten("unsqueeze", "unsqueeze_copy")
def unsqueeze(self: Any, dim: int) -> Any:
    return np.expand_dims(self, axis_of(dim, self.ndim + 1))


@aten("squeeze", "squeeze_copy")
def squeeze(self: Any, dim: Any = None) -> Any:
    if not self.ndim:
        return self
    axes = range(self.ndim) if dim is None else dim if isinstance(dim, Sequence) else (dim,)
    single = tuple(axis for axis in {axis_of(d, self.ndim): None for d in axes} if int(self.shape[axis]) == 1)
    return np.squeeze(self, axis=single) if single else self


@aten("select", "select_copy")
def select(self: Any, dim: int, index: Any) -> Any:
    return self[(slice(None),) * axis_of(dim, self.ndim) + (index,)]


@aten("slice", "slice_copy")
def slice_of(self: Any, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Any:
    return self[slice_key(self, dim, start, end, step)]


def slice_key(self: Any, dim: int, start: Any, end: Any, step: Any) -> tuple[slice, ...]:
    """The index of a slice along one axis; the end of the axis is None."""
    stop = None if end is None or (type(end) is int and end == _END) else end
    first = None if type(start) is int and start == 0 else start
    return (slice(None),) * axis_of(dim, self.ndim) + (slice(first, stop, None if step == 1 else step),)


@aten("narrow", "narrow_copy")
def narrow(self: Any, dim: int, start: Any, length: Any) -> Any:
    axis = axis_of(dim, self.ndim)
    if is_tensor(start):
        size = self.shape[axis]
        first = np.where(start < 0, start + size, start)
        return np.take(self, first + created("arange", length), axis=axis)
    if type(start) is int and start < 0:
        start = int(self.shape[axis]) + start
    return self[(slice(None),) * axis + (slice(start, start + length),)]


@aten("slice_scatter")
def slice_scatter(self: Any, src: Any, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Any:
    return _scattered(self, slice_key(self, dim, start, end, step), src)


@aten("select_scatter")
def select_scatter(self: Any, src: Any, dim: int, index: Any) -> Any:
    return _scattered(self, (slice(None),) * axis_of(dim, self.ndim) + (index,), src)


def _scattered(self: Any, key: Any, src: Any) -> Any:
    out = np.copy(self)
    out[key] = cast(src, out.dtype)
    return out


@aten("diagonal_scatter")
def diagonal_scatter(self: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    axes = (axis_of(dim1, self.ndim), axis_of(dim2, self.ndim))
    out = np.copy(np.moveaxis(self, axes, (0, 1)))
    places = created("arange", src.shape[-1])
    rows, columns = places + max(-offset, 0), places + max(offset, 0)
    out[rows, columns] = cast(np.moveaxis(src, -1, 0), out.dtype)
    return np.moveaxis(out, (0, 1), axes)


@aten("diagonal", "linalg_diagonal", "diagonal_copy")
def diagonal(self: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    return np.diagonal(self, offset, dim1, dim2)


@aten("atleast_1d")
def atleast_1d(self: Any) -> Any:
    return np.atleast_1d(self)


@aten("atleast_2d")
def atleast_2d(self: Any) -> Any:
    return np.atleast_2d(self)


@aten("atleast_3d")
def atleast_3d(self: Any) -> Any:
    return np.atleast_3d(self)


@aten("unfold", "unfold_copy")
def unfold(self: Any, dimension: int, size: int, step: int) -> Any:
    if not self.ndim:
        return np.reshape(self, (1,))[:size]
    axis = axis_of(dimension, self.ndim)
    windows = np.lib.stride_tricks.sliding_window_view(self, size, axis=axis)
    return windows if step == 1 else windows[(slice(None),) * axis + (slice(None, None, step),)]


@aten("size", "sym_size")
def size(self: Any, dim: int | None = None) -> Any:
    return tuple(self.shape) if dim is None else self.shape[axis_of(dim, self.ndim)]


@aten("numel", "sym_numel")
def numel(self: Any) -> Any:
    return self.size


@aten("dim")
def dim(self: Any) -> int:
    return self.ndim


@aten("tril")
def tril(self: Any, diagonal: int = 0) -> Any:
    return np.tril(self, diagonal)


@aten("triu")
def triu(self: Any, diagonal: int = 0) -> Any:
    return np.triu(self, diagonal)
