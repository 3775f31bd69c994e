"""Loops with independent rounds in functions of their own, of which threads run chunks.

A loop becomes a function of what it uses and of the rounds from ``begin`` to ``end``, and the call
of another one, which launches it (`launches`).
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from ....dialect.mlir.nesting import is_inside
from ....dialect.mlir.rewrite import walk
from ...emit.chunk_calls import add_run_chunks
from ...emit.loop_ops import Ops
from ...linalg.element import emit
from ...linalg.loop_builder import ASSERT
from ...thread_pool import CHUNK, POOL, WORK
from ..signature import private_function
from .launches import LAUNCH
from .repeats import ends_surely
from .rounds import INDEPENDENT, ONE_THREAD, is_noted, is_private
from .work import emit_count, emit_most_work, emit_work, known_work

_VIEWS = ("memref.subview", "memref.cast")
_TWICE = 200  # operations of a loop that may be code twice
_LEAST = 2 * CHUNK  # work of a loop that is worth two chunks


def shared_loops(func: ir.Operation) -> list[ir.Operation]:
    """The loops of a function that threads may share, and that may take long enough for that."""
    return [op for op in walk(func) if INDEPENDENT in op.attributes and _is_long(op)]


def reasons_for_one_thread(func: ir.Operation) -> tuple[str, ...]:
    """The reasons for which loops that may take long are not shared, nor any in them, each reason once."""
    shared = shared_loops(func)
    reasons = [
        ir.StringAttr(op.attributes[ONE_THREAD]).value
        for op in walk(func)
        if ONE_THREAD in op.attributes and _is_long(op) and not any(inner in shared for inner in walk(op))
    ]
    return tuple(dict.fromkeys(reasons))


def _is_long(loop: ir.Operation) -> bool:
    """True if a loop may take as long as two chunks.

    A vector within the rounds of another loop is taken to be short.
    """
    work = known_work(loop) if loop.name == "scf.for" else None
    if work is None and _outermost(loop) != loop:
        return any(op.name in ("scf.for", "scf.while") for op in walk(loop))
    return work is None or work >= _LEAST


def _outermost(loop: ir.Operation) -> ir.Operation:
    """The outermost loop that a loop is, or is in."""
    op = loop
    while op.name != "func.func":
        if op.name in ("scf.for", "scf.while"):
            loop = op
        op = op.parent.operation
    return loop


def share_rounds(module: ir.Module, func: ir.Operation, flag: ir.Value | None) -> list[str]:
    """Make functions of loops that threads may share; returns their names.

    ``flag`` is the memory in which a void run says so; a function that may be void has that as its
    first argument.
    """
    name = ir.StringAttr(func.attributes["sym_name"]).value
    loops = shared_loops(func)
    if loops:
        add_run_chunks(module)
    # What a loop uses alone is seen while there is no copy of it.
    outlined = [_Outlined(module, func, loop, f"{name}_rounds{k}", flag) for k, loop in enumerate(loops)]
    of_outer: dict[ir.Operation, list[ir.Operation]] = {}
    for loop in loops:
        if known_work(loop) is None:
            of_outer.setdefault(_outermost(loop), []).append(loop)
    undecided = [loop for outer, inner in of_outer.items() if not _decide_before(outer, inner) for loop in inner]
    for one in outlined:
        with one.loop.location:
            one.make(may_be_short=one.loop in undecided)
    return [one.name for one in outlined]


def _decide_before(outer: ir.Operation, loops: Sequence[ir.Operation]) -> bool:
    """Have an outermost loop run as it is where none of some loops in it would be shared.

    Not even a branch takes time in its rounds then. False if it is too much code to be there twice.
    """
    if sum(1 for _ in walk(outer)) > _TWICE:
        return False
    work = emit_most_work(loops, outer)
    with ir.InsertionPoint(outer), outer.location:
        branch = ir.Operation.create(
            "scf.if", results=[r.type for r in outer.results], operands=[_is_enough(work)], regions=2
        )
        for result, replaced in zip(outer.results, branch.results, strict=True):
            result.replace_all_uses_with(replaced)
        launched, alone = (region.blocks.append() for region in branch.regions)
        with ir.InsertionPoint(alone):
            ir.Operation.create("scf.yield", operands=list(outer.clone().results))
        with ir.InsertionPoint(launched):
            end = ir.Operation.create("scf.yield", operands=list(outer.results))
        outer.move_before(end)
    return True


def _is_enough(work: ir.Value) -> ir.Value:
    """True where work is enough for two chunks."""
    ops = Ops()
    name = ir.FlatSymbolRefAttr.get(POOL)
    pool = ops.create("llvm.mlir.addressof", ops.pointer, global_name=name)
    chunk = ops.load(ops.offset(pool, ops.constant(WORK), ops.i64), ops.f64)
    least = emit("arith.mulf", ops.f64, chunk, ops.float_constant(2.0, ops.f64))
    return ops.compare("oge", work, least)


class _Outlined:
    """One loop on its way into a function."""

    def __init__(
        self, module: ir.Module, func: ir.Operation, loop: ir.Operation, name: str, flag: ir.Value | None
    ) -> None:
        self.module, self.func, self.loop, self.name = module, func, loop, name
        outside = _used(loop)
        self.noted = [v for v in outside if is_noted(v, loop)]
        self.private = [v for v in outside if v not in self.noted and is_private(v, loop)]
        may_end = self.noted or any(op.name == ASSERT for op in walk(loop))
        self.flag = flag if may_end else None
        sizes = [v for p in self.private for v in list(p.owner.operands)[2:]]
        values = [v for v in (*outside, *sizes) if v not in (*self.noted, *self.private)]
        first = [] if self.flag is None else [self.flag]
        self.given = list(dict.fromkeys([*first, *(v for n in values for v in _behind(n))]))
        self.copied = [v for v in values if _is_copied(v)]

    def make(self, may_be_short: bool) -> None:
        """Put calls in the place of the loop; ``may_be_short``: it may not be worth a launch."""
        index, f64 = ir.IndexType.get(), ir.F64Type.get()
        types = [v.type for v in self.given]
        body = self._function(self.name, [*types, index, index])
        self._function(self.name + LAUNCH, [*types, index, f64], declared=True)
        with ir.InsertionPoint(self.loop):
            count, work = emit_count(*list(self.loop.operands)[:3]), emit_work(self.loop)
            if may_be_short:
                self._launch_if_long(count, work)
            else:
                self._call(self.name + LAUNCH, count, work)
        self._fill(body)

    def _launch_if_long(self, count: ir.Value, work: ir.Value) -> None:
        branch = ir.Operation.create("scf.if", operands=[_is_enough(work)], regions=2)
        launched, alone = (region.blocks.append() for region in branch.regions)
        with ir.InsertionPoint(launched):
            self._call(self.name + LAUNCH, count, work)
            ir.Operation.create("scf.yield")
        with ir.InsertionPoint(alone):
            self._call(self.name, _index(0), count)
            ir.Operation.create("scf.yield")

    def _call(self, name: str, *operands: ir.Value) -> None:
        """Call the function of the loop, or the one that launches it."""
        if self.flag is not None:
            ir.Operation.create("memref.store", operands=[_byte(0), self.flag])
        ir.Operation.create(
            "func.call", operands=[*self.given, *operands], attributes={"callee": ir.FlatSymbolRefAttr.get(name)}
        )
        if self.flag is not None:
            _end_unless_zero(self.flag)

    def _function(self, name: str, types: Sequence[ir.Type], declared: bool = False) -> ir.Block:
        with ir.InsertionPoint(self.module.body):
            function = private_function(name, types)
        return None if declared else function.regions[0].blocks.append(*types)

    def _fill(self, block: ir.Block) -> None:
        """Move the loop into its function, where it goes from round to round of a chunk."""
        *arguments, begin, end = block.arguments
        new = dict(zip(self.given, arguments, strict=True))
        with ir.InsertionPoint(block):
            if self.flag is not None:
                _end_unless_zero(new[self.flag])  # nobody needs the rounds of a void run
            for value in self.copied:
                self._copy(value, new)
            for memory in (*self.private, *self.noted):
                new[memory] = self._memory(memory, new)
            for cell in self.noted:
                ir.Operation.create("memref.store", operands=[_byte(0), new[cell]])
            if self.flag is not None:
                self._watch(new[self.flag])
            low, high, step = (new[v] for v in list(self.loop.operands)[:3])
            index = ir.IndexType.get()
            first, behind = (emit("arith.addi", index, low, emit("arith.muli", index, n, step)) for n in (begin, end))
            behind = emit("arith.minsi", index, behind, high)
            mark = ir.Operation.create("func.return")
        self.loop.move_before(mark)
        for op in walk(self.loop):
            for number, value in enumerate(op.operands):
                if value in new:
                    op.operands[number] = new[value]
        for number, value in enumerate((first, behind, step)):
            self.loop.operands[number] = value
        with ir.InsertionPoint(mark):
            for memory in self.private:
                if new[memory].owner.name == "memref.alloc":
                    ir.Operation.create("memref.dealloc", operands=[new[memory]])
            for cell in self.noted:
                _end_unless_zero(new[cell])

    def _memory(self, memory: ir.Value, new: dict[ir.Value, ir.Value]) -> ir.Value:
        """Memory of a chunk in place of some on the stack, or of a part of the workspace."""
        op = memory.owner.operation
        if op.name == "memref.alloca":
            return op.clone().results[0]
        sizes = [new[v] for v in list(op.operands)[2:]]
        segments = ir.DenseI32ArrayAttr.get([len(sizes), 0])
        return emit("memref.alloc", memory.type, *sizes, operandSegmentSizes=segments)

    def _watch(self, flag: ir.Value) -> None:
        """Have while loops that might not end look whether another round has made the run void."""
        loops = [op for op in walk(self.loop) if op.name == "scf.while" and not ends_surely(op)]
        if not loops:
            return
        ops = Ops()
        address = emit("memref.extract_aligned_pointer_as_index", ops.index, flag)
        pointer = emit("llvm.inttoptr", ops.pointer, ops.cast_index(address, ops.i64))
        for op in loops:
            with ir.InsertionPoint.at_block_begin(op.regions[0].blocks[0]):
                monotonic = ir.IntegerAttr.get(ops.i64, 2)
                byte = emit("llvm.load", ops.i8, pointer, ordering=monotonic, alignment=ir.IntegerAttr.get(ops.i64, 1))
                _end_unless(ops.equal(byte, _byte(0)))

    def _copy(self, value: ir.Value, new: dict[ir.Value, ir.Value]) -> None:
        """Make a constant or a view anew in the function."""
        if value in new:
            return
        op = value.owner.operation
        for operand in op.operands:
            if _is_copied(operand):
                self._copy(operand, new)
        clone = op.clone()
        for number, operand in enumerate(op.operands):
            clone.operands[number] = new[operand]
        new[value] = clone.results[0]


def _used(loop: ir.Operation) -> list[ir.Value]:
    """The values from outside of a loop that it uses, each once."""
    inside = (v for op in walk(loop) for v in op.operands if not is_inside(v, loop))
    return list(dict.fromkeys([*list(loop.operands)[:3], *inside]))


def _is_copied(value: ir.Value) -> bool:
    """True if functions make a value themselves, rather than get it as an argument."""
    if isinstance(value, ir.BlockArgument):
        return False
    return value.owner.name in ("arith.constant", *_VIEWS)


def _behind(value: ir.Value) -> list[ir.Value]:
    """The values that must be given so that a value can be copied."""
    if not _is_copied(value):
        return [value]
    return [v for operand in value.owner.operands for v in _behind(operand)]


def _index(value: int) -> ir.Value:
    index = ir.IndexType.get()
    return emit("arith.constant", index, value=ir.IntegerAttr.get(index, value))


def _byte(value: int) -> ir.Value:
    type_ = ir.IntegerType.get_signless(8)
    return emit("arith.constant", type_, value=ir.IntegerAttr.get(type_, value))


def _end_unless_zero(flag: ir.Value) -> None:
    """End the run here if a byte in memory is not 0."""
    byte = emit("memref.load", ir.IntegerType.get_signless(8), flag)
    _end_unless(Ops().equal(byte, _byte(0)))


def _end_unless(holds: ir.Value) -> None:
    ir.Operation.create(ASSERT, operands=[holds], attributes={"msg": ir.StringAttr.get("void")})
