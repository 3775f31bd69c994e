"""The operations that one thread of a kernel runs: a copy of operations of a bufferised function.

Copies have nothing of LLVM's dialect, no views and no complex numbers: an access is one of bare
memory, at an index that is computed from the place in the view and in the array.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from mlir import ir

from ....dialect.errors import LoweringError
from ....dialect.ir.size_algebra import sym_max, sym_min
from ....dialect.ir.symbolic import Dim
from ....dialect.mlir.context import loc_of
from ....dialect.mlir.nesting import is_inside
from ....dialect.mlir.rewrite import ops_in, walk
from ...buffers.sharing.rounds import base_of, is_private
from ...buffers.sharing.work import emit_count
from ...linalg.loop_builder import ASSERT
from ...schedule import affine as ix
from ..launch_plan import Launch
from .loop_kernel import LoopKernel, PairInMemory
from .loop_steps import PLACES, VIEWS, Rounds, Step

THREADS = 128
BLOCKS = 1 << 16  # a loop over the grid does the rest
BLOCKS_OF_UNKNOWN = 1024  # for loops of which only the kernel knows how many rounds they have
_OVERFLOWS = {"sadd": "arith.addi", "ssub": "arith.subi", "smul": "arith.muli"}
_LESS = 2  # of arith.cmpi
_NOT_EQUAL = 1


class Thread:
    """Emits a step of a function into its kernel.

    ``pure``: values of the function's own block that each kernel may compute for itself.
    """

    def __init__(self, kernel: LoopKernel, pure: Collection[ir.Value]) -> None:
        self.kernel, self.ops, self.pure = kernel, kernel.ops, pure
        self.values: dict[ir.Value, Any] = {}  # of the function -> what they are in the kernel

    def run(self, step: Step) -> Launch:
        """Emit everything; returns the kernel's launch."""
        if isinstance(step, Rounds):
            blocks = self._rounds(step.loops)
            return self.kernel.finish(blocks, THREADS)
        with ir.InsertionPoint(self.kernel.body):
            for op in step.operations:
                self._prepare(op)
                self._copy(op)
        return self.kernel.finish(1, 1)

    # --- rounds ----------------------------------------------------------------------------------

    def _rounds(self, loops: Sequence[ir.Operation]) -> Dim:
        """Emit a loop over the grid; returns how many blocks that is."""
        ops, outermost = self.ops, loops[0]
        arrays = (v for op in walk(outermost) for v in op.operands if _is_array(v))
        own = [a for a in dict.fromkeys(map(base_of, arrays)) if is_private(a, outermost)]
        large = [a for a in own if a.owner.name == "memref.view"]
        for array in (a for a in own if a not in large):
            self.kernel.own(array)
        rounds = self._count(loops)
        with ir.InsertionPoint(self.kernel.body), outermost.location:
            self._prepare(outermost)
            bounds = [[self._of(v) for v in list(loop.operands)[:3]] for loop in loops]
            counts = [emit_count(*range_) for range_ in bounds]
            total = counts[0]
            for count in counts[1:]:
                total = ops.mul(total, count)
            threads = ops.constant(THREADS)
            first = ops.add(ops.mul(ops.position("block_id", "x"), threads), ops.position("thread_id", "x"))
            step = ops.mul(ops.position("grid_dim", "x"), threads)
            for array in large:
                if rounds is None:
                    why = "it is not known how many rounds need a temporary that is no small array"
                    raise LoweringError(f"on a GPU, {why}", loc=loc_of(outermost.location))
                copies = sym_min(rounds, BLOCKS * THREADS)
                self.kernel.share(array, copies, first, ops.least(total, step))
            grid = ops.loop(first, total, step, [])
        with ir.InsertionPoint(grid.body), outermost.location:
            rest = grid.induction_variable
            places: list[ir.Value] = []
            for count in reversed(counts[1:]):
                places.insert(0, ops.digit(rest, count, True))
                rest = ops.digit(rest, count, False)
            for loop, (low, _, by), place in zip(loops, bounds, [rest, *places], strict=True):
                index = loop.regions[0].blocks[0].arguments[0]
                self.values[index] = ops.add(low, ops.mul(place, by))
            for loop in loops:
                *inside, _end = ops_in(loop.regions[0].blocks[0])
                for op in inside:
                    if op not in loops:
                        self._copy(op)
            ir.Operation.create("scf.yield")
        if rounds is None:
            return BLOCKS_OF_UNKNOWN
        return sym_min(ix.ceil_div(rounds, THREADS), BLOCKS)

    def _count(self, loops: Sequence[ir.Operation]) -> Dim | None:
        """The number of rounds that nested loops have; None = only the kernel knows."""
        total: Dim = 1
        for loop in loops:
            low, high, step = (self.kernel.memory.dim(v) for v in list(loop.operands)[:3])
            if low is None or high is None or not isinstance(step, int):
                return None
            total = total * sym_max(ix.ceil_div(high - low, step), 0)
        return total

    # --- what is needed from outside -------------------------------------------------------------

    def _prepare(self, op: ir.Operation) -> None:
        """Compute what an operation needs of the function's own block."""
        for inner in (op, *walk(op)):
            for value in inner.operands:
                if not is_inside(value, op):
                    self._compute(value)

    def _compute(self, value: ir.Value) -> None:
        if value in self.values:
            return
        if isinstance(value, ir.BlockArgument):
            if not isinstance(value.type, ir.MemRefType):
                self.values[value] = self.kernel.size(self.kernel.memory.symbols[value])
            return
        op = value.owner.operation
        if op.name in ("memref.alloca", "memref.view"):
            return
        if value not in self.pure:
            raise LoweringError("on a GPU, a number is read of what a loop has computed", loc=loc_of(op.location))
        self._prepare(op)
        if op.name not in VIEWS:
            self._copy(op)

    def _of(self, value: ir.Value) -> Any:
        return self.values[value]

    # --- copies ----------------------------------------------------------------------------------

    def _copy(self, op: ir.Operation) -> None:
        with op.location:
            special = _SPECIAL.get(op.name)
            if special is not None:
                special(self, op)
            elif op.name.startswith("llvm.intr.") and op.name.endswith(".with.overflow"):
                self._overflow(op)
            elif op.name.startswith(("arith.", "math.")):
                self._number(op)
            elif op.name not in PLACES:
                raise LoweringError(f"on a GPU, a round has {op.name}", loc=loc_of(op.location))

    def _number(self, op: ir.Operation) -> None:
        operands = [self._of(v) for v in op.operands]
        if any(isinstance(v, PairInMemory) for v in operands):
            if op.name != "arith.select":
                raise LoweringError(f"{op.name} of complex numbers", loc=loc_of(op.location))
            condition, a, b = operands
            parts = (self.ops.select(condition, x, y) for x, y in zip(a, b, strict=True))
            self.values[op.results[0]] = PairInMemory(*parts)
            return
        if op.name.startswith("math."):
            value = self.ops.expand(op.name[5:], operands)
            if value is not None:
                self.values[op.results[0]] = value
                return
        copy = op.clone()
        for number, value in enumerate(operands):
            copy.operands[number] = value
        self.values[op.results[0]] = copy.results[0]

    def _overflow(self, op: ir.Operation) -> None:
        """A sum, difference or product, and whether it has left its type."""
        ops, type_ = self.ops, op.operands[0].type
        a, b = (self._of(v) for v in op.operands)
        name = op.name.split(".")[2]
        if name not in _OVERFLOWS:
            raise LoweringError(f"on a GPU, a round has {op.name}", loc=loc_of(op.location))
        zero = ops.constant(0, type_)
        if name == "smul":
            product = ir.Operation.create("arith.mulsi_extended", results=[type_, type_], operands=[a, b])
            total, high = product.results
            sign = ops.create("arith.shrsi", type_, total, ops.constant(type_.width - 1, type_))
            overflow = self._compared(_NOT_EQUAL, high, sign)
        else:
            total = ops.create(_OVERFLOWS[name], type_, a, b)
            # A sum leaves its type where it has the sign of neither operand, a difference where
            # the operands have different signs and it has not that of the first.
            other = total if name == "sadd" else a
            one = ops.create("arith.xori", type_, a, total)
            two = ops.create("arith.xori", type_, b, other)
            overflow = self._compared(_LESS, ops.create("arith.andi", type_, one, two), zero)
        self.values[op.results[0]] = (total, overflow)

    def _compared(self, predicate: int, a: ir.Value, b: ir.Value) -> ir.Value:
        number = ir.IntegerAttr.get(self.ops.i64, predicate)
        return self.ops.create("arith.cmpi", self.ops.i1, a, b, predicate=number)

    def _extract(self, op: ir.Operation) -> None:
        (place,) = ir.DenseI64ArrayAttr(op.attributes["position"])
        self.values[op.results[0]] = self._of(op.operands[0])[place]

    def _assert(self, op: ir.Operation) -> None:
        self.kernel.may_end = True
        copy = op.clone()
        copy.operands[0] = self._of(op.operands[0])

    def _same(self, op: ir.Operation) -> None:
        self.values[op.results[0]] = self._of(op.operands[0])

    # --- complex numbers -------------------------------------------------------------------------

    def _pair(self, op: ir.Operation) -> None:
        self.values[op.results[0]] = PairInMemory(*map(self._of, op.operands))

    def _part(self, op: ir.Operation) -> None:
        self.values[op.results[0]] = self._of(op.operands[0])[op.name == "complex.im"]

    def _constant(self, op: ir.Operation) -> None:
        part = op.results[0].type.element_type
        parts = ir.ArrayAttr(op.attributes["value"])
        self.values[op.results[0]] = PairInMemory(
            *(self.ops.create("arith.constant", part, value=value) for value in parts)
        )

    # --- memory ----------------------------------------------------------------------------------

    def _load(self, op: ir.Operation) -> None:
        base, indices = self._place(op.operands[0], list(op.operands)[1:])
        self.values[op.results[0]] = self.kernel.load(base, indices)

    def _store(self, op: ir.Operation) -> None:
        base, indices = self._place(op.operands[1], list(op.operands)[2:])
        self.kernel.store(self._of(op.operands[0]), base, indices)

    def _size(self, op: ir.Operation) -> None:
        size = self.kernel.memory.dim(op.results[0])
        if size is None:
            raise LoweringError("on a GPU, a round has memref.dim", loc=loc_of(op.location))
        self.values[op.results[0]] = self.kernel.size(size)

    def _place(self, array: ir.Value, where: Sequence[ir.Value]) -> tuple[ir.Value, list[ir.Value]]:
        """The array that a view is of, and where in it an element of the view is."""
        indices = [self._of(v) for v in where]
        while not isinstance(array, ir.BlockArgument) and array.owner.name in VIEWS:
            op = array.owner.operation
            if op.name == "memref.subview":
                indices = self._in_whole(op, indices)
            array = op.operands[0]
        return array, indices

    def _in_whole(self, op: ir.Operation, indices: Sequence[ir.Value]) -> list[ir.Value]:
        ops, counts = self.ops, list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
        operands = list(op.operands)[1:]
        open_ = ir.ShapedType.get_dynamic_size()

        def numbers(name: str, operands: Sequence[ir.Value]) -> list[ir.Value]:
            rest = iter(operands)
            return [
                self._of(next(rest)) if n == open_ else ops.constant(n)
                for n in ir.DenseI64ArrayAttr(op.attributes[name])
            ]

        offsets = numbers("static_offsets", operands[: counts[1]])
        steps = numbers("static_strides", operands[counts[1] + counts[2] :])
        if len(indices) < len(offsets):
            raise LoweringError("on a GPU, a view leaves out axes", loc=loc_of(op.location))
        return [
            ops.add(offset, ops.mul(index, step)) for offset, index, step in zip(offsets, indices, steps, strict=True)
        ]

    # --- control flow ----------------------------------------------------------------------------

    def _control(self, op: ir.Operation) -> None:
        """A loop or a branch, in which complex numbers are two floats each."""
        operands = _parts(self._of(v) for v in op.operands)
        types = [t for result in op.results for t in _types(result.type)]
        new_op = ir.Operation.create(op.name, results=types, operands=operands, regions=len(op.regions))
        for region, copy in zip(op.regions, new_op.regions, strict=True):
            for block in region.blocks:
                block_types = [t for a in block.arguments for t in _types(a.type)]
                inner = copy.blocks.append(*block_types)
                self._bind(block.arguments, inner.arguments)
                with ir.InsertionPoint(inner):
                    for inside in ops_in(block):
                        self._copy(inside)
        self._bind(op.results, new_op.results)

    def _bind(self, old: Sequence[ir.Value], new: Sequence[ir.Value]) -> None:
        rest = iter(new)
        for value in old:
            parts = [next(rest) for _ in _types(value.type)]
            self.values[value] = PairInMemory(*parts) if len(parts) > 1 else parts[0]

    def _terminate(self, op: ir.Operation) -> None:
        ir.Operation.create(op.name, operands=_parts(self._of(v) for v in op.operands))


_SPECIAL: dict[str, Callable[[Thread, ir.Operation], None]] = {
    "memref.load": Thread._load,
    "memref.store": Thread._store,
    "memref.dim": Thread._size,
    "complex.create": Thread._pair,
    "complex.re": Thread._part,
    "complex.im": Thread._part,
    "complex.constant": Thread._constant,
    "llvm.extractvalue": Thread._extract,
    "llvm.intr.expect": Thread._same,
    "scf.for": Thread._control,
    "scf.if": Thread._control,
    "scf.while": Thread._control,
    "scf.yield": Thread._terminate,
    "scf.condition": Thread._terminate,
    ASSERT: Thread._assert,
}


def _is_array(value: ir.Value) -> bool:
    return isinstance(value.type, ir.MemRefType)


def _parts(values: Any) -> list[ir.Value]:
    return [part for v in values for part in (v if isinstance(v, PairInMemory) else (v,))]


def _types(type_: ir.Type) -> list[ir.Type]:
    return [type_.element_type] * 2 if isinstance(type_, ir.ComplexType) else [type_]
