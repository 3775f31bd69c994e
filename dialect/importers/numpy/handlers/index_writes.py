"""Writes through index arrays: ``y[i] = v``, ``np.add.at``, `np.put`, `np.fill_diagonal`.

Of several values for one element the last one stays, as in NumPy; ``ufunc.at`` takes them in order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import BoundsError, ShapeError
from ....ir.dtypes import dtype_of
from ..tracing.current import size_error, trace_error, user_loc
from ..tracing.mutation import check_owner, is_immutable, write
from ..tracing.operators import op
from ..tracing.outputs import traced_out
from ..tracing.traced import Traced
from ..tracing.unsupported import unsupported_call
from .axes import as_array, axis_of, check_cast, loop, ndim, sizes_now
from .indexing import ellipsis_place, is_index_array, items_of
from .progressions import iota
from .registry import array_method, numpy_function
from .selection import bounded

# ufunc -> the op that its ``at`` is.
_AT = {
    "add": "index_add_",
    "subtract": "index_add_",
    "multiply": "index_multiply_",
    "maximum": "index_maximum_",
    "minimum": "index_minimum_",
}


def _places(x: Traced, key: Any) -> tuple[Any, tuple[int, ...], list[Any]]:
    """The elements that ``x[key]`` picks: a view of ``x``, the axes that indices run over, and the indices.

    Raises TraceError for newaxes, and where NumPy's rule for separated index arrays moves axes.
    """
    items = items_of(x, key)
    if any(item is None for item in items):
        raise trace_error(
            "assignment through index arrays beside newaxes is not supported while tracing",
            "leave the newaxes away, and give the values fewer axes",
        )
    axes = tuple(k for k, item in enumerate(items) if not isinstance(item, slice))
    dots = ellipsis_place(key)
    if dots is not None and dots in axes[1:] and axes[-1] - axes[0] == len(axes) - 1:
        raise trace_error("an ellipsis between index arrays is not supported while tracing")
    basic = tuple(item if isinstance(item, slice) else slice(None) for item in items)
    view = x if all(item == slice(None) for item in basic) else x[basic]
    return view, axes, [items[k] for k in axes]


def put_at(x: Traced, key: Any, value: Any) -> None:
    """``x[key] = value`` for a key with index arrays."""
    view, axes, indices = _places(x, key)
    op("index_put_", view, value, *indices, axes=axes)


def ufunc_at(ufunc: np.ufunc, inputs: tuple[Any, ...]) -> None:
    """``ufunc.at(x, key, value)``; raises TraceError for other ufuncs than those of sums and such.

    Raises TraceError for values whose results have a dtype of another kind than that of ``x``, too.
    """
    name = ufunc.__name__
    if name not in _AT or len(inputs) != 3:
        raise unsupported_call(traced_out(f"np.{name}.at", inputs[0]).rec, ufunc, f"np.{name}.at")
    x, key, value = inputs
    target = traced_out(f"np.{name}.at", x)
    check_owner(target)
    if is_immutable(target) or not target.ndim:
        raise trace_error(f"np.{name}.at of a number is not supported while tracing")
    value = as_array(value) if isinstance(value, (list, tuple)) else value
    if not np.can_cast(loop(ufunc, (target, value))[-1], target.dtype, "same_kind"):
        # Whether NumPy casts or raises depends on the loop that it picks.
        raise trace_error(
            f"np.{name}.at of {target.dtype} with values of another kind is not supported", "cast the values first"
        )
    key = np.asarray(key) if isinstance(key, list) else key
    if not any(map(is_index_array, items_of(target, key))):
        raise trace_error(
            f"np.{name}.at without an index array is not supported while tracing", "write x[key] += value"
        )
    if name == "subtract":
        value = -as_array(value).astype(target.dtype)
    view, axes, indices = _places(target, key)
    op(_AT[name], view, value, *indices, axes=axes)


@numpy_function("put")
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """`np.put` of one value, or of as many values as there are indices."""
    target = traced_out("np.put", a)
    check_owner(target)
    index, values = as_array(ind), as_array(v) if isinstance(v, (list, tuple)) else v
    if index.dtype.kind not in "iu":
        raise trace_error("np.put with indices of another dtype than integers is not supported")
    if ndim(values):
        check_cast(values, target.dtype, "unsafe")
        if sizes_now(values.reshape(-1)) != sizes_now(index.reshape(-1)):
            raise trace_error(
                "np.put of values that are repeated or left out is not supported while tracing",
                "give one value, or one for each index",
            )
        values = values.reshape(-1)
    flat = op("reshape", target, shape=(-1,), view_of=target)
    op("index_put_", flat, values, bounded(index.reshape(-1), target.size, mode), axes=(0,))


@array_method("put")
def put_method(self: Traced, indices: Any, values: Any, mode: str = "raise") -> None:
    """`ndarray.put`."""
    put(self, indices, values, mode)


@numpy_function("put_along_axis")
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any = -1) -> None:
    """`np.put_along_axis`."""
    target, index = traced_out("np.put_along_axis", arr), as_array(indices)
    check_owner(target)
    place = None if axis is None else axis_of(axis, target.ndim)
    if index.dtype.kind not in "iu":
        raise BoundsError("`indices` must be an integer array", loc=user_loc())
    if place is None:
        if index.ndim != 1:
            raise ShapeError("when axis=None, `indices` must have a single dimension.", loc=user_loc())
        flat = op("reshape", target, shape=(-1,), view_of=target)
        op("index_put_", flat, values, index, axes=(0,))
        return
    if index.ndim != target.ndim:
        raise ShapeError("`indices` and `arr` must have the same number of dimensions", loc=user_loc())
    where = [index if k == place else along(target, k) for k in range(target.ndim)]
    op("index_put_", target, values, *where, axes=tuple(range(target.ndim)))


def along(x: Traced, axis: int) -> Any:
    """The index of each element along an axis, in a shape that broadcasts to that of ``x``."""
    count = iota(x.shape[axis], dtype_of(np.int64))
    others = tuple(k for k in range(x.ndim) if k != axis)
    return op("expand_dims", count, axes=others) if others else count


@numpy_function("fill_diagonal")
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """`np.fill_diagonal` of one value, or of one for each element of the diagonal."""
    target = traced_out("np.fill_diagonal", a)
    check_owner(target)
    if target.ndim < 2:
        raise ShapeError("array must be at least 2-d", loc=user_loc())
    if target.ndim > 2 and len(set(sizes_now(target))) > 1:
        raise size_error(ShapeError, "All dimensions of input must be of equal length")
    if wrap:
        raise trace_error("np.fill_diagonal(wrap=True) is not supported while tracing")
    rows = along(target, 0)
    diagonal = op("eq", rows, along(target, 1))
    for axis in range(2, target.ndim):
        diagonal = op("logical_and", diagonal, op("eq", rows, along(target, axis)))
    value = as_array(val) if isinstance(val, (list, tuple)) else val
    if ndim(value):
        if ndim(value) != 1 or sizes_now(value)[0] not in {min(map(int, target.shape))}:
            raise trace_error(
                "np.fill_diagonal of values that are repeated is not supported while tracing",
                "give one value, or one for each element of the diagonal",
            )
        last = op("sub", value.shape[0], 1)
        value = op("take", value, op("minimum", rows, last), axis=0)
    new = op("conform", value, target, assign=True)
    write(target, op("select", diagonal, new, target), strict=False)
