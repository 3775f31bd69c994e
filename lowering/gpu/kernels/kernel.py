"""One kernel under construction: its parameters, its memory, and the conditions of its launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from mlir import ir

from ....dialect.dataclass import dataclass
from ....dialect.errors import InternalError, LoweringError
from ....dialect.ir.symbolic import Dim, Sym
from ...emit.loop_ops import is_splat
from ...schedule.affine import product
from ...schedule.graph import Buffer, Element, Graph
from ...schedule.memory import element_bytes
from ..launch_plan import Argument, Condition, Launch
from .ops import PRIVATE, SHARED, GpuOps

NARROW = 2**30  # below this, an offset plus a step past the end fits into 32 bits
VECTOR = 16  # bytes of the widest load and store


@dataclass(frozen=True)
class KernelMemory:
    """State that all kernels of a function share.

    Attributes:
        block: the block of the ``gpu.gpu_module``.
        graph: the function.
        offsets: workspace buffer -> byte offset.
    """

    block: ir.Block
    graph: Graph
    offsets: dict[Buffer, Dim]


@dataclass(eq=False)
class Temporary:
    """An array in the workspace that one nest needs; `schedule.scheduling` sets its buffer."""

    element: Element
    dims: tuple[Dim, ...]
    buffer: Buffer | None = None


class Kernel:
    """A ``gpu.func`` over some buffers.

    Args:
        memory: the state that all kernels of the function share.
        name: name of the kernel.
        buffers: the buffers that the kernel accesses.
        block: numbers of threads along x, y and z.
        fast: True = the kernel may need conditions for vectors and 32-bit words, which `conditions`
            collects. False = it uses these only where no condition is needed.
    """

    def __init__(
        self, memory: KernelMemory, name: str, buffers: Sequence[Buffer], block: tuple[int, int, int], fast: bool
    ) -> None:
        self.memory, self.name, self.fast = memory, name, fast
        self.block_size = block
        self.conditions: dict[Condition, None] = {}
        self.ops = GpuOps(self._is_narrow(buffers))
        self.pointers: dict[Buffer, ir.Value] = {}
        self.names: dict[str, ir.Value] = {}
        self.arguments: list[Argument] = []
        self._shared = self._private = 0
        self.dynamic: Dim = 0  # bytes of dynamic shared memory
        self._types: list[ir.Type] = []
        with ir.InsertionPoint(memory.block), ir.Location.unknown():
            self.function = ir.Operation.create(
                "gpu.func", regions=1, attributes={"sym_name": ir.StringAttr.get(name), "gpu.kernel": ir.UnitAttr.get()}
            )
            self.block = self.function.regions[0].blocks.append()
        with ir.InsertionPoint(self.block), ir.Location.unknown():
            self._parameters(buffers)

    # --- parameters ------------------------------------------------------------------------------

    def _parameters(self, buffers: Sequence[Buffer]) -> None:
        ops, graph = self.ops, self.memory.graph
        for buffer in buffers:
            if buffer.kind != "constant":
                self.pointers[buffer] = self._buffer(buffer)
        for name in graph.symbols:
            self.names[name] = ops.cast_index(self._parameter(ops.i64, ("size", name)), ops.word)
        for name, (number, axis) in graph.strides.items():
            stride = self._parameter(ops.i64, ("stride", number, axis))
            self.names[name] = ops.cast_index(stride, ops.word)
        for buffer in buffers:
            if buffer.kind == "constant" and not is_splat(buffer):
                self.pointers[buffer] = self._constant(buffer)

    def _parameter(self, type_: ir.Type, argument: Argument) -> ir.Value:
        self._types.append(type_)
        self.arguments.append(argument)
        return self.block.add_argument(type_, ir.Location.unknown())

    def _buffer(self, buffer: Buffer) -> ir.Value:
        if buffer.scalar:
            return self._scalar(buffer)
        type_ = ir.Type.parse(f"memref<?x{buffer.element}>")
        if buffer.kind == "workspace":
            offset = str(self.memory.offsets[buffer])
            return self._parameter(type_, ("workspace", offset, str(buffer.element)))
        return self._parameter(type_, (buffer.kind, buffer.index))

    def _scalar(self, buffer: Buffer) -> ir.Value:
        ops, element = self.ops, buffer.element
        wide = ops.i64 if isinstance(element, ir.IntegerType) else ops.f64
        value = self._parameter(wide, ("scalar", buffer.index))
        if element == wide:
            return value
        if wide == ops.f64:
            raise LoweringError(f"a Python number stored as {element}")
        return ops.create("arith.trunci", element, value)

    def _constant(self, buffer: Buffer) -> ir.Value:
        """A constant table in the module; kernels share it."""
        name = f"{self.memory.graph.name}_{buffer.name}"
        count = product(buffer.dims)
        type_ = ir.Type.parse(f"memref<{count}x{buffer.element}>")
        tables = [op.operation.attributes for op in self.memory.block.operations]
        if not any(ir.StringAttr(a["sym_name"]).value == name for a in tables):
            flat = np.array(ir.DenseElementsAttr(buffer.value)).reshape(-1)
            values = ir.DenseElementsAttr.get(flat, type=buffer.element)
            with ir.InsertionPoint.at_block_begin(self.memory.block):
                ir.Operation.create(
                    "memref.global",
                    attributes={
                        "sym_name": ir.StringAttr.get(name),
                        "sym_visibility": ir.StringAttr.get("private"),
                        "type": ir.TypeAttr.get(type_),
                        "initial_value": values,
                        "constant": ir.UnitAttr.get(),
                        "alignment": ir.IntegerAttr.get(self.ops.i64, VECTOR),
                    },
                )
        return ir.Operation.create(
            "memref.get_global", results=[type_], attributes={"name": ir.FlatSymbolRefAttr.get(name)}
        ).results[0]

    # --- memory of blocks and threads ------------------------------------------------------------

    def shared(self, count: int, element: ir.Type) -> ir.Value:
        """Shared memory for ``count`` elements."""
        if self._private:
            raise InternalError("shared memory is declared before private memory")
        self._shared += 1
        type_ = ir.Type.parse(f"memref<{count}x{element}, {SHARED}>")
        return self.block.add_argument(type_, ir.Location.unknown())

    def shared_by_launch(self, bytes_: Dim) -> ir.Value:
        """Dynamic shared memory, as bytes; the launch computes its size."""
        self.dynamic = bytes_
        type_ = ir.Type.parse(f"memref<?xi8, {SHARED}>")
        return self.ops.create("gpu.dynamic_shared_memory", type_)

    def private(self, count: int, element: ir.Type) -> ir.Value:
        """Local memory for ``count`` elements."""
        self._private += 1
        type_ = ir.Type.parse(f"memref<{count}x{element}, {PRIVATE}>")
        return self.block.add_argument(type_, ir.Location.unknown())

    # --- conditions ------------------------------------------------------------------------------

    def _is_narrow(self, buffers: Sequence[Buffer]) -> bool:
        """True if 32-bit words can hold every offset."""
        sizes: dict[Dim, None] = {}
        for buffer in buffers:
            sizes[product(buffer.dims)] = None
            for dim, stride in zip(buffer.dims, buffer.strides, strict=True):
                sizes[dim * stride] = None
                if not isinstance(stride, int) or stride < 0:
                    sizes[dim * stride * -1] = None
        if any(isinstance(s, int) and s >= NARROW for s in sizes):
            return False
        symbolic = [s for s in sizes if isinstance(s, Sym)]
        return all(self._require(Condition("below", str(size), NARROW)) for size in symbolic)

    def divisible(self, dim: Dim, number: int) -> bool:
        """True if a size is a multiple of a number; may add that as a condition of the launch."""
        if isinstance(dim, int):
            return dim % number == 0
        if all(coefficient % number == 0 for _, coefficient in dim.terms):
            return True
        return self._require(Condition("divisible", str(dim), number))

    def aligned(self, buffer: Buffer, bytes_: int) -> bool:
        """True if a buffer starts at a multiple of ``bytes_``; may add that as a condition."""
        # Only inputs may start anywhere; outputs and workspace are aligned.
        return buffer.kind != "input" or self._require(Condition("aligned", buffer.index, bytes_))

    def _require(self, condition: Condition) -> bool:
        """Add a condition of the launch and return True; False if the kernel may have none."""
        if self.fast:
            self.conditions[condition] = None
        return self.fast

    # --- completion ------------------------------------------------------------------------------

    def finish(self, grid: Sequence[Dim]) -> Launch:
        """Close the function; returns its launch over ``grid`` blocks."""
        with ir.InsertionPoint(self.block), ir.Location.unknown():
            ir.Operation.create("gpu.return")
        attributes = self.function.attributes
        attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(self._types, []))
        attributes["known_block_size"] = ir.DenseI32ArrayAttr.get(list(self.block_size))
        if self._shared:
            attributes["workgroup_attributions"] = ir.IntegerAttr.get(self.ops.i64, self._shared)
        x, y, z = (str(size) for size in grid)
        threads = self.block_size
        return Launch(
            self.name,
            (x, y, z),
            (str(threads[0]), str(threads[1]), str(threads[2])),
            tuple(self.arguments),
            str(self.dynamic),
        )


def element_size(buffer: Any) -> int:
    """Bytes of an element of a buffer or tensor."""
    return element_bytes(buffer.element)
