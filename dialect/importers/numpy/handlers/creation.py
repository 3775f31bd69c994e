"""Functions that make arrays. They do not dispatch on traced arguments, so they are substituted.

In a traced function, ``np.zeros`` and its kin are thin wrappers (see `scope`). They record calls
that have a traced argument, or whose result the function may write to; NumPy serves all others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ....errors import ProfuseError
from ....ir.attrs import DYNAMIC
from ....ir.dtypes import dtype_of
from ....trees.leaves import check_array
from ..python.pausing import unwatched
from ..tracing.current import current, trace_error
from ..tracing.handler_tables import CREATION, FUNCTIONS, METHODS
from ..tracing.layouts import Laid
from ..tracing.mutation import in_memory
from ..tracing.operators import as_value, op, recorder_of, wrap
from ..tracing.outputs import laid_out, note_order
from ..tracing.recorder import Recorder
from ..tracing.traced import Traced
from ..tracing.traced_scalar import TracedScalar
from ..world.substitutes import FUNCTIONS as SUBSTITUTES
from .axes import as_traced, check_order, dtype_like, ndim, sizes
from .registry import creation_function, numpy_function

_FILLED = frozenset({"zeros", "ones", "empty", "full"})


def full_of(value: Any, shape: Any, dtype: Any) -> Any:
    """A traced array filled with one number."""
    static, dynamic = sizes(shape)
    out_dtype = np.asarray(value).dtype if dtype is None and not _traced(value) else dtype
    if out_dtype is None:
        out_dtype = value.dtype if isinstance(value, Traced) else np.dtype(value.kind)
    return op("full", value, *dynamic, shape=static, dtype=dtype_of(out_dtype))


def _filled(name: str, value: int) -> None:
    """Register `np.zeros`, `np.ones`, or `np.empty`, the contents of which are zeros."""

    @creation_function(name)
    def filled(shape: Any, dtype: Any = float) -> Any:
        return full_of(value, shape, dtype or float)


_filled("zeros", 0)
_filled("ones", 1)
_filled("empty", 0)


@creation_function("full")
def full(shape: Any, fill_value: Any, dtype: Any = None) -> Any:
    """`np.full` with one number, or with an array that is broadcast."""
    if isinstance(fill_value, Traced) and fill_value.ndim:
        out = METHODS["astype"](fill_value, dtype or fill_value.dtype)
        return op("copy", broadcast(out, shape))
    return full_of(fill_value, shape, dtype)


def broadcast(x: Any, shape: Any) -> Any:
    """`np.broadcast_to`, recorded."""
    static, dynamic = sizes(shape)
    return op("broadcast_to", x, *dynamic, shape=static)


@creation_function("array")
def _array(object: Any, dtype: Any = None, copy: Any = True, ndmin: int = 0, order: Any = None) -> Any:
    order = wanted_order(order, object)
    if order == "F" or (order == "C" and not copy):
        return in_order(_array(object, dtype, copy, ndmin), order)
    _check_no_copy(object, dtype, copy)
    if not isinstance(object, Traced) or copy is not True or order == "C":
        return in_memory(array(object, dtype, ndmin))
    # The copy has the memory order of its source, which only a call knows.
    out = op("copy", object)
    out.rec.layouts.unordered[out.value] = Laid((object.value,), np.array)
    return in_memory(array(out, dtype, ndmin))


@creation_function("asarray", "asanyarray")
def _asarray(a: Any, dtype: Any = None, copy: Any = None, order: Any = None) -> Any:
    order = wanted_order(order, a)
    if copy:
        return _array(a, dtype, True, order=order)
    _check_no_copy(a, dtype, copy)
    out = in_memory(array(a, dtype))
    if isinstance(out, Traced) and not out.rec.evaluates and out.rec.flow.is_off:
        out = op("stop_gradient", out, view_of=out)  # numbers, outside of `no_grad` as well
    return in_order(out, order) if order in ("C", "F") else out


def wanted_order(order: Any, array: Any) -> str:
    """The order of a copy: "C", "F", or "K", that of the array's own axes in memory.

    Raises TraceError where it is "A": whether an array is contiguous, only a call knows.
    """
    check_order(order)
    order = (order or "K").upper()
    if order == "A" and isinstance(array, Traced) and array.ndim > 1:
        raise trace_error('order="A" asks for the layout in memory', 'say order="K" or "C"')
    return "K" if order == "A" else order


def _check_no_copy(source: Any, dtype: Any, copy: Any) -> None:
    """Raise ValueError if ``copy`` is False and the array has to be made."""
    if copy is False and (
        not isinstance(source, (Traced, np.ndarray)) or (dtype is not None and source.dtype != np.dtype(dtype))
    ):
        raise ValueError("Unable to avoid copy while creating an array as requested.")


@creation_function("ascontiguousarray")
def _contiguous(a: Any, dtype: Any = None) -> Any:
    return in_order(array(a, dtype, 1), "C")


@creation_function("asfortranarray")
def _fortran(a: Any, dtype: Any = None) -> Any:
    return in_order(array(a, dtype, 1), "F")


def in_order(source: Any, order: str) -> Any:
    """An array itself if it is contiguous in this order, "C" or "F", else a copy that is."""
    out = as_traced(source)
    same = op("reshape", out, *out.shape, shape=(DYNAMIC,) * out.ndim, view_of=out)
    ordered = functools.partial(np.asarray, order=order)
    note_order(same, ordered, out)  # of which other arrays are made
    return laid_out(same, out, ordered, order)


def array(source: Any, dtype: Any = None, ndmin: int = 0) -> Any:
    """`np.array` of traced arrays, numbers and nested sequences of them."""
    out = _stacked(source)
    if dtype is not None and out.dtype != np.dtype(dtype):
        out = op("cast", out, dtype=dtype_of(dtype))
    elif dtype is not None and isinstance(out, Traced):
        out.rec.is_native = True  # NumPy converts others
    while out.ndim < ndmin:
        out = op("expand_dims", out, axes=(0,), view_of=out)
    return out


def _stacked(source: Any) -> Any:
    if isinstance(source, TracedScalar):
        return op("to_tensor", source)
    if hasattr(type(source), "stacked"):
        return source.stacked()
    if not isinstance(source, (list, tuple)):
        return source if isinstance(source, Traced) else np.asarray(source)
    if not any(_traced(item) for item in source):
        return remember(recorder_of(), np.array(source))
    out = np.stack([_stacked(item) for item in source])
    note_order(out, np.ascontiguousarray, out)  # whatever the order of the parts is
    return out


@numpy_function("zeros_like")
def zeros_like(a: Any, dtype: Any = None, shape: Any = None, order: Any = "K") -> Any:
    """`np.zeros_like`."""
    return _like(a, 0, dtype, shape, order)


@numpy_function("ones_like")
def ones_like(a: Any, dtype: Any = None, shape: Any = None, order: Any = "K") -> Any:
    """`np.ones_like`."""
    return _like(a, 1, dtype, shape, order)


@numpy_function("empty_like")
def empty_like(prototype: Any, dtype: Any = None, shape: Any = None, order: Any = "K") -> Any:
    """`np.empty_like`; the contents are zeros."""
    return _like(prototype, 0, dtype, shape, order)


@numpy_function("full_like")
def full_like(a: Any, fill_value: Any, dtype: Any = None, shape: Any = None, order: Any = "K") -> Any:
    """`np.full_like`."""
    return _like(a, fill_value, dtype, shape, order)


def _like(a: Any, value: Any, dtype: Any, shape: Any, order: Any) -> Any:
    order = wanted_order(order, a)
    out = _filled_like(a, value, dtype, shape, keeps_order=order == "K")
    return in_order(out, order) if order == "F" and out.ndim > 1 else out


def _filled_like(a: Any, value: Any, dtype: Any, shape: Any, *, keeps_order: bool) -> Any:
    if isinstance(value, Traced) and value.ndim:
        return full(np.shape(a) if shape is None else shape, value, dtype or dtype_like(a))
    out_dtype = dtype or (a.dtype if hasattr(a, "dtype") else np.asarray(a).dtype)
    out = full_of(value, np.shape(a) if shape is None else shape, out_dtype)
    if keeps_order and not (type(a) is np.ndarray and a.flags.c_contiguous):
        keeps = shape is None or ndim(out) == ndim(a)
        laid = Laid((a.value,), np.empty_like) if isinstance(a, Traced) and keeps else None
        out.rec.layouts.unordered[out.value] = laid
    return out


def _traced(x: Any) -> bool:
    """True if ``x`` is traced or a (nested) sequence with something traced inside."""
    if isinstance(x, (Traced, TracedScalar)) or hasattr(type(x), "stacked"):
        return True
    return isinstance(x, (list, tuple)) and any(_traced(item) for item in x)


# --- what users' code calls in their place ------------------------------------------------------


def _wrapper(name: str, original: Callable, handler: Callable) -> Callable:
    @unwatched
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        rec = current()
        if rec is None:
            return original(*args, **kwargs)
        # The function may write traced values to the arrays that these functions fill.
        if name in _FILLED or any(map(_traced, args)) or any(map(_traced, kwargs.values())):
            return handler(*args, **kwargs)
        if rec.lifts_new and original is np.array and _copies(*args, **kwargs):
            # What the array holds is read anew at each call, and is no constant.
            return handler(wrap(rec, as_value(rec, args[0])), *args[1:], **kwargs)
        out = original(*args, **kwargs)
        if any(out is arg for arg in args):
            return out
        own = not any(isinstance(x, np.ndarray) for x in (*args, *kwargs.values()))
        return lifted(rec, remember(rec, out), own)

    return call


def _copies(source: Any = None, *_: Any, copy: Any = True, **__: Any) -> bool:
    return type(source) is np.ndarray and copy is True


def _like_wrapper(original: Callable, handler: Callable) -> Callable:
    """The substitute of a function that dispatches: it matters where all arguments are plain."""

    @unwatched
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        rec = current()
        return (original if rec is None or not rec.lifts_new else handler)(*args, **kwargs)

    return call


def lifted(rec: Recorder, array: Any, own: bool) -> Any:
    """A new array as a traced value, if the trace wants that (`Recorder.lifts_new`).

    ``own``: it shares no memory with what it was made of, though it may be a view.
    """
    if not rec.lifts_new or type(array) is not np.ndarray or not (own or array.base is None):
        return array
    try:
        check_array(array, "")
    except ProfuseError:
        return array  # no graph has any of its dtype
    copy = op("copy", array)
    if not array.flags.c_contiguous:
        rec.layouts.unordered[copy.value] = None
    return copy


def remember(rec: Recorder, array: Any) -> Any:
    """Note an array made while tracing: small ones become constants, not captured inputs."""
    if isinstance(array, np.ndarray) and array.base is None:
        rec.captures.created[id(array)] = array
    return array


def enter_substitutes() -> None:
    """Enter all creation functions in the table of substitutes, once all are registered."""
    for name, handler in CREATION.items():
        original = getattr(np, name)
        SUBSTITUTES[original] = _wrapper(name, original, handler)
    for original in (np.zeros_like, np.ones_like, np.empty_like, np.full_like):
        SUBSTITUTES[original] = _like_wrapper(original, FUNCTIONS[original])
