"""Trace guards as tests in emitted code.

A trace guard compares an expression over the arguments with the value that tracing baked in.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from ....dialect.importers.numpy.tracing.trace_guards import Computed, Expr, PassedNumber, SameObject, TraceGuard, text
from ....dialect.ir.size_algebra import fits_64_bits
from ....dialect.ir.symbolic import Dim, Dimension, Integer, Sym, symbol
from ...memory.offsets import Refused, size_of
from ..leaf_values import ArrayValue, Test, Value
from ..number_values import NumberValue
from ..refs import Held, Inside, InState, Position
from .argument_reads import SMALL

# Per comparison of (a, b): the test, whether a and b are swapped, and the test's wanted answer.
_COMPARISONS = {
    "eq": ("same", False, True),
    "ne": ("same", False, False),
    "lt": ("less", False, True),
    "ge": ("less", False, False),
    "gt": ("less", True, True),
    "le": ("less", True, False),
}


def baked_tests(guards: Sequence[TraceGuard], values: Sequence[Value]) -> list[Test]:
    """The tests that decide whether a graph is valid for a call, as `TraceGuard.holds` defines it.

    They may rely on the tests of the values themselves. Raises Refused for a guard that only
    Python can evaluate.
    """
    return [test for guard in guards for test in _BakedReader(values).tests(guard)]


class _BakedReader:
    def __init__(self, values: Sequence[Value]) -> None:
        self._values = values
        self._before: list[Test] = []

    def tests(self, guard: TraceGuard) -> list[Test]:
        """The tests of one guard."""
        expr, expected = guard.expr, guard.expected
        last = self._same(expr, expected) if isinstance(expr, SameObject) else self._leaf(expr, expected)
        if last is None and isinstance(expr, Computed) and expr.op in _COMPARISONS:
            field, swapped, holds = _COMPARISONS[expr.op]
            a, b = (self._size(arg) for arg in expr.args)
            last = Test((field, b, a) if swapped else (field, a, b), int(holds == expected))
        elif last is None and type(expected) is int:
            last = Test(("size", self._size(expr)), expected)
        if last is None:
            raise Refused(f"a graph holds for {text(expr)} = {expected!r}, which Python works out")
        return [*self._before, last]

    def _same(self, expr: SameObject, expected: Any) -> Test | None:
        """The test of whether an argument is another array; None where it may be in another object."""
        leaf = self._position(expr.leaf)
        if type(expr.other) is not int:
            return None if leaf is None else Test(("static", leaf, Held(expr.other)), int(expected))
        other = self._position(expr.other)
        return None if leaf is None or other is None else Test(("one", leaf, other), int(expected))

    def _position(self, leaf: int) -> Position | None:
        value = self._values[leaf]
        ref = value.ref if isinstance(value, ArrayValue) else None
        return ref if isinstance(ref, (int, Inside, InState)) else None

    def _leaf(self, expr: Expr, expected: Any) -> Test | None:
        """The test of a bool or float argument that was baked in as it is; None for others."""
        value = self._values[expr.leaf] if isinstance(expr, PassedNumber) else None
        if not isinstance(value, NumberValue) or type(expected) is not value.kind:
            return None
        if value.kind is bool:
            return Test(("static", value.position, Held(expected)), 1)
        if value.kind is float and expected == expected:
            return Test(("bits", value.position), struct.unpack("<q", struct.pack("<d", expected))[0])
        return None

    def _size(self, expr: Expr) -> Dim:
        by_python = Refused(f"a graph holds for a value of {text(expr)}, which Python works out")
        if not isinstance(expr, (int, Sym)):
            raise by_python
        leaves = expr.symbols if isinstance(expr, Sym) else ()
        try:
            size = size_of(expr, {leaf: self._read(leaf) for leaf in leaves})
        except Refused:
            raise by_python from None
        has_integer = any(isinstance(leaf, Integer) for leaf in leaves)
        if _largest(size) >= SMALL or (has_integer and not fits_64_bits(size)):
            raise Refused(f"a graph holds for a value of {text(expr)}, which may need many bits")
        return size

    def _read(self, leaf: Dimension | Integer) -> Dim:
        if isinstance(leaf, Dimension):
            array = self._values[leaf.array]
            assert isinstance(array, ArrayValue)
            return array.sizes[leaf.axis]
        number = self._values[leaf.position]
        assert isinstance(number, NumberValue)
        self._before.append(Test(("fits", number.position), 1))
        return symbol(Integer(number.position))


def _largest(size: Dim) -> int:
    """The largest number in a size expression, by magnitude."""
    if isinstance(size, int):
        return abs(size)
    return size.fold(lambda leaf: 0, abs, lambda op, a, b: max(a, b))
