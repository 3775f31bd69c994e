"""Arrays whose elements follow from their places: ranges, points at equal distances, ones on a diagonal."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ....errors import ShapeError
from ....ir.dtypes import dtype_of
from ....trees.leaves import NUMBERS
from ..tracing.current import trace_error, user_loc
from ..tracing.handler_tables import METHODS
from ..tracing.operators import op
from ..tracing.traced import Traced
from ..tracing.traced_scalar import TracedScalar
from .axes import dtype_like, known_int, sizes
from .creation import array
from .registry import creation_function


@creation_function("arange")
def arange(start_or_stop: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> Any:
    """`np.arange`."""
    start = 0 if stop is None else start_or_stop
    stop = start_or_stop if stop is None else stop
    numbers = [_number(x) for x in (start, stop, 1 if step is None else step)]
    start, stop, step = numbers
    if all(_is_int(x) for x in numbers):
        # -(-a // b) rounds the number of steps up.
        count = -((start - stop) // step)
        count = _or_none(count)
    else:
        count = _length((float(stop) - float(start)) / float(step))
    out_dtype = np.dtype(dtype or np.result_type(np.int64, *map(_kind_of, numbers)))
    if out_dtype.kind == "b":
        raise trace_error("np.arange of bools is not supported while tracing", "NumPy takes two elements at most")
    if all(_is_int(x) for x in numbers) and out_dtype.kind not in "fc":
        steps = iota(count, dtype_of(np.int64))
        out = steps if _is_one(step) else steps * step
        out = out if _is_zero(start) else out + start
        return out if out.dtype == out_dtype else op("cast", out, dtype=dtype_of(out_dtype))
    # NumPy fills by the difference of the first two elements, rounded to the array's dtype.
    first, second = _element(start, out_dtype), _element(start + step, out_dtype)
    steps = METHODS["astype"](iota(count, dtype_of(np.int64)), out_dtype)
    return np.where(steps == 1, second, steps * (second - first) + first)


def _length(steps: float) -> int:
    """The number of steps, rounded up, 0 at least; raises ShapeError for NaN and from 2**63 on."""
    if not abs(steps) < 2**63:
        what = "arange: cannot compute length" if steps != steps else "Maximum allowed size exceeded"
        raise ShapeError(what, loc=user_loc())
    return max(math.ceil(steps), 0)


def _or_none(count: Any) -> Any:
    """``count`` as a number of elements: 0 where it is negative."""
    return op("maximum", count, 0) if isinstance(count, TracedScalar) else max(+count, 0)


def _rounded_up(count: Any) -> Any:
    return _length(float(count)) if _kind_of(count) is float else count


def _kind_of(number: Any) -> type:
    return number.kind if isinstance(number, TracedScalar) else type(number)


def _promoting(x: Any) -> Any:
    """An operand's representative in NumPy's promotion: a Python number, or a dtype."""
    if isinstance(x, TracedScalar) or type(x) in NUMBERS:
        return _kind_of(x)(1)
    return array(x).dtype


def _element(number: Any, dtype: np.dtype) -> Any:
    """A number in a dtype, as an array of rank 0."""
    if isinstance(number, TracedScalar):
        return op("to_tensor", number, dtype=dtype_of(dtype))
    return np.array(number).astype(dtype)[()]


def iota(count: Any, dtype: Any) -> Any:
    """``0, 1, 2, …`` of ``count`` elements."""
    static, dynamic = sizes(count)
    return op("iota", *dynamic, shape=static, dtype=dtype, axis=0)


def _number(x: Any) -> Any:
    """A Python or traced number as it is; of a rank-0 array, the number that it holds."""
    x = known_int(x)
    if isinstance(x, Traced):
        return x.bake()
    return x.item() if isinstance(x, (np.generic, np.ndarray)) else x


def _is_int(x: Any) -> bool:
    return x.kind in (int, bool) if isinstance(x, TracedScalar) else isinstance(x, int)


def _is_one(x: Any) -> bool:
    return not isinstance(x, TracedScalar) and x == 1


def _is_zero(x: Any) -> bool:
    return not isinstance(x, TracedScalar) and x == 0


@creation_function("linspace")
def linspace(
    start: Any, stop: Any, num: Any = 50, endpoint: Any = True, retstep: bool = False, dtype: Any = None, axis: int = 0
) -> Any:
    """`np.linspace`, step by step as NumPy computes it."""
    count: Any = known_int(num)
    if not isinstance(count, TracedScalar) or count.kind is not int:
        count = +operator.index(count)
    float_type = np.result_type(*map(_promoting, (start, stop)))
    if float_type.kind not in "fc":
        float_type = np.dtype(float)
    start, stop = (array(x, float_type) for x in (start, stop))
    out_dtype = float_type if dtype is None else np.dtype(dtype)
    steps = count - 1 if endpoint else count
    last = op("maximum", steps, 1) if isinstance(steps, TracedScalar) else max(steps, 1)
    delta = stop - start
    positions = METHODS["astype"](iota(count, dtype_of(np.int64)), float_type)
    for _ in range(delta.ndim):
        positions = op("expand_dims", positions, axes=(-1,))
    step = delta / last
    # The step may be rounded to 0 although the difference is not 0.
    out = np.where(step == 0, positions / last * delta, positions * step) + start
    if endpoint:  # the last point is exact; a single point is the start
        out = np.where(positions == last, stop, out)
    if out_dtype.kind in "iu":
        out = np.floor(out)
    out = METHODS["astype"](np.moveaxis(out, 0, axis) if axis else out, out_dtype)
    if not retstep:
        return out
    if bool(steps > 0):
        return out, step
    return out, np.nan


_WHOLE = 2.0**50  # up to which floats, and sums with sizes of arrays, are exact


def whole_diagonal(k: Any, columns: Any) -> Any:
    """The diagonal ``k`` up to which `np.tri` puts ones, as an integer; ``k`` may be a float.

    NumPy compares with a range from -k on, as integers: if the first two elements are truncated to
    0, all elements are 0, and so every column has a one. Raises ShapeError where the range has no
    length, and TraceError where it has another one, which rounding decides.
    """
    if dtype_like(k).kind in "biu":
        return k
    number = float(k)  # that of a trace is guarded: hardly any function has one that changes
    _length((1.0 - number) + number)
    if abs(number) > _WHOLE:
        raise trace_error("a diagonal that far from the main one is a matter of rounding")
    return columns if 0 < number < 1 else math.trunc(number)


@creation_function("eye")
def eye(N: Any, M: Any = None, k: Any = 0, dtype: Any = float) -> Any:
    """`np.eye`."""
    k = operator.index(k) if not isinstance(k, TracedScalar) else k
    row, column = _rows_and_columns((N, N if M is None else M))
    return op("cast", op("eq", row + k, column), dtype=dtype_of(dtype))


def _rows_and_columns(shape: Any) -> tuple[Any, Any]:
    """For each element of a matrix, the number of its row, and that of its column."""
    static, dynamic = sizes(shape)
    index = dtype_of(np.int64)
    row, column = (op("iota", *dynamic, shape=static, dtype=index, axis=k) for k in (0, 1))
    return row, column


@creation_function("identity")
def identity(n: Any, dtype: Any = None) -> Any:
    """`np.identity`."""
    return eye(n, dtype=dtype or float)


@creation_function("tri")
def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = float) -> Any:
    """`np.tri`, which takes negative sizes for 0."""
    shape = [_or_none(_rounded_up(n)) for n in (N, N if M is None else M)]
    row, column = _rows_and_columns(shape)
    k = whole_diagonal(k, shape[1])
    return op("cast", op("le", column, row + k), dtype=dtype_of(dtype))
