"""NumPy's functions that rearrange, join and cut arrays, as ops."""

from __future__ import annotations

import itertools
import math
import operator
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ....errors import AxisError, DivisionError, ShapeError
from ....ir.attrs import DYNAMIC
from ....ir.dtypes import dtype_of
from ..tracing.current import size_error, trace_error, user_loc
from ..tracing.mutation import in_memory
from ..tracing.operators import op
from ..tracing.outputs import laid_out
from ..tracing.traced import Traced
from ..tracing.traced_scalar import TracedScalar
from .axes import MISSING, as_array, as_traced, axis_of, axis_tuple, check_order, dtype_like, ndim, reduced_axes, sizes
from .registry import numpy_function

_MOST_PIECES = 1 << 12  # each is a value of the graph


@numpy_function("reshape")
def reshape(a: Any, shape: Any, order: str = "C") -> Any:
    """`np.reshape` in C or Fortran order; one size may be -1."""
    if not isinstance(order, str | None):
        raise TypeError(f"order must be str, not {type(order).__name__}")
    check_order(order, "CFA")
    if shape is None:
        raise trace_error("np.reshape to None is not supported while tracing", "say the shape")
    order = _known_order(order, ndim(a))
    static, dynamic = sizes(shape)
    if order == "C" or ndim(a) == len(static) == 1:
        return op("reshape", a, *dynamic, shape=static, view_of=a)
    # Fortran order is C order with the axes reversed on both sides.
    turned = op("reshape", transpose(a), *reversed(dynamic), shape=static[::-1], view_of=a)
    return transpose(turned)


@numpy_function("ravel")
def exposed_ravel(a: Any, order: str = "C") -> Any:
    """`np.ravel` for users, who may write to the result: it copies what is not contiguous."""
    array = as_array(a)
    return laid_out(ravel(array, order), array, partial(np.ravel, order=order or "C"))


def ravel(a: Any, order: str = "C") -> Any:
    """All elements along one axis, for handlers that do not write to them."""
    check_order(order)
    return reshape(a, (-1,), _known_order(order, ndim(a)))


def _known_order(order: Any, rank: int) -> str:
    """ "C" or "F"; raises TraceError where the array's layout in memory decides."""
    order = order.upper() if order else "C"
    if order not in ("A", "K"):
        return order
    if rank > 1:
        raise trace_error(
            f"order={order!r} takes elements in the order in which they lie in memory, which is known only at run time",
            'say order="C"',
        )
    return "C"


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
    return op("swapaxes", a, axis1=operator.index(axis1), axis2=operator.index(axis2), view_of=a)


@numpy_function("moveaxis")
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """`np.moveaxis`."""
    return op("moveaxis", a, source=axis_tuple(source), destination=axis_tuple(destination), view_of=a)


@numpy_function("rollaxis")
def rollaxis(a: Any, axis: Any, start: Any = 0) -> Any:
    """`np.rollaxis`."""
    rank = ndim(a)
    source = axis_of(axis, rank)
    target = int(start) if type(start) is float else operator.index(start)
    target += rank if target < 0 else 0
    if not 0 <= target <= rank:
        raise AxisError(f"'start' arg requires {-rank} <= start < {rank + 1}", loc=user_loc())
    return moveaxis(a, source, target - 1 if source < target else target)


@numpy_function("squeeze")
def squeeze(a: Any, axis: Any = None) -> Any:
    """`np.squeeze`; without ``axis``, which axes have size 1 is baked into the graph."""
    if axis is None:
        axes = tuple(k for k, size in enumerate(a.shape) if bool(size == 1))
    else:
        # NumPy lets a number have a first and a last axis here.
        axes = () if not ndim(a) and axis in (0, -1) else reduced_axes(axis) or ()
    return op("squeeze", a, axes=axes, view_of=a)


@numpy_function("expand_dims")
def expand_dims(a: Any, axis: Any) -> Any:
    """`np.expand_dims`."""
    several = axis if isinstance(axis, (tuple, list)) else (operator.index(axis),)
    return op("expand_dims", a, axes=axis_tuple(several), view_of=a)


def at_least(rank: int, arrays: Sequence[Any]) -> Any:
    """Arrays of at least this rank, new axes where NumPy puts them: a tuple, or a single array."""
    places = {(1, 0): (0,), (2, 0): (0, 1), (2, 1): (0,), (3, 0): (0, 1, 2), (3, 1): (0, 2), (3, 2): (2,)}
    out = []
    for x in map(as_array, arrays):
        new = places.get((rank, x.ndim))
        out.append(x if new is None else op("expand_dims", x, axes=new, view_of=x))
    return out[0] if len(out) == 1 else tuple(out)


def _at_least(rank: int) -> None:
    """Register `np.atleast_1d`, or its kin of higher rank."""

    @numpy_function(f"atleast_{rank}d", raw=True)
    def call(*arrays: Any) -> Any:
        return at_least(rank, arrays)


for _rank in (1, 2, 3):
    _at_least(_rank)


@numpy_function("broadcast_to")
def broadcast_to(array: Any, shape: Any) -> Any:
    """`np.broadcast_to`."""
    static, dynamic = sizes(shape)
    return op("broadcast_to", array, *dynamic, shape=static, view_of=array)


@numpy_function("lib.stride_tricks.sliding_window_view")
def sliding_window_view(x: Any, window_shape: Any, axis: Any = None, subok: Any = False, writeable: Any = False) -> Any:
    """`np.lib.stride_tricks.sliding_window_view`, of which nothing can be written to."""
    if writeable:
        raise trace_error(
            "writes to windows, which overlap, are not supported while tracing", "write to the array itself"
        )
    static, dynamic = sizes(window_shape)
    listed = range(len(static)) if axis is None else axis
    if any(size < 0 and size != DYNAMIC for size in static):
        raise ValueError("`window_shape` cannot contain negative values")
    listed = tuple(listed) if isinstance(listed, Iterable) else (listed,)
    if len(listed) != len(static) or (axis is None and len(static) != x.ndim):
        raise ValueError(
            "Since axis is None, must provide window_shape for all dimensions of `x`; got "
            f"{len(static)} window_shape elements and `x.ndim` is {x.ndim}."
            if axis is None
            else "Must provide matching length window_shape and axis; got "
            f"{len(static)} window_shape elements and {len(listed)} axes elements."
        )
    axes = [axis_of(a, x.ndim) for a in listed]
    if len(set(axes)) == len(axes):
        return op("windows", x, *dynamic, shape=static, axes=tuple(axes), view_of=x)
    each = window_shape if isinstance(window_shape, Iterable) else (window_shape,)
    for size, along in zip(each, axes, strict=True):
        x = sliding_window_view(x, size, along)
    return x


@numpy_function("broadcast_arrays", raw=True)
def broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    """`np.broadcast_arrays`: all operands in their common shape."""
    arrays = [in_memory(as_array(a)) for a in args]
    if len({a.ndim for a in arrays}) == 1 and all(a.shape == arrays[0].shape for a in arrays):
        return tuple(arrays)  # unlike broadcast ones, these can be written to
    common = _common(arrays)
    views = tuple(broadcast_to(a, common.shape) for a in arrays)
    for out, array in zip(views, arrays, strict=True):
        laid_out(out, array, None)  # which can be written to, with a warning
    return views


def _common(arrays: Sequence[Any]) -> Any:
    """An array of the common shape; only its sizes are used."""
    out: Any = op("ne", arrays[0], arrays[0])
    for x in arrays[1:]:
        out = op("logical_or", out, op("ne", x, x))
    return out


@numpy_function("flip")
def flip(m: Any, axis: Any = None) -> Any:
    """`np.flip`."""
    several = {} if axis is None else {"axes": axis_tuple(axis)}
    view = op("flip", m, **several, view_of=m)
    return view if ndim(m) else op("cast", m, dtype=dtype_of(dtype_like(m)))  # a number: no view


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
    if axis_of(one, ndim(m)) == axis_of(two, ndim(m)):
        raise ValueError("Axes must be different.")
    turns = k % 4 if type(k) is float else operator.index(k) % 4
    if turns == 0:
        return flip(m, ())
    if turns == 2:
        return flip(flip(m, one), two)
    return swapaxes(flip(m, two), one, two) if turns == 1 else flip(swapaxes(m, one, two), two)


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
            return [x[(*before, slice(a, b))] for a, b in itertools.pairwise(edges)]
        attrs: dict[str, Any] = {"indices": tuple(operator.index(i) for i in where)}
    else:
        n = as_array(x).shape[axis_of(place, ndim(x))]
        if even and not where:
            raise size_error(DivisionError, "integer modulo by zero")
        if even and type(where) is float and bool(n % where != 0):
            raise size_error(ShapeError, "array split does not result in an equal division")
        even = even and type(where) is not float
        attrs = {"sections": int(where)} if even else {"sections": int(where), "even": False}
        if attrs["sections"] > _MOST_PIECES:
            if attrs["sections"] > sys.maxsize:
                raise OverflowError("cannot fit 'int' into an index-sized integer")
            raise trace_error(
                f"a split into {attrs['sections']} pieces makes a graph of as many results",
                f"split into at most {_MOST_PIECES} pieces",
            )
    pieces = op("split", x, axis=place, **attrs)
    views = list(pieces) if isinstance(pieces, tuple) else [pieces]
    if isinstance(x, Traced):
        for piece in views:
            piece.share(x)
    elif isinstance(x, np.ndarray):
        views[0].rec.captures.note_view(x)
    return views


@numpy_function("hsplit")
def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """`np.hsplit`."""
    return split(ary, indices_or_sections, 1 if ndim(ary) > 1 else 0)


@numpy_function("vsplit")
def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """`np.vsplit`."""
    if ndim(ary) < 2:
        raise ShapeError("vsplit only works on arrays of 2 or more dimensions", loc=user_loc())
    return split(ary, indices_or_sections, 0)


@numpy_function("dsplit")
def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """`np.dsplit`."""
    if ndim(ary) < 3:
        raise ShapeError("dsplit only works on arrays of 3 or more dimensions", loc=user_loc())
    return split(ary, indices_or_sections, 2)


@numpy_function("unstack")
def unstack(x: Any, axis: Any = 0) -> tuple[Any, ...]:
    """`np.unstack`; the number of arrays is baked into the graph."""
    return tuple(moveaxis(x, operator.index(axis), 0))


# --- along an axis -----------------------------------------------------------------------------


@numpy_function("roll")
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """`np.roll` by one shift, or one per axis."""
    if axis is None:
        return reshape(roll(ravel(a), shift, 0), a.shape)
    axes = tuple(axis_of(place, ndim(a)) for place in axis_tuple(axis))
    several = isinstance(shift, (tuple, list)) or (not _is_scalar(shift) and ndim(shift) > 0)
    if several and not isinstance(shift, (tuple, list)) and ndim(shift) > 1:
        raise ShapeError("'shift' and 'axis' should be scalars or 1D sequences", loc=user_loc())
    shifts = tuple(shift) if several else (shift,)
    count = len(axes) if len(shifts) == 1 else len(shifts)
    if len(axes) not in (1, count) or not ndim(a):
        raise ShapeError("shape mismatch of 'shift' and 'axis' of np.roll", loc=user_loc())
    if len(shifts) == 1:
        shifts *= count
    if len(axes) == 1:
        axes *= count
    out = as_traced(a)
    if not count:
        return op("copy", out)
    for amount, place in zip(shifts, axes, strict=True):
        where = axis_of(place, ndim(a))
        if dtype_like(amount).kind == "f":
            amount = int(amount)  # NumPy truncates floats, too
        elif isinstance(amount, (Traced, np.ndarray, np.generic)):
            amount = as_array(amount).astype(np.int64)  # it is negated below
        n = out.shape[where]
        if type(amount) is int and abs(amount) >= 2**63:
            amount %= max(int(n), 1)  # numbers of a graph have 64 bits
        # An empty axis has nothing to roll, but a remainder by its size would be undefined.
        first = (0 - amount) % op("maximum", n, 1)
        before = (slice(None),) * where
        head, tail = out[(*before, slice(None, first))], out[(*before, slice(first, None))]
        out = op("concatenate", tail, head, axis=where)
    return out


def _is_scalar(x: Any) -> bool:
    return isinstance(x, TracedScalar) or np.isscalar(x)


@numpy_function("diff", weak=True)
def diff(a: Any, n: int = 1, axis: Any = -1, prepend: Any = MISSING, append: Any = MISSING) -> Any:
    """`np.diff`."""
    count = operator.index(n)
    if count == 0:
        return a
    if count < 0:
        raise ValueError(f"order must be non-negative but got {count}")
    out = as_array(a)
    if not out.ndim:
        raise ShapeError("diff requires input that is at least one dimensional", loc=user_loc())
    where = axis_of(axis, out.ndim)
    before = (slice(None),) * where
    ends = [prepend, out, append]
    if len(parts := [as_array(x) for x in ends if x is not MISSING]) > 1:
        # A number is broadcast over the other axes.
        one = op("sum", op("ne", out[(*before, slice(0, 0))], 0), axes=(where,), keepdims=True)
        parts = [x if x.ndim else broadcast_to(x, one.shape) for x in parts]
        out = op("concatenate", *parts, axis=where)
    for _ in range(count):
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
    if axis is None:
        return x.size
    axes = [axis_of(k, x.ndim) for k in axis_tuple(axis)]
    if len(set(axes)) != len(axes):
        raise ShapeError("repeated axis", loc=user_loc())
    return math.prod(x.shape[k] for k in axes)


@numpy_function("ndim")
def _ndim(a: Any) -> int:
    return ndim(a)
