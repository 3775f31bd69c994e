"""Values of StableHLO in a trace: arrays, and sizes, which are ints and tuples of ints.

A module computes sizes with tensors of rank 0 and 1: ``get_dimension_size`` gives one, and
``dynamic_reshape`` takes a vector. Here these are Python ints, or traced ones, and tuples of them, for
as long as they meet nothing but constants; where one meets an array, it becomes one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import TraceError
from ....ir.dtypes import dtype_of
from ...numpy.tracing.operators import op
from ...numpy.tracing.traced import is_tracing
from ...numpy.tracing.traced_scalar import TracedScalar
from ..array_values import is_constant, is_size, owned


def all_sizes(operands: tuple) -> tuple | None:
    """The operands as ints or tuples, if at least one is a size and the others are constants; else None."""
    if not any(map(is_size, operands)) or not all(is_size(x) or is_constant(x) for x in operands):
        return None
    return tuple(x if is_size(x) else _ints(x) for x in operands)


def _ints(constant: Any) -> Any:
    return tuple(constant.tolist()) if getattr(constant, "ndim", 0) else constant.item()


def as_sizes(x: Any) -> tuple:
    """A vector of sizes; raises TraceError where contents of arrays decide it."""
    if type(x) is tuple:
        return x
    if is_constant(x):
        return tuple(x.tolist())
    raise TraceError(
        "a size of the StableHLO module is computed from contents of arrays",
        hint="export the function with shapes that follow from those of its arguments",
    )


def as_size(x: Any) -> Any:
    """One size, or one position that is known or traced as an int; see `as_sizes`."""
    return x if is_size(x) else as_sizes(np.reshape(x, (1,)) if is_constant(x) else x)[0]


def as_array(x: Any, dtype: np.dtype) -> Any:
    """A value as an array of a dtype, which it has unless it is a size."""
    if type(x) is tuple:
        return np.stack([as_array(item, dtype) for item in x]) if x else np.zeros(0, dtype)
    if isinstance(x, TracedScalar):
        return op("cast", op("to_tensor", x), dtype=dtype_of(dtype))
    return np.asarray(x, dtype) if isinstance(x, (bool, int)) else x


def arrays(operands: tuple) -> tuple:
    """The operands as arrays: sizes among them get the dtype of the others."""
    dtype = next((x.dtype for x in operands if not is_size(x)), np.dtype(np.int32))
    return tuple(as_array(x, dtype) for x in operands)


def in_trace(x: Any, shape: tuple) -> Any:
    """An array that takes part in the trace, where NumPy's own would ask for the numbers of traced sizes."""
    return x if is_tracing([x]) or all(type(size) is int for size in shape) else owned(x)
