"""Reductions of the elements that a mask picks: ``x[mask].mean()``, ``np.sum(x, where=mask)``.

The other elements become neutral ones, and are not counted.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ....errors import DTypeError, ShapeError
from ....ir.dtypes import dtype_of
from ..tracing.current import user_loc
from ..tracing.handler_tables import FUNCTIONS
from ..tracing.operators import op
from ..tracing.traced import Traced
from .axes import MISSING, as_traced, axis_of, reduced_axes
from .creation import broadcast
from .masks import REDUCTIONS, Masked, lift, needs_elements
from .registry import bound

_NEUTRAL = {"sum": 0, "prod": 1, "any": 0, "all": 1, "count_nonzero": 0}
_UFUNCS = {"max": "maximum", "min": "minimum"}


class _Picked:
    """The elements of an array that a condition picks, to be reduced along some axes."""

    def __init__(self, full: Traced, condition: Traced, axis: Any, keepdims: bool) -> None:
        self.full, self.condition = full, condition
        self.how: dict[str, Any] = {"axis": axis}
        if keepdims:
            self.how["keepdims"] = True

    def filled(self, number: Any) -> Traced:
        return op("select", self.condition, self.full, _number(number, self.full.dtype))

    def count(self) -> Any:
        every = broadcast(self.condition, self.full.shape)
        return FUNCTIONS[np.sum](every, **self.how)

    def reduce(self, name: str, options: dict[str, Any]) -> Any:
        if name in _NEUTRAL:
            arguments = {k: v for k, v in options.items() if v is not MISSING}
            return FUNCTIONS[getattr(np, name)](self.filled(_NEUTRAL[name]), **self.how, **arguments)
        if name in _UFUNCS:
            return self._extremum(name, options.get("initial", MISSING))
        if name == "ptp":
            return self._extremum("max", MISSING) - self._extremum("min", MISSING)
        if name == "mean":
            return self._mean(options.get("dtype"))
        return self._spread(name, options)

    def _extremum(self, name: str, initial: Any) -> Any:
        dtype = self.full.dtype
        if initial is not MISSING and initial is not None:
            picked = op("select", self.condition, self.full, initial)
            picked = picked if picked.dtype == dtype else op("cast", picked, dtype=dtype_of(dtype))
            return FUNCTIONS[getattr(np, name)](picked, **self.how, initial=initial)
        extreme = FUNCTIONS[getattr(np, name)](self.filled(_limit(dtype, name)), **self.how)
        every = broadcast(self.condition, self.full.shape)
        return op(
            "require",
            extreme,
            FUNCTIONS[np.any](every, **self.how),
            message=f"zero-size array to reduction operation {_UFUNCS[name]} which has no identity",
        )

    def _total(self, x: Traced, dtype: Any) -> Any:
        """The sum in the dtype in which NumPy sums for a mean."""
        if dtype is None and x.dtype.kind in "biu":
            dtype = np.float64
        elif dtype is None and x.dtype == np.float16:
            dtype = np.float32
        options = {} if dtype is None else {"dtype": dtype}
        return FUNCTIONS[np.sum](op("select", self.condition, x, x.dtype.type(0)), **self.how, **options)

    def _mean(self, dtype: Any) -> Any:
        total = self._total(self.full, dtype)
        half = dtype is None and self.full.dtype == np.float16
        return _as(total / self.count(), np.dtype(np.float16) if half else total.dtype)

    def _spread(self, name: str, options: dict[str, Any]) -> Any:
        if self.full.dtype.kind == "c":
            raise needs_elements()
        ddof = options.get("ddof", 0)
        if options.get("correction", MISSING) is not MISSING:
            ddof = options["correction"]
        full, dtype = self.full, options.get("dtype")
        wide = np.dtype(dtype or (np.float64 if full.dtype.kind in "biu" else full.dtype))
        wide = np.dtype(np.float32) if wide == np.float16 else wide
        x = _as(full, wide)
        of_wide = _Picked(x, self.condition, self.how["axis"], True)
        away = op("select", self.condition, x - of_wide._mean(None), wide.type(0))
        squares = FUNCTIONS[np.sum](away * away, **self.how)
        out = _as(squares / op("maximum", self.count() - ddof, 0), wide)
        out = op("sqrt", out) if name == "std" else out
        half = full.dtype == np.float16 and dtype is None
        return _as(out, np.dtype(np.float16)) if half else out


def _number(number: Any, dtype: np.dtype) -> Any:
    return np.asarray(number).astype(dtype)[()]


def _as(x: Any, dtype: np.dtype) -> Any:
    return x if x.dtype == dtype else op("cast", x, dtype=dtype_of(dtype))


def _limit(dtype: np.dtype, name: str) -> Any:
    """The number of a dtype that is the extremum of itself and any other."""
    least = name == "max"
    if dtype.kind == "b":
        return not least
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if least else np.iinfo(dtype).max
    if dtype.kind == "c":
        raise needs_elements()
    return -np.inf if least else np.inf


def reduce_where(name: str, a: Any, axis: Any, keepdims: Any, where: Any, **options: Any) -> Any:
    """``np.<name>(a, where=where)``; raises ShapeError for an extremum without ``initial``."""
    if name in _UFUNCS and options.get("initial") is None:
        raise ShapeError(
            f"reduction operation '{_UFUNCS[name]}' does not have an identity, so to use a where "
            "mask one has to specify 'initial'",
            loc=user_loc(),
        )
    full, condition = as_traced(a), as_traced(where)
    if condition.ndim > full.ndim:
        raise ShapeError("where= has more axes than the operand", loc=user_loc())
    if condition.dtype.kind != "b":
        raise DTypeError(f"where= has to be an array of bools, not of {condition.dtype}", loc=user_loc())
    return _Picked(full, condition, axis, bool(keepdims)).reduce(name, options)


def _reduce_masked(name: str, a: Any, axis: Any, keepdims: Any, options: dict[str, Any]) -> Any:
    if not isinstance(a, Masked):
        raise needs_elements()
    axes = reduced_axes(axis)
    own = tuple(range(a.ndim)) if axes is None else tuple(axis_of(k, a.ndim) for k in axes)
    of_full = tuple(k for axis in own for k in a.axes_of_full(axis))
    head, width = a.mask.head, a.mask.picked.ndim
    if head not in own:  # as many results as the mask picks
        arguments = {"axis": of_full, "keepdims": bool(keepdims)}
        arguments |= {k: v for k, v in options.items() if v is not MISSING and v is not None}
        before = 0 if keepdims else sum(k < head for k in own)
        result = lift(lambda x: FUNCTIONS[getattr(np, name)](x, **arguments), a)
        return Masked(result.full, a.mask.moved(head - before))
    picked = _Picked(a.full, a.mask.over(a.full.ndim), of_full, bool(keepdims))
    out = picked.reduce(name, options)
    if keepdims and width > 1:
        out = op("squeeze", out, axes=tuple(range(head + 1, head + width)))
    return out


def _masked(name: str) -> None:
    """Register a reduction of what a mask picks."""
    function = getattr(np, name)

    def reduce(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        keepdims: Any = False,
        ddof: Any = 0,
        initial: Any = MISSING,
        correction: Any = MISSING,
    ) -> Any:
        options: dict[str, Any] = {}
        if dtype is not None:
            options["dtype"] = dtype
        if name in ("var", "std"):
            options |= {"ddof": ddof, "correction": correction}
        if initial is not MISSING:
            options["initial"] = initial
        return _reduce_masked(name, a, axis, keepdims, options)

    REDUCTIONS[function] = bound(function, f"np.{name}", reduce)


for _name in ("sum", "prod", "any", "all", "max", "min", "mean", "var", "std", "ptp"):
    _masked(_name)
_masked("count_nonzero")
REDUCTIONS[np.amax], REDUCTIONS[np.amin] = REDUCTIONS[np.max], REDUCTIONS[np.min]


def _dot(a: Any, b: Any) -> Any:
    """The inner product of vectors under one mask."""
    both = [x for x in (a, b) if isinstance(x, Masked) and x.ndim == 1]
    if len(both) < 2:
        raise needs_elements()
    product = lift(operator.mul, a, b)
    if product.dtype.kind == "b":
        return REDUCTIONS[np.any](product)
    return REDUCTIONS[np.sum](product, dtype=product.dtype)


REDUCTIONS[np.dot] = REDUCTIONS[np.inner] = _dot
REDUCTIONS[np.shape] = lambda a: a.shape
REDUCTIONS[np.ndim] = lambda a: a.ndim
REDUCTIONS[np.size] = lambda a, axis=None: a.size if axis is None else a.shape[axis]
