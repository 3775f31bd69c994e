"""Products in loops: vectors by loops of their own, large matrices by the library.

Before bufferisation a product is a generic with the mark `PRODUCT`, which reads its operands where
they lie, transposed or not. On memory, the order of its loops follows from the strides: the
innermost one walks along rows, or keeps a sum in a register.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from mlir import ir

from ...dialect.dataclass import dataclass
from ...dialect.errors import LoweringError
from ...dialect.mlir.rewrite import walk
from ..emit.loop_ops import Ops
from ..linalg.element import emit
from ..linalg.products import LOOPS
from .signature import private_function

PRODUCT = "profuse.product"
SMALL = 4096
"""Multiplications up to which loops are as fast as a call of the library."""

_CONTRACT = "#arith.fastmath<contract>"
_SUM = "#arith.fastmath<reassoc,contract>"  # what NumPy sums in any order
_BLOCK = 4  # rows or columns of a matrix that are dealt with at a time
_ROW_MAJOR, _NO_TRANS, _TRANS = 101, 111, 112


# --- on tensors -------------------------------------------------------------------------------


def mark_products(func: ir.Operation) -> None:
    """Make marked generics of products, which read transposed operands where these lie."""
    for op in [op for op in walk(func) if op.name in LOOPS]:
        left, right, out = LOOPS[op.name]
        order = [*out, "k"]
        place = {name: ir.AffineExpr.get_dim(n) for n, name in enumerate(order)}
        factors = [([place[d] for d in axes], v) for axes, v in zip((left, right), list(op.operands)[:2], strict=True)]
        factors = [_untransposed(exprs, value) for exprs, value in factors]
        exprs = [*(e for e, _ in factors), [place[d] for d in out]]
        maps = [ir.AffineMapAttr.get(ir.AffineMap.get(len(order), 0, e)) for e in exprs]
        kinds = ["reduction" if d == "k" else "parallel" for d in order]
        into = op.operands[2]
        with ir.InsertionPoint(op), op.location:
            generic = ir.Operation.create(
                "linalg.generic",
                results=[into.type],
                operands=[*(v for _, v in factors), into],
                attributes={
                    "indexing_maps": ir.ArrayAttr.get(maps),
                    "iterator_types": ir.ArrayAttr.get(
                        [ir.Attribute.parse(f"#linalg.iterator_type<{k}>") for k in kinds]
                    ),
                    "operandSegmentSizes": ir.DenseI32ArrayAttr.get([2, 1]),
                    PRODUCT: ir.UnitAttr.get(),
                },
                regions=1,
            )
            element = ir.RankedTensorType(into.type).element_type
            block = generic.regions[0].blocks.append(element, element, element)
            with ir.InsertionPoint(block):
                a, b, acc = block.arguments
                ir.Operation.create("linalg.yield", operands=[_add(acc, _mul(a, b), _SUM)])
        op.results[0].replace_all_uses_with(generic.results[0])
        producers = [v.owner for v in list(op.operands)[:2] if not isinstance(v, ir.BlockArgument)]
        op.erase()
        for copy in dict.fromkeys(producers):  # one that nothing reads any more would still be made
            if copy.name == "linalg.generic" and not any(True for v in copy.results for _ in v.uses):
                copy.erase()


def _untransposed(exprs: list[ir.AffineExpr], value: ir.Value) -> tuple[list[ir.AffineExpr], ir.Value]:
    """The place where an operand is read, and the array, which may be that of which the operand permutes the axes."""
    copy = None if isinstance(value, ir.BlockArgument) else value.owner
    if copy is None or copy.name != "linalg.generic" or len(copy.operands) != 2:
        return exprs, value
    maps = [ir.AffineMapAttr(m).value for m in ir.ArrayAttr(copy.attributes["indexing_maps"])]
    body = list(copy.regions[0].blocks[0].operations)
    is_copy = len(body) == 1 and body[0].operation.operands[0] == copy.regions[0].blocks[0].arguments[0]
    if not (is_copy and maps[0].is_permutation and _is_identity(maps[1])):
        return exprs, value
    inside = [exprs[ir.AffineDimExpr(e).position] for e in maps[0].results]
    return inside, copy.operands[0]


def _is_identity(map_: ir.AffineMap) -> bool:
    return map_ == ir.AffineMap.get_identity(map_.n_dims)


# --- on memory --------------------------------------------------------------------------------


def lower_products(module: ir.Module, func: ir.Operation, on_host: bool = True) -> int:
    """Make loops, and calls of the library, of marked products; returns how many call it.

    ``on_host``: a thread sums up several rows at a time; else each row is for a thread of its own.
    """
    calls = 0
    for op in [op for op in walk(func) if PRODUCT in op.attributes]:
        with ir.InsertionPoint(op), op.location:
            calls += _Product(op, module, on_host).lower()
        op.erase()
    return calls


@dataclass(frozen=True)
class _Array:
    """Memory that a product reads or writes, and the loop along each of its axes."""

    value: ir.Value
    axes: tuple[int, ...]

    @property
    def type(self) -> ir.MemRefType:
        return ir.MemRefType(self.value.type)

    def stride(self, loop: int) -> int | None:
        """The stride along a loop; 0 = it does not move, None = it is known only at run time."""
        if loop not in self.axes:
            return 0
        stride = self.type.get_strides_and_offset()[0][self.axes.index(loop)]
        return None if stride == ir.ShapedType.get_dynamic_stride_or_offset() else stride


class _Product:
    def __init__(self, op: ir.Operation, module: ir.Module, on_host: bool) -> None:
        self.ops, self.module, self.on_host = Ops(), module, on_host
        maps = [ir.AffineMapAttr(m).value for m in ir.ArrayAttr(op.attributes["indexing_maps"])]
        axes = [tuple(ir.AffineDimExpr(e).position for e in m.results) for m in maps]
        self.arrays = [_Array(v, a) for v, a in zip(op.operands, axes, strict=True)]
        self.left, self.right, self.out = self.arrays
        self.element = self.out.type.element_type
        self.k = len(self.out.axes)  # the loop over which is summed comes last
        self.sizes = {loop: self._size(loop) for loop in range(self.k + 1)}

    def lower(self) -> int:
        if self.k > 2:
            raise LoweringError("a loop multiplies batches of matrices")
        if self.k == 0:
            self._summed([{}])
            return 0
        if self.k == 1:
            matrix = self.left if len(self.left.axes) == 2 else self.right
            if matrix.stride(self.k) != 1 and matrix.stride(0) == 1:
                self._by_columns()
            elif self.on_host and matrix.stride(self.k) == 1:
                self._along_rows()
            else:
                self._loop(0, {}, lambda at: self._summed([at]))
            return 0
        return self._matrices()

    # --- loops -------------------------------------------------------------------------------

    def _size(self, loop: int) -> ir.Value:
        array = next(a for a in self.arrays if loop in a.axes)
        axis = array.axes.index(loop)
        if array.type.shape[axis] != ir.ShapedType.get_dynamic_size():
            return self._index(array.type.shape[axis])
        return emit("memref.dim", self.ops.index, array.value, self._index(axis))

    def _index(self, value: int) -> ir.Value:
        return self.ops.constant(value, self.ops.index)

    def _loop(self, loop: int, at: dict[int, ir.Value], body: Callable[[dict[int, ir.Value]], None]) -> None:
        op = ir.Operation.create("scf.for", operands=[self._index(0), self.sizes[loop], self._index(1)], regions=1)
        block = op.regions[0].blocks.append(self.ops.index)
        with ir.InsertionPoint(block):
            body({**at, loop: block.arguments[0]})
            ir.Operation.create("scf.yield")

    def _by_columns(self) -> None:
        """Add columns of the matrix to the result, some at a time: it is read and stored once."""
        self._blocks(self.k, lambda each: self._loop(0, {}, partial(self._added_up, each)))

    def _along_rows(self) -> None:
        """Sum up rows of the matrix, some at a time: the vector is read once for all of them."""
        self._blocks(0, lambda each: self._summed([{0: row} for row in each]))

    def _blocks(self, loop: int, body: Callable[[Sequence[ir.Value]], None]) -> None:
        """Loops over blocks of rounds of a loop, and over what is left of them."""
        ops, size = self.ops, self.sizes[loop]
        left_over = emit("arith.remui", ops.index, size, self._index(_BLOCK))
        whole = emit("arith.subi", ops.index, size, left_over)
        for lower, upper, step in ((self._index(0), whole, _BLOCK), (whole, size, 1)):
            op = ir.Operation.create("scf.for", operands=[lower, upper, self._index(step)], regions=1)
            block = op.regions[0].blocks.append(ops.index)
            with ir.InsertionPoint(block):
                first = block.arguments[0]
                body([emit("arith.addi", ops.index, first, self._index(n)) for n in range(step)])
                ir.Operation.create("scf.yield")

    def _added_up(self, each: Sequence[ir.Value], at: dict[int, ir.Value]) -> None:
        """Add some products of elements to an element of the result, in their order."""
        total = self._element(self.out, at)
        for k in each:
            inside = {**at, self.k: k}
            product = _mul(self._element(self.left, inside), self._element(self.right, inside))
            total = _add(total, product, _CONTRACT)
        self._store(total, at)

    def _element(self, array: _Array, at: dict[int, ir.Value]) -> ir.Value:
        return emit("memref.load", self.element, array.value, *(at[n] for n in array.axes))

    def _store(self, value: ir.Value, at: dict[int, ir.Value]) -> None:
        where = [at[n] for n in self.out.axes]
        ir.Operation.create("memref.store", operands=[value, self.out.value, *where])

    def _summed(self, places: Sequence[dict[int, ir.Value]]) -> None:
        """Add to elements of the result what they are sums of, in registers."""
        starts = [self._element(self.out, at) for at in places]
        op = ir.Operation.create(
            "scf.for",
            results=[self.element] * len(places),
            regions=1,
            operands=[self._index(0), self.sizes[self.k], self._index(1), *starts],
        )
        block = op.regions[0].blocks.append(self.ops.index, *[self.element] * len(places))
        index, *sums = block.arguments
        with ir.InsertionPoint(block):
            added = []
            for at, total in zip(places, sums, strict=True):
                inside = {**at, self.k: index}
                product = _mul(self._element(self.left, inside), self._element(self.right, inside))
                added.append(_add(total, product, _SUM))
            ir.Operation.create("scf.yield", operands=added)
        for at, total in zip(places, op.results, strict=True):
            self._store(total, at)

    def _added(self, at: dict[int, ir.Value]) -> None:
        """Add one product of elements to an element of the result."""
        product = _mul(self._element(self.left, at), self._element(self.right, at))
        self._store(_add(self._element(self.out, at), product, _CONTRACT), at)

    # --- matrices ----------------------------------------------------------------------------

    def _matrices(self) -> int:
        """The product of two matrices: by the library, if it is large and rows lie as it asks."""
        rows = 0 if 0 in self.left.axes else 1
        columns = 1 - rows
        static = [
            array.type.shape[array.axes.index(loop)]
            for array, loop in ((self.left, rows), (self.left, self.k), (self.right, columns))
        ]
        is_static = all(n != ir.ShapedType.get_dynamic_size() for n in static)
        few = is_static and static[0] * static[1] * static[2] <= SMALL
        a, b = self._layout(self.left, rows, self.k), self._layout(self.right, self.k, columns)
        c = self._layout(self.out, rows, columns)
        is_float = isinstance(self.element, (ir.F32Type, ir.F64Type))
        if few or not is_float or a is None or b is None or c is None or c[0] != _NO_TRANS:
            self._by_rows(rows, columns)
            return 0
        large = self._large(static, (a, b, c), rows, columns)
        branch = ir.Operation.create("scf.if", operands=[large], regions=2)
        for region, body in zip(branch.regions, (self._gemm, None), strict=True):
            with ir.InsertionPoint(region.blocks.append()):
                if body is None:
                    self._by_rows(rows, columns)
                else:
                    body(rows, columns, (a, b, c))
                ir.Operation.create("scf.yield")
        return 1

    def _by_rows(self, rows: int, columns: int) -> None:
        inner, outer = (rows, columns) if self.out.stride(columns) != 1 else (columns, rows)
        self._loop(outer, {}, lambda at: self._loop(self.k, at, lambda at: self._loop(inner, at, self._added)))

    def _layout(self, array: _Array, rows: int, columns: int) -> tuple[int, int] | None:
        """Transposition, and the axis that gives the leading dimension; None = neither fits."""
        if array.stride(columns) == 1:
            return _NO_TRANS, array.axes.index(rows)
        if array.stride(rows) == 1:
            return _TRANS, array.axes.index(columns)
        return None

    def _large(self, static: Sequence[int], layouts: Sequence[tuple[int, int]], rows: int, columns: int) -> ir.Value:
        """True where a call of the library pays, and no row of a matrix begins within another one."""
        ops = self.ops
        count = [self.sizes[n] for n in (rows, self.k, columns)]
        work = emit("arith.muli", ops.index, emit("arith.muli", ops.index, *count[:2]), count[2])
        condition = self._above(work, self._index(SMALL))
        widths = ((rows, self.k), (self.k, columns), (rows, columns))
        for array, (flag, axis), (m, n) in zip(self.arrays, layouts, widths, strict=True):
            width = self.sizes[n if flag == _NO_TRANS else m]
            fits = self._above(self._stride(array, axis), emit("arith.subi", ops.index, width, self._index(1)))
            condition = emit("arith.andi", ops.i1, condition, fits)
        return condition

    def _above(self, a: ir.Value, b: ir.Value) -> ir.Value:
        greater = ir.IntegerAttr.get(self.ops.i64, 4)
        return emit("arith.cmpi", self.ops.i1, a, b, predicate=greater)

    def _stride(self, array: _Array, axis: int) -> ir.Value:
        return self._parts(array)[1][axis]

    def _parts(self, array: _Array) -> tuple[ir.Value, list[ir.Value]]:
        """Offset and strides, in elements."""
        index, rank = self.ops.index, array.type.rank
        base = ir.MemRefType.get([], array.type.element_type)
        op = ir.Operation.create(
            "memref.extract_strided_metadata",
            operands=[array.value],
            results=[base, index, *[index] * rank, *[index] * rank],
        )
        results = list(op.results)
        return results[1], results[2 + rank :]

    def _gemm(self, rows: int, columns: int, layouts: Sequence[tuple[int, int]]) -> None:
        ops = self.ops
        pointers = [self._pointer(array) for array in self.arrays]
        (a, _), (b, _), _ = layouts
        leading = [self._int(self._stride(array, axis)) for array, (_, axis) in zip(self.arrays, layouts, strict=True)]
        one = ops.float_constant(1.0, self.element)
        operands = [
            self._flag(_ROW_MAJOR),
            self._flag(a),
            self._flag(b),
            self._int(self.sizes[rows]),
            self._int(self.sizes[columns]),
            self._int(self.sizes[self.k]),
            one,
            pointers[0],
            leading[0],
            pointers[1],
            leading[1],
            one,
            pointers[2],
            leading[2],
        ]
        name = f"scipy_cblas_{'s' if isinstance(self.element, ir.F32Type) else 'd'}gemm"
        _declare(self.module, name, [v.type for v in operands])
        ops.call(name, operands)

    def _flag(self, value: int) -> ir.Value:
        return self.ops.constant(value, self.ops.i32)

    def _int(self, value: ir.Value) -> ir.Value:
        return emit("arith.index_cast", self.ops.i32, value)

    def _pointer(self, array: _Array) -> ir.Value:
        ops = self.ops
        start = emit("memref.extract_aligned_pointer_as_index", ops.index, array.value)
        bits = 4 if isinstance(self.element, ir.F32Type) else 8
        offset = emit("arith.muli", ops.index, self._parts(array)[0], self._index(bits))
        address = emit("arith.addi", ops.index, start, offset)
        return emit("llvm.inttoptr", ops.pointer, emit("arith.index_cast", ops.i64, address))


def _declare(module: ir.Module, name: str, types: Sequence[ir.Type]) -> None:
    """Declare a function of the library, once."""
    for view in module.body.operations:
        attributes = view.operation.attributes
        if "sym_name" in attributes and ir.StringAttr(attributes["sym_name"]).value == name:
            return
    with ir.InsertionPoint.at_block_begin(module.body):
        private_function(name, types)


def _mul(a: ir.Value, b: ir.Value) -> ir.Value:
    return emit("arith.mulf", a.type, a, b, fastmath=ir.Attribute.parse(_CONTRACT))


def _add(a: ir.Value, b: ir.Value, flags: str) -> ir.Value:
    return emit("arith.addf", a.type, a, b, fastmath=ir.Attribute.parse(flags))
