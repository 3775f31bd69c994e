"""Products of a vector and a matrix as sums of the rows of the matrix, in vector code."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from .loop_ops import SCALAR, Ops

_ROWS = 8  # that are added at a time: so an element of the result is in a register meanwhile
_WIDTH = 8  # elements of a vector


@dataclass(frozen=True)
class RowSums:
    """Emits ``out = x @ m``, or ``out += x @ m``: the rows of ``m``, each times an element of x.

    An element is the sum of its products in their order, wherever it lies in a row.

    Attributes:
        element: type of an element.
        rows, width: number of the rows of ``m``, and of their elements, which are contiguous.
        matrix, distance: the first row, and the distance of two in elements.
        vector, stride: the first element of ``x``, and the distance of two.
    """

    ops: Ops
    element: ir.Type
    rows: ir.Value
    width: ir.Value
    matrix: ir.Value
    distance: ir.Value
    vector: ir.Value
    stride: ir.Value

    def emit(self, out: ir.Value, accumulate: bool) -> None:
        """Emit loops at the current insertion point; the elements of ``out`` are contiguous."""
        ops, zero = self.ops, self.ops.constant(0)
        if not accumulate:
            fill = ops.loop(zero, self.width, ops.constant(1), [])
            with ir.InsertionPoint(fill.body):
                nothing = ops.float_constant(0.0, self.element)
                ops.store(nothing, ops.offset(out, fill.induction_variable, self.element))
                ir.Operation.create("scf.yield")
        several = self._whole(self.rows, _ROWS)
        for low, high, count in ((zero, several, _ROWS), (several, self.rows, 1)):
            loop = ops.loop(low, high, ops.constant(count), [])
            with ir.InsertionPoint(loop.body):
                first = loop.induction_variable
                self._add([ops.add(first, ops.constant(k)) for k in range(count)], out)
                ir.Operation.create("scf.yield")

    def _add(self, numbers: list[ir.Value], out: ir.Value) -> None:
        """Add some rows to the result."""
        ops = self.ops
        wide = ir.VectorType.get([_WIDTH], self.element)
        starts = [ops.offset(self.matrix, ops.mul(n, self.distance), self.element) for n in numbers]
        places = [ops.offset(self.vector, ops.mul(n, self.stride), self.element) for n in numbers]
        factors = [ops.load(place, self.element) for place in places]
        splats = [self._all(x, wide) for x in factors]
        whole = self._whole(self.width, _WIDTH)
        for low, high, step, type_, xs in (
            (ops.constant(0), whole, _WIDTH, wide, splats),
            (whole, self.width, 1, self.element, factors),
        ):
            loop = ops.loop(low, high, ops.constant(step), [])
            loop.operation.attributes[SCALAR] = ir.UnitAttr.get()
            with ir.InsertionPoint(loop.body):
                j = loop.induction_variable
                place = ops.offset(out, j, self.element)
                total = self._load(place, type_)
                for start, x in zip(starts, xs, strict=True):
                    y = self._load(ops.offset(start, j, self.element), type_)
                    total = self._plus(total, x, y)
                ir.Operation.create("llvm.store", operands=[total, place], attributes={"alignment": self._aligned})
                ir.Operation.create("scf.yield")

    def _plus(self, total: ir.Value, x: ir.Value, y: ir.Value) -> ir.Value:
        """A sum with a product, fused on all CPUs that can: LLVM would do so in vectors alone."""
        ops, type_ = self.ops, total.type
        if ops.fused:
            return ops.create("math.fma", type_, x, y, total)
        return ops.create("arith.addf", type_, total, ops.create("arith.mulf", type_, x, y))

    def _all(self, x: ir.Value, wide: ir.Type) -> ir.Value:
        """A vector of equal elements."""
        ops, zero = self.ops, ir.FloatAttr.get(self.element, 0.0)
        zeros = ir.DenseElementsAttr.get_splat(wide, zero)
        one = ops.create("arith.constant", wide, value=zeros)
        one = ops.create("llvm.insertelement", wide, one, x, ops.constant(0))
        mask = ir.DenseI32ArrayAttr.get([0] * _WIDTH)
        return ops.create("llvm.shufflevector", wide, one, one, mask=mask)

    def _load(self, place: ir.Value, type_: ir.Type) -> ir.Value:
        return self.ops.create("llvm.load", type_, place, alignment=self._aligned)

    @property
    def _aligned(self) -> ir.IntegerAttr:
        return ir.IntegerAttr.get(self.ops.i64, self.element.width // 8)

    def _whole(self, size: ir.Value, by: int) -> ir.Value:
        """The largest multiple that is not larger."""
        ops = self.ops
        rest = ops.create("arith.remui", ops.i64, size, ops.constant(by))
        return ops.subtract(size, rest)
