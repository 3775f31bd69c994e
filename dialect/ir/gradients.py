"""The means of which gradient rules of op classes are written.

A rule is a class method in plain NumPy: its operands are arrays of NumPy, or of a trace, which take
NumPy's functions and operators alike. What NumPy has no function for is asked of the builder that
a rule is handed: ``b.op("index_add", …)``, ``b.like(g, x)``.

An op class states exactly one of

* ``no_gradient = True``: its results are no floats, or do not change with its operands,
* ``partials``: of an elementwise op, the function that gives one derivative per operand, from the
  operands and the result; ``singular`` where derivatives may be infinite or NaN,
* ``linear`` and ``transpose``: of an op that is linear in each of some sets of operands,
* ``vjp``: of any other one,
* ``undifferentiable``: the reason why it has no gradient: asking for one is an error that tells it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InternalError
from .dtypes import dtype_of, numpy_dtype

if TYPE_CHECKING:
    from .op import Op

# A derivative of an elementwise op: None = 0, a number, an array, a tuple of factors, or the
# function that multiplies an array by it.
Partial = Any
RULES = ("no_gradient", "partials", "linear", "vjp", "undifferentiable")


class GradientBuilder:
    """Emits what rules ask for; the base of the builders for traces and for arrays.

    Attributes:
        wanted: which operands of the op whose rule runs need a gradient.
    """

    wanted: Sequence[bool] = ()

    def op(self, name: str, *operands: Any, **attrs: Any) -> Any:
        """The result of an op of the table, or the tuple of its results."""
        raise NotImplementedError

    def pulled(self, function: Callable[..., Any], operands: Sequence[Any], gradients: Sequence[Any]) -> Sequence[Any]:
        """The gradients of a function's operands, None for 0, from those of its results.

        ``function`` is written in functions that have gradients, and returns a tuple.
        """
        raise NotImplementedError

    def same_shape(self, x: Any, y: Any) -> bool:
        """True if two arrays are known to have one shape in every call."""
        raise NotImplementedError

    def product(self, g: Any, partial: Any) -> Any:
        """A gradient times a derivative."""
        return np.multiply(g, partial)

    def absorbing_product(self, g: Any, partial: Any) -> Any:
        """``g * partial``, but 0 wherever ``g`` is 0."""
        return self.op("absorbing_mul", g, partial)

    def wants(self, index: int) -> bool:
        """True if an operand needs a gradient."""
        return self.wanted[index]

    def nothing(self, index: int, x: Any) -> Any:
        """The gradient of operand ``x`` for which a rule of users gives None; in graphs as well."""
        return None

    def like(self, g: Any, x: Any) -> Any:
        """A gradient of ``x``: ``g`` summed over what ``x`` was broadcast along, in its dtype.

        The gradient of a real number is real.
        """
        return self.converted(g if self.same_shape(g, x) else self.op("sum_to", g, x), x)

    def converted(self, g: Any, x: Any) -> Any:
        """``g`` in the dtype of ``x``: its real part, if ``x`` is real."""
        dtype = numpy_dtype(x)
        if numpy_dtype(g).kind == "c" and dtype.kind != "c":
            g = np.real(g)
        return g if numpy_dtype(g) == dtype else self.op("cast", g, dtype=dtype_of(dtype))

    def conjugate(self, x: Any) -> Any:
        """The conjugate of a derivative: what a gradient is multiplied by."""
        return conjugate(x)

    def expanded(self, attrs: Any, g: Any, x: Any) -> Any:
        """The result of a reduction of ``x`` with the reduced axes as axes of size 1."""
        axes = attrs.get("axes")
        if attrs.get("keepdims") or not np.ndim(x):
            return g
        return np.expand_dims(g, tuple(range(np.ndim(x)) if axes is None else axes))

    def count(self, attrs: Any, x: Any) -> Any:
        """The number of elements of ``x`` of which a reduction makes one result."""
        shape, axes = np.shape(x), attrs.get("axes")
        count: Any = 1
        for axis in range(len(shape)) if axes is None or not shape else axes:
            count = count * shape[axis]
        return count

    def spread(self, g: Any, x: Any) -> Any:
        """``g`` broadcast to the shape of ``x``."""
        return g if self.same_shape(g, x) else np.broadcast_to(g, np.shape(x))


def rule_of(op: type[Op]) -> str:
    """The one of `RULES` that an op class states; raises InternalError for none or several."""
    names = [name for name in RULES if states(op, name)]
    if len(names) != 1:
        said = " and ".join(names) or "nothing"
        raise InternalError(f"{op.full_name()} states {said} of its gradient, one of {RULES}")
    return names[0]


def states(op: type[Op], name: str) -> bool:
    """True if an op class has a member of `RULES` of its own."""
    from .op import Op

    if name == "vjp":
        return op.vjp.__func__ is not Op.vjp.__func__  # type: ignore[attr-defined]
    return bool(getattr(op, name))


def conjugate(partial: Partial) -> Partial:
    """The factor that a gradient is multiplied by: the conjugate of a derivative; a real one itself."""
    if isinstance(partial, tuple):
        return tuple(map(conjugate, partial))
    if callable(partial) or isinstance(partial, (int, float)):
        return partial
    if isinstance(partial, complex):
        return partial.conjugate()
    return np.conj(partial) if np.dtype(partial.dtype).kind == "c" else partial


def times(partial: Partial, g: Any, multiply: Callable[[Any, Any], Any] = np.multiply) -> Any:
    """A derivative of an elementwise op, or its conjugate, times ``g``."""
    if callable(partial):
        return partial(g)
    if isinstance(partial, tuple):
        for factor in partial:
            g = times(factor, g, multiply)
        return g
    if type(partial) in (int, float) and partial in (1, -1):
        return g if partial == 1 else -g
    return multiply(g, partial)
