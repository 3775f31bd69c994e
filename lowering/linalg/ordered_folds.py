"""Folds along one axis whose loop runs in order: scans, and the places of extrema."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from mlir import ir

from ...dialect.ir.dtypes import BF16, BOOL, F16, F32, I64, U8, DType
from ...dialect.ir.types import TensorType
from .element import Number
from .generic import TensorValue, dims, known, loop_index
from .scalar import Scalar, constant, extremum_op

if TYPE_CHECKING:
    from .tensor_builder import Builder

SCAN = "profuse.scan"
EXTREMUM = "profuse.extremum"


def index_of_extremum(b: Builder, x: TensorValue, axis: int, which: str, type_: TensorType) -> TensorValue:
    """Index along ``axis`` of the first ``"max"`` or ``"min"``, or of the first NaN.

    Emits one generic with two results, value and index; the loop over ``axis`` must run in
    order. Its attribute `EXTREMUM` names the operation that makes the extremum of two elements,
    which may be applied to elements in any order.
    """
    dtype, _ = known(type_)
    axis %= x.rank
    # In these dtypes an element has one form, in memory and in computations.
    inside = {F16: F32, BF16: F32, BOOL: U8}.get(x.dtype, x.dtype)
    x = b.cast(x, inside)
    kept = [k for k in range(x.rank) if k != axis]
    loops = dims(x.rank)
    shape = tuple(x.shape[k] for k in kept)
    into = [loops[k] for k in kept]
    # If all elements equal this value, none is better, and the index stays 0, as it should.
    start = constant(limit(inside, "min" if which == "max" else "max"), inside)
    best = b.fill(start, TensorType(inside, shape)).value
    where = b.fill(0, TensorType(I64, shape)).value

    def body(element: Scalar, value: Scalar, index: Scalar) -> tuple[Scalar, Scalar]:
        here = loop_index(axis)
        take = element > value if which == "max" else element < value
        if inside.is_float:
            take = (take | element.isnan()) & ~value.isnan()
        return take.select(element, value), take.select(here, index)

    out = b.generic(
        [(x, loops)],
        [(best, inside, into), (where, I64, into)],
        [k == axis for k in range(x.rank)],
        body,
        {EXTREMUM: ir.StringAttr.get(extremum_op(inside, which))},
    )
    return b.cast(TensorValue(out[1], TensorType(I64, shape)), dtype)


def scan(
    b: Builder, fn: Callable[[Scalar, Scalar], Scalar], x: TensorValue, axis: int, type_: TensorType
) -> TensorValue:
    """Running ``fn(accumulator, element)`` along ``axis``, the first element unchanged.

    Emits one generic with the attribute `SCAN`. Its results are the running values (identity
    map) and the last of them (the map without ``axis``), which is also the accumulator. The
    loop over ``axis`` is of type "reduction" and must run in order, innermost or not.
    """
    dtype, _ = known(type_)
    axis %= x.rank
    x = b.cast(x, dtype)
    loops = dims(x.rank)
    kept = [k for k in range(x.rank) if k != axis]
    last = b.fill(constant(0, dtype), TensorType(dtype, tuple(x.shape[k] for k in kept)))

    def body(element: Scalar, _: Scalar, acc: Scalar) -> tuple[Scalar, Scalar]:
        value = loop_index(axis).eq(0).select(element, fn(acc, element))
        return value, value

    out = b.generic(
        [(x, loops)],
        [(b.empty(type_), dtype, loops), (last.value, dtype, [loops[k] for k in kept])],
        [k == axis for k in range(x.rank)],
        body,
        {SCAN: ir.UnitAttr.get()},
    )
    return TensorValue(out[0], type_)


def limit(dtype: DType, which: str) -> Number:
    """The least ("min") or greatest ("max") value of a dtype."""
    if dtype is BOOL:
        return which == "max"
    if dtype.is_float:
        return float("inf") if which == "max" else float("-inf")
    return int(getattr(np.iinfo(dtype.numpy), which))
