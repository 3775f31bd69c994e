"""Trace guards as tests: numbers that a graph holds for, which depend on arguments."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from ...dialect.importers.tracing.trace_guards import (
    ConstExpr,
    DimExpr,
    Expr,
    LeafExpr,
    OpExpr,
    TraceGuard,
)
from ..memory.placement import Refused, Size
from .argument_reads import SMALL
from .leaf_spec import ArrayValue, NumberValue, Test, Value
from .refs import Held

_OPS = {"add": "+", "mul": "*", "floor_div": "//", "remainder": "%", "max_size": "max",
        "min_size": "min"}  # fmt: skip
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

    def _size(self, expr: Expr) -> Size:
        if isinstance(expr, DimExpr):
            array = self._values[expr.leaf]
            assert isinstance(array, ArrayValue)
            return array.sizes[expr.axis]
        if isinstance(expr, LeafExpr):
            number = self._values[expr.leaf]
            if not isinstance(number, NumberValue) or number.kind is not int:
                raise Refused(f"a graph holds for a value of {expr}, which Python looks at")
            self._before.append(Test(("fits", number.position), 1))
            return "integer", number.position
        if isinstance(expr, ConstExpr) and type(expr.value) is int and abs(expr.value) < SMALL:
            return expr.value
        if isinstance(expr, OpExpr) and not expr.attrs:
            return self._op(expr)
        raise Refused(f"a graph holds for a value of {expr}, which Python works out")

    def _op(self, expr: OpExpr) -> Size:
        a, *rest = (self._size(arg) for arg in expr.args)
        if expr.op == "neg":
            return "*", a, -1
        (b,) = rest or (None,)
        if expr.op == "sub" and b is not None:
            return "+", a, ("*", b, -1)
        if expr.op in ("floor_div", "remainder") and not (isinstance(b, int) and b > 0):
            raise Refused(
                f"a graph holds for a value of {expr}, which divides by what is not known"
            )
        factors = [side for side in (a, b) if not isinstance(side, int)]
        # Products of ints that may have 31 bits each must not overflow 64 bits.
        if expr.op == "mul" and len(factors) > 1 and any(map(_has_integer, factors)):
            raise Refused(f"a graph holds for a value of {expr}, which may need many bits")
        if expr.op not in _OPS or b is None:
            raise Refused(f"a graph holds for a value of {expr}, which Python works out")
        made = (_OPS[expr.op], a, b)
        if _has_integer(made) and _magnitude(made) >= 2**63:
            raise Refused(f"a graph holds for a value of {expr}, which may need many bits")
        return made


def _magnitude(size: Any) -> int:
    """What the absolute value of a size is below, arrays having fewer than 2**31 rows."""
    if isinstance(size, int):
        return abs(size)
    if size[0] in ("integer", "dim"):
        return SMALL if size[0] == "integer" else 2**31
    a, b = map(_magnitude, size[1:])
    return a * b if size[0] == "*" else a + b


def _has_integer(size: Any) -> bool:
    if not isinstance(size, tuple):
        return False
    return size[0] == "integer" or any(_has_integer(part) for part in size[1:])
