"""``x[key] = value``: basic indexing, single elements; masks and index arrays go elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import ShapeError
from ....ir.attrs import DYNAMIC
from ..tracing.current import trace_error, user_loc
from ..tracing.mutation import check_owner, is_immutable, write
from ..tracing.operators import op
from ..tracing.recorder import Recorder
from ..tracing.traced import Traced
from ..tracing.traced_control import cond, fori_loop, required
from ..tracing.traced_scalar import TracedScalar
from .axes import has_mask, setting, settled_key
from .creation import array
from .indexing import get_item, has_ellipsis, is_index_array, items_of
from .registry import array_method


@array_method("__setitem__")
def set_item(x: Traced, key: Any, value: Any) -> None:
    """``x[key] = value`` recorded; raises TraceError for arguments."""
    check_owner(x)
    if is_immutable(x):
        raise trace_error("a NumPy scalar cannot be assigned to", "make an array: np.zeros(1)")
    key = settled_key(key)
    nested = isinstance(value, (list, tuple))
    if nested:
        value = array(value)
    if has_mask(key):
        from .mask_keys import under_mask
        from .masks import assign_masked

        masked = under_mask(x, key)
        if masked is not None:
            assign_masked(*masked, value)
            return
    value = settled_key(value)
    key = _by_numbers(x, key)
    items = items_of(x, key)
    if any(map(is_index_array, items)):
        from .index_writes import put_at

        put_at(x, key, value)
        return
    if issubclass(type(value), np.floating) and x.dtype.kind in "iu":
        value = setting(value, x.dtype)  # which raises for one out of range, as an array does not
    if (
        items
        and len(items) == x.ndim
        and not has_ellipsis(key)
        and not any(item is None or isinstance(item, slice) for item in items)
    ):
        for item in items[:-1]:
            x = get_item(x, item)
        _put(x, items[-1], value)
        return
    if len(items) == x.ndim == 1 and _is_strided(items[0]) and not np.ndim(value):
        _put_strided(x, items[0], value)
        return
    target = get_item(x, key) if items else x  # an array without axes is written whole
    if nested and np.ndim(value) > target.ndim:
        raise ShapeError(
            "setting an array element with a sequence. The requested array would exceed the "
            f"maximum number of dimension of {target.ndim}.",
            loc=user_loc(),
        )
    # ``x[key] += v`` has written to the view already; Python then assigns it to itself.
    if not (isinstance(value, Traced) and _is_same_view(x.rec, target.value, value.value)):
        write(target, value, strict=False)


def _by_numbers(x: Traced, key: Any) -> Any:
    """In a recorded loop, a key with numbers in the place of NumPy's integer scalars.

    Elsewhere kernels write at index arrays; loops write elements and parts where they are.
    """
    if len(x.rec.blocks) == 1:
        return key
    items = key if isinstance(key, tuple) else (key,)
    numbers = tuple(op("item", item) if _is_integer_scalar(item) else item for item in items)
    return numbers if isinstance(key, tuple) else numbers[0]


def _is_integer_scalar(item: Any) -> bool:
    if not isinstance(item, Traced) or isinstance(item, TracedScalar) or not is_immutable(item):
        return False
    return item.dtype.kind in "iu"


def _put(row: Traced, index: Any, value: Any) -> None:
    if isinstance(index, TracedScalar):
        op("put_", row, value, index, index=DYNAMIC)
    else:
        op("put_", row, value, index=index)


def _is_strided(item: Any) -> bool:
    """True for a slice whose step only a run tells; its size is that of no kernel's array."""
    return isinstance(item, slice) and isinstance(item.step, TracedScalar) and item.step.is_open


def _put_strided(x: Traced, item: slice, value: Any) -> None:
    """``x[start:stop:step] = value`` of a number, element by element; the step is positive."""
    step = required(item.step, op("gt", item.step, 0), "the step of a slice is not positive")
    size = x.shape[0]
    start = _within(size, item.start, 0)
    rounds = (_within(size, item.stop, size) - start + (step - 1)) // step

    def put(k: Any, carried: tuple[()]) -> tuple[()]:
        _put(x, start + k * step, value)
        return carried

    fori_loop(0, rounds, put, ())


def _within(size: Any, bound: Any, default: Any) -> Any:
    """A bound of a slice, counted from the start, and no more than the size."""
    if bound is None:
        return default
    place = cond(op("lt", bound, 0), lambda: op("maximum", op("add", bound, size), 0), lambda: bound)
    return op("minimum", place, size)


def _is_same_view(rec: Recorder, one: int, two: int) -> bool:
    """True if two values are made of one array by the same ops on the same numbers."""
    while one != two:
        a, b = rec.defs.get(one), rec.defs.get(two)
        if a is None or b is None or a.op is not b.op or a.attrs != b.attrs or not a.op.aliases:
            return False
        if a.operands[1:] != b.operands[1:] or len(a.results) != 1:
            return False
        one, two = a.operands[0], b.operands[0]
    return True
