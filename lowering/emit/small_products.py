"""Products of small matrices as vector code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from mlir import ir

from ...dialect.ir.symbolic import Dim
from .loop_ops import Ops

if TYPE_CHECKING:
    from .cblas import MatrixOperand


class SmallProduct:
    """Emits ``out = a @ b``, or ``out += a @ b``, as a loop over the rows of ``a``.

    The rows of ``b`` are in registers. A row of the result is the sum of these rows, in order, each
    times an element of ``a``.

    Args:
        size: value of a size expression (i64).
        element: type of an element.
        depth: columns of ``a`` and rows of ``b``.
        width: columns of ``b``.
    """

    def __init__(self, ops: Ops, size: Callable[[Dim], ir.Value], element: ir.Type, depth: int, width: int) -> None:
        self.ops, self.size, self.element, self.width = ops, size, element, width
        self.depth = depth
        self.vector = ir.VectorType.get([width], element)
        self.contract = ir.Attribute.parse("#arith.fastmath<contract>")
        self.alignment = ir.IntegerAttr.get(ops.i64, element.width // 8)
        zero = ir.FloatAttr.get(element, 0.0)
        self.zeros = ops.create("arith.constant", self.vector, value=ir.DenseElementsAttr.get_splat(self.vector, zero))

    def emit(self, a: MatrixOperand, b: MatrixOperand, out: ir.Value, accumulate: bool) -> None:
        """Emit the loop at the current insertion point; the rows of ``out`` are contiguous."""
        ops = self.ops
        source = b if b.columns == 1 else self._transposed(b)
        rows = [self._load(self._at(source.pointer, ops.constant(k), source.rows)) for k in range(self.depth)]
        end = a.taken if a.taken is not None else self.size(a.height)
        loop = ops.loop(ops.constant(0), end, ops.constant(1), [])
        with ir.InsertionPoint(loop.body):
            i = loop.induction_variable
            start, place = self._at(a.pointer, i, a.rows), self._at(out, i, self.width)
            total = self._load(place) if accumulate else self.zeros
            for k, row in enumerate(rows):
                x = self._all(ops.load(self._at(start, ops.constant(k), a.columns), self.element))
                term = ops.create("arith.mulf", self.vector, x, row, fastmath=self.contract)
                total = ops.create("arith.addf", self.vector, total, term, fastmath=self.contract)
            ir.Operation.create("llvm.store", operands=[total, place], attributes={"alignment": self.alignment})
            ir.Operation.create("scf.yield")

    def _at(self, base: ir.Value, index: ir.Value, stride: Dim | None) -> ir.Value:
        """A pointer to another row or column; ``stride``: None where there is only one."""
        if stride is None:
            return base
        return self.ops.offset(base, self.ops.mul(index, self.size(stride)), self.element)

    def _load(self, pointer: ir.Value) -> ir.Value:
        return self.ops.create("llvm.load", self.vector, pointer, alignment=self.alignment)

    def _transposed(self, b: MatrixOperand) -> MatrixOperand:
        """A copy of ``b`` on the stack, with contiguous rows."""
        ops = self.ops
        with _entry():
            copy = ops.alloca(self.depth * self.width, self.element)
        zero, one = ops.constant(0), ops.constant(1)
        columns = ops.loop(zero, ops.constant(self.width), one, [])
        with ir.InsertionPoint(columns.body):
            j = columns.induction_variable
            source, target = self._at(b.pointer, j, b.columns), self._at(copy, j, 1)
            rows = ops.loop(zero, ops.constant(self.depth), one, [])
            with ir.InsertionPoint(rows.body):
                k = rows.induction_variable
                x = ops.load(self._at(source, k, b.rows), self.element)
                ops.store(x, self._at(target, k, self.width))
                ir.Operation.create("scf.yield")
            ir.Operation.create("scf.yield")
        return replace(b, pointer=copy, rows=self.width, columns=1)

    def _all(self, x: ir.Value) -> ir.Value:
        """A vector of equal elements."""
        one = self.ops.create("llvm.insertelement", self.vector, self.zeros, x, self.ops.constant(0))
        return self.ops.create(
            "llvm.shufflevector", self.vector, one, one, mask=ir.DenseI32ArrayAttr.get([0] * self.width)
        )


def _entry() -> ir.InsertionPoint:
    """The beginning of the function that is being emitted: stack memory is taken once per call."""
    block = ir.InsertionPoint.current.block
    while block.owner.operation.name != "func.func":
        block = block.owner.operation.block
    return ir.InsertionPoint.at_block_begin(block)
