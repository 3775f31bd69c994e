"""Creating the operations of kernels: memory through memrefs, threads, barriers, shuffles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir import ir

from ....dialect.dataclass import dataclass
from ...emit.loop_ops import Ops
from ...schedule.memory import element_bytes

SHARED = "#gpu.address_space<workgroup>"
PRIVATE = "#gpu.address_space<private>"
WARP = 32


@dataclass(frozen=True)
class Address:
    """A place in memory: a memref and an element index; None = its start."""

    memory: ir.Value
    index: ir.Value | None = None


class GpuOps(Ops):
    """Operations of kernels; pointers are `Address`. ``narrow``: words have 32 bits."""

    def __init__(self, narrow: bool) -> None:
        super().__init__()
        self.word = self.i32 if narrow else self.i64

    def expand(self, function: str, operands: Sequence[ir.Value]) -> ir.Value | None:
        # MLIR's pass would put the function for this op outside of the kernels' module.
        return self._power(*operands) if function == "ipowi" else super().expand(function, operands)

    def _power(self, base: ir.Value, exponent: ir.Value) -> ir.Value:
        """An integer power by repeated squaring; the exponent must not be negative."""
        type_ = base.type
        zero, one = self.constant(0, type_), self.constant(1, type_)
        types = [type_] * 3  # result so far, power of the base, remaining exponent bits
        loop = ir.Operation.create("scf.while", results=types, operands=[one, base, exponent], regions=2)
        locations = [ir.Location.current] * 3
        before, after = (r.blocks.append(*types, arg_locs=locations) for r in loop.regions)
        with ir.InsertionPoint(before):
            is_done = self.equal(before.arguments[2], zero)
            more = self.create("arith.xori", self.i1, is_done, self.constant(1, self.i1))
            ir.Operation.create("scf.condition", operands=[more, *before.arguments])
        with ir.InsertionPoint(after):
            result, power, bits = after.arguments
            is_odd = self.equal(self.create("arith.andi", type_, bits, one), one)
            result = self.select(is_odd, self.create("arith.muli", type_, result, power), result)
            squared = self.create("arith.muli", type_, power, power)
            ir.Operation.create("scf.yield", operands=[result, squared, self.create("arith.shrui", type_, bits, one)])
        return loop.results[0]

    # --- memory ----------------------------------------------------------------------------------

    def offset(self, base: Any, index: ir.Value, element: ir.Type) -> Any:
        start = base if isinstance(base, Address) else Address(base)
        total = index if start.index is None else self.add(start.index, index)
        return Address(start.memory, total)

    def _place(self, pointer: Any) -> list[ir.Value]:
        at = pointer if isinstance(pointer, Address) else Address(pointer)
        index = at.index if at.index is not None else self.constant(0)
        return [at.memory, self.cast_index(index, self.index)]

    def load(self, pointer: Any, element: ir.Type) -> ir.Value:
        return self.create("memref.load", element, *self._place(pointer), alignment=self._natural(element))

    def store(self, value: ir.Value, pointer: Any) -> None:
        ir.Operation.create(
            "memref.store", operands=[value, *self._place(pointer)], attributes={"alignment": self._natural(value.type)}
        )

    def _natural(self, element: ir.Type) -> ir.Attribute:
        # Without a data layout, LLVM would assume that an i64 is aligned to 4 bytes only.
        return ir.IntegerAttr.get(self.i64, element_bytes(element))

    def load_vector(self, pointer: Any, element: ir.Type, width: int, bytes_: int) -> ir.Value:
        """``width`` elements from an address that is a multiple of their size."""
        type_ = ir.VectorType.get([width], element)
        alignment = ir.IntegerAttr.get(self.i64, width * bytes_)
        return self.create("vector.load", type_, *self._place(pointer), alignment=alignment)

    def store_vector(self, values: list[ir.Value], pointer: Any, bytes_: int) -> None:
        """Store elements to an address that is a multiple of their size."""
        type_ = ir.VectorType.get([len(values)], values[0].type)
        vector = self.create("vector.from_elements", type_, *values)
        ir.Operation.create(
            "vector.store",
            operands=[vector, *self._place(pointer)],
            attributes={"alignment": ir.IntegerAttr.get(self.i64, len(values) * bytes_)},
        )

    def lane_of(self, vector: ir.Value, number: int) -> ir.Value:
        """One element of a vector."""
        type_ = ir.VectorType(vector.type).element_type
        where = ir.DenseI64ArrayAttr.get([number])
        return self.create("vector.extract", type_, vector, static_position=where)

    def viewed(self, memory: ir.Value, start: ir.Value, count: ir.Value, element: ir.Type) -> Any:
        """View shared memory (bytes) as ``count`` elements that begin at byte ``start``."""
        type_ = ir.Type.parse(f"memref<?x{element}, {SHARED}>")
        sizes = [self.cast_index(v, self.index) for v in (start, count)]
        return self.create("memref.view", type_, memory, *sizes)

    def undefined(self, type_: ir.Type) -> ir.Value:
        zero = ir.FloatAttr.get(type_, 0.0) if is_float(type_) else ir.IntegerAttr.get(type_, 0)
        return self.create("arith.constant", type_, value=zero)

    # --- threads ---------------------------------------------------------------------------------

    def position(self, what: str, axis: str) -> ir.Value:
        """``gpu.<what>`` (``"thread_id"``, ``"block_id"``, ``"grid_dim"`` …) as a word."""
        dimension = ir.Attribute.parse(f"#gpu<dim {axis}>")
        return self.cast_index(self.create(f"gpu.{what}", self.index, dimension=dimension), self.word)

    def barrier(self) -> None:
        """Wait for all threads of the block."""
        ir.Operation.create("gpu.barrier")

    def shuffle(self, value: ir.Value, distance: int) -> ir.Value:
        """The value of the lane whose number differs by xor with ``distance``, a power of two."""
        narrow = value.type
        if is_float(narrow) and narrow not in (self.f32, self.f64):
            value = self.create("arith.bitcast", ir.IntegerType.get_signless(16), value)
        width = value.type.width
        if width < 32:
            value = self.create("arith.extui", self.i32, value)
        mask, lanes = (self.constant(n, self.i32) for n in (distance, WARP))
        result = ir.Operation.create(
            "gpu.shuffle",
            results=[value.type, self.i1],
            operands=[value, mask, lanes],
            attributes={"mode": ir.Attribute.parse("#gpu<shuffle_mode xor>")},
        ).results[0]
        if width < 32:
            result = self.create("arith.trunci", ir.IntegerType.get_signless(width), result)
        return result if result.type == narrow else self.create("arith.bitcast", narrow, result)


def is_float(type_: ir.Type) -> bool:
    """True for the float types that elements have."""
    return isinstance(type_, (ir.F16Type, ir.BF16Type, ir.F32Type, ir.F64Type))
