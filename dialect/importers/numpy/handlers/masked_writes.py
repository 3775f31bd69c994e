"""Functions that write to an array where a mask holds: `np.putmask`, `np.copyto`, ``where=``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....errors import DTypeError, ShapeError
from ....ir.dtypes import dtype_of
from ....trees.leaves import NUMBERS
from ..tracing.current import trace_error, user_loc
from ..tracing.mutation import check_owner, write
from ..tracing.operators import op
from ..tracing.outputs import traced_out
from ..tracing.traced import Traced
from ..tracing.traced_scalar import TracedScalar
from .axes import as_array, as_traced, check_cast, dtype_like, ndim, sizes_now
from .masks import HARMLESS
from .registry import numpy_function


def _blend(target: Traced, mask: Any, value: Any) -> None:
    """Give ``target`` the elements of ``value``, which broadcasts to it, where ``mask`` holds."""
    if ndim(mask) > target.ndim:
        raise ShapeError("a mask has more axes than the array that it selects", loc=user_loc())
    new = op("conform", value, target, assign=True)
    write(target, op("select", mask, new, target), strict=False)


@numpy_function("putmask")
def putmask(a: Any, mask: Any, values: Any) -> None:
    """`np.putmask` of one value, or of values at their places; raises TraceError for others."""
    target = traced_out("np.putmask", a)
    _put(target, mask, values, repeated=sizes_now(as_array(values)) != sizes_now(target))


@numpy_function("place")
def place(arr: Any, mask: Any, vals: Any) -> None:
    """`np.place` of one value; raises TraceError for several, which it takes one by one."""
    _put(traced_out("np.place", arr), mask, vals, repeated=True)


def _put(target: Traced, mask: Any, values: Any, repeated: bool) -> None:
    check_owner(target)
    original = values
    if isinstance(values, (list, tuple)):
        values = values[0] if len(values) == 1 and not ndim(values[0]) else as_array(values)
    mask = as_traced(mask)
    mask = mask if mask.dtype.kind == "b" else op("ne", mask, 0)
    if sizes_now(mask) != sizes_now(target):
        raise trace_error("a mask of another shape than the array is not supported while tracing")
    listed = isinstance(original, (list, tuple))
    if isinstance(values, (Traced, np.ndarray)):
        if listed:  # which NumPy converts element by element
            values = op("cast", values, dtype=dtype_of(target.dtype))
        check_cast(values, target.dtype, "safe")
        if ndim(values) and repeated:
            raise trace_error(
                "values that are repeated, or taken one by one, are not supported while tracing",
                "give one value, or use x[...] = np.where(mask, values, x)",
            )
    _blend(target, mask, values)


@numpy_function("copyto")
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """`np.copyto`."""
    target = traced_out("np.copyto", dst)
    check_owner(target)
    if isinstance(src, TracedScalar) or type(src) in NUMBERS:  # beside arrays, numbers are weak
        number = src.kind() if isinstance(src, TracedScalar) else src
        check_cast(np.zeros((), np.result_type(target.dtype, number)), target.dtype, casting)
        if type(src) is complex and target.dtype.kind != "c":
            src = src.real
    else:
        check_cast(src, target.dtype, casting)
    if where is True:
        write(target, src, strict=False)
    else:
        _blend(target, as_traced(where), src)


def call_where(ufunc: np.ufunc, call: Callable, inputs: tuple, where: Any, targets: list[Traced]) -> Any:
    """``ufunc(*inputs, out=target, where=where)``: the target keeps its other elements.

    ``call`` computes the result of operands, which are ones where nothing is wanted, so that
    nothing warns there. Raises TraceError without a target, whose elements NumPy leaves undefined.
    """
    if len(targets) != 1:
        raise trace_error(
            f"np.{ufunc.__name__}(…, where=…) without out= leaves elements undefined",
            "give out=, such as out=np.zeros_like(x)",
        )
    (target,) = targets
    mask = as_traced(where)
    if mask.dtype.kind != "b":
        raise DTypeError(f"where= has to be an array of bools, not of {mask.dtype}", loc=user_loc())
    if ufunc.__name__ not in HARMLESS:
        inputs = tuple(
            op("select", mask, x, np.ones((), dtype_like(x))[()])
            if isinstance(x, (Traced, np.ndarray, list)) and ndim(x)
            else x
            for x in inputs
        )
    result = call(*inputs)
    if isinstance(result, tuple):
        raise trace_error(f"np.{ufunc.__name__}(…, where=…) has several results")
    for x in (result, mask):
        if ndim(x) > target.ndim:
            raise ShapeError("non-broadcastable output operand: it has fewer axes than the operands", loc=user_loc())
    if dtype_like(result) != target.dtype:
        check_cast(result, target.dtype)
        result = op("conform", result, target, assign=True)
    return write(target, op("select", mask, result, target))
