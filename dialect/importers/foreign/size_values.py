"""Sizes among tensors: integers and vectors of integers that stay Python numbers, traced or not.

What follows from shapes, as in ONNX's ``Shape -> Gather -> Concat -> Reshape``, is an int where the source has an
integer tensor of rank 0, and a tuple of ints where it has one of rank 1. Truths of such ints are bools likewise.
A handler that needs an array gets one by `as_array`; one that needs sizes takes them by `as_sizes`,
also from arrays, whose elements are then known at run time only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import TraceError
from ...ir.dtypes import dtype_of
from ..numpy.tracing.operators import Recording, op
from .array_values import constant_or_created, is_constant, is_size, is_traced

Size = Any  # an int or a bool, traced or not
_MOST_ELEMENTS = 64  # of a constant vector that may be sizes


def as_array(x: Any, dtype: np.dtype | None = None) -> Any:
    """An operand as an array: sizes become tensors; None, sequences and arrays stay what they are.

    Args:
        x: the operand.
        dtype: of the tensor that a size becomes; None = int64, and bool for truths.
    """
    if not is_size(x):
        return x
    if isinstance(x, tuple):
        kind = np.bool_ if x and all(isinstance(n, bool) for n in x) else np.int64
        return constant_or_created("array", list(x), dtype=kind if dtype is None else dtype)
    if isinstance(x, Recording):
        array = op("to_tensor", x)
        return array if dtype is None or array.dtype == dtype else op("cast", array, dtype=dtype_of(dtype))
    return np.asarray(x, dtype)[()] if dtype is not None else np.bool_(x) if isinstance(x, bool) else np.int64(x)


def as_sizes(x: Any) -> tuple[Size, ...]:
    """The elements of a vector as ints: those of a constant, of sizes, or of an array at run time.

    Raises TraceError where not even their number is known.
    """
    if isinstance(x, tuple):
        return x
    if is_size(x):
        return (x,)
    if not is_traced(x):
        return tuple(int(n) for n in np.ravel(x))
    if x.ndim == 0:
        return (_item(x),)
    if x.ndim != 1:
        raise TraceError(f"an array with {x.ndim} axes is no list of sizes")
    return tuple(_item(x[k]) for k in range(int(x.shape[0])))


def as_size(x: Any) -> Size:
    """The one element of an operand as an int; raises TraceError where there are several."""
    sizes = as_sizes(x)
    if len(sizes) != 1:
        raise TraceError(f"one number is needed here, there are {len(sizes)}")
    return sizes[0]


def as_numbers(x: Any) -> tuple[int, ...]:
    """The elements as Python ints, for which the graph then holds; raises TraceError where a run alone tells them."""
    return tuple(map(int, as_sizes(x)))


def as_number(x: Any) -> int:
    """`as_numbers` of one element."""
    return int(as_size(x))


def _item(x: Any) -> Any:
    return x.item()


def known_sizes(x: Any) -> Any:
    """Sizes as they are, a small constant of integers as sizes; None for what is neither.

    Numbers that only a run tells are none: arrays compute with these.
    """
    if is_size(x):
        numbers = x if isinstance(x, tuple) else (x,)
        return None if any(isinstance(n, Recording) and n.is_open for n in numbers) else x
    if not is_constant(x) or x.dtype.kind not in "iub" or x.ndim > 1 or x.size > _MOST_ELEMENTS:
        return None
    return tuple(x.tolist()) if x.ndim else x.item()


def all_sizes(operands: tuple) -> tuple | None:
    """All operands as sizes, if one of them is, and the others can be; else None."""
    if not any(map(is_size, operands)):
        return None
    sizes = tuple(None if x is None else known_sizes(x) for x in operands)
    return None if any(s is None and x is not None for s, x in zip(sizes, operands, strict=True)) else sizes


def each(function: Callable[..., Size], *operands: Any) -> Any:
    """An elementwise function of numbers, of ints and vectors that are broadcast."""
    vectors = [x for x in operands if isinstance(x, tuple)]
    if not vectors:
        return function(*operands)
    length = max(map(len, vectors)) if all(vectors) else 0
    columns = [x if isinstance(x, tuple) else (x,) for x in operands]
    if any(len(c) not in (1, length) for c in columns):
        raise TraceError(f"vectors of {' and '.join(str(len(c)) for c in columns)} sizes do not fit")
    return tuple(function(*(c[k if len(c) > 1 else 0] for c in columns)) for k in range(length))


def quotient(a: Size, b: Size) -> Size:
    """Integer division that rounds to zero, as ONNX's."""
    if not b:
        raise TraceError("a size is divided by 0")
    q = abs(a) // abs(b)
    return q if (a >= 0) == (b > 0) else -q


def product(sizes: tuple[Size, ...]) -> Size:
    """The product of sizes."""
    total: Size = 1
    for n in sizes:
        total = total * n
    return total
