"""NumPy's functions that rearrange, join and cut arrays, as ops."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dtypes import dtype_of
from ..errors import ShapeError
from .recorder import trace_error, user_loc
from .registry import numpy_function
from .shapes import as_array, axis_of, axis_tuple, dtype_like, ndim, sizes
from .traced import Traced, TracedScalar, op


@numpy_function("reshape")
def _reshape(a: Any, shape: Any, order: str = "C") -> Any:
    return reshape(a, shape, order)


def reshape(a: Any, shape: Any, order: str = "C") -> Any:
    """`np.reshape` in C or Fortran order; one size may be -1."""
    static, dynamic = sizes(shape)
    if order in ("C", "A") or ndim(a) == len(static) == 1:
        return op("reshape", a, *dynamic, shape=static, view_of=a)
    if order != "F":
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    # Fortran order is C order with the axes reversed on both sides.
    turned = op("reshape", transpose(a), *reversed(dynamic), shape=static[::-1], view_of=a)
    return transpose(turned)


@numpy_function("ravel")
def ravel(a: Any, order: str = "C") -> Any:
    """`np.ravel`."""
    return reshape(a, (-1,), "C" if order == "K" else order)


@numpy_function("transpose", "permute_dims")
def transpose(a: Any, axes: Any = None) -> Any:
    """`np.transpose`."""
    if axes is None:
        return op("transpose", a, view_of=a)
    return op("transpose", a, perm=axis_tuple(axes), view_of=a)


@numpy_function("matrix_transpose", "linalg.matrix_transpose")
def matrix_transpose(x: Any) -> Any:
    """`np.matrix_transpose`."""
    return swapaxes(x, -1, -2)


@numpy_function("swapaxes")
def swapaxes(a: Any, axis1: Any, axis2: Any) -> Any:
    """`np.swapaxes`."""
    return op(
        "swapaxes", a, axis1=operator.index(axis1), axis2=operator.index(axis2), view_of=a
    )


@numpy_function("moveaxis")
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """`np.moveaxis`."""
    return op(
        "moveaxis", a, source=axis_tuple(source), destination=axis_tuple(destination), view_of=a
    )


@numpy_function("rollaxis")
def rollaxis(a: Any, axis: Any, start: Any = 0) -> Any:
    """`np.rollaxis`."""
    rank = ndim(a)
    source = axis_of(axis, rank)
    target = operator.index(start)
    target += rank if target < 0 else 0
    return moveaxis(a, source, target - 1 if source < target else target)


@numpy_function("squeeze")
def squeeze(a: Any, axis: Any = None) -> Any:
    """`np.squeeze`; without ``axis``, which axes have size 1 is baked into the graph."""
    if axis is None:
        axes = tuple(k for k, size in enumerate(a.shape) if bool(size == 1))
    else:
        axes = axis_tuple(axis)
    return op("squeeze", a, axes=axes, view_of=a)


@numpy_function("expand_dims")
def expand_dims(a: Any, axis: Any) -> Any:
    """`np.expand_dims`."""
    return op("expand_dims", a, axes=axis_tuple(axis), view_of=a)


@numpy_function("atleast_1d", raw=True)
def atleast_1d(*arrays: Any) -> Any:
    """`np.atleast_1d`."""
    return _at_least(1, arrays)


@numpy_function("atleast_2d", raw=True)
def atleast_2d(*arrays: Any) -> Any:
    """`np.atleast_2d`."""
    return _at_least(2, arrays)


@numpy_function("atleast_3d", raw=True)
def atleast_3d(*arrays: Any) -> Any:
    """`np.atleast_3d`."""
    return _at_least(3, arrays)


def _at_least(rank: int, arrays: Sequence[Any]) -> Any:
    places = {(1, 0): (0,), (2, 0): (0, 1), (2, 1): (0,),
              (3, 0): (0, 1, 2), (3, 1): (0, 2), (3, 2): (2,)}  # fmt: skip
    out = []
    for x in map(as_array, arrays):
        new = places.get((rank, x.ndim))
        out.append(x if new is None else op("expand_dims", x, axes=new, view_of=x))
    return out[0] if len(out) == 1 else tuple(out)


@numpy_function("broadcast_to")
def broadcast_to(array: Any, shape: Any) -> Any:
    """`np.broadcast_to`."""
    static, dynamic = sizes(shape)
    return op("broadcast_to", array, *dynamic, shape=static, view_of=array)


@numpy_function("broadcast_arrays", raw=True)
def broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    """`np.broadcast_arrays`: all operands in their common shape."""
    arrays = [as_array(a) for a in args]
    common = _common(arrays)
    return tuple(broadcast_to(a, common.shape) for a in arrays)


def _common(arrays: Sequence[Any]) -> Any:
    """An array of the common shape; only its sizes are used."""
    out: Any = op("ne", arrays[0], arrays[0])
    for x in arrays[1:]:
        out = op("logical_or", out, op("ne", x, x))
    return out


@numpy_function("flip")
def flip(m: Any, axis: Any = None) -> Any:
    """`np.flip`."""
    if axis is None:
        return op("flip", m, view_of=m)
    return op("flip", m, axes=axis_tuple(axis), view_of=m)


@numpy_function("fliplr")
def fliplr(m: Any) -> Any:
    """`np.fliplr`."""
    if ndim(m) < 2:
        raise ShapeError("Input must be >= 2-d.", loc=user_loc())
    return flip(m, 1)


@numpy_function("flipud")
def flipud(m: Any) -> Any:
    """`np.flipud`."""
    if ndim(m) < 1:
        raise ShapeError("Input must be >= 1-d.", loc=user_loc())
    return flip(m, 0)


@numpy_function("rot90")
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """`np.rot90`."""
    one, two = axes
    turns = operator.index(k) % 4
    if turns == 0:
        return flip(m, ())
    if turns == 2:
        return flip(flip(m, one), two)
    return swapaxes(flip(m, two), one, two) if turns == 1 else flip(swapaxes(m, one, two), two)


# --- joining ----------------------------------------------------------------------------------


@numpy_function("concatenate", "concat")
def concatenate(arrays: Any, axis: Any = 0, dtype: Any = None) -> Any:
    """`np.concatenate`."""
    parts = [as_array(a) for a in arrays]
    if axis is None:
        parts, axis = [ravel(a) for a in parts], 0
    out = op("concatenate", *parts, axis=operator.index(axis))
    return out if dtype is None else op("cast", out, dtype=dtype_of(dtype))


@numpy_function("stack")
def _stack(arrays: Any, axis: Any = 0, dtype: Any = None) -> Any:
    out = stack(list(arrays), axis)
    return out if dtype is None else op("cast", out, dtype=dtype_of(dtype))


def stack(arrays: Sequence[Any], axis: Any = 0) -> Any:
    """`np.stack`."""
    return op("stack", *map(as_array, arrays), axis=operator.index(axis))


@numpy_function("vstack")
def vstack(tup: Any) -> Any:
    """`np.vstack`."""
    return concatenate([_at_least(2, [a]) for a in tup], 0)


@numpy_function("hstack")
def hstack(tup: Any) -> Any:
    """`np.hstack`."""
    parts = [_at_least(1, [a]) for a in tup]
    return concatenate(parts, 0 if parts[0].ndim == 1 else 1)


@numpy_function("dstack")
def dstack(tup: Any) -> Any:
    """`np.dstack`."""
    return concatenate([_at_least(3, [a]) for a in tup], 2)


@numpy_function("column_stack")
def column_stack(tup: Any) -> Any:
    """`np.column_stack`."""
    parts = [as_array(a) for a in tup]
    return concatenate([a if a.ndim >= 2 else reshape(a, (-1, 1)) for a in parts], 1)


@numpy_function("append")
def append(arr: Any, values: Any, axis: Any = None) -> Any:
    """`np.append`."""
    return concatenate([arr, values], axis)


# --- cutting ----------------------------------------------------------------------------------


@numpy_function("split")
def split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Any]:
    """`np.split`: equal pieces, or pieces between the given indices."""
    return _split(ary, indices_or_sections, axis, True)


@numpy_function("array_split")
def array_split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Any]:
    """`np.array_split`."""
    return _split(ary, indices_or_sections, axis, False)


def _split(x: Any, where: Any, axis: Any, even: bool) -> list[Any]:
    place = operator.index(axis)
    if isinstance(where, (list, tuple, np.ndarray)):
        if any(isinstance(i, TracedScalar) for i in where):
            before: Any = [slice(None)] * axis_of(place, x.ndim)
            edges = [0, *where, None]
            return [
                x[(*before, slice(a, b))] for a, b in zip(edges[:-1], edges[1:], strict=True)
            ]
        attrs: dict[str, Any] = {"indices": tuple(operator.index(i) for i in where)}
    else:
        attrs = {"sections": operator.index(where)} | ({} if even else {"even": False})
    pieces = op("split", x, axis=place, **attrs)
    found = list(pieces) if isinstance(pieces, tuple) else [pieces]
    if isinstance(x, Traced):
        for piece in found:
            piece.storage = x.shared_storage()
            piece.shared_storage()
    return found


@numpy_function("hsplit")
def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """`np.hsplit`."""
    return split(ary, indices_or_sections, 1 if ndim(ary) > 1 else 0)


@numpy_function("vsplit")
def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """`np.vsplit`."""
    return split(ary, indices_or_sections, 0)


@numpy_function("unstack")
def unstack(x: Any, axis: Any = 0) -> tuple[Any, ...]:
    """`np.unstack`; the number of arrays is baked into the graph."""
    return tuple(moveaxis(x, operator.index(axis), 0))


# --- repeating and padding --------------------------------------------------------------------


@numpy_function("tile")
def tile(A: Any, reps: Any) -> Any:
    """`np.tile`."""
    static, dynamic = sizes(reps)
    if dynamic:
        raise trace_error(
            "np.tile with a number of repetitions known only at run time is not supported",
            "use np.broadcast_to and reshape",
        )
    return op("tile", A, reps=static)


@numpy_function("repeat")
def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    """`np.repeat` with one number of repetitions."""
    if isinstance(repeats, Traced) or np.size(repeats) != 1:
        raise trace_error(
            "np.repeat with one count per element is not supported while tracing: the size of the "
            "result depends on the counts", "use a single integer, or np.take with indices",
        )  # fmt: skip
    count = operator.index(np.asarray(repeats).reshape(()).item())
    if axis is None:
        return op("repeat", ravel(a), repeats=count, axis=0)
    return op("repeat", a, repeats=count, axis=operator.index(axis))


@numpy_function("pad")
def pad(
    array: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0
) -> Any:
    """`np.pad` with a constant, the edge, or by reflection."""
    rank = ndim(array)
    if isinstance(pad_width, dict):
        widths = [pad_width.get(k, pad_width.get(k - rank, 0)) for k in range(rank)]
        pad_width = [(w, w) if np.ndim(w) == 0 else w for w in widths]
    pairs = np.broadcast_to(np.asarray(pad_width), (rank, 2))
    low, high = ([int(v) for v in pairs[:, k]] for k in (0, 1))
    if min((*low, *high), default=0) < 0:
        raise ShapeError("index can't contain negative values", loc=user_loc())
    if mode == "constant":
        if isinstance(constant_values, (list, tuple)) or np.ndim(constant_values) > 0:
            raise trace_error(
                "np.pad with several constants is not supported while tracing",
                "pad one side at a time",
            )
        value = op("cast", constant_values, dtype=dtype_of(dtype_like(array)))
        return op("pad", array, value, widths=tuple(int(v) for v in pairs.reshape(-1)))
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        raise trace_error(
            f"np.pad with mode={mode!r} is not supported while tracing",
            "use mode='constant', 'edge', 'reflect', 'symmetric' or 'wrap'",
        )
    out = as_array(array)
    for axis in range(rank):
        out = _pad_axis(out, axis, low[axis], high[axis], mode)
    return out


def _pad_axis(x: Any, axis: int, low: int, high: int, mode: str) -> Any:
    if not low and not high:
        return x
    from .numpy_creation import iota

    n = x.shape[axis]
    position = iota(n + (low + high), dtype_of(np.int64)) - low
    if mode == "edge":
        index = op("clip", position, 0, n - 1)
    elif mode == "wrap":
        index = op("remainder", position, n)
    else:
        period = 2 * n if mode == "symmetric" else op("maximum", 2 * n - 2, 1)
        folded = op("remainder", position, period)
        last = period - 1 if mode == "symmetric" else period
        index = op("minimum", folded, op("sub", last, folded))
    return op("take", x, index, axis=axis)


@numpy_function("roll")
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """`np.roll` by one shift, or one per axis."""
    if axis is None:
        return reshape(roll(ravel(a), shift, 0), a.shape)
    axes = axis_tuple(axis)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    out = a
    for amount, place in zip(shifts, axes, strict=True):
        where = axis_of(place, ndim(a))
        n = out.shape[where]
        # An empty axis has nothing to roll, but a remainder by its size would be undefined.
        first = (0 - amount) % op("maximum", n, 1)
        before = (slice(None),) * where
        out = concatenate(
            [out[(*before, slice(first, None))], out[(*before, slice(None, first))]], where
        )
    return out


@numpy_function("diff")
def diff(a: Any, n: int = 1, axis: Any = -1) -> Any:
    """`np.diff`."""
    out = as_array(a)
    where = axis_of(axis, out.ndim)
    before = (slice(None),) * where
    for _ in range(operator.index(n)):
        later, earlier = out[(*before, slice(1, None))], out[(*before, slice(None, -1))]
        out = op("ne" if out.dtype.kind == "b" else "sub", later, earlier)
    return out


@numpy_function("shape")
def shape(a: Any) -> Any:
    """`np.shape`."""
    return a.shape if isinstance(a, Traced) else np.shape(as_array(a))


@numpy_function("size")
def size(a: Any, axis: Any = None) -> Any:
    """`np.size`."""
    x = as_array(a)
    return x.size if axis is None else x.shape[operator.index(axis)]


@numpy_function("ndim")
def _ndim(a: Any) -> int:
    return ndim(a)
