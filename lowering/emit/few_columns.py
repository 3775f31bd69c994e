"""Sums over many rows of a few columns, in an order that no vectors of a CPU change.

Where a row has become straight code (`emit.unroll`), the loop over rows is the vector's, but for
sums over rows: each addition waits for the one of the row before, and LLVM makes no vectors of such
a loop unless it may add in any order, which would be another one on each CPU. So rows are taken in
blocks: their numbers are put aside, column by column, and are then added up in vectors of our own.
Numbers that are only read, multiplied and added need no block: each row of a step has accumulators.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from ...dialect.dataclass import dataclass
from ...dialect.mlir.nesting import is_inside
from ...dialect.mlir.rewrite import ops_in, walk
from ..schedule.graph import definition
from .loop_ops import IN_ORDER, STRAIGHT, Ops, iterations, literal

BLOCK = 256  # rows
LANES = 16  # accumulators of a column, of a block
MOST = 32  # accumulators of a step
LEAST = 32  # rows; fewer are added one after the other


@dataclass(frozen=True)
class _RowSum:
    """A number that each row adds to one in memory.

    Attributes:
        store: what stores the sum.
        add: the addition.
        number: which of its operands is the number.
        place: the addresses' computations, in the loop, in order; the last result is the address.
    """

    store: ir.Operation
    add: ir.Operation
    number: int
    place: list[ir.Operation]


def sum_in_blocks(ops: Ops, function: ir.Operation) -> None:
    """Take the rows of a function's sums over few columns in blocks."""
    for loop in [op for op in walk(function) if STRAIGHT in op.attributes]:
        sums = _sums(loop)
        if not sums or literal(loop.operands[2]) != 1 or len(loop.results):
            continue
        count = iterations(loop)
        if not _is_cheap(loop):
            _Blocks(ops, function, loop, sums).emit()
        elif count is None or count >= LEAST:
            _Lanes(ops, function, loop, sums).emit()


def _is_cheap(loop: ir.Operation) -> bool:
    """True if a round computes nothing that would be worth a vector by itself."""
    return all(op.name in _CHEAP for op in walk(loop))


def _sums(loop: ir.Operation) -> list[_RowSum]:
    """The sums over the rounds of a loop; none where a round does more with their memory than that.

    Rounds may have accumulators of their own in it, which they begin, add to and read.
    """
    stores = (op for op in ops_in(loop.regions[0].blocks[0]) if op.name == "llvm.store")
    sums = [one for one in (_sum(op, loop) for op in stores) if one]
    places = [one.store.operands[1] for one in sums]
    if any(_is_same(a, b) for k, a in enumerate(places) for b in places[:k]):
        return []
    memory = {_memory(place) for place in places}
    added = {definition(one.add.operands[1 - one.number]) for one in sums}
    added |= {one.store for one in sums}
    for op in walk(loop):
        address = {"llvm.load": 0, "llvm.store": 1}.get(op.name)
        if address is not None and op not in added and _memory(op.operands[address]) in memory:
            return []
    return sums


def _memory(address: ir.Value) -> ir.Value:
    """The operations that an address is computed of."""
    while (op := definition(address)) is not None and op.name == "llvm.getelementptr":
        address = op.operands[0]
    return address


def _sum(store: ir.Operation, loop: ir.Operation) -> _RowSum | None:
    value, address = store.operands
    add, place = definition(value), _fixed(address, loop)
    if add is None or IN_ORDER not in add.attributes or place is None:
        return None
    if sum(1 for _ in value.uses) > 1:
        return None
    for number in range(2):
        load = definition(add.operands[1 - number])
        if load is not None and load.name == "llvm.load" and _is_same(load.operands[0], address):
            return _RowSum(store, add, number, place)
    return None


def _fixed(value: ir.Value, loop: ir.Operation) -> list[ir.Operation] | None:
    """The value that a loop computes of one that is the same in all its rounds; None = it is not."""
    if not is_inside(value, loop):
        return []
    op = definition(value)
    if op is None or op.name not in _ADDRESS:
        return None
    parts = [_fixed(v, loop) for v in op.operands]
    return None if None in parts else [*(o for part in parts if part for o in part), op]


def _is_same(a: ir.Value, b: ir.Value) -> bool:
    """True if two addresses are computed in the same way."""
    one, other = definition(a), definition(b)
    if a == b:
        return True
    if one is None or other is None or one.name != other.name or one.name not in _ADDRESS:
        return False
    same = all(map(_is_same, one.operands, other.operands))
    attributes, others = one.attributes, other.attributes
    return same and {n: attributes[n] for n in attributes} == {n: others[n] for n in others}


class _Lanes:
    """Steps of several rows, each with accumulators of its own, in one loop over rows."""

    def __init__(self, ops: Ops, function: ir.Operation, loop: ir.Operation, sums: Sequence[_RowSum]) -> None:
        self.ops, self.loop, self.sums = ops, loop, sums
        self.rows = 1 << max(MOST // len(sums), 1).bit_length() - 1
        kinds = list(dict.fromkeys(s.add.results[0].type for s in sums))
        with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]), loop.location:
            memory = {t: ops.alloca(self.rows * len(sums), t) for t in kinds}
        self.memory = [memory[s.add.results[0].type] for s in sums]

    def emit(self) -> None:
        """Put the steps before the loop, which keeps the rows left over."""
        ops, loop = self.ops, self.loop
        low, high = list(loop.operands)[:2]
        with ir.InsertionPoint(loop), loop.location:
            count, step = ops.subtract(high, low), ops.constant(self.rows)
            rest = ops.create("arith.remsi", ops.word, count, step)
            is_few = ops.less(count, ops.constant(LEAST))
            whole = ops.select(is_few, low, ops.subtract(high, rest))
            for row in range(self.rows):
                for number, one in enumerate(self.sums):
                    start = ops.float_constant(-0.0, one.add.results[0].type)
                    ops.store(start, self._at(row, number))
            steps = ops.loop(low, whole, step, [])
            with ir.InsertionPoint(steps.body):
                for row in range(self.rows):
                    self._row(row, ops.add(steps.induction_variable, ops.constant(row)))
                ir.Operation.create("scf.yield")
            steps.operation.attributes[STRAIGHT] = ir.UnitAttr.get()
            for number, one in enumerate(self.sums):
                place, type_ = _copied(one), one.add.results[0].type
                total = ops.load(place, type_)
                for row in range(self.rows):
                    part = ops.load(self._at(row, number), type_)
                    total = ops.create("arith.addf", type_, total, part)
                ops.store(total, place)
        loop.operands[0] = whole

    def _at(self, row: int, number: int) -> ir.Value:
        """The place where a row of a step adds up: as the rows lie, so that LLVM makes vectors of them."""
        index = self.ops.constant(row * len(self.sums) + number)
        return self.ops.offset(self.memory[number], index, self.sums[number].add.results[0].type)

    def _row(self, row: int, index: ir.Value) -> None:
        """One of the rows of a step."""
        block = self.loop.regions[0].blocks[0]
        values: dict[ir.Value, ir.Value] = {block.arguments[0]: index}
        for number, one in enumerate(self.sums):
            load = definition(one.add.operands[1 - one.number])
            assert load is not None
            values[load.operands[0]] = values[one.store.operands[1]] = self._at(row, number)
        for view in list(block.operations)[:-1]:
            op = view.operation
            if any(result in values for result in op.results):
                continue
            copy = op.clone(ir.InsertionPoint.current)
            for number, value in enumerate(op.operands):
                copy.operands[number] = values.get(value, value)
            values.update(zip(op.results, copy.results, strict=True))


class _Blocks:
    """The blocks of one loop over rows."""

    def __init__(self, ops: Ops, function: ir.Operation, loop: ir.Operation, sums: Sequence[_RowSum]) -> None:
        self.ops, self.loop, self.sums = ops, loop, sums
        with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]), loop.location:
            self.memory = [ops.alloca(BLOCK, s.add.results[0].type) for s in sums]

    def emit(self) -> None:
        """Replace the loop."""
        ops, loop = self.ops, self.loop
        low, high = list(loop.operands)[:2]
        with ir.InsertionPoint(loop), loop.location:
            blocks = ops.loop(low, high, ops.constant(BLOCK), [])
            with ir.InsertionPoint(blocks.body):
                start = blocks.induction_variable
                end = ops.least(ops.add(start, ops.constant(BLOCK)), high)
                rows = ops.subtract(end, start)
                self._put_aside(start, end)
                self._add_up(rows)
                ir.Operation.create("scf.yield")
        loop.erase()

    def _put_aside(self, start: ir.Value, end: ir.Value) -> None:
        """The loop itself, with numbers put aside in place of being added."""
        ops = self.ops
        copy = self.loop.clone(ir.InsertionPoint.current)
        copy.operands[0], copy.operands[1] = start, end
        block = copy.regions[0].blocks[0]
        index = block.arguments[0]
        for one, memory in zip(_sums(copy), self.memory, strict=True):
            with ir.InsertionPoint(one.store):
                at = ops.offset(memory, ops.subtract(index, start), one.add.results[0].type)
                ops.store(one.add.operands[one.number], at)
            one.store.erase()
            load = definition(one.add.operands[1 - one.number])
            one.add.erase()
            if load is not None and not any(True for _ in load.results[0].uses):
                load.erase()

    def _add_up(self, rows: ir.Value) -> None:
        """Add up a block: whole vectors of rows, the sums of its lanes, then the rows left over."""
        ops = self.ops
        vectors = [ir.VectorType.get([LANES], s.add.results[0].type) for s in self.sums]
        rest = ops.create("arith.remsi", ops.word, rows, ops.constant(LANES))
        is_few = ops.less(rows, ops.constant(LEAST))
        whole = ops.select(is_few, ops.constant(0), ops.subtract(rows, rest))
        zeros = [
            ops.create(
                "arith.constant", v, value=ir.DenseElementsAttr.get_splat(v, ir.FloatAttr.get(v.element_type, -0.0))
            )
            for v in vectors
        ]
        loop = ops.loop(ops.constant(0), whole, ops.constant(LANES), zeros)
        with ir.InsertionPoint(loop.body):
            sums = []
            for vector, memory, total in zip(vectors, self.memory, loop.inner_iter_args, strict=True):
                at = ops.offset(memory, loop.induction_variable, vector.element_type)
                part = ops.create("llvm.load", vector, at)
                sums.append(ops.create("arith.addf", vector, total, part))
            ir.Operation.create("scf.yield", operands=sums)
        places = [_copied(s) for s in self.sums]
        starts = []
        for place, lanes, vector in zip(places, loop.results, vectors, strict=True):
            total = ops.load(place, vector.element_type)
            starts.append(ops.create("arith.addf", total.type, total, self._lanes(lanes)))
        loop = ops.loop(whole, rows, ops.constant(1), starts)
        with ir.InsertionPoint(loop.body):
            sums = []
            for memory, total in zip(self.memory, loop.inner_iter_args, strict=True):
                part = ops.load(ops.offset(memory, loop.induction_variable, total.type), total.type)
                sums.append(ops.create("arith.addf", total.type, total, part))
            ir.Operation.create("scf.yield", operands=sums)
        for place, total in zip(places, loop.results, strict=True):
            ops.store(total, place)

    def _lanes(self, vector: ir.Value) -> ir.Value:
        """The sum of the lanes of a vector: of its halves, of those of these, and so on."""
        ops, type_ = self.ops, ir.VectorType(vector.type)
        width = LANES
        while width > 1:
            width //= 2
            half = ir.VectorType.get([width], type_.element_type)
            parts = [
                ops.create(
                    "llvm.shufflevector", half, vector, vector, mask=ir.DenseI32ArrayAttr.get(list(range(k, k + width)))
                )
                for k in (0, width)
            ]
            vector = ops.create("arith.addf", half, *parts)
        return ops.create("llvm.extractelement", type_.element_type, vector, ops.constant(0))


def _copied(one: _RowSum) -> ir.Value:
    """The address of a sum, outside of the loop."""
    values: dict[ir.Value, ir.Value] = {}
    for op in one.place:
        copy = op.clone(ir.InsertionPoint.current)
        for number, value in enumerate(op.operands):
            copy.operands[number] = values.get(value, value)
        values[op.results[0]] = copy.results[0]
    address = one.store.operands[1]
    return values.get(address, address)


_ADDRESS = ("llvm.getelementptr", "arith.constant", "arith.addi", "arith.muli", "arith.subi")
_CHEAP = (
    *_ADDRESS,
    "llvm.load",
    "llvm.store",
    "scf.yield",
    "scf.for",
    "arith.addf",
    "arith.subf",
    "arith.mulf",
    "arith.negf",
    "arith.extf",
    "arith.truncf",
)
