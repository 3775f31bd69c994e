"""Schedule -> loops: a module with one function per step and the entry function.

Nests take bare pointers that do not alias one another, the bounds of loops that may be divided, and
every size; the entry function unpacks the slots (`lowering.abi`) and runs the steps in order.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from mlir import ir

from ...dialect.errors import LoweringError
from ...dialect.mlir.rewrite import walk
from ..linalg.element import LENGTH, RARE
from ..schedule import affine as ix
from ..schedule.block_steps import BlockStep
from ..schedule.blocks import Blocks
from ..schedule.graph import Buffer, Compute, Product, Source
from ..schedule.groups import Group
from ..schedule.in_place import shared_in_nest
from ..schedule.memory import buffer_of
from ..schedule.nests import Nest
from ..schedule.panels import Panels
from ..schedule.scheduling import Schedule
from .cblas import Range, emit_product
from .chunk_calls import ChunkEmitter
from .few_columns import sum_in_blocks
from .in_order import settle_sums
from .index_sets import split_loops
from .iteration import BodyEmitter
from .lengths import compare_squares
from .loop_ops import EXPANDED, IN_ORDER, IN_PLACE, Ops, Sizes, noalias
from .nest import NestEmitter
from .rare import version_loops
from .reciprocals import hoist_reciprocals
from .row_blocks import emit_blocks
from .steps import StepFunction, buffers_of
from .strips import strip_short_rows
from .unroll import unroll_short_loops
from .value_emitter import ValueEmitter

_KINDS = {Product: "product", Nest: "nest", Blocks: "blocks", Panels: "panels"}  # in the names of functions
_DIALECTS = ("func", "arith", "math", "scf", "llvm", "ub")


def emit_module(
    schedule: Schedule,
    *,
    in_place: bool = False,
    slow_subnormals: bool = False,
    fused: bool = False,
    exact: bool = False,
) -> tuple[ir.Module, str]:
    """Emit a schedule as loops, in the current context.

    Returns the module and the name of the entry function.

    ``in_place``: True = outputs may alias inputs, as `schedule.in_place` allows.
    `math.expand` explains ``slow_subnormals`` and ``fused``. ``exact``: every operation is rounded:
    no product is fused with a sum, no quotient computed by a reciprocal.
    """
    for dialect in _DIALECTS:
        _ = ir.Context.current.dialects[dialect]
    with ir.Location.unknown():
        module = ir.Module.create()
        emitter = _ModuleEmitter(schedule, module, in_place, Ops(slow_subnormals, fused), exact)
        emitter.run()
        if exact:
            _round_all(module)
    return module, emitter.entry


def _round_all(module: ir.Module) -> None:
    """Allow no operation to be computed otherwise than as it stands."""
    rounded = ir.Attribute.parse("#arith.fastmath<none>")

    def rounds(op: ir.Operation) -> ir.WalkResult:
        if "fastmath" in op.attributes:
            op.attributes["fastmath"] = rounded
        return ir.WalkResult.ADVANCE

    module.operation.walk(rounds)


class _ModuleEmitter:
    def __init__(self, schedule: Schedule, module: ir.Module, in_place: bool, ops: Ops, exact: bool) -> None:
        self.in_place, self.exact = in_place, exact
        self.schedule, self.graph, self.module = schedule, schedule.graph, module
        self.ops = ops
        self.entry = f"{self.graph.name}_entry"
        self.pointers: dict[Buffer, ir.Value] = {}
        self.declared: set[str] = set()
        self.names: list[str] = [*self.graph.symbols, *self.graph.strides, *self.graph.opaque]
        self.chunks = ChunkEmitter(ops, module, self._define_internal, self.names)

    def run(self) -> None:
        function = self._define(self.entry, [self.ops.pointer], [None])
        block = function.regions[0].blocks[0]
        functions: list[StepFunction] = []
        with ir.InsertionPoint(block):
            names = self._unpack(block)
            self.sizes = Sizes(self.ops, names)
            for number, step in enumerate(self.schedule.steps):
                name = f"{self.graph.name}_{_KINDS[type(step)]}{number}"
                if step.chunks is None and isinstance(step, Product):
                    emit_product(self.ops, step, self.sizes, self._address, self._declare)
                    continue
                function = StepFunction(name, step, buffers_of(step))
                functions.append(function)
                self._call(function)
            ir.Operation.create("func.return")
        for function in functions:
            self._step(function)

    # --- functions -----------------------------------------------------------------------------

    def _function(self, name: str, types: list[ir.Type], **attributes: ir.Attribute) -> Any:
        """A ``func.func`` without results and, so far, without a body."""
        type_ = ir.TypeAttr.get(ir.FunctionType.get(types, []))
        signature = {"sym_name": ir.StringAttr.get(name), "function_type": type_}
        return ir.Operation.create("func.func", attributes={**signature, **attributes}, regions=1)

    def _define(self, name: str, types: list[ir.Type], attributes: Sequence[ir.Attribute | None] = ()) -> ir.Operation:
        """A function whose body is to be emitted; an argument may have an attribute."""
        attributes = attributes or [None] * len(types)
        shown = ir.ArrayAttr.get([a or ir.DictAttr.get({}) for a in attributes])
        with ir.InsertionPoint(self.module.body):
            function = self._function(name, types, arg_attrs=shown)
        function.regions[0].blocks.append(*types)
        return function

    def _define_internal(
        self, name: str, types: list[ir.Type], attributes: Sequence[ir.Attribute | None] = ()
    ) -> ir.Operation:
        """A function that only this module calls."""
        function = self._define(name, types, attributes)
        function.attributes["llvm.linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")
        return function

    def _declare(self, name: str, types: list[ir.Type]) -> None:
        """Declare a function of a library."""
        if name not in self.declared:
            self.declared.add(name)
            with ir.InsertionPoint.at_block_begin(self.module.body):
                self._function(name, types, sym_visibility=ir.StringAttr.get("private"))

    def _step(self, step: StepFunction) -> None:
        """Add the function of a step: it takes pointers, the ranges of divided loops, sizes."""
        if isinstance(step.step, Nest):
            self._nest(step.name, step.step, step.buffers, step.ranges)
        else:
            function, pointers, parts, names, _ = self._step_function(step.name, step.buffers, ranges=step.ranges)
            with ir.InsertionPoint(function.regions[0].blocks[0]):
                sizes = Sizes(self.ops, names)
                if isinstance(step.step, Product):
                    divided = [choice.columns for choice in step.chunks.choices]
                    emit_product(
                        self.ops,
                        step.step,
                        sizes,
                        pointers.__getitem__,
                        self._declare,
                        dict(zip(divided, parts, strict=True)),
                    )
                else:
                    self._blocks(step, step.step, sizes, pointers, parts[0])
                ir.Operation.create("func.return")
        if step.step.chunks is not None:
            self.chunks.part(step)

    def _step_function(
        self, name: str, buffers: Sequence[Buffer], shared: Collection[Buffer] = (), ranges: int = 1, more: int = 0
    ) -> tuple[Any, dict[Buffer, ir.Value], list[Range], dict[str, ir.Value], list[ir.Value]]:
        """A function of pointers, ``more`` words, so many ranges of iterations, and sizes.

        The pointers of ``shared`` may alias one another. Returns the function, its pointers, its
        ranges, its sizes by name, and the words.
        """
        scalars = [self.ops.i64] * (more + 2 * ranges + len(self.names))
        function = self._define_internal(
            name,
            [self.ops.pointer] * len(buffers) + scalars,
            [None if b in shared else noalias() for b in buffers] + [None] * len(scalars),
        )
        arguments = list(function.regions[0].blocks[0].arguments)
        pointers = dict(zip(buffers, arguments, strict=False))
        words, rest = arguments[len(buffers) :][:more], arguments[len(buffers) + more :]
        bounds, sizes = rest[: 2 * ranges], rest[2 * ranges :]
        parts = list(zip(bounds[::2], bounds[1::2], strict=True))
        return function, pointers, parts, dict(zip(self.names, sizes, strict=True)), words

    def _nest(self, name: str, nest: Nest, buffers: Sequence[Buffer], ranges: int = 1) -> None:
        """Add the function of a nest; one that runs on blocks also takes the number of a matrix."""
        ops = self.ops
        shared = shared_in_nest(self.schedule, nest) if self.in_place else set[Buffer]()
        in_block = nest.group.aligned is not None
        function, pointers, parts, names, words = self._step_function(name, buffers, shared, ranges, int(in_block))
        if shared:
            function.attributes[IN_PLACE] = ir.UnitAttr.get()
        if _is_tiny(nest):
            function.attributes["passthrough"] = ir.Attribute.parse(_NARROW)
        block = function.regions[0].blocks[0]
        divided = dict(zip(nest.divided, parts, strict=False))
        matrix = words[0] if in_block else None
        NestEmitter(ops, self.graph, nest, block, pointers, names, divided, matrix).run()
        with ir.InsertionPoint(block):
            ir.Operation.create("func.return")
        self._rewrite(function, {n: names[n] for n in self.graph.symbols}, may_unroll=not nest.places)

    def _rewrite(self, function: ir.Operation, symbols: dict[str, ir.Value], *, may_unroll: bool) -> None:
        """Rewrite the loops of a nest. Most nests hold nothing of what some of the rewrites look for."""
        ops, operations, marks = self.ops, set[str](), set[str]()
        for op in walk(function):
            operations.add(op.name)
            marks.update(op.attributes)
        if "arith.cmpi" in operations:
            split_loops(ops, function, symbols)
        if LENGTH in marks:
            compare_squares(function)
        is_unrolled = may_unroll and unroll_short_loops(ops, function)
        if is_unrolled:
            sum_in_blocks(ops, function)
        if is_unrolled or EXPANDED in marks or IN_ORDER in marks:
            settle_sums(ops, function, self.exact)
        if "arith.divf" in operations and not self.exact:
            hoist_reciprocals(ops, function)
        if RARE in marks:
            version_loops(ops, function)
        strip_short_rows(ops, function)

    def _blocks(
        self, function: StepFunction, step: BlockStep, sizes: Sizes, pointers: dict[Buffer, ir.Value], part: Range
    ) -> None:
        names = {group: f"{function.name}_nest{number or ''}" for number, group in enumerate(step.nests)}

        def call(group: Group, matrix: ir.Value, rows: Range) -> None:
            arguments = [pointers[b] for b in buffers_of(step.nests[group])]
            self.ops.call(names[group], [*arguments, matrix, *rows, *(sizes.names[n] for n in self.names)])

        emit_blocks(self.ops, step, sizes, pointers.__getitem__, self._declare, part, call)
        for group, nest in step.nests.items():
            self._nest(names[group], nest, buffers_of(nest))

    # --- entry ---------------------------------------------------------------------------------

    def _unpack(self, block: ir.Block) -> dict[str, ir.Value]:
        """Read the slots; returns sizes and run-time strides by name."""
        ops, graph = self.ops, self.graph
        slots = block.arguments[0]
        place = 0
        for tensor in graph.inputs:
            assert isinstance(tensor.producer, Source)
            buffer = tensor.producer.buffer
            self.pointers[buffer] = self._slot(slots, place) if buffer.scalar else self._pointer(slots, place)
            place += 1
        for tensor in graph.outputs:
            self.pointers[buffer_of(tensor)] = self._pointer(slots, place)
            place += 1
        workspace = self._pointer(slots, place) if self.schedule.offsets else None
        place += 1
        names = {}
        for name in [*graph.symbols, *graph.strides]:
            names[name] = ops.load(self._slot(slots, place), ops.i64)
            place += 1
        self._opaque_sizes(block, names)
        sizes = Sizes(ops, names)
        point = ir.InsertionPoint.current
        for buffer, offset in self.schedule.offsets.items():
            assert workspace is not None
            self.pointers[buffer] = ops.offset(workspace, sizes.value(offset, point), ops.i8)
        return names

    def _opaque_sizes(self, block: ir.Block, names: dict[str, ir.Value]) -> None:
        if not self.graph.opaque:
            return
        evaluator = ValueEmitter(self.ops, self.graph, block, self.pointers, names)
        for name, value in self.graph.opaque.items():
            scalars = BodyEmitter(evaluator, _NO_OP, (), {})
            names[name] = self.ops.cast_index(scalars.captured(value), self.ops.i64)

    def _slot(self, slots: ir.Value, place: int) -> ir.Value:
        return self.ops.offset(slots, self.ops.constant(place), self.ops.i64)

    def _pointer(self, slots: ir.Value, place: int) -> ir.Value:
        return self.ops.load(self._slot(slots, place), self.ops.pointer)

    def _call(self, function: StepFunction) -> None:
        if function.step.chunks is not None:
            for buffer in (*function.buffers, *function.memory):
                self._address(buffer)
            self.chunks.launch(function, self.pointers, self.sizes)
            return
        if isinstance(function.step, BlockStep):
            extent = function.step.extent
        else:
            assert isinstance(function.step, Nest)
            (extent,) = [loop.extent for loop in function.step.divided] or [1]
        low, high = (self.sizes.value(d, ir.InsertionPoint.current) for d in (0, extent))
        self.ops.call(
            function.name,
            [*map(self._address, function.buffers), low, high, *(self.sizes.names[n] for n in self.names)],
        )

    def _address(self, buffer: Buffer) -> ir.Value:
        address = self.pointers.get(buffer)
        if address is None:
            if buffer.kind != "constant":
                raise LoweringError(f"{buffer} is never allocated")
            address = self.pointers[buffer] = self._global(buffer)
        return address

    def _global(self, buffer: Buffer) -> ir.Value:
        name = f"{self.graph.name}_{buffer.name}"
        type_ = _array_type(buffer)
        with ir.InsertionPoint.at_block_begin(self.module.body):
            ir.Operation.create(
                "llvm.mlir.global",
                attributes={
                    "sym_name": ir.StringAttr.get(name),
                    "global_type": ir.TypeAttr.get(type_),
                    "value": buffer.value,
                    "constant": ir.UnitAttr.get(),
                    "linkage": ir.Attribute.parse("#llvm.linkage<internal>"),
                    "addr_space": ir.IntegerAttr.get(self.ops.i32, 0),
                    "alignment": ir.IntegerAttr.get(self.ops.i64, 64),
                },
                regions=1,
            )
        return self.ops.create("llvm.mlir.addressof", self.ops.pointer, global_name=ir.FlatSymbolRefAttr.get(name))


def _is_tiny(nest: Nest) -> bool:
    """True if it is known that no member has many iterations."""
    counts = (ix.product(g.extent for g in nest.group.loops[op]) for op in nest.group.members)
    return all(isinstance(n, int) and n <= _TINY for n in counts)


def _array_type(buffer: Buffer) -> ir.Type:
    text = str(buffer.element)
    for dim in reversed(buffer.dims):
        text = f"array<{dim} x {text}>"
    return ir.Type.parse(f"!llvm.{text}" if buffer.dims else text)


# A single instruction of 512 bits lowers the clock of some CPUs for what comes after, by more than
# so few iterations can gain.
_TINY = 256
_NARROW = '[["prefer-vector-width", "256"], ["min-legal-vector-width", "0"]]'
_NO_OP: Any = Compute("sizes", (), (), [], [], [], [], None)  # type: ignore[arg-type]
