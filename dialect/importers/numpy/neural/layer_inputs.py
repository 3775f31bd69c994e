"""The arguments of a layer, checked before anything is computed: each error names one, and says what to do."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....errors import ArgumentError, AxisError, DTypeError, ShapeError
from ..tracing.current import user_loc
from ..tracing.operators import op
from ..tracing.traced import Traced

SPATIAL = {1: ("L",), 2: ("H", "W")}  # the axes of what has so many behind its channels, as errors name them
_HALF = 2  # bytes of the dtypes whose sums and exponentials are computed in f32


def wrong_shape(function: str, what: str, hint: str) -> ShapeError:
    """The error for shapes that do not fit, at the user's line."""
    return ShapeError(f"nn.{function}: {what}", loc=user_loc(), hint=hint)


def wrong_argument(function: str, what: str, hint: str) -> ArgumentError:
    """The error for an argument of another kind, at the user's line."""
    return ArgumentError(f"nn.{function}: {what}", loc=user_loc(), hint=hint)


def wrong_dtype(function: str, what: str, hint: str) -> DTypeError:
    """The error for a dtype that the function is not for, at the user's line."""
    return DTypeError(f"nn.{function}: {what}", loc=user_loc(), hint=hint)


def array(function: str, name: str, x: Any, ndims: Sequence[int] = (), axes: str = "") -> Any:
    """``x`` itself; raises ArgumentError unless it is an array, ShapeError for another number of axes.

    ``axes`` says in the error what the axes are.
    """
    if not (hasattr(x, "ndim") and hasattr(x, "dtype") and hasattr(x, "shape")):
        raise wrong_argument(function, f"{name} is of type {type(x).__name__}", f"pass an array: np.asarray({name})")
    if ndims and x.ndim not in ndims:
        counts = " or ".join(map(str, ndims))
        raise wrong_shape(
            function,
            f"{name} has {x.ndim} axes, shape {tuple(x.shape)}, where it needs {counts}",
            f"pass {name} as {axes}",
        )
    return x


def images_of(function: str, x: Any, count: int) -> tuple[Any, bool]:
    """``x`` as images (N, C, ...) with ``count`` axes behind, and whether it is one image, without N.

    Raises as `array`.
    """
    axes = ", ".join(SPATIAL[count])
    array(function, "input", x, (count + 2, count + 1), f"(N, C, {axes}) or (C, {axes})")
    return (x[None], True) if x.ndim == count + 1 else (x, False)


def vector(function: str, name: str, x: Any, size: int, of: str) -> Any:
    """``x`` itself, None or an array of shape ``(size,)``; raises as `array`. ``of`` says what it has one entry for."""
    if x is None:
        return None
    array(function, name, x)
    if tuple(x.shape) != (size,):
        raise wrong_shape(
            function,
            f"{name} has shape {tuple(x.shape)}, where there are {size} {of}",
            f"pass {name} of shape ({size},), or None",
        )
    return x


def number(function: str, name: str, value: Any, lowest: int) -> int:
    """An integer that is ``lowest`` or more; raises ArgumentError for anything else."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        size = operator.index(value)
    except TypeError:
        raise wrong_argument(function, f"{name}={value!r} is no integer", f"pass an integer >= {lowest}") from None
    if size < lowest:
        raise wrong_argument(function, f"{name}={value!r} is below {lowest}", f"pass an integer >= {lowest}")
    return size


def numbers(function: str, name: str, value: Any, count: int, lowest: int) -> tuple[int, ...]:
    """One integer per spatial axis, of an integer or a sequence of one or ``count`` of them; raises ArgumentError."""
    if not isinstance(value, (tuple, list)):
        return (number(function, name, value, lowest),) * count
    if len(value) not in (1, count):
        raise wrong_argument(
            function, f"{name}={value!r} has {len(value)} entries", f"pass one integer, or {count}: one per axis"
        )
    each = tuple(number(function, name, v, lowest) for v in value)
    return each if len(each) == count else each * count


def axis(function: str, name: str, value: Any, ndim: int) -> int:
    """An axis counted from the front; raises AxisError where there is no such axis."""
    if value is None:
        raise wrong_argument(function, f"{name} is None", f"say which axis, as {name}=-1")
    try:
        at = operator.index(value)
    except TypeError:
        raise wrong_argument(function, f"{name}={value!r} is no integer", "pass one axis, as -1") from None
    if not -ndim <= at < ndim:
        raise AxisError(
            f"nn.{function}: {name}={at} is no axis of an array with {ndim} axes",
            loc=user_loc(),
            hint=f"pass an axis from {-ndim} to {ndim - 1}" if ndim else "pass an array with axes",
        )
    return at % ndim


def choice(function: str, name: str, value: Any, allowed: Sequence[str]) -> str:
    """One of the texts in ``allowed``; raises ArgumentError for anything else."""
    if value not in allowed:
        raise wrong_argument(function, f"{name}={value!r} is not known", f"pass one of {', '.join(map(repr, allowed))}")
    return value


def is_half(x: Any) -> bool:
    """True for f16 and bf16."""
    return x.dtype.itemsize == _HALF and x.dtype.kind in "fV"


def is_real(*arrays: Any) -> bool:
    """True if these arrays, None for no array, are floats of one dtype, as the ops of `ops.nn` take them."""
    dtypes = {x.dtype for x in arrays if x is not None}
    return len(dtypes) == 1 and next(iter(dtypes)).kind in "fV"


def widened(*arrays: Any) -> tuple[Any, ...]:
    """The arrays, those of f16 and bf16 as f32: sums of many terms and exponentials lose too much there."""
    return tuple(x.astype(np.float32) if x is not None and is_half(x) else x for x in arrays)


def result_dtype(*arrays: Any) -> Any:
    """The dtype that NumPy gives to a product of these arrays; None stands for no array."""
    return np.result_type(*(x.dtype for x in arrays if x is not None))


def narrowed(y: Any, dtype: Any) -> Any:
    """``y`` in a dtype, itself where it has that already."""
    return y if y.dtype == dtype else y.astype(dtype)


def real(function: str, name: str, x: Any) -> Any:
    """``x`` itself; raises DTypeError unless its dtype is a float."""
    if not is_real(x):
        raise wrong_dtype(function, f"{name} is of {x.dtype}, no float", f"convert it: {name}.astype(np.float32)")
    return x


def shifted(x: Any, axis: int, start: int, span: int, stride: int) -> Any:
    """The elements number ``start`` of all windows of ``span`` elements along an axis, ``stride`` apart."""
    stop = start + 1 - span  # counted from the end, so that the size of the axis is not asked for
    return x[(slice(None),) * axis + (slice(start, stop or None, stride),)]


def detached(x: Any) -> Any:
    """``x``, through which no gradient flows."""
    return op("stop_gradient", x) if isinstance(x, Traced) else x
