"""Products: calls of CBLAS, with strides as transposition flags and leading dimensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from mlir import ir

from ...dialect.dataclass import dataclass
from ...dialect.errors import InternalError
from ...dialect.ir.symbolic import Dim
from ..schedule.affine import AffineIndex
from ..schedule.gram import is_gram
from ..schedule.graph import Buffer, Product, Tensor
from ..schedule.library_calls import ELEMENTS, ROWS, adds_rows, form, has_rest
from ..schedule.memory import buffer_of
from ..schedule.small import is_small
from .loop_ops import Ops, Sizes
from .mirrored import mirror, row_of_share
from .row_sums import RowSums
from .small_products import SmallProduct

Range = tuple[ir.Value, ir.Value]  # where it begins and ends
Bases = tuple[ir.Value, ir.Value, ir.Value]  # where left operand, right operand and result begin
_ROW_MAJOR, _NO_TRANS, _TRANS, _UPPER = 101, 111, 112, 121


@dataclass(frozen=True)
class MatrixOperand:
    """An operand: pointer, strides of its rows and columns (None: of size 1), sizes.

    ``taken``: number of the rows that take part; None = all. ``across``: that of the columns.
    """

    pointer: ir.Value
    rows: Dim
    columns: Dim
    height: Dim
    width: Dim
    taken: ir.Value | None = None
    across: ir.Value | None = None


class ProductEmitter:
    """Emits one product.

    Args:
        size: value of a size expression (i64).
        pointer: start of a stored tensor.
        declare: makes an external function known, by its name and the types of its arguments.
    """

    def __init__(
        self,
        ops: Ops,
        size: Callable[[Dim], ir.Value],
        pointer: Callable[[Tensor], ir.Value],
        declare: Callable[[str, list[ir.Type]], None],
    ) -> None:
        self.ops, self.size, self.pointer, self.declare = ops, size, pointer, declare

    def emit(self, op: Product, part: Range | None = None, columns: Range | None = None) -> None:
        """Emit the call, in a loop over the batch if there is one.

        ``part``: the first row of the result that is computed, and the row behind the last one; of
        a batch, these are the matrices. ``columns``: the same for columns. None = all.
        """
        if is_gram(op):
            self._gram(op, *self._bases(op), part)
            return
        if op.kind != "batch_matmul":
            self._one(op, *self._bases(op), part, columns)
            return
        bases = self._bases(op)
        low, high = part or (self.size(0), self.size(op.output.dims[0]))
        loop = self.ops.loop(low, high, self.size(1), [])
        with ir.InsertionPoint(loop.body):
            self._one(op, *self._of_matrix(op, bases, loop.induction_variable), None)
            ir.Operation.create("scf.yield")

    def emit_rows(self, op: Product, matrix: ir.Value, rows: Range) -> None:
        """Emit the call for some rows of one matrix of the batch."""
        bases = self._bases(op)
        if op.kind == "batch_matmul":
            bases = self._of_matrix(op, bases, matrix)
        self._one(op, *bases, rows)

    def emit_panel(self, op: Product, matrix: ir.Value, columns: Range, room: Dim, *, transposed: bool) -> None:
        """Emit the call for some columns of one matrix of the batch, which a block has as right operand.

        ``room``: columns of the memory of a block; ``transposed``: they are its rows.
        """
        ops, bases = self.ops, self._bases(op)
        left_axes = (0, 1)
        if op.kind == "batch_matmul":
            bases, left_axes = self._of_matrix(op, bases, matrix), (1, 2)
        left, right, out = bases
        low, high = columns
        depth, width = op.right.dims[-2:]
        a = self._matrix(op.left, op.left_view[1], left, left_axes)
        down, along = (1, depth) if transposed else (room, 1)
        b = MatrixOperand(right, down, along, depth, room, across=ops.subtract(high, low))
        if buffer_of(op.output).windowed:
            self._gemm(op, a, b, out, room)
        else:
            self._gemm(op, a, b, ops.offset(out, low, op.output.element), width)

    def _bases(self, op: Product) -> Bases:
        """The addresses at which the operands and the result begin."""
        return self._base(op.left_view), self._base(op.right_view), self.pointer(op.output)

    def _of_matrix(self, op: Product, bases: Bases, matrix: ir.Value) -> Bases:
        """The addresses at which one matrix of a batch begins, in the operands and in the result."""

        def shifted(base: ir.Value, tensor: Tensor, stride: Dim) -> ir.Value:
            if buffer_of(tensor).windowed:
                return base
            step = self.ops.mul(matrix, self.size(stride))
            return self.ops.offset(base, step, op.output.element)

        (left, left_offset), (right, right_offset) = op.left_view, op.right_view
        return (
            shifted(bases[0], left, left_offset.coefficient(0)),
            shifted(bases[1], right, right_offset.coefficient(0)),
            shifted(bases[2], op.output, _matrix_size(op)),
        )

    def _base(self, view: tuple[Tensor, AffineIndex]) -> ir.Value:
        tensor, offset = view
        start = self.pointer(tensor)
        if offset.const == 0:
            return start
        return self.ops.offset(start, self.size(offset.const), tensor.element)

    def _one(
        self,
        op: Product,
        left: ir.Value,
        right: ir.Value,
        out: ir.Value,
        rows: Range | None,
        columns: Range | None = None,
    ) -> None:
        """A single product as a matrix product; vectors are matrices of one row or column."""
        a_axes, b_axes = {
            "matmul": ((0, 1), (0, 1)),
            "batch_matmul": ((1, 2), (1, 2)),
            "matvec": ((0, 1), (0, None)),
            "vecmat": ((None, 0), (0, 1)),
            "dot": ((None, 0), (0, None)),
        }[op.kind]
        a = self._matrix(op.left, op.left_view[1], left, a_axes)
        b = self._matrix(op.right, op.right_view[1], right, b_axes)
        if rows is not None:
            a, out = self._rows_of(op, a, out, *rows)
        if columns is not None:
            self._columns_part(op, a, b, out, *columns)
        elif is_small(op):
            element, depth, width = op.output.element, op.left.dims[-1], op.output.dims[-1]
            assert isinstance(depth, int) and isinstance(width, int)
            small = SmallProduct(self.ops, self.size, element, depth, width)
            small.emit(a, b, out, accumulate=op.init is not None)
        elif form(op) == "matvec" and rows is not None and has_rest(op):
            self._gemv_part(op, a, b, out)
        elif form(op) == "matvec":
            self._gemv(op, a, b, b.rows, out)
        elif form(op) == "vecmat":
            transposed = MatrixOperand(b.pointer, b.columns, b.rows, b.width, b.height)
            self._gemv(op, transposed, a, a.columns, out)
        else:
            self._gemm(op, a, b, out)

    def _rows_of(
        self, op: Product, a: MatrixOperand, out: ir.Value, low: ir.Value, high: ir.Value
    ) -> tuple[MatrixOperand, ir.Value]:
        """The rows from ``low`` to ``high`` of the left operand and of the result."""
        ops = self.ops
        width = 1 if op.kind == "matvec" else op.output.dims[-1]
        start = a.pointer
        if not buffer_of(op.left_view[0]).windowed:
            start = ops.offset(start, ops.mul(low, self.size(a.rows)), op.left.element)
        if not buffer_of(op.output).windowed:
            out = ops.offset(out, ops.mul(low, self.size(width)), op.output.element)
        return replace(a, pointer=start, taken=ops.subtract(high, low)), out

    def _columns_of(
        self, op: Product, b: MatrixOperand, out: ir.Value, low: ir.Value, high: ir.Value
    ) -> tuple[MatrixOperand, ir.Value]:
        """The columns from ``low`` to ``high`` of the right operand and of the result."""
        ops = self.ops
        start = ops.offset(b.pointer, ops.mul(low, self.size(b.columns)), op.right.element)
        out = ops.offset(out, low, op.output.element)
        return replace(b, pointer=start, across=ops.subtract(high, low)), out

    def _columns(self, m: MatrixOperand) -> ir.Value:
        if m.across is None:
            return self._int(m.width)
        return self.ops.create("arith.trunci", self.ops.i32, m.across)

    def _rows(self, m: MatrixOperand) -> ir.Value:
        if m.taken is None:
            return self._int(m.height)
        return self.ops.create("arith.trunci", self.ops.i32, m.taken)

    def _matrix(
        self, tensor: Tensor, offset: AffineIndex, pointer: ir.Value, axes: tuple[int | None, int | None]
    ) -> MatrixOperand:
        (rows, height), (columns, width) = (
            (0, 1) if k is None else (offset.coefficient(k), tensor.dims[k]) for k in axes
        )
        return MatrixOperand(pointer, rows, columns, height, width)

    def _int(self, value: Dim) -> ir.Value:
        if isinstance(value, int):
            return self.ops.constant(value, self.ops.i32)
        return self.ops.create("arith.trunci", self.ops.i32, self.size(value))

    def _leading(self, stride: Dim, least: Dim) -> ir.Value:
        """A leading dimension: at least 1 and the row width, even where it is never used."""
        ops = self.ops
        if isinstance(stride, int) and isinstance(least, int):
            return self._int(max(stride, least, 1))
        wide = ops.create("arith.maxsi", ops.i64, self.size(stride), self.size(least))
        wide = ops.create("arith.maxsi", ops.i64, wide, self.size(1))
        return ops.create("arith.trunci", ops.i32, wide)

    def _layout(self, m: MatrixOperand) -> tuple[int, ir.Value]:
        """Transposition flag and leading dimension."""
        if m.columns == 1 or m.width == 1:
            return _NO_TRANS, self._leading(m.rows, m.width)
        if m.rows == 1 or m.height == 1:
            return _TRANS, self._leading(m.columns, m.height)
        raise InternalError("a product operand has no unit stride")

    def _scale(self, op: Product, value: float) -> ir.Value:
        return self.ops.float_constant(value, op.output.element)

    def _gemm(self, op: Product, a: MatrixOperand, b: MatrixOperand, out: ir.Value, stride: Dim | None = None) -> None:
        """``stride``: that of the rows of the result; None = they follow each other."""
        a_flag, a_leading = self._layout(a)
        b_flag, b_leading = self._layout(b)
        self._call(
            op,
            "gemm",
            self._int(_ROW_MAJOR),
            self._int(a_flag),
            self._int(b_flag),
            self._rows(a),
            self._columns(b),
            self._int(a.width),
            self._scale(op, 1.0),
            a.pointer,
            a_leading,
            b.pointer,
            b_leading,
            self._scale(op, 0.0 if op.init is None else 1.0),
            out,
            self._leading(b.width if stride is None else stride, 1),
        )

    def _gram(self, op: Product, left: ir.Value, right: ir.Value, out: ir.Value, part: Range | None) -> None:
        """A product of a matrix with its transpose: some rows, and the columns that mirror them.

        The library computes the upper half of the square on the diagonal, and what is right of it.
        Where chunks are added up, a part is one of the multiplications for each element.
        """
        ops, size = self.ops, self.size(op.output.dims[0])
        low, high = self.size(0), size
        a = self._matrix(op.left, op.left_view[1], left, (0, 1))
        below, is_added = out, op.chunks is not None and bool(op.chunks.merged)
        if part is not None and is_added:
            start = ops.offset(left, ops.mul(part[0], self.size(a.columns)), op.left.element)
            a = replace(a, pointer=start, across=ops.subtract(part[1], part[0]))
        elif part is not None:
            low, high = (row_of_share(ops, x, size) for x in part)
            a, below = self._rows_of(op, a, out, low, high)
        flag, leading = self._layout(a)
        self._call(
            op,
            "syrk",
            self._int(_ROW_MAJOR),
            self._int(_UPPER),
            self._int(flag),
            self._rows(a),
            self._columns(a),
            self._scale(op, 1.0),
            a.pointer,
            leading,
            self._scale(op, 0.0),
            ops.offset(below, low, op.output.element),
            self._leading(op.output.dims[0], 1),
        )
        if part is not None and not is_added:
            b = self._matrix(op.right, op.right_view[1], right, (0, 1))
            self._gemm(op, a, *self._columns_of(op, b, below, high, size))
        mirror(ops, op.output.element, out, size, low, high)

    def _gemv(self, op: Product, m: MatrixOperand, x: MatrixOperand, stride: Dim, out: ir.Value) -> None:
        if adds_rows(op):
            distance, step = (self.size(1 if s is None else s) for s in (m.columns, stride))
            width = m.taken if m.taken is not None else self.size(m.height)
            sums = RowSums(self.ops, op.output.element, self.size(m.width), width, m.pointer, distance, x.pointer, step)
            sums.emit(out, accumulate=op.init is not None)
            return
        flag, leading = self._layout(m)
        rows, columns = self._rows(m), self._int(m.width)
        if flag == _TRANS:
            rows, columns = columns, rows
        self._call(
            op,
            "gemv",
            self._int(_ROW_MAJOR),
            self._int(flag),
            rows,
            columns,
            self._scale(op, 1.0),
            m.pointer,
            leading,
            x.pointer,
            self._leading(stride, 1),
            self._scale(op, 0.0 if op.init is None else 1.0),
            out,
            self._int(1),
        )

    def _columns_part(
        self, op: Product, a: MatrixOperand, b: MatrixOperand, out: ir.Value, low: ir.Value, high: ir.Value
    ) -> None:
        """Some columns of a product, the rest of a division apart."""
        ops = self.ops
        rest = ops.create("arith.remui", ops.i64, ops.subtract(high, low), ops.constant(ELEMENTS))
        if not isinstance(op.output.dims[0], int):
            # With many rows, these are divided, and all columns are one call.
            few = ops.less(self.size(op.output.dims[0]), ops.constant(2 * ROWS))
            rest = ops.select(few, rest, ops.constant(0))
        end = ops.subtract(high, rest)
        self._gemm(op, a, *self._columns_of(op, b, out, low, end))
        self._gemm(op, a, *self._columns_of(op, b, out, end, high))

    def _gemv_part(self, op: Product, m: MatrixOperand, x: MatrixOperand, out: ir.Value) -> None:
        """Some elements of a product, the rest of a division apart."""
        ops = self.ops
        assert m.taken is not None, "it is a part"
        rest = ops.create("arith.remui", ops.i64, m.taken, ops.constant(ELEMENTS))
        whole = ops.subtract(m.taken, rest)
        self._gemv(op, replace(m, taken=whole), x, x.rows, out)
        start = ops.offset(m.pointer, ops.mul(whole, self.size(m.rows)), op.left.element)
        behind = ops.offset(out, whole, op.output.element)
        self._gemv(op, replace(m, pointer=start, taken=rest), x, x.rows, behind)

    def _call(self, op: Product, function: str, *operands: ir.Value) -> None:
        kind = "s" if isinstance(op.output.element, ir.F32Type) else "d"
        name = f"scipy_cblas_{kind}{function}"
        self.declare(name, [operand.type for operand in operands])
        self.ops.call(name, operands)


def emit_product(
    ops: Ops,
    step: Product,
    sizes: Sizes,
    pointer: Callable[[Buffer], ir.Value],
    declare: Callable[[str, list[ir.Type]], None],
    parts: Mapping[bool, Range] = MappingProxyType({}),
) -> None:
    """Emit a product at the current insertion point; `ProductEmitter` explains the arguments.

    ``parts``: by `Division.columns`, what is computed; without an entry, everything.
    """
    emit_sizes(step, sizes)
    ProductEmitter(
        ops, lambda d: sizes.value(d, ir.InsertionPoint.current), lambda t: pointer(buffer_of(t)), declare
    ).emit(step, parts.get(False), parts.get(True))


def emit_sizes(op: Product, sizes: Sizes) -> None:
    """Emit the sizes that a product needs, before the loop that contains the call."""
    point = ir.InsertionPoint.current
    for dim in (0, 1, *op.output.dims, *op.left.dims, *op.right.dims):
        sizes.value(dim, point)
    for _, offset in (op.left_view, op.right_view):
        for coefficient in (*offset.terms.values(), offset.const):
            sizes.value(coefficient, point)
    if op.kind == "batch_matmul":
        sizes.value(_matrix_size(op), point)


def _matrix_size(op: Product) -> Dim:
    """Elements of one matrix of the result."""
    return op.output.dims[-2] * op.output.dims[-1]
