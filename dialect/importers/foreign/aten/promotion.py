"""torch's promotion of dtypes, which differs from NumPy's, and the casts that it makes explicit.

An operand is a tensor (anything with a dtype: a traced array, an ndarray, a NumPy scalar) or a Python
number, traced ones included. Dtypes are NumPy's, bfloat16 that of ml_dtypes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ml_dtypes
import numpy as np

from ...numpy.tracing.current import trace_error
from ...numpy.tracing.operators import op
from ...numpy.tracing.traced import Traced
from ...numpy.tracing.traced_scalar import TracedScalar

BOOL, INT64 = np.dtype(np.bool_), np.dtype(np.int64)
FLOAT16, BFLOAT16 = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
COMPLEX64, COMPLEX128 = np.dtype(np.complex64), np.dtype(np.complex128)
DEFAULT = FLOAT32  # of numbers with a fraction, and of what is divided
_KINDS = {"b": 0, "u": 1, "i": 1, "f": 2, "V": 2, "c": 3}
_COMPLEX: dict[np.dtype, np.dtype] = {FLOAT16: COMPLEX64, BFLOAT16: COMPLEX64, FLOAT32: COMPLEX64, FLOAT64: COMPLEX128}
_REAL: dict[np.dtype, np.dtype] = {COMPLEX64: FLOAT32, COMPLEX128: FLOAT64}


def is_tensor(x: Any) -> bool:
    """True for a tensor, False for a Python number, a traced one included."""
    return hasattr(x, "dtype")


def category(dtype: np.dtype) -> int:
    """0 for bools, 1 for integers, 2 for floats, 3 for complex numbers."""
    return _KINDS[dtype.kind]


def is_float(dtype: np.dtype) -> bool:
    """True for floats, bfloat16 included."""
    return category(dtype) == 2


def is_integral(dtype: np.dtype) -> bool:
    """True for bools and integers."""
    return category(dtype) < 2


def real_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of the parts of a complex number; of anything else, its own."""
    return _REAL.get(dtype, dtype)


def complex_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of complex numbers with parts of this float dtype."""
    return _COMPLEX.get(dtype, dtype)


def number_dtype(number: Any) -> np.dtype:
    """The dtype that stands for a Python number in promotion."""
    if isinstance(number, bool):
        return BOOL
    if isinstance(number, int):
        return INT64
    return DEFAULT if isinstance(number, float) else _COMPLEX[DEFAULT]


def promoted(a: np.dtype, b: np.dtype) -> np.dtype:
    """``torch.promote_types``: the dtype of two tensors of the same kind of rank."""
    if a == b:
        return a
    lower, higher = sorted((a, b), key=category)
    if category(lower) < category(higher):
        if category(higher) == 3 and category(lower) == 2:
            return np.promote_types(higher, _COMPLEX[lower])
        return higher
    if category(a) == 2:
        return FLOAT32 if {a, b} == {FLOAT16, BFLOAT16} else max(a, b, key=lambda dtype: dtype.itemsize)
    if category(a) == 1 and any(dtype.kind == "u" and dtype.itemsize > 1 for dtype in (a, b)):
        raise trace_error(f"torch promotes {a} and {b} to no dtype", "convert one of them")
    return np.promote_types(a, b)


def result_dtype(*operands: Any) -> np.dtype:
    """``torch.result_type`` of any number of operands, None not counted.

    Tensors with axes come first, then those without, then numbers: what comes later counts only if
    it is of a higher category.
    """
    groups: list[np.dtype | None] = [None, None, None]
    for x in operands:
        if x is None:
            continue
        place, dtype = (0 if x.ndim else 1, x.dtype) if is_tensor(x) else (2, number_dtype(x))
        groups[place] = dtype if groups[place] is None else promoted(groups[place], dtype)  # type: ignore[arg-type]
    dimensioned, zero_dim, wrapped = groups
    result = _combined(dimensioned, _combined(zero_dim, wrapped))
    return DEFAULT if result is None else result


def _combined(higher: np.dtype | None, lower: np.dtype | None) -> np.dtype | None:
    """The dtype of two groups, of which the first has precedence."""
    if higher is None or lower is None:
        return lower if higher is None else higher
    if category(higher) == 3:
        return higher
    if category(higher) == 2:
        if category(lower) == 3 and higher == FLOAT16:
            raise trace_error("torch makes complex numbers of half precision here", "convert to float32 first")
        return _COMPLEX[higher] if category(lower) == 3 else higher
    if higher == BOOL or category(lower) >= 2:
        return promoted(higher, lower)
    return higher


def float_dtype(*operands: Any) -> np.dtype:
    """`result_dtype`, and the default dtype in the place of bools and integers."""
    dtype = result_dtype(*operands)
    return DEFAULT if is_integral(dtype) else dtype


def widened(dtype: np.dtype) -> np.dtype:
    """The dtype in which torch computes functions and sums of this one: f32 for f16 and bf16."""
    return FLOAT32 if dtype in (FLOAT16, BFLOAT16) else dtype


def summed(dtype: np.dtype) -> np.dtype:
    """The dtype of sums and products: int64 for bools and integers."""
    return INT64 if is_integral(dtype) else dtype


def cast(x: Any, dtype: np.dtype) -> Any:
    """An operand as a tensor of this dtype, itself where it has that already.

    Of complex numbers that become real the imaginary part is dropped. Integers wrap.
    """
    dtype = np.dtype(dtype)
    if not is_tensor(x):
        if isinstance(x, TracedScalar):
            return cast(op("to_tensor", x), dtype)
        if dtype.kind == "u" or (isinstance(x, int) and not -(2**63) <= x < 2**63):
            x = (int(x) + 2**63) % 2**64 - 2**63
        if isinstance(x, complex) and category(dtype) not in (0, 3):
            x = x.real
        return np.asarray(x).astype(dtype)[()]
    if x.dtype == dtype:
        return x
    if category(x.dtype) == 3 and category(dtype) < 3:
        x = x != 0 if dtype == BOOL else np.real(x)
    if isinstance(x, Traced):
        return x.astype(dtype)
    with np.errstate(all="ignore"):
        return x.astype(dtype)


def together(*operands: Any, dtype: np.dtype | None = None) -> tuple[Any, ...]:
    """The operands as tensors of one dtype: by default that of torch's promotion."""
    target = result_dtype(*operands) if dtype is None else dtype
    return tuple(cast(x, target) for x in operands)


def all_numbers(operands: Iterable[Any]) -> bool:
    """True if there is no tensor among the operands."""
    return not any(map(is_tensor, operands))
