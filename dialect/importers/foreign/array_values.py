"""Kinds of values in foreign graphs, and arrays that handlers make of them, which NumPy alone cannot record.

A value is traced, a constant of the graph, or a size: systems that compute shapes with tensors of rank 0 and 1
have ints and tuples of ints in their place here, for as long as these meet nothing but sizes and constants.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ..numpy.tracing.current import current
from ..numpy.tracing.handler_tables import created
from ..numpy.tracing.operators import Recording, as_value, op, wrap


def is_size(x: Any) -> bool:
    """True for an int or a bool, traced or not, as sizes and what follows from them are, and for a tuple of these."""
    return isinstance(x, (int, tuple)) and not isinstance(x, np.generic)


def is_number(x: Any) -> bool:
    """True for a number of the graph itself; traced arrays pass for NumPy's where `isinstance` is asked."""
    return issubclass(type(x), np.generic)


def is_constant(x: Any) -> bool:
    """True for a number or an array of the graph itself, whose contents can be read."""
    return issubclass(type(x), (np.generic, np.ndarray))


def is_traced(*values: Any) -> bool:
    """True if one of these is of a trace; tuples and lists are looked into."""
    return any(is_traced(*x) if isinstance(x, (tuple, list)) else isinstance(x, Recording) for x in values)


def sortable(x: Any) -> Any:
    """An array in a dtype that NumPy sorts: it has no place for NaN among elements of bfloat16."""
    return x.astype(np.float32) if x.dtype == ml_dtypes.bfloat16 else x


def never_negative(x: Any) -> bool:
    """True if an integer, or each one of an array, is known to be 0 or more in any call, as sizes are."""
    if isinstance(x, Recording):
        rec = current()
        return rec is not None and rec.derivation.never_negative(x.value)
    return bool(np.all(np.greater_equal(x, 0)))


def constant_or_created(name: str, *args: Any, **kwargs: Any) -> Any:
    """What NumPy's function of this name makes: an op where traced sizes are among the arguments, else a constant."""
    return created(name, *args, **kwargs) if is_traced(*args) else getattr(np, name)(*args, **kwargs)


def owned(x: Any) -> Any:
    """A copy that may be written to: one of the trace, where one is in progress."""
    return np.copy(x) if current() is None else op("copy", x)


def item_of(x: Any, key: Any) -> Any:
    """``x[key]``, also of a constant by traced indices and bounds."""
    keys = key if isinstance(key, tuple) else (key,)
    bounds = [b for k in keys if isinstance(k, slice) for b in (k.start, k.stop, k.step)]
    return _beside(x, *keys, *bounds)[key]


def taken(x: Any, indices: Any, axis: int) -> Any:
    """``np.take``, also of a constant by traced indices, of which NumPy does not ask who they are."""
    return np.take(_beside(x, indices), indices, axis=axis)


def _beside(x: Any, *others: Any) -> Any:
    """``x``, as a captured array where the others are traced."""
    return captured(x) if is_traced(*others) else x


def captured(x: Any) -> Any:
    """An array, or a number of NumPy's, as a value of the trace in progress, if there is one."""
    rec = current()
    return x if rec is None or isinstance(x, Recording) else wrap(rec, as_value(rec, np.asarray(x)))


def grid(indices: Any, axis: int) -> tuple[Any, ...]:
    """The index of each element of ``indices`` along each axis, with these along ``axis``: a key for items."""
    keys = []
    for k in range(indices.ndim):
        shape = (*(1,) * k, -1, *(1,) * (indices.ndim - k - 1))
        keys.append(indices if k == axis else np.reshape(constant_or_created("arange", indices.shape[k]), shape))
    return tuple(keys)
