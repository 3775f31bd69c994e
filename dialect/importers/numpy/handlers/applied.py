"""NumPy's functions that call a function of the user's: on parts, slices or axes of an array."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ....errors import ShapeError
from ....ops.create import Constant
from ....ops.elementwise.families import Elementwise
from ..tracing.current import trace_error, user_loc
from ..tracing.handler_tables import FUNCTIONS
from ..tracing.operators import op, recorder_of
from ..tracing.traced import is_on_tape
from .axes import as_array, as_traced, axis_of, axis_tuple, sizes_now
from .joins import stack
from .registry import numpy_function
from .shape_functions import moveaxis, reshape

_MOST_SLICES = 16
"""So many calls of a function on slices become one graph."""


@numpy_function("piecewise", raw=True)
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """`np.piecewise` of functions that compute element by element.

    Raises TraceError for other functions: NumPy does not call one whose condition holds nowhere.
    """
    x = as_traced(x)
    if not x.ndim or (not isinstance(condlist, (list, tuple)) and np.ndim(condlist) != 1):
        raise trace_error(
            "np.piecewise of an array without axes, or under conditions that are no list, "
            "is not supported while tracing",
            "write np.where(condition, x, y)",
        )
    if not isinstance(condlist, (list, tuple)) or not isinstance(condlist[0], (list, np.ndarray)):
        condlist = [condlist]
    masks = [as_array(c).astype(bool) for c in condlist]
    together = stack(masks)  # raises an error for sizes that differ
    if len(masks) == len(funclist) - 1:
        masks.append(op("logical_not", op("any", together, axes=(0,))))
    elif len(masks) != len(funclist):
        raise ValueError(
            f"with {len(masks)} condition(s), either {len(masks)} or {len(masks) + 1} functions are expected"
        )
    out = FUNCTIONS[np.zeros_like](x)
    for mask, function in zip(masks, funclist, strict=True):
        if not isinstance(function, Callable):  # type: ignore[arg-type]
            out[mask] = function
            continue
        picked = x[mask]
        if not is_on_tape([x]):
            out[mask] = _elementwise(function, picked, args, kw)
        elif picked.size:
            out[mask] = function(picked, *args, **kw)
    return out


def _elementwise(function: Callable, picked: Any, args: tuple, kw: dict[str, Any]) -> Any:
    """The function of elements that a mask picks; raises TraceError unless each is by itself."""
    instructions = recorder_of().blocks[-1].instrs
    before = len(instructions)
    try:
        result = function(picked, *args, **kw)
    except ShapeError:
        result = None  # NumPy may not get there, as for the maximum of no elements
    instrs = instructions[before:]
    if result is None or not all(issubclass(each.op, (Constant, Elementwise)) for each in instrs):
        raise trace_error(
            "np.piecewise with a function that does more than compute element by element is not "
            "supported while tracing",
            "write np.where(condition, f(x), g(x))",
        )
    return result


@numpy_function("apply_along_axis", raw=True)
def apply_along_axis(func1d: Callable, axis: Any, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """`np.apply_along_axis` on a few slices, whose number is baked into the graph.

    Raises TraceError for more than 16 slices, and for results whose dtypes or sizes differ.
    """
    arr = as_traced(arr)
    place = axis_of(axis, arr.ndim)
    if arr.ndim < 2:
        raise trace_error(
            "np.apply_along_axis of an array of one axis is not supported while tracing", "call the function"
        )
    rows = moveaxis(arr, place, -1)
    here = sizes_now(rows)[:-1]
    if math.prod(_MOST_SLICES + 1 if n is None else n for n in here) > _MOST_SLICES:
        raise trace_error(
            f"np.apply_along_axis on more than {_MOST_SLICES} slices makes a graph of as many calls",
            "call a function of the whole array, with axis=",
        )
    counts = tuple(int(size) for size in rows.shape[:-1])
    if 0 in counts:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    results = [as_array(func1d(rows[k], *args, **kwargs)) for k in np.ndindex(*counts)]
    if len({(x.dtype, sizes_now(x)) for x in results}) > 1:
        raise trace_error(
            "np.apply_along_axis of a function whose results differ in dtype or size is not supported while tracing",
            "call it on one slice after the other",
        )
    inner = results[0].ndim
    out = reshape(stack(results), (*counts, *results[0].shape))
    first = range(len(counts), len(counts) + inner)
    return moveaxis(out, tuple(first), tuple(range(place, place + inner))) if inner else out


@numpy_function("apply_over_axes")
def apply_over_axes(func: Callable, a: Any, axes: Any) -> Any:
    """`np.apply_over_axes`: the function is called with the array and one axis after the other."""
    out = as_array(a)
    rank = out.ndim
    for axis in axis_tuple(axes):
        place = axis + rank if axis < 0 else axis
        result = func(out, place)
        if result.ndim != out.ndim:
            result = np.expand_dims(result, place)
        if result.ndim != out.ndim:
            raise ShapeError("function is not returning an array of the correct shape", loc=user_loc())
        out = result
    return out
