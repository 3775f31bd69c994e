"""Values of StableHLO in a trace: arrays, and sizes, which are ints and tuples of ints.

A module computes sizes with tensors of rank 0 and 1: ``get_dimension_size`` gives one, and
``dynamic_reshape`` takes a vector. Here these are Python ints, or traced ones, and tuples of them, for
as long as they meet nothing but constants; where one meets an array, it becomes one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import TraceError
from ...numpy.tracing.traced import is_tracing
from ..array_values import is_constant, is_size, owned
from ..interpreter import NodeContext
from ..size_values import as_array, as_sizes


def settled_sizes(x: Any) -> tuple:
    """A vector of sizes; raises TraceError where contents of arrays decide it."""
    if is_size(x) or is_constant(x):
        return as_sizes(x)
    raise TraceError(
        "a size of the StableHLO module is computed from contents of arrays",
        hint="export the function with shapes that follow from those of its arguments",
    )


def settled_size(x: Any) -> Any:
    """One size, or one position that is known or traced as an int; see `settled_sizes`."""
    return x if is_size(x) else settled_sizes(x)[0]


def sizes_of(call: NodeContext, number: int, x: Any) -> tuple:
    """The shape of an operand ``x``, by its number; sizes that the module tells are ints, which need no guard."""
    type_ = call.node.operand_types[number]
    told = None if type_ is None else type_.shape
    return tuple(x.shape) if told is None else tuple(x.shape[d] if n is None else n for d, n in enumerate(told))


def arrays(operands: tuple) -> tuple:
    """The operands as arrays: sizes among them get the dtype of the others."""
    dtype = next((x.dtype for x in operands if not is_size(x)), np.dtype(np.int32))
    return tuple(as_array(x, dtype) for x in operands)


def in_trace(x: Any, shape: tuple) -> Any:
    """An array that takes part in the trace, where NumPy's own would ask for the numbers of traced sizes."""
    return x if is_tracing([x]) or all(type(size) is int for size in shape) else owned(x)
