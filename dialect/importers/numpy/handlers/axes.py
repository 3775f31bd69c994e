"""Sizes, axes and ranks as NumPy functions take them, turned into attributes and operands."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ....errors import AxisError, DTypeError
from ....ir.attrs import DYNAMIC
from ....ir.device import is_foreign
from ....ir.dtypes import dtype_of
from ....trees.leaves import NUMBERS
from ..tracing.current import user_loc
from ..tracing.handler_tables import CREATION
from ..tracing.operators import as_value, op, recorder_of, wrap
from ..tracing.traced import Traced
from ..tracing.traced_scalar import TracedScalar


def sizes(shape: Any) -> tuple[tuple[int, ...], list[TracedScalar]]:
    """``shape`` as a size attribute (`DYNAMIC` where traced) and the traced sizes in order.

    Raises TypeError for a bool, as NumPy does.
    """
    if isinstance(shape, Traced) and shape.ndim == 1:
        shape = tuple(shape)
    items = tuple(shape) if isinstance(shape, (tuple, list, np.ndarray)) else (shape,)
    static: list[int] = []
    dynamic: list[TracedScalar] = []
    for item in items:
        item = known_int(item)
        if isinstance(item, TracedScalar):
            item.rec.numbers.note_size(item.value)
            static.append(DYNAMIC)
            dynamic.append(item)
        elif type(item) is bool:
            raise TypeError("an integer is required")
        else:
            static.append(operator.index(item))
    return tuple(static), dynamic


def known_int(x: Any) -> Any:
    """``x``; where it is an `np.int64` that follows from sizes, as `np.prod(x.shape)`, the traced number in it."""
    if isinstance(x, Traced) and not x.is_open and not x.ndim and x.dtype == np.int64:
        return op("item", x)
    return x


def ndim(x: Any) -> int:
    """Rank of anything array-like."""
    if isinstance(x, Traced):
        return x.ndim
    if isinstance(x, (list, tuple)):
        return 1 + ndim(x[0]) if x else 1
    if is_foreign(x):
        return as_array(x).ndim
    return np.ndim(x) if not isinstance(x, TracedScalar) else 0


def dtype_like(x: Any) -> np.dtype:
    """dtype of anything array-like."""
    if isinstance(x, TracedScalar):
        return np.dtype(x.kind)
    x = as_array(x) if is_foreign(x) else x
    return x.dtype if isinstance(x, (Traced, np.ndarray, np.generic)) else np.asarray(x).dtype


def zero_of(x: Any) -> Any:
    """The 0 of an array's dtype, as a NumPy scalar."""
    return np.zeros((), x.dtype)[()]


MISSING = object()
"""The default of a parameter for which NumPy has no value that users could give."""


def check_order(order: Any, known: str = "CFAK") -> None:
    """Raise ValueError for a memory order that NumPy does not know."""
    if order not in (*known, *known.lower(), None):
        raise ValueError(f"order must be one of {', '.join(map(repr, known))} (got {order!r})")


def sizes_now(x: Any) -> tuple[int | None, ...]:
    """The sizes of this call, without a guard; None for one that is not known."""
    return tuple(getattr(x, "hint", x.shape))


def as_array(x: Any) -> Any:
    """``x`` with ndarray attributes: a traced or an ordinary array."""
    if isinstance(x, (Traced, np.ndarray)):
        return x
    if isinstance(x, TracedScalar):
        return op("to_tensor", x)
    if is_foreign(x):
        rec = recorder_of()
        return wrap(rec, as_value(rec, x))
    return CREATION["array"](x) if isinstance(x, (list, tuple)) else np.asarray(x)


def strong(*inputs: Any) -> tuple[Any, ...]:
    """Operands as NumPy has them: numbers alone give NumPy scalars, not Python numbers.

    Beside arrays, captured ones among them, numbers stay weakly typed.
    """
    if not all(isinstance(x, TracedScalar) or type(x) in NUMBERS for x in inputs):
        return inputs
    return tuple(op("to_tensor", x) if isinstance(x, TracedScalar) else x for x in inputs)


def as_traced(x: Any) -> Any:
    """``x`` as a traced array; an ordinary array is captured."""
    array = as_array(x)
    if isinstance(array, Traced):
        return array
    rec = recorder_of()
    return wrap(rec, as_value(rec, array))


def check_cast(x: Any, dtype: Any, casting: Any = "same_kind") -> None:
    """Raise DTypeError if NumPy does not cast ``x`` to ``dtype`` by this rule."""
    source, target = dtype_like(x), dtype_of(dtype).numpy
    if not np.can_cast(source, target, casting):
        raise DTypeError(
            f"Cannot cast array data from {source!r} to {target!r} according to the rule {casting!r}", loc=user_loc()
        )


def loop(ufunc: np.ufunc, inputs: Sequence[Any], dtype: Any = None) -> tuple[np.dtype, ...]:
    """The dtypes of the loop that NumPy chooses, outputs last.

    ``dtype``: the outputs' dtype that the call asks for, or None. Raises TypeError where there is
    no such loop, or where operands cannot be cast to its dtypes.
    """
    outputs = [None] * ufunc.nout
    signature = None if dtype is None else (*[None] * ufunc.nin, *[dtype] * ufunc.nout)
    dtypes = [_weak(x.kind) if isinstance(x, TracedScalar) else getattr(x, "dtype", _weak(type(x))) for x in inputs]
    if signature is None:
        return ufunc.resolve_dtypes((*dtypes, *outputs))
    return ufunc.resolve_dtypes((*dtypes, *outputs), signature=signature)


def _weak(kind: type) -> Any:
    return np.dtype(bool) if kind is bool else kind


def setting(value: Any, dtype: Any) -> Any:
    """``value`` as NumPy stores it as an element of an array of ``dtype``.

    Raises TypeError, ValueError or OverflowError for a number that such an element cannot be.
    """
    if isinstance(value, (Traced, TracedScalar)):
        return value if dtype_like(value) == dtype else op("cast", value, dtype=dtype_of(dtype))
    cell = np.zeros((), dtype)
    cell[()] = value
    return cell[()]


def initial_value(value: Any, dtype: Any) -> Any:
    """The ``initial`` of a reduction as an element of its dtype; raises as `setting` does.

    A traced int counts as the number that it has: NumPy raises for one that the dtype has not.
    """
    narrow = dtype.kind in "iu" and dtype != np.int64
    if narrow and isinstance(value, TracedScalar) and value.kind is int:
        value = value.bake()
    return setting(value, dtype)


def is_mask(item: Any) -> bool:
    """True for an array of bools in a key; one without axes picks all or nothing."""
    return isinstance(item, (np.ndarray, Traced)) and item.dtype.kind == "b"


def has_mask(key: Any) -> bool:
    """True for a key that is an array of bools, or has one."""
    return any(map(is_mask, key)) if isinstance(key, tuple) else is_mask(key)


def settled_key(key: Any) -> Any:
    """A key, or any array, in which arrays that masks pick are arrays of their elements."""
    items = key if isinstance(key, tuple) else (key,)
    if not any(getattr(type(item), "lifts", False) for item in items):
        return key
    out = tuple(x.elements() if getattr(type(x), "lifts", False) else x for x in items)
    return out if isinstance(key, tuple) else out[0]


def axis_of(axis: Any, rank: int) -> int:
    """``axis`` counted from the front; raises AxisError at the user's line."""
    number = operator.index(axis)
    if not -rank <= number < rank:
        raise AxisError(f"axis {number} is out of bounds for array of dimension {rank}", loc=user_loc())
    return number % rank if rank else 0


def axis_number(axis: Any) -> int:
    """``axis`` as an int; raises TypeError for a bool, as NumPy's C functions do."""
    if type(axis) is bool or (isinstance(axis, TracedScalar) and axis.kind is bool):
        raise TypeError("an integer is required for the axis")
    return operator.index(axis)


def reduced_axes(axis: Any) -> tuple[int, ...] | None:
    """The axes of a reduction, None for all; raises TypeError for a list, as NumPy does."""
    if axis is None:
        return None
    return tuple(map(axis_number, axis)) if isinstance(axis, tuple) else (axis_number(axis),)


def axis_tuple(axis: Any) -> tuple[int, ...]:
    """One axis or several, as NumPy's Python functions take them, as a tuple."""
    if not isinstance(axis, (tuple, list)):
        try:
            return (operator.index(axis),)
        except TypeError:
            if not isinstance(axis, Iterable):
                raise
    return tuple(operator.index(a) for a in axis)
