"""NumPy's functions that make larger arrays: joining, repeating, padding, as ops."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....errors import BoundsError, ShapeError
from ....ir.dtypes import dtype_of
from ....trees.leaves import NUMBERS
from ..tracing.current import size_error, trace_error, user_loc
from ..tracing.mutation import in_memory
from ..tracing.operators import op
from ..tracing.traced import Traced
from ..tracing.traced_scalar import TracedScalar
from .axes import MISSING, as_array, axis_number, axis_of, check_cast, dtype_like, ndim, sizes
from .progressions import iota
from .registry import creation_function, numpy_function
from .selection import result_type
from .shape_functions import at_least, ravel, reshape

# --- joining ----------------------------------------------------------------------------------


@numpy_function("concatenate", "concat")
def concatenate(arrays: Any, axis: Any = 0, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """`np.concatenate`."""
    sources = list(arrays)
    parts = [as_array(a) for a in sources]
    if axis is None:
        # Python numbers are weak here, although they become arrays.
        if dtype is None and any(map(_is_number, sources)):
            dtype = result_type(*(a if _is_number(a) else as_array(a) for a in sources))
            casting = "unsafe"
        parts, axis = [ravel(a) for a in parts], 0
    out = op("concatenate", *parts, axis=axis_number(axis))
    return _cast_to(out, parts, dtype, casting)


def _is_number(x: Any) -> bool:
    return isinstance(x, TracedScalar) or type(x) in NUMBERS


def _cast_to(out: Any, parts: Sequence[Any], dtype: Any, casting: Any) -> Any:
    """``out``, which joins ``parts``, cast to the dtype that the call asks for, if it may be."""
    out_dtype = out.dtype if dtype is None else dtype
    for part in parts:
        check_cast(part, out_dtype, casting)
    return out if dtype is None else op("cast", out, dtype=dtype_of(dtype))


@numpy_function("stack")
def _stack(arrays: Any, axis: Any = 0, dtype: Any = None, casting: Any = "same_kind") -> Any:
    parts = [as_array(a) for a in arrays]
    return _cast_to(stack(parts, axis), parts, dtype, casting)


def stack(arrays: Sequence[Any], axis: Any = 0) -> Any:
    """`np.stack`."""
    return op("stack", *map(as_array, arrays), axis=operator.index(axis))


@numpy_function("vstack")
def vstack(tup: Any, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """`np.vstack`."""
    return concatenate([at_least(2, [a]) for a in tup], 0, dtype, casting)


@numpy_function("hstack")
def hstack(tup: Any, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """`np.hstack`."""
    parts = [at_least(1, [a]) for a in tup]
    return concatenate(parts, 0 if parts and parts[0].ndim == 1 else 1, dtype, casting)


@numpy_function("dstack")
def dstack(tup: Any) -> Any:
    """`np.dstack`."""
    return concatenate([at_least(3, [a]) for a in tup], 2)


@numpy_function("column_stack")
def column_stack(tup: Any) -> Any:
    """`np.column_stack`."""
    parts = [as_array(a) for a in tup]
    return concatenate([a if a.ndim >= 2 else reshape(a, (-1, 1)) for a in parts], 1)


@numpy_function("append")
def append(arr: Any, values: Any, axis: Any = None) -> Any:
    """`np.append`."""
    if axis is None:
        return concatenate([ravel(as_array(arr)), ravel(as_array(values))], 0)
    return concatenate([arr, values], axis)


@numpy_function("block")
def block(arrays: Any) -> Any:
    """`np.block`: the innermost lists are joined along the last axis."""
    depth = _depth(arrays, "arrays")
    rank = max(depth, *map(ndim, _leaves(arrays)), 0)

    def joined(part: Any, inner: int) -> Any:
        if inner:
            return concatenate([joined(p, inner - 1) for p in part], -inner)
        array = as_array(part)
        ahead = tuple(range(rank - array.ndim))
        return op("expand_dims", array, axes=ahead) if ahead else array

    return joined(arrays, depth) if depth else op("copy", joined(arrays, 0))


def _depth(nested: Any, place: str) -> int:
    """The number of lists in which the arrays lie; raises TypeError and ValueError as NumPy does."""
    if type(nested) is tuple:
        raise TypeError(
            f"{place} is a tuple. Only lists can be used to arrange blocks, and np.block does not "
            "allow implicit conversion from tuple to ndarray."
        )
    if type(nested) is not list:
        return 0
    if not nested:
        raise ValueError(f"List at {place} cannot be empty")
    depths = {_depth(part, f"{place}[{k}]") for k, part in enumerate(nested)}
    if len(depths) > 1:
        raise ValueError(f"List depths are mismatched: arrays in {place} lie in {sorted(depths)}")
    return 1 + depths.pop()


def _leaves(nested: Any) -> list[Any]:
    return [x for part in nested for x in _leaves(part)] if type(nested) is list else [nested]


# --- repeating and padding --------------------------------------------------------------------


@numpy_function("tile")
def tile(A: Any, reps: Any) -> Any:
    """`np.tile`."""
    reps = (
        reps
        if isinstance(reps, (tuple, list))
        else tuple(np.atleast_1d(reps))
        if isinstance(reps, np.ndarray)
        else (reps,)
    )
    static, dynamic = sizes([+n if type(n) is bool else n for n in reps])
    if dynamic:
        raise trace_error(
            "np.tile with a number of repetitions known only at run time is not supported",
            "use np.broadcast_to and reshape",
        )
    shape = as_array(A).shape
    ahead = len(static) - len(shape)
    # NumPy multiplies sizes by repetitions, so that 0 times a negative number is 0.
    none = [k >= ahead and n < 0 and bool(shape[k - ahead] == 0) for k, n in enumerate(static)]
    reps = tuple(0 if z else n for z, n in zip(none, static, strict=True))
    return in_memory(op("tile", A, reps=reps))


@numpy_function("repeat")
def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    """`np.repeat`; with one count per element on the host, as contents decide the size of the result."""
    if isinstance(repeats, Traced) or np.size(repeats) != 1:
        from .host import call

        return call("numpy.repeat", (a, repeats), {} if axis is None else {"axis": axis_number(axis)})
    number = np.asarray(repeats).reshape(()).item()
    # NumPy truncates a plain float to an integer, but not one in an array.
    is_array = isinstance(repeats, np.ndarray)
    count = operator.index(number) if is_array else int(number)
    place = 0 if axis is None else axis_number(axis)
    a = ravel(a) if axis is None else at_least(1, [a])  # a number has axis 0 here, too
    if count < 0 and a.shape[axis_of(place, a.ndim)] == 0:
        count = 0
    return op("repeat", a, repeats=count, axis=place)


@creation_function("pad")  # the array may be ordinary and the widths traced
@numpy_function("pad")
def pad(array: Any, pad_width: Any, mode: str = "constant", constant_values: Any = MISSING) -> Any:
    """`np.pad` with a constant, the edge, or by reflection."""
    rank = ndim(array)
    if mode != "constant" and constant_values is not MISSING:
        raise ValueError(f"unsupported keyword arguments for mode {mode!r}: constant_values")
    constant_values = 0 if constant_values is MISSING else constant_values
    if isinstance(pad_width, dict):
        if any(not -rank <= k < rank for k in pad_width):
            raise BoundsError(f"pad_width has axes that rank {rank} lacks", loc=user_loc())
        widths: list[Any] = [pad_width.get(k, pad_width.get(k - rank, 0)) for k in range(rank)]
        pad_width = [(w, w) if np.ndim(w) == 0 else w for w in widths]
    amounts = np.asarray(_baked(pad_width))
    if amounts.dtype.kind not in "iu":
        raise TypeError("`pad_width` must be of integral type.")
    pairs = np.broadcast_to(amounts, (rank, 2))
    low, high = ([int(v) for v in pairs[:, k]] for k in (0, 1))
    if amounts.min(initial=0) < 0:
        raise ShapeError("index can't contain negative values", loc=user_loc())
    if mode == "constant":
        if isinstance(constant_values, (list, tuple)) or np.ndim(constant_values) > 0:
            raise trace_error("np.pad with several constants is not supported while tracing", "pad one side at a time")
        value = op("cast", constant_values, dtype=dtype_of(dtype_like(array)))
        return in_memory(op("pad", array, value, widths=tuple(int(v) for v in pairs.reshape(-1))))
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        raise trace_error(
            f"np.pad with mode={mode!r} is not supported while tracing",
            "use mode='constant', 'edge', 'reflect', 'symmetric' or 'wrap'",
        )
    out = as_array(array)
    for axis in range(rank):
        out = _pad_axis(out, axis, low[axis], high[axis], mode)
    return out if any((*low, *high)) else op("copy", array)


def _baked(widths: Any) -> Any:
    """Nested widths as numbers: those that follow from sizes are baked into the graph."""
    if isinstance(widths, (list, tuple)):
        return [_baked(width) for width in widths]
    return widths.bake() if isinstance(widths, TracedScalar) else widths


def _pad_axis(x: Any, axis: int, low: int, high: int, mode: str) -> Any:
    if not low and not high:
        return x
    n = x.shape[axis]
    if n == 0:
        raise size_error(ShapeError, f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'")
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
