"""The builder that rules of op classes are handed in a trace: they record what they compute."""

from __future__ import annotations

import cmath
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Union

import numpy as np

from ..analysis.alias import SHAPED_LIKE
from ..importers.numpy.tracing import operators
from ..importers.numpy.tracing.recorder import Recorder
from ..importers.numpy.tracing.traced import Traced, TracedArray
from ..importers.numpy.tracing.traced_scalar import TracedScalar
from ..ir.attrs import DYNAMIC
from ..ir.gradients import GradientBuilder
from ..ir.postorder import postorder
from ..ir.program import Instr
from ..ir.types import ScalarType, Shape
from ..ops.create import Constant, Full
from ..ops.elementwise.binary import Mul
from ..ops.elementwise.families import Elementwise
from ..ops.manipulation.shape import BroadcastTo
from ..ops.queries import Dim

Factor = Union[int, str]  # a value, or a number as text
_NUMBERS = (int, float, complex)
_FACTORS = 12  # of a product that is compared with others


class TraceBuilder(GradientBuilder):
    """Records into the trace of ``rec``.

    Attributes:
        reruns: a rule has asked for a function of its operands, all of which it so needs.
    """

    def __init__(self, rec: Recorder) -> None:
        self.rec = rec
        self.reruns = False
        self._shapes: dict[int, int | None] = {}
        self._first: dict[Shape, int] = {}  # known shape -> the first value of it
        self._factors: dict[int, tuple[Factor, ...]] = {}
        self._products: dict[tuple[Factor, ...], Any] = {}

    def op(self, name: str, *operands: Any, **attrs: Any) -> Any:
        return operators.op(name, *operands, **attrs)

    def pulled(self, function: Callable[..., Any], operands: Sequence[Any], gradients: Sequence[Any]) -> Sequence[Any]:
        self.reruns = True
        # By name: that module makes builders.
        pullback = import_module(f"{__package__}.pullback")
        results: Sequence[Any] = pullback.pulled_through(function, operands, gradients)
        return results

    def value(self, number: int) -> Any:
        """The object that a rule gets for a value of the graph: Python's number for a constant."""
        definition = self.rec.defs.get(number)
        if definition is not None and definition.op is Constant and self._is_number(number):
            return definition.attrs["value"]
        return operators.wrap(self.rec, number)

    def absorbing_product(self, g: Any, partial: Any) -> Any:
        """``g * partial``, but 0 wherever ``g`` is 0."""
        if type(partial) in _NUMBERS and cmath.isfinite(partial):
            return self.product(g, partial)
        return self.op("absorbing_mul", g, partial)

    def product(self, g: Any, partial: Any) -> Any:
        """``g * partial``, or the product of the same factors that an earlier call has made.

        The derivative of ``y * y * y`` has three terms that differ in the order of their factors,
        and so at most in their rounding.
        """
        if any(type(x) not in (TracedArray, TracedScalar, *_NUMBERS) for x in (g, partial)):
            return np.multiply(g, partial)
        factors = (*self._factors_of(g), *self._factors_of(partial))
        dtypes = {self.rec.dtype(f) for f in factors if isinstance(f, int)}
        if len(factors) > _FACTORS or len(dtypes) > 1:
            return np.multiply(g, partial)
        key = tuple(sorted(factors, key=str))
        if key not in self._products:
            self._products[key] = np.multiply(g, partial)
        return self._products[key]

    def forget_products(self) -> None:
        """Let `product` make products anew: the block that it has made them in has ended."""
        self._products.clear()

    def _factors_of(self, x: Any) -> tuple[Factor, ...]:
        """The arrays, by their values, and the numbers that multiplications have made ``x`` of."""
        return (repr(x),) if type(x) in _NUMBERS else self._found(x.value)

    def _found(self, value: int) -> tuple[Factor, ...]:
        for v in postorder([value], self._multiplied):
            if v not in self._factors:
                definition = self.rec.defs.get(v)
                own: tuple[Factor, ...] = (v,)
                if definition is not None and definition.op is Constant and self._is_number(v):
                    own = (repr(definition.attrs["value"]),)
                factors = tuple(f for o in self._multiplied(v) for f in self._factors[o])
                self._factors[v] = factors if 0 < len(factors) <= _FACTORS else own
        return self._factors[value]

    def _multiplied(self, value: int) -> tuple[int, ...]:
        """The operands of the multiplication that has made a value, if the value's factors are not known yet."""
        definition = self.rec.defs.get(value)
        is_product = value not in self._factors and definition is not None and definition.op is Mul
        return definition.operands if is_product and definition is not None else ()

    def _is_number(self, value: int) -> bool:
        return isinstance(self.rec.hints[value], ScalarType)

    def same_shape(self, x: Any, y: Any) -> bool:
        a, c = (self._shaped(v.value) if isinstance(v, (Traced, TracedScalar)) else None for v in (x, y))
        return a == c

    def _shaped(self, value: int) -> int | None:
        """The value whose shape ``value`` has in every call; None for no axes."""
        if self._is_number(value) or self.rec.shape(value) == ():
            return None
        if self.rec.sizes_hold and None not in self.rec.shape(value):
            return self._first.setdefault(self.rec.shape(value), value)
        for v in postorder([value], self._sources):
            if v not in self._shapes and not self._is_number(v) and self.rec.shape(v) != ():
                self._shapes[v] = self._find(v)
        return self._shapes[value]

    def _sources(self, value: int) -> tuple[int, ...]:
        """The values that the shape of one follows from, if that is not known yet."""
        if value in self._shapes:
            return ()
        definition = self.rec.defs.get(value)
        if definition is not None and issubclass(definition.op, Elementwise):
            return definition.operands
        like = self._like(value)
        return () if like is None else (like,)

    def _like(self, value: int) -> int | None:
        """The value whose shape an op other than an elementwise one gives its result."""
        definition = self.rec.defs.get(value)
        if definition is None:
            return self.rec.shaped.get(value)
        if definition.op in SHAPED_LIKE:
            return definition.operands[1]
        return self._whole_shape(definition) if definition.op in (BroadcastTo, Full) else None

    def _find(self, value: int) -> int | None:
        definition = self.rec.defs.get(value)
        if definition is None or not issubclass(definition.op, Elementwise):
            like = self._like(value)
            return value if like is None else self._shaped(like)
        shaped = {s for v in definition.operands if (s := self._shaped(v)) is not None}
        for one in shaped:
            if all(self._is_broadcast(other, one) for other in shaped if other != one):
                return one
        return value

    def _whole_shape(self, definition: Instr) -> int | None:
        """The value all of whose sizes, in order, an op was given, and no others."""
        if any(d != DYNAMIC for d in definition.attrs["shape"]):  # (2, *x.shape) is not that of x
            return None
        sizes = [self.rec.defs.get(v) for v in definition.operands[1:]]
        if any(s is None or s.op is not Dim or s.attrs["axis"] != k for k, s in enumerate(sizes)):
            return None
        arrays = {s.operands[0] for s in sizes if s is not None}
        like = arrays.pop() if len(arrays) == 1 else None
        return like if like is not None and len(self.rec.shape(like)) == len(sizes) else None

    def _is_broadcast(self, value: int, to: int) -> bool:
        """True if an elementwise op with a result of the shape of ``to`` has read ``value``."""
        waiting, seen = [to], {to}
        while waiting:
            definition = self.rec.defs.get(waiting.pop())
            if definition is None or not issubclass(definition.op, Elementwise):
                continue
            shaped = {s for v in definition.operands if (s := self._shaped(v)) is not None}
            if value in shaped:
                return True
            # Values are numbered as they are made: what is older has not read this one.
            waiting.extend(s for s in shaped - seen if s > value)
            seen |= shaped
        return False


class NodeRuleBuilder(TraceBuilder):
    """Records the rule of a node of the tape: what a rule of users leaves out is zeros there (R2.27)."""

    def nothing(self, index: int, x: Any) -> Any:
        return np.zeros_like(x) if self.wanted[index] else None
