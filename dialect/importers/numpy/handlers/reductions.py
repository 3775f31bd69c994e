"""NumPy's reductions and scans as ops."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ....errors import DivisionError, ShapeError
from ....ir.dtypes import I64, dtype_of
from ..tracing.current import size_error, trace_error, user_loc
from ..tracing.handler_tables import FUNCTIONS, Handler
from ..tracing.operators import op, recorder_of
from ..tracing.traced import Traced
from ..tracing.traced_scalar import TracedScalar
from .axes import (
    MISSING,
    as_array,
    axis_number,
    axis_of,
    axis_tuple,
    dtype_like,
    initial_value,
    ndim,
    reduced_axes,
    sizes_now,
)
from .creation import broadcast, full_of
from .registry import array_method, creation_function, numpy_function


def _reduce_where(name: str, a: Any, axis: Any, keepdims: Any, where: Any, **options: Any) -> Any:
    from .masked_reductions import reduce_where

    return reduce_where(name, a, axis, keepdims, where, **options)


def _ufunc_attrs(a: Any, axis: Any, keepdims: Any) -> dict[str, Any]:
    """Attributes of a ufunc's reduction; for a number, axis 0 or -1 means no axis."""
    if axis is not None and not isinstance(axis, tuple) and not ndim(a):
        axis = None if axis_number(axis) in (0, -1) else axis
    return _attrs(a, axis, keepdims)


def _attrs(a: Any, axis: Any, keepdims: Any) -> dict[str, Any]:
    """Attributes of a reduction; raises AxisError for an axis that the operand lacks."""
    out: dict[str, Any] = {}
    axes = reduced_axes(axis)
    for k in axes or ():
        axis_of(k, ndim(a))
    if axes is not None:
        out["axes"] = axes
    if keepdims:
        out["keepdims"] = True
    return out


def _accumulation(name: str, join: str) -> Handler:
    """Register `np.sum` or `np.prod`; ``join`` is the op of two elements."""

    @creation_function(name)  # these do not dispatch on numbers in sequences
    @numpy_function(name)
    def accumulate(
        a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, initial: Any = MISSING, where: Any = True
    ) -> Any:
        if where is not True:
            return _reduce_where(name, a, axis, keepdims, where, dtype=dtype, initial=initial)
        attrs = _ufunc_attrs(a, axis, keepdims)
        if dtype is not None:
            attrs["dtype"] = dtype_of(dtype)
        if isinstance(a, (list, tuple)) and not attrs and all(map(_is_size, a)):
            # An np.int64, which tells the dtype of what is computed with it, of a number, which can be a size.
            out = op("to_tensor", functools.reduce(lambda x, y: op(join, x, y), a), dtype=I64)
        else:
            out = op(name, a, **attrs)
        if initial is None:
            _need_elements(a, attrs.get("axes"))
        if initial is None or initial is MISSING:
            return out
        return op(join, out, initial_value(initial, out.dtype) if isinstance(out, Traced) else initial)

    return accumulate


def _need_elements(a: Any, axes: tuple[int, ...] | None) -> None:
    """Raise ShapeError if a reduction without an initial value has no elements for a result."""
    sizes = as_array(a).shape
    reduced = range(len(sizes)) if axes is None else {axis_of(k, len(sizes)) for k in axes}
    kept = [n for k, n in enumerate(sizes) if k not in reduced]
    if any(bool(sizes[k] == 0) for k in reduced) and not any(bool(n == 0) for n in kept):
        what = "zero-size array to reduction operation which has no identity"
        raise ShapeError(what, loc=user_loc())


def _is_size(x: Any) -> bool:
    return type(x) is int or (isinstance(x, TracedScalar) and x.kind is int)


sum_ = _accumulation("sum", "add")
_accumulation("prod", "mul")


def _extremum(name: str, join: str) -> Handler:
    """Register `np.max` or `np.min`; ``join`` is the op of two elements."""

    @numpy_function(name, f"a{name}")
    def extremum(a: Any, axis: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True) -> Any:
        if where is not True:
            return _reduce_where(name, a, axis, keepdims, where, initial=initial)
        attrs = _ufunc_attrs(a, axis, keepdims)
        if initial is None:
            return op(name, a, **attrs)
        x = as_array(a)
        first = initial_value(initial, x.dtype)
        reduced = {axis_of(k, x.ndim) for k in attrs.get("axes", range(x.ndim))}
        if not reduced:
            return op(join, x, first)
        # `initial` is padded in before the elements; to have it several times changes no result.
        widths = tuple(w for k in range(x.ndim) for w in ((1, 0) if k in reduced else (0, 0)))
        return op(name, op("pad", x, first, widths=widths), **attrs)

    return extremum


max_, min_ = _extremum("max", "maximum"), _extremum("min", "minimum")


def _test(name: str) -> None:
    """Register `np.any` or `np.all`."""

    @numpy_function(name)
    def test(a: Any, axis: Any = None, keepdims: Any = False, where: Any = True) -> Any:
        if where is not True:
            return _reduce_where(name, a, axis, keepdims, where)
        return op(name, a, **_ufunc_attrs(a, axis, keepdims))


_test("any")
_test("all")


@numpy_function("mean")
def mean(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, where: Any = True) -> Any:
    """`np.mean`; an integer dtype is that of the sum, and the quotient is truncated to it."""
    if where is not True:
        return _reduce_where("mean", a, axis, keepdims, where, dtype=dtype)
    if dtype is not None and np.dtype(dtype).kind in "iu":
        x, attrs = as_array(a), _attrs(a, axis, keepdims)
        axes = {axis_of(k, x.ndim) for k in attrs.get("axes", range(x.ndim))}
        whole = op("sum", x, dtype=dtype_of(dtype), **attrs)
        return op("cast", whole / math.prod(x.shape[k] for k in axes), dtype=dtype_of(dtype))
    attrs = _attrs(a, axis, keepdims)
    if dtype is not None:
        attrs["dtype"] = _float_dtype("np.mean", a, dtype)
    return op("mean", a, **attrs)


def _float_dtype(where: str, a: Any, dtype: Any, real: bool = True) -> Any:
    """The dtype to compute in; raises TraceError for one that only NumPy takes.

    Args:
        where: the function's name.
        a: the operand.
        dtype: as the call gives it.
        real: a complex dtype suits a real operand, too.
    """
    kind, own = np.dtype(dtype).kind, dtype_like(a).kind
    if kind in "biu" or (own == "c") > (kind == "c") or (not real and (own == "c") < (kind == "c")):
        raise trace_error(
            f"{where} of {dtype_like(a)} in {np.dtype(dtype)} is not supported while tracing",
            "give a float dtype, a complex one for complex arrays",
        )
    return dtype_of(dtype)


def _spread(name: str) -> None:
    """Register `np.var` or `np.std`."""

    @numpy_function(name)
    def spread(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        ddof: Any = 0,
        keepdims: Any = False,
        correction: Any = MISSING,
        where: Any = True,
        mean: Any = MISSING,
    ) -> Any:
        if mean is not MISSING and mean is not None:
            if where is not True or dtype is not None:
                raise trace_error(f"np.{name}(…, mean=…) with where= or dtype= is not supported")
            less = ddof if correction is MISSING else correction
            variance = _around(name, as_array(a), mean, axis, keepdims, less)
            return np.sqrt(variance) if name == "std" else variance
        if where is not True:
            options = {"dtype": dtype, "ddof": ddof, "correction": correction}
            return _reduce_where(name, a, axis, keepdims, where, **options)
        attrs = _attrs(a, axis, keepdims)
        if dtype is not None:
            attrs["dtype"] = _float_dtype(f"np.{name}", a, dtype, real=False)
        if correction is not MISSING:
            if ddof != 0:
                raise ValueError("ddof and correction can't be provided simultaneously.")
            ddof = correction
        if isinstance(ddof, str):
            raise TypeError("ddof is no number")
        if isinstance(ddof, complex):
            raise trace_error(f"np.{name} with a complex ddof is not supported while tracing")
        if float(ddof):
            attrs["ddof"] = float(ddof)
        return op(name, a, **attrs)


def _around(name: str, a: Any, mean: Any, axis: Any, keepdims: Any, less: Any) -> Any:
    """The variance around a mean that is known, computed as NumPy does."""
    if dtype_like(a).char not in "fdFD":
        raise trace_error(f"np.{name}(…, mean=…) of {dtype_like(a)} is not supported while tracing")
    off = a - mean
    squares = np.real(off * np.conj(off)) if off.dtype.kind == "c" else off * off
    axes = range(a.ndim) if axis is None else axis_tuple(axis)
    count = math.prod(a.shape[k] for k in axes)
    return np.sum(squares, axis=axis, keepdims=keepdims) / max(count - less, 0)


_spread("var")
_spread("std")


def _place(name: str) -> None:
    """Register `np.argmax` or `np.argmin`: along one axis, or over all elements in their order."""

    @numpy_function(name)
    def place(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
        attrs = {"keepdims": True} if keepdims else {}
        return op(name, a, **_axis_attr(axis), **attrs)


_place("argmax")
_place("argmin")


def _scan(name: str) -> None:
    """Register `np.cumsum` or `np.cumprod`: along one axis, or over all elements in their order."""

    @numpy_function(name)
    def scan(a: Any, axis: Any = None, dtype: Any = None) -> Any:
        attrs = {} if dtype is None else {"dtype": dtype_of(dtype)}
        return op(name, a, **_axis_attr(axis), **attrs)


_scan("cumsum")
_scan("cumprod")


def _axis_attr(axis: Any) -> dict[str, Any]:
    return {} if axis is None else {"axis": axis_number(axis)}


@numpy_function("ptp")
def ptp(a: Any, axis: Any = None, keepdims: Any = False):
    """`np.ptp`."""
    return max_(a, axis, keepdims) - min_(a, axis, keepdims)


@numpy_function("count_nonzero")
def count_nonzero(a: Any, axis: Any = None, keepdims: Any = False):
    """`np.count_nonzero`."""
    return sum_(op("ne", a, 0), axis, np.int64, keepdims)


@numpy_function("average")
def average(a: Any, axis: Any = None, weights: Any = None, returned: Any = False, keepdims: Any = False) -> Any:
    """`np.average` with weights of the array's shape, or of the shape of the axes ``axis``.

    Raises DivisionError where sizes make the weights' sum 0, not where contents do.
    """
    a = as_array(a)
    axis = None if axis is None else tuple(axis_of(k, a.ndim) for k in axis_tuple(axis))
    if weights is None:
        out = mean(a, axis, None, keepdims)
        if 0 in sizes_now(out):
            raise size_error(DivisionError, "division by zero")
        if not returned:
            return out
        return out, full_of(a.size / out.size, out.shape, out.dtype)
    weights = _weights(a, as_array(weights), axis)
    dtype = np.result_type(dtype_like(a), dtype_like(weights), *(["f8"] if dtype_like(a).kind in "biu" else []))
    total = sum_(op("cast", weights, dtype=dtype_of(dtype)), axis, None, keepdims)
    weighted = op("mul", op("cast", a, dtype=dtype_of(dtype)), weights)
    out = op("div", sum_(weighted, axis, None, keepdims), total)
    if 0 in sizes_now(a) and 0 not in sizes_now(out):
        raise size_error(DivisionError, "Weights sum to zero, can't be normalized")
    if not returned:
        return out
    return out, op("copy", broadcast(total, out.shape))


def _weights(a: Any, weights: Any, axis: tuple[int, ...] | None) -> Any:
    """Weights in a shape that broadcasts to that of ``a``."""
    if sizes_now(weights) == sizes_now(a):
        return weights
    if axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    if sizes_now(weights) != tuple(sizes_now(a)[k] for k in axis):
        what = "Shape of weights must be consistent with shape of a along specified axis."
        raise size_error(ShapeError, what)
    if len(axis) == a.ndim:
        recorder_of((a,)).numbers.pin()  # for other sizes, the weights may have the shape of a
    turned = op("transpose", weights, perm=tuple(np.argsort(axis).tolist()))
    others = tuple(k for k in range(a.ndim) if k not in axis)
    return op("expand_dims", turned, axes=others) if others else turned


_SIGNATURES = {
    "sum": ("axis", "dtype", "out", "keepdims", "initial", "where"),
    "prod": ("axis", "dtype", "out", "keepdims", "initial", "where"),
    "max": ("axis", "out", "keepdims", "initial", "where"),
    "min": ("axis", "out", "keepdims", "initial", "where"),
    "any": ("axis", "out", "keepdims", "where"),
    "all": ("axis", "out", "keepdims", "where"),
    "mean": ("axis", "dtype", "out", "keepdims", "where"),
    "var": ("axis", "dtype", "out", "ddof", "keepdims", "where", "mean"),
    "std": ("axis", "dtype", "out", "ddof", "keepdims", "where", "mean"),
    "argmax": ("axis", "out", "keepdims"),
    "argmin": ("axis", "out", "keepdims"),
    "cumsum": ("axis", "dtype", "out"),
    "cumprod": ("axis", "dtype", "out"),
}


def _method(name: str, parameters: tuple[str, ...]) -> None:
    function = FUNCTIONS[getattr(np, name)]

    @array_method(name)
    def method(self: Traced, *args: Any, **kwargs: Any) -> Any:
        if len(args) > len(parameters):
            raise TypeError(f"{name}() takes at most {len(parameters)} arguments")
        arguments = dict(zip(parameters, args, strict=False)) | kwargs
        if not arguments.keys() <= set(parameters):
            raise TypeError(f"{name}() got an unexpected keyword argument")
        kept = ("axis", "initial", "ddof")
        return function(self, **{k: v for k, v in arguments.items() if v is not None or k in kept})


for _name, _parameters in _SIGNATURES.items():
    _method(_name, _parameters)
