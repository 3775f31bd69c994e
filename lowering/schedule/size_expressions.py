"""Reading `index` arithmetic as size expressions."""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir

from ...dialect.ir.postorder import postorder
from ...dialect.ir.size_algebra import sym_max, sym_min
from ...dialect.ir.symbolic import Dim, symbol
from .graph import definition

# The operations by which sizes are emitted (`generic.Emitter.index`). A truncating division is not
# among them, so it has no closed form here.
_SIZE_OPS: dict[str, Callable[[Dim, Dim], Dim]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.floordivsi": lambda a, b: a // b,
    "arith.maxsi": sym_max,
    "arith.minsi": sym_min,
}
_LEAVES = ("arith.constant", "arith.index_cast")


class SizeReader:
    """Size expressions of the ``index`` values of a function.

    Args:
        block: values that are made in another block have no closed form unless `define`d; None =
            values of all blocks have one.
    """

    def __init__(self, block: ir.Block | None = None) -> None:
        self._block = block
        self._known: dict[ir.Value, Dim] = {}
        self.opaque: dict[str, ir.Value] = {}  # names given to sizes without a closed form

    def define(self, value: ir.Value, size: Dim) -> None:
        """State the size that a value, such as a function argument, stands for."""
        self._known[value] = size

    def size(self, value: ir.Value) -> Dim:
        """An ``index`` value as a size expression."""
        size = self.known_size(value)
        if size is None:
            opaque = f"size{len(self.opaque)}_"
            self.opaque[opaque] = value
            size = self._known[value] = symbol(opaque)
        return size

    def known_size(self, value: ir.Value) -> Dim | None:
        """A value as a size expression in closed form; None = it has none."""
        if value not in self._known:
            for number in postorder([value], self._operands):
                size = None if number in self._known else self._closed_form(number)
                if size is not None:
                    self._known[number] = size
        return self._known.get(value)

    def _operands(self, value: ir.Value) -> list[ir.Value]:
        op = None if value in self._known else self._definition(value)
        return [] if op is None else list(op.operands)

    def _definition(self, value: ir.Value) -> ir.Operation | None:
        """The operation that defines a value, if it may occur in a size expression; else None."""
        op = definition(value)
        if op is None or (self._block is not None and op.block != self._block):
            return None
        return op if op.name in _SIZE_OPS or op.name in _LEAVES else None

    def _closed_form(self, value: ir.Value) -> Dim | None:
        """The closed form of a value whose operands have been visited; None = it has none."""
        op = self._definition(value)
        if op is None:
            return None
        if op.name == "arith.constant":
            attribute = op.attributes["value"]
            return attribute.value if isinstance(attribute, ir.IntegerAttr) else None
        if op.name == "arith.index_cast":
            return self._known.get(op.operands[0])
        left, right = map(self._known.get, op.operands)
        return None if left is None or right is None else _SIZE_OPS[op.name](left, right)
