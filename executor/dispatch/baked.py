"""Trace guards as tests: numbers that a graph holds for, which depend on arguments."""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Sequence
from typing import Any

from ...dialect.errors import ShapeError
from ...dialect.importers.tracing.trace_guards import (
    ConstExpr,
    DimExpr,
    Expr,
    LeafExpr,
    OpExpr,
    TraceGuard,
)
from ...dialect.ir.symbolic import Dim, Integer, Sym, fits_64_bits, sym_max, sym_min, symbol
from ..memory.placement import Refused
from .argument_reads import SMALL
from .leaf_spec import ArrayValue, NumberValue, Test, Value
from .refs import Held

_OPS: dict[str, Callable[..., Dim]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "neg": operator.neg,
    "floor_div": operator.floordiv, "remainder": operator.mod,
    "max_size": sym_max, "min_size": sym_min,
}  # fmt: skip
# Comparisons as a test of (a, b), and whether it has to be true.
_COMPARISONS = {
    "eq": ("same", False, True), "ne": ("same", False, False), "lt": ("less", False, True),
    "ge": ("less", False, False), "gt": ("less", True, True), "le": ("less", True, False),
}  # fmt: skip


def baked_tests(guards: Sequence[TraceGuard], values: Sequence[Value]) -> list[Test]:
    """What has to hold for a graph to be valid; raises Refused for what only Python works out.

    `TraceGuard.holds` is the definition; they may rely on the tests of the values themselves.
    """
    return [test for guard in guards for test in _Reader(values).tests(guard)]


class _Reader:
    def __init__(self, values: Sequence[Value]) -> None:
        self._values = values
        self._before: list[Test] = []

    def tests(self, guard: TraceGuard) -> list[Test]:
        """The tests of one guard."""
        expr, expected = guard.expr, guard.expected
        last = self._leaf(expr, expected)
        if last is None and isinstance(expr, OpExpr) and expr.op in _COMPARISONS:
            field, swapped, holds = _COMPARISONS[expr.op]
            a, b = (self._size(arg) for arg in expr.args)
            last = Test((field, b, a) if swapped else (field, a, b), int(holds == expected))
        elif last is None and type(expected) is int:
            last = Test(("size", self._size(expr)), expected)
        if last is None:
            raise Refused(f"a graph holds for {expr} = {expected!r}, which Python works out")
        return [*self._before, last]

    def _leaf(self, expr: Expr, expected: Any) -> Test | None:
        """A flag or a float that was baked by itself."""
        value = self._values[expr.leaf] if isinstance(expr, LeafExpr) else None
        if not isinstance(value, NumberValue) or type(expected) is not value.kind:
            return None
        if value.kind is bool:
            return Test(("static", value.position, Held(expected)), 1)
        if value.kind is float and expected == expected:
            return Test(
                ("bits", value.position), struct.unpack("<q", struct.pack("<d", expected))[0]
            )
        return None

    def _size(self, expr: Expr) -> Dim:
        if isinstance(expr, DimExpr):
            array = self._values[expr.leaf]
            assert isinstance(array, ArrayValue)
            return array.sizes[expr.axis]
        if isinstance(expr, LeafExpr):
            number = self._values[expr.leaf]
            if not isinstance(number, NumberValue) or number.kind is not int:
                raise Refused(f"a graph holds for a value of {expr}, which Python looks at")
            self._before.append(Test(("fits", number.position), 1))
            return symbol(Integer(number.position))
        if isinstance(expr, ConstExpr) and type(expr.value) is int and abs(expr.value) < SMALL:
            return expr.value
        if isinstance(expr, OpExpr) and not expr.attrs:
            return self._op(expr)
        raise Refused(f"a graph holds for a value of {expr}, which Python works out")

    def _op(self, expr: OpExpr) -> Dim:
        args = [self._size(arg) for arg in expr.args]
        divisor = args[-1]
        if expr.op in ("floor_div", "remainder") and not (isinstance(divisor, int) and divisor > 0):
            raise Refused(
                f"a graph holds for a value of {expr}, which divides by what is not known"
            )
        if expr.op not in _OPS:
            raise Refused(f"a graph holds for a value of {expr}, which Python works out")
        try:
            made = _OPS[expr.op](*args)
        except ShapeError as error:
            raise Refused(error.what) from None
        if _has_integer(made) and not fits_64_bits(made):
            raise Refused(f"a graph holds for a value of {expr}, which may need many bits")
        return made


def _has_integer(size: Dim) -> bool:
    return isinstance(size, Sym) and any(isinstance(leaf, Integer) for leaf in size.symbols)
