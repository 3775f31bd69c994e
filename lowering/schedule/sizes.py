"""Reading `index` arithmetic as size expressions."""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir

from ...dialect.symbolic import Dim, sym_max, sym_min, symbol
from .graph import definition

_SIZE_OPS: dict[str, Callable[[Dim, Dim], Dim]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.divsi": lambda a, b: a // b,
    "arith.divui": lambda a, b: a // b,
    "arith.floordivsi": lambda a, b: a // b,
    "arith.ceildivsi": lambda a, b: (a + b - 1) // b,
    "arith.ceildivui": lambda a, b: (a + b - 1) // b,
    "arith.remsi": lambda a, b: a % b,
    "arith.remui": lambda a, b: a % b,
    "arith.maxsi": sym_max,
    "arith.minsi": sym_min,
}


class SizeReader:
    """Size expressions of the ``index`` values of a function's block.

    Args:
        block: values computed outside it have no closed form, unless defined here.
    """

    def __init__(self, block: ir.Block) -> None:
        self._block = block
        self._known: dict[ir.Value, Dim] = {}
        self.opaque: dict[str, ir.Value] = {}  # names given to sizes without a closed form

    def define(self, value: ir.Value, size: Dim) -> None:
        """State the size that a value, such as a function argument, stands for."""
        self._known[value] = size

    def size(self, value: ir.Value) -> Dim:
        """An ``index`` value as a size expression."""
        found = self.known_size(value)
        if found is None:
            opaque = f"size{len(self.opaque)}_"
            self.opaque[opaque] = value
            found = self._known[value] = symbol(opaque)
        return found

    def known_size(self, value: ir.Value) -> Dim | None:
        """A value as a size expression, if it is one in closed form."""
        if value not in self._known:
            found = self._closed_form(value)
            if found is None:
                return None
            self._known[value] = found
        return self._known[value]

    def _closed_form(self, value: ir.Value) -> Dim | None:
        op = definition(value)
        if op is None or op.block != self._block:
            return None
        if op.name == "arith.constant":
            attribute = op.attributes["value"]
            return attribute.value if isinstance(attribute, ir.IntegerAttr) else None
        if op.name == "arith.index_cast":
            return self.known_size(op.operands[0])
        binary = _SIZE_OPS.get(op.name)
        if binary is None:
            return None
        left, right = (self.known_size(v) for v in op.operands)
        return None if left is None or right is None else binary(left, right)
