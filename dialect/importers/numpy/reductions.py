"""NumPy's reductions and scans as ops."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ...ir.dtypes import dtype_of
from ..handlers import FUNCTIONS, Handler
from ..tracing.current import trace_error
from ..tracing.operators import op
from ..tracing.traced import Traced, TracedScalar
from .axes import as_array, axis_number, axis_of, axis_tuple, dtype_like, ndim, reduced_axes
from .registry import array_method, creation_function, numpy_function


def _ufunc_attrs(a: Any, axis: Any, keepdims: Any) -> dict[str, Any]:
    """Attributes of a ufunc's reduction, which takes axis 0 or -1 of a number for no axis."""
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
        a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, initial: Any = None
    ) -> Any:
        attrs = _ufunc_attrs(a, axis, keepdims)
        if dtype is not None:
            attrs["dtype"] = dtype_of(dtype)
        if isinstance(a, (list, tuple)) and not attrs and all(map(_is_size, a)):
            # The sum stays a Python number, so that it can be a size. NumPy makes an np.int64.
            out = functools.reduce(lambda x, y: op(join, x, y), a)
        else:
            out = op(name, a, **attrs)
        return out if initial is None else op(join, out, initial)

    return accumulate


def _is_size(x: Any) -> bool:
    return type(x) is int or (isinstance(x, TracedScalar) and x.kind is int)


sum_ = _accumulation("sum", "add")
_accumulation("prod", "mul")


def _extremum(name: str, join: str) -> Handler:
    """Register `np.max` or `np.min`; ``join`` is the op of two elements."""

    @numpy_function(name, f"a{name}")
    def extremum(a: Any, axis: Any = None, keepdims: Any = False, initial: Any = None) -> Any:
        if initial is None:
            return op(name, a, **_ufunc_attrs(a, axis, keepdims))
        if axis is not None or keepdims:
            # Below, `initial` is put before the elements, which works along one axis only.
            raise trace_error(
                f"np.{name}(…, axis=…, initial=…) is not supported while tracing",
                f"use np.{join}(np.{name}(x, axis), initial)",
            )
        flat = op("reshape", a, shape=(-1,))
        first = op(
            "cast", op("reshape", op("to_tensor", initial), shape=(1,)), dtype=dtype_of(flat.dtype)
        )
        return op(name, op("concatenate", first, flat, axis=0))

    return extremum


max_, min_ = _extremum("max", "maximum"), _extremum("min", "minimum")


def _test(name: str) -> None:
    """Register `np.any` or `np.all`."""

    @numpy_function(name)
    def test(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
        return op(name, a, **_ufunc_attrs(a, axis, keepdims))


_test("any")
_test("all")


@numpy_function("mean")
def mean(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False):
    """`np.mean`; an integer dtype is that of the sum, and the quotient is cut to it."""
    if dtype is not None and np.dtype(dtype).kind in "iu":
        x, attrs = as_array(a), _attrs(a, axis, keepdims)
        axes = {axis_of(k, x.ndim) for k in attrs.get("axes", range(x.ndim))}
        whole = op("sum", x, dtype=dtype_of(dtype), **attrs)
        return op("cast", whole / math.prod(x.shape[k] for k in axes), dtype=dtype_of(dtype))
    attrs = _attrs(a, axis, keepdims)
    if dtype is not None:
        attrs["dtype"] = dtype_of(dtype)
    return op("mean", a, **attrs)


def _spread(name: str) -> None:
    """Register `np.var` or `np.std`."""

    @numpy_function(name)
    def spread(
        a: Any, axis: Any = None, dtype: Any = None, ddof: Any = 0, keepdims: Any = False,
        correction: Any = 0,
    ) -> Any:  # fmt: skip
        attrs = _attrs(a, axis, keepdims)
        if dtype is not None:
            attrs["dtype"] = dtype_of(dtype)
        if float(ddof or correction):
            attrs["ddof"] = float(ddof or correction)
        return op(name, a, **attrs)


_spread("var")
_spread("std")


def _place(name: str) -> None:
    """Register `np.argmax` or `np.argmin`: along one axis, or on all elements in their order."""

    @numpy_function(name)
    def place(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
        attrs = {"keepdims": True} if keepdims else {}
        return op(name, a, **_axis_attr(axis), **attrs)


_place("argmax")
_place("argmin")


def _scan(name: str) -> None:
    """Register `np.cumsum` or `np.cumprod`, likewise."""

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
def average(a: Any, axis: Any = None, weights: Any = None, keepdims: Any = False):
    """`np.average` with weights of the array's shape, or 1-d along ``axis``."""
    axis = None if axis is None else axis_tuple(axis)
    if weights is None:
        return mean(a, axis, None, keepdims)
    axes = reduced_axes(axis)
    if ndim(weights) == 1 and ndim(a) > 1 and axes is not None and len(axes) == 1:
        shape = [1] * ndim(a)
        shape[axes[0]] = -1
        weights = op("reshape", weights, shape=tuple(shape))
    dtype = np.result_type(
        dtype_like(a), dtype_like(weights), *(["f8"] if dtype_like(a).kind in "biu" else [])
    )
    total = sum_(op("cast", weights, dtype=dtype_of(dtype)), axis, None, keepdims)
    weighted = op("mul", op("cast", a, dtype=dtype_of(dtype)), weights)
    return op("div", sum_(weighted, axis, None, keepdims), total)


_SIGNATURES = {
    "sum": ("axis", "dtype", "out", "keepdims", "initial", "where"),
    "prod": ("axis", "dtype", "out", "keepdims", "initial", "where"),
    "max": ("axis", "out", "keepdims", "initial", "where"),
    "min": ("axis", "out", "keepdims", "initial", "where"),
    "any": ("axis", "out", "keepdims", "where"),
    "all": ("axis", "out", "keepdims", "where"),
    "mean": ("axis", "dtype", "out", "keepdims", "where"),
    "var": ("axis", "dtype", "out", "ddof", "keepdims", "where", "mean", "correction"),
    "std": ("axis", "dtype", "out", "ddof", "keepdims", "where", "mean", "correction"),
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
        given = dict(zip(parameters, args, strict=False)) | kwargs
        return function(self, **{k: v for k, v in given.items() if v is not None or k == "axis"})


for _name, _parameters in _SIGNATURES.items():
    _method(_name, _parameters)
