"""NumPy's functions that choose, limit, round and test elements, as ops."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ....errors import BoundsError, DTypeError, RangeError, ShapeError
from ....ir.dtypes import dtype_of
from ..tracing.current import trace_error, user_loc
from ..tracing.mutation import in_memory, is_immutable
from ..tracing.operators import op
from ..tracing.traced import Traced
from ..tracing.traced_scalar import TracedScalar
from .axes import MISSING, as_array, axis_number, axis_of, check_cast, dtype_like, ndim, strong, zero_of
from .progressions import iota, whole_diagonal
from .registry import creation_function, numpy_function
from .shape_functions import ravel

# The modes of `np.take` as NumPy accepts them: words, and the numbers np.CLIP, np.WRAP, np.RAISE.
_MODES = {"clip": "clip", "wrap": "wrap", "raise": "raise", 0: "clip", 1: "wrap", 2: "raise"}


@numpy_function("where")
def where(condition: Any, x: Any = MISSING, y: Any = MISSING) -> Any:
    """`np.where` of three operands."""
    if x is MISSING or y is MISSING:
        if x is not MISSING or y is not MISSING:
            raise ValueError("either both or neither of x and y should be given")
        return np.nonzero(condition)
    return in_memory(op("select", condition, *strong(x, y)))


@numpy_function("clip")
def _clip(
    a: Any, a_min: Any = MISSING, a_max: Any = MISSING, min: Any = MISSING, max: Any = MISSING, dtype: Any = None
) -> Any:
    if (a_min is MISSING) != (a_max is MISSING):
        name = "a_min" if a_min is MISSING else "a_max"
        raise TypeError(f"clip() missing 1 required positional argument: {name!r}")
    if a_min is MISSING:
        a_min, a_max = (None if bound is MISSING else bound for bound in (min, max))
    elif min is not max:
        raise ValueError("np.clip is given its bounds twice, by position and as min or max")
    if dtype is not None:
        check_cast(a, dtype)
    out = clip(a, a_min, a_max)
    return out if dtype is None else op("cast", out, dtype=dtype_of(dtype))


def clip(a: Any, low: Any, high: Any) -> Any:
    """`np.clip`; either bound may be None."""
    if low is None and high is None:
        return op("positive", a)
    if low is None:
        return op("minimum", *strong(a, high))
    if high is None:
        return op("maximum", *strong(a, low))
    return op("clip", *strong(a, low, high))


@numpy_function("round", "around")
def round_(a: Any, decimals: Any = 0) -> Any:
    """`np.round`."""
    digits = operator.index(decimals)
    if dtype_like(a).kind == "b" and digits:
        raise DTypeError(
            f"Cannot cast ufunc '{'multiply' if digits > 0 else 'divide'}' output from "
            "dtype('float64') to dtype('bool') with casting rule 'same_kind'",
            loc=user_loc(),
        )
    if dtype_like(a).kind in "iub" and digits >= 0:
        return op("round", a) if dtype_like(a).kind == "b" else op("positive", a)
    (a,) = strong(a)
    if digits == 0:
        return op("round", a)
    scale = 10.0 ** abs(digits) if abs(digits) <= 308 else math.inf
    there, back = ("mul", "div") if digits > 0 else ("div", "mul")
    out = op(back, op("rint", op(there, a, scale)), scale)
    # NumPy multiplies bfloat16 by a Python number in float32.
    dtype = dtype_like(a)
    return out if dtype_like(out) == dtype else op("cast", out, dtype=dtype_of(dtype))


@numpy_function("fix")
def fix(x: Any) -> Any:
    """`np.fix`."""
    return op("trunc", x)


@creation_function("take")  # np.take does not dispatch on the indices
@numpy_function("take")
def take(a: Any, indices: Any, axis: Any = None, mode: str = "raise") -> Any:
    """`np.take`; ``mode`` may clip or wrap the indices."""
    x, place = (ravel(a), 0) if axis is None else (as_array(a), axis_number(axis))
    if isinstance(indices, TracedScalar) and indices.kind is float:
        indices = math.trunc(indices)  # raises for NaN and infinity
        if not -(2**63) <= indices < 2**63:
            raise RangeError("Python int too large to convert to C long", loc=user_loc())
    x = op("expand_dims", x, axes=(0,)) if not x.ndim else x  # a number has an axis 0 here
    place = axis_of(place, x.ndim)
    index = as_array(indices)
    loose = is_immutable(indices) if isinstance(indices, Traced) else type(indices) is not np.ndarray
    if index.dtype.kind == "f" and loose:
        index = index.astype(np.int64)  # NumPy truncates floats in lists, but not in arrays
    # Bools are indices here, no mask; a small dtype may be too small for the size of the axis.
    if index.dtype.kind == "b":
        index = index.astype(np.int64)
    return op("take", x, bounded(index, x.shape[place], mode), axis=place)


def bounded(index: Any, size: Any, mode: Any) -> Any:
    """Indices into an axis of this size, clipped or wrapped as the mode says."""
    if mode not in _MODES:
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    mode = _MODES[mode]
    if mode == "raise":
        return index
    index = index.astype(np.int64, casting="same_kind")
    if mode == "clip":
        return op("clip", index, 0, size - 1)
    return op("remainder", index, size)


@numpy_function("take_along_axis", raw=True)
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    """`np.take_along_axis`."""
    if isinstance(arr, TracedScalar):
        raise AttributeError(f"'{arr.kind.__name__}' object has no attribute 'ndim'")
    if axis is None:
        if indices.ndim != 1:
            raise ShapeError("when axis=None, `indices` must have a single dimension.", loc=user_loc())
        place = {}
    else:
        place = {"axis": axis_of(axis, arr.ndim)}
    if indices.dtype.kind not in "iu":
        raise BoundsError("`indices` must be an integer array", loc=user_loc())
    return op("gather", arr, indices, **place)


@numpy_function("nan_to_num")
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """`np.nan_to_num`."""
    if not copy:
        raise trace_error("np.nan_to_num(copy=False) writes to its argument", "leave copy away")
    dtype = dtype_like(x)
    if isinstance(x, Traced):
        x.rec.is_native = True  # the result of NumPy is a copy, which keeps its byte order
    if dtype.kind in "iu":
        return op("positive", x)
    if dtype.kind not in "fc":  # NumPy does not know that bfloat16 has floats
        return as_array(x).copy()
    if dtype.kind == "f" and any(x is not None and dtype_like(x).kind == "c" for x in (nan, posinf, neginf)):
        raise DTypeError("complex numbers do not fit an array of real ones", loc=user_loc())
    limits = np.finfo(dtype)
    high = float(limits.max) if posinf is None else posinf
    low = float(limits.min) if neginf is None else neginf
    out = op("select", op("isnan", x), nan, x)
    out = op("select", op("eq", out, np.inf), high, out)
    return op("select", op("eq", out, -np.inf), low, out)


@numpy_function("triu")
def triu(m: Any, k: Any = 0) -> Any:
    """`np.triu`."""
    return _triangle(m, k - 1, upper=True)


@numpy_function("tril")
def tril(m: Any, k: Any = 0) -> Any:
    """`np.tril`."""
    return _triangle(m, k, upper=False)


def _triangle(m: Any, k: Any, upper: bool) -> Any:
    """The part that lies above diagonal ``k`` of ``m``, or on and below it."""
    x = as_array(m)
    if not x.ndim:
        raise DTypeError("a triangle is of an array of one axis or more", loc=user_loc())
    index = dtype_of(np.int64)
    k = whole_diagonal(k, x.shape[-1])
    # Every row of the result is made of the array, if that has one axis.
    rows = op("expand_dims", iota(x.shape[-2:][0], index), axes=(1,))
    columns = iota(x.shape[-1], index)
    condition = op("gt" if upper else "le", columns, op("add", rows, k))
    return op("select", condition, x, zero_of(x))


@numpy_function("isclose", weak=True)
def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    """`np.isclose`."""
    # Floats are compared, as the difference of two integers may not fit their dtype.
    if isinstance(b, (Traced, TracedScalar, np.ndarray, np.generic)):
        dtype = np.result_type(dtype_like(b), 1.0)
        b = b if dtype_like(b) == dtype else op("cast", b, dtype=dtype_of(dtype))
    elif isinstance(b, int):
        b = float(b)
    near = op("le", op("abs", op("sub", a, b)), op("add", op("mul", op("abs", b), rtol), atol))
    out = op("logical_or", op("logical_and", near, op("isfinite", b)), op("eq", a, b))
    if equal_nan:
        out = op("logical_or", out, op("logical_and", op("isnan", a), op("isnan", b)))
    return out


@numpy_function("allclose", weak=True)
def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    """`np.allclose`."""
    return op("truth", op("all", isclose(a, b, rtol, atol, equal_nan)))


@numpy_function("array_equal")
def array_equal(a1: Any, a2: Any, equal_nan: Any = False) -> Any:
    """`np.array_equal`; whether the shapes agree is baked into the graph."""
    one, two = as_array(a1), as_array(a2)
    if one.ndim != two.ndim or any(bool(m != n) for m, n in zip(one.shape, two.shape, strict=True)):
        return False
    same = op("eq", one, two)
    if equal_nan:
        same = op("logical_or", same, op("logical_and", op("isnan", one), op("isnan", two)))
    return op("truth", op("all", same))


@numpy_function("isneginf")
def isneginf(x: Any) -> Any:
    """`np.isneginf`."""
    return _is_infinity(x, -np.inf)


@numpy_function("isposinf")
def isposinf(x: Any) -> Any:
    """`np.isposinf`."""
    return _is_infinity(x, np.inf)


def _is_infinity(x: Any, which: float) -> Any:
    if dtype_like(x).kind == "c":
        raise DTypeError("complex numbers have no order and no sign of infinity", loc=user_loc())
    return op("eq", x, which)


@numpy_function("iscomplexobj")
def iscomplexobj(x: Any) -> bool:
    """`np.iscomplexobj`."""
    return dtype_like(x).kind == "c"


@numpy_function("isrealobj")
def isrealobj(x: Any) -> bool:
    """`np.isrealobj`."""
    return dtype_like(x).kind != "c"


@numpy_function("real", weak=True)
def real(val: Any) -> Any:
    """`np.real`."""
    return op("real", val, view_of=val)


@numpy_function("imag", weak=True)
def imag(val: Any) -> Any:
    """`np.imag`."""
    return op("imag", val, view_of=val)


@numpy_function("angle")
def angle(z: Any, deg: bool = False) -> Any:
    """`np.angle`."""
    # NumPy makes int64 of bools beside the number 0.
    out = op("atan2", op("imag", z) if dtype_like(z).kind == "c" else 0, op("real", z))
    return op("mul", out, 180 / np.pi) if deg else out


@numpy_function("sinc")
def sinc(x: Any) -> Any:
    """`np.sinc`."""
    y = op("mul", x, np.pi)
    dtype = dtype_like(y)
    nearly = float(np.finfo(dtype).eps) if dtype.kind == "f" else 1e-20
    y = op("select", op("ne", y, 0), y, nearly)
    return op("div", op("sin", y), y)


@numpy_function("copy")
def copy(a: Any, order: str = "K") -> Any:
    """`np.copy`."""
    return in_memory(as_array(a).copy(order))


@numpy_function("astype")
def astype(x: Any, dtype: Any) -> Any:
    """`np.astype`."""
    return x.astype(dtype)


@numpy_function("result_type", raw=True)
def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    """`np.result_type`; dtypes are constants of the trace."""
    weak = {bool: True, int: 0, float: 0.0, complex: 0j}
    operands = [
        x.dtype if isinstance(x, Traced) else weak[x.kind] if isinstance(x, TracedScalar) else x
        for x in arrays_and_dtypes
    ]
    return np.result_type(*operands)


@numpy_function("can_cast", weak=True)
def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """`np.can_cast`; dtypes are constants of the trace."""
    if isinstance(to, Traced):
        if not is_immutable(to):
            raise TypeError("Cannot construct a dtype from an array")
        to = to.dtype
    source = from_.kind() if isinstance(from_, TracedScalar) else dtype_like(from_)
    return np.can_cast(source, to, casting)  # type: ignore[arg-type]


@numpy_function("common_type", raw=True)
def common_type(*arrays: Any) -> type:
    """`np.common_type`; dtypes are constants of the trace."""
    return np.common_type(*(np.empty(0, x.dtype) for x in arrays))


@numpy_function("min_scalar_type", raw=True)
def min_scalar_type(a: Any) -> np.dtype:
    """`np.min_scalar_type` of arrays with axes; that of a Python number is baked into the graph.

    Raises TraceError for an array without axes, whose value decides.
    """
    if isinstance(a, TracedScalar):
        return np.min_scalar_type(a.bake())
    if not ndim(a) and dtype_like(a).kind != "b":
        raise trace_error(
            "np.min_scalar_type of an array without axes depends on its value", "ask for its dtype: x.dtype"
        )
    return dtype_like(a)


@numpy_function("may_share_memory", "shares_memory")
def may_share_memory(a: Any, b: Any) -> bool:
    """True if two traced arrays are views of one array, and one is a part of the other.

    Raises TraceError for views that may overlap in part.
    """
    if not isinstance(a, Traced) or not isinstance(b, Traced):
        return False
    if a.value != b.value and (a.storage is None or a.storage is not b.storage):
        return False
    if bool(a.size == 0) or bool(b.size == 0):
        return False
    if not _is_part(a, b) and not _is_part(b, a):
        raise trace_error(
            "whether two views of one array overlap is not known while tracing",
            "ask it of the arrays that the function is called with",
        )
    return True


def _is_part(part: Traced, whole: Traced) -> bool:
    """True if ``part`` is made of ``whole`` by steps that each take the first operand's memory."""
    value: Any = part.value
    while value != whole.value:
        definition = part.rec.defs.get(value)
        if definition is None or not definition.operands:
            return False
        value = definition.operands[0]
    return True
