"""Steps that several threads share: the launch of a step in chunks, and what a chunk calls.

The entry function stores pointers and sizes in an array, and hands that array to `run_chunks` with
a function of the form ``part(array, begin, end)``. The pool of threads (`lowering.cpu.kernel_threads`) calls
that function with the chunks; without a pool, `run_chunks` does so itself, in order.

Nests are divided by iterations, products and steps in blocks by the numbers of their chunks: the
last chunk of a product may be larger than the others, and a thread may take several as one
(`schedule.library_calls`, `Chunks.joined`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from mlir import ir

from ...dialect.ir.size_algebra import bounds
from ..schedule import affine as ix
from ..schedule.block_steps import Window
from ..schedule.chunks import Merged
from ..schedule.graph import Buffer
from ..schedule.memory import buffer_of
from ..schedule.nests import Scratch
from ..thread_pool import LAUNCH, POOL, WORDS
from .grains import Grains, ceiling
from .loop_ops import OVER_BLOCKS, Ops, Sizes, noalias
from .steps import StepFunction, memory_of

RUN = "profuse_run_chunks"
_IN_REGISTERS = 64  # accumulators of a result; more are merged row by row
_SUPPORT = f"""
llvm.mlir.global external @{POOL}() {{addr_space = 0 : i32}} : !llvm.array<{WORDS} x i64>
llvm.func internal @{RUN}(
    %part: !llvm.ptr, %array: !llvm.ptr, %count: i64, %grain: i64) attributes {{no_inline}} {{
  %zero = llvm.mlir.constant(0 : i64) : i64
  %unit = llvm.mlir.constant(1 : i64) : i64
  %least = llvm.intr.smax(%grain, %unit) : (i64, i64) -> i64
  %all = llvm.icmp "sge" %least, %count : i64
  llvm.cond_br %all, ^whole, ^several
^whole:
  llvm.call %part(%array, %zero, %count) : !llvm.ptr, (!llvm.ptr, i64, i64) -> ()
  llvm.return
^several:
  %pool = llvm.mlir.addressof @{POOL} : !llvm.ptr
  %slot = llvm.getelementptr %pool[{LAUNCH}] : (!llvm.ptr) -> !llvm.ptr, i64
  %launch = llvm.load %slot atomic acquire {{alignment = 8 : i64}} : !llvm.ptr -> !llvm.ptr
  %null = llvm.mlir.zero : !llvm.ptr
  %alone = llvm.icmp "eq" %launch, %null : !llvm.ptr
  %any = llvm.icmp "eq" %grain, %zero : i64
  %step = llvm.select %any, %count, %grain : i1, i64
  llvm.cond_br %alone, ^next(%zero : i64), ^shared
^shared:
  llvm.call %launch(%pool, %part, %array, %count, %grain)
    : !llvm.ptr, (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64) -> ()
  llvm.return
^next(%begin: i64):
  %sum = llvm.add %begin, %step : i64
  %end = llvm.intr.smin(%sum, %count) : (i64, i64) -> i64
  llvm.call %part(%array, %begin, %end) : !llvm.ptr, (!llvm.ptr, i64, i64) -> ()
  %more = llvm.icmp "slt" %end, %count : i64
  llvm.cond_br %more, ^next(%end : i64), ^done
^done:
  llvm.return
}}
"""


def add_run_chunks(module: ir.Module) -> None:
    """Add the function `RUN`, which hands chunks to the pool or else runs them itself."""
    text = ir.Module.parse(_SUPPORT, module.context)
    for view in text.body.operations:
        view.operation.clone(ir.InsertionPoint.at_block_begin(module.body))


class ChunkEmitter:
    """Emits launches of steps into the entry function, and the functions that these need.

    Args:
        module: where functions are added.
        define: adds a function of this module: its name, and types and attributes of arguments.
        names: names of the sizes that every step takes, in order.
    """

    def __init__(self, ops: Ops, module: ir.Module, define: Callable[..., ir.Operation], names: Sequence[str]) -> None:
        self.ops, self.module, self.define, self.names = ops, module, define, names
        self._has_support = False

    def launch(self, step: StepFunction, pointers: dict[Buffer, ir.Value], sizes: Sizes) -> None:
        """Run a step in chunks, at the current insertion point.

        Args:
            pointers: of the step's buffers, and of the memory that the chunks need.
            sizes: sizes in the entry function.
        """
        ops, chunks = self.ops, step.chunks
        self._support()
        chosen = Grains(ops, chunks, sizes).chosen()
        grain, count = chosen.grain, chosen.count
        values = [
            *(pointers[b] for b in (*step.buffers, *step.memory)),
            *(sizes.names[n] for n in self.names),
            grain,
            chosen.number,
            count,
        ]
        array = ops.alloca(len(values), ops.i64, 8)
        for number, value in enumerate(values):
            ops.store(value, ops.offset(array, ops.constant(number), ops.i64))
        type_ = ir.FunctionType.get([ops.pointer, ops.i64, ops.i64], [])
        name = ir.FlatSymbolRefAttr.get(step.part)
        function = ops.create("func.constant", type_, value=name)
        address = ops.create("builtin.unrealized_conversion_cast", ops.pointer, function)
        ir.Operation.create(
            "llvm.call",
            operands=[address, array, count, chosen.taken],
            attributes={
                "callee": ir.FlatSymbolRefAttr.get(RUN),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([4, 0]),
                "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
            },
        )
        for merged in chunks.merged:
            is_needed = self._is_one_of(chosen.number, chunks.needing(merged), len(chunks.choices))
            if is_needed is None:
                self._merge(merged, pointers, sizes, count, grain)
                continue
            branch = ir.Operation.create("scf.if", operands=[is_needed], regions=2)
            with ir.InsertionPoint(branch.regions[0].blocks.append()):
                self._merge(merged, pointers, Sizes(ops, sizes.names), count, grain)
                ir.Operation.create("scf.yield")

    def _support(self) -> None:
        if not self._has_support:
            self._has_support = True
            add_run_chunks(self.module)

    def _is_one_of(self, chosen: ir.Value, numbers: list[int], count: int) -> ir.Value | None:
        """True where the chosen number is one of these; None = it always is."""
        ops = self.ops
        if len(numbers) == count:
            return None
        condition = ops.constant(0, ops.i1)
        for number in numbers:
            condition = ops.create("arith.ori", ops.i1, condition, ops.equal(chosen, ops.constant(number)))
        return condition

    # --- what a chunk calls ----------------------------------------------------------------------

    def part(self, step: StepFunction) -> None:
        """Add the function that runs one chunk of a step."""
        ops, chunks = self.ops, step.chunks
        function = self.define(step.part, [ops.pointer, ops.i64, ops.i64])
        # LLVM knows the only caller, and would inline a copy of the step into each of its calls.
        function.attributes["passthrough"] = ir.ArrayAttr.get([ir.StringAttr.get("noinline")])
        block = function.regions[0].blocks[0]
        array, begin, end = block.arguments
        with ir.InsertionPoint(block):
            place = iter(range(2**31))

            def load(type_: ir.Type) -> ir.Value:
                return ops.load(ops.offset(array, ops.constant(next(place)), ops.i64), type_)

            pointers = {buffer: load(ops.pointer) for buffer in step.buffers}
            memory = [load(ops.pointer) for _ in chunks.in_memory]
            names = {name: load(ops.i64) for name in self.names}
            grain, chosen, count = load(ops.i64), load(ops.i64), load(ops.i64)
            number = begin if chunks.by_number else ops.create("arith.divsi", ops.i64, begin, grain)
            sizes = Sizes(ops, names)
            for owner, start in zip(chunks.in_memory, memory, strict=True):
                step_by = ops.mul(number, sizes.value(ix.product(owner.dims), _here()))
                mine, target = ops.offset(start, step_by, owner.element), _target(owner)
                is_needed = self._is_one_of(chosen, chunks.needing(owner), len(chunks.choices))
                if is_needed is not None:
                    mine = ops.select(is_needed, mine, pointers[target])
                pointers[target] = mine
            ranges: list[ir.Value] = []
            for k, choice in enumerate(chunks.choices):
                low, high, whole = begin, end, sizes.value(choice.extent, _here())
                if chunks.by_number:
                    low = ops.mul(begin, grain)
                    high = ops.select(ops.equal(end, count), whole, ops.mul(end, grain))
                if len(chunks.choices) > 1:
                    is_divided = ops.equal(chosen, ops.constant(k))
                    low = ops.select(is_divided, low, ops.constant(0))
                    high = ops.select(is_divided, high, whole)
                ranges += [low, high]
            ops.call(step.name, [*(pointers[b] for b in step.buffers), *ranges, *names.values()])
            ir.Operation.create("func.return")

    # --- merging -------------------------------------------------------------------------------

    def _merge(
        self, merged: Merged, pointers: dict[Buffer, ir.Value], sizes: Sizes, count: ir.Value, grain: ir.Value
    ) -> None:
        """Merge the accumulators of all chunks, in order, into the result."""
        ops = self.ops
        chunks = ops.binary("max", ceiling(ops, count, grain), ops.constant(1))
        size = sizes.value(ix.product(merged.dims), _here())
        target, source = pointers[_target(merged)], pointers[memory_of(merged)]
        most = (bounds(dim)[1] for dim in memory_of(merged).dims[1:])
        few = prod(most) <= _IN_REGISTERS
        self._merger(merged, few)
        ops.call(_merger_name(merged, few), [target, source, size, chunks])

    def _merger(self, merged: Merged, few: bool) -> None:
        name = _merger_name(merged, few)
        if any(_symbol(v) == name for v in self.module.body.operations):
            return
        ops, element = self.ops, merged.element
        function = self.define(name, [ops.pointer, ops.pointer, ops.i64, ops.i64], [noalias(), noalias(), None, None])
        block = function.regions[0].blocks[0]
        target, source, size, chunks = block.arguments
        with ir.InsertionPoint(block):
            zero, one = ops.constant(0), ops.constant(1)
            if few:
                self._by_element(merged, target, source, size, chunks)
            else:
                self._loop(
                    zero,
                    size,
                    lambda j: ops.store(
                        ops.load(ops.offset(source, j, element), element), ops.offset(target, j, element)
                    ),
                )
                rows = self._loop(one, chunks, lambda c: self._add_row(merged, target, source, size, c))
                rows.attributes[OVER_BLOCKS] = ir.UnitAttr.get()
            ir.Operation.create("func.return")

    def _loop(self, low: ir.Value, high: ir.Value, body: Callable[[ir.Value], object]) -> ir.Operation:
        loop = self.ops.loop(low, high, self.ops.constant(1), [])
        with ir.InsertionPoint(loop.body):
            body(loop.induction_variable)
            ir.Operation.create("scf.yield")
        return loop.operation

    def _add_row(self, merged: Merged, target: ir.Value, source: ir.Value, size: ir.Value, chunk: ir.Value) -> None:
        ops, element = self.ops, merged.element
        row = ops.offset(source, ops.mul(chunk, size), element)

        def add(j: ir.Value) -> None:
            place = ops.offset(target, j, element)
            part = ops.load(ops.offset(row, j, element), element)
            ops.store(ops.create(merged.combiner.op, element, ops.load(place, element), part), place)

        self._loop(ops.constant(0), size, add)

    def _by_element(self, merged: Merged, target: ir.Value, source: ir.Value, size: ir.Value, chunks: ir.Value) -> None:
        """Sums of f32 are added up in f64."""
        ops, element = self.ops, merged.element
        is_wide = merged.combiner.is_float_sum and isinstance(element, ir.F32Type)
        type_ = ops.f64 if is_wide else element

        def load(c: ir.Value, j: ir.Value) -> ir.Value:
            value = ops.load(ops.offset(source, ops.add(ops.mul(c, size), j), element), element)
            return ops.create("arith.extf", type_, value) if is_wide else value

        def merge(j: ir.Value) -> None:
            one = ops.constant(1)
            loop = ops.loop(one, chunks, one, [load(ops.constant(0), j)])
            with ir.InsertionPoint(loop.body):
                total = ops.create(merged.combiner.op, type_, loop.inner_iter_args[0], load(loop.induction_variable, j))
                ir.Operation.create("scf.yield", operands=[total])
            total = loop.results[0]
            value = ops.create("arith.truncf", element, total) if is_wide else total
            ops.store(value, ops.offset(target, j, element))

        self._loop(ops.constant(0), size, merge)


def _target(owner: Merged | Scratch | Window) -> Buffer:
    """The buffer for which a chunk substitutes its part of the memory."""
    return buffer_of(owner.tensor) if isinstance(owner, Merged) else memory_of(owner)


def _merger_name(merged: Merged, few: bool) -> str:
    op = merged.combiner.op.replace(".", "_")
    return f"merge_{op}_{merged.element}_{'few' if few else 'rows'}"


def _symbol(view: ir.OpView) -> str:
    return ir.StringAttr(view.operation.attributes["sym_name"]).value


def _here() -> ir.InsertionPoint:
    return ir.InsertionPoint.current
