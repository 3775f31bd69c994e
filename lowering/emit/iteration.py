"""Emits one iteration of an operation: a copy of its region, with values for the block arguments.

A block argument is evaluated at its first use. So an element that only one branch needs is read
only in that branch. Elements that every iteration reads have been computed before
(`ValueEmitter.inline`). Functions of the `math` dialect are expanded inline if `lowering.math` has an
expansion.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mlir import ir

from ...dialect.errors import LoweringError
from ...dialect.ir.postorder import postorder
from ..linalg.element import RARE
from ..schedule import affine as ix
from ..schedule.affine import AffineIndex
from ..schedule.body import may_reassociate, unclamped
from ..schedule.graph import Compute, definition, read_at
from .loop_ops import EXPANDED, IN_ORDER, Opaque, Pair

if TYPE_CHECKING:
    from .value_emitter import ValueEmitter


class BodyEmitter:
    """Emits one region; see `ValueEmitter.body` for the arguments."""

    def __init__(
        self,
        evaluator: ValueEmitter,
        op: Compute,
        loops: Sequence[AffineIndex],
        accumulators: dict[int, ir.Value],
        inputs: dict[int, ir.Value] | None = None,
        in_order: bool = False,
    ) -> None:
        self.evaluator, self.op, self.loops = evaluator, op, loops
        self.ops, self.in_order = evaluator.ops, in_order
        self.accumulators, self.inputs = accumulators, inputs or {}
        self.values: dict[ir.Value, ir.Value] = {}
        self.indices: dict[ir.Value, AffineIndex] = {}
        self.arguments: dict[ir.Value, int] = {}

    def run(self) -> list[ir.Value]:
        """The yielded values."""
        body = self.op.body
        if body.fill is not None:
            return [self.captured(body.fill)]
        if body.view is not None:
            return [self._read(body.view)]
        if body.block is None:
            return [self._read(0)]
        self.arguments = {a: k for k, a in enumerate(body.block.arguments)}
        return self._block(body.block)

    def _read(self, number: int) -> ir.Value:
        """The element of input ``number``, or the previous element of an output."""
        if number in self.inputs:
            return self.inputs[number]
        output = number - len(self.op.reads)
        if output in self.accumulators:
            return self.accumulators[output]
        return self.evaluator.value(*read_at(self.op, number, self.loops))

    # --- operations ----------------------------------------------------------------------------

    def _block(self, block: ir.Block) -> list[ir.Value]:
        for view in block.operations:
            op = view.operation
            name = op.name
            if name in ("linalg.yield", "scf.yield"):
                return [self.operand(v) for v in op.operands]
            self._operation(op, name)
        return []

    def _operation(self, op: ir.Operation, name: str) -> None:
        if name == "arith.constant":
            self._constant(op)
        elif name == "linalg.index":
            self._define_index(op.results[0], self.loops[_attribute_int(op, "dim")])
        elif name == "tensor.extract":
            self.values[op.results[0]] = self.extract(op)
        elif name == "scf.if":
            self._if(op)
        else:
            self._simple(op, name)

    def _simple(self, op: ir.Operation, name: str) -> None:
        if name in _INDEX_OPS and self._index_arithmetic(op, name):
            return
        operands = [self.operand(v) for v in op.operands]
        if name in _PARTS:
            self.values[op.results[0]] = _PARTS[name](*operands)
            return
        if RARE in op.attributes and not self.evaluator.versions:
            self.values[op.results[0]] = operands[1]
            return
        if name.startswith("math.") or name == "arith.remf":
            value = self.ops.expand(name.split(".")[1], operands)
            if value is not None:
                producer = definition(value)
                if producer is not None and self.evaluator.versions:
                    producer.attributes[EXPANDED] = ir.UnitAttr.get()
                self.values[op.results[0]] = value
                return
        copy = op.clone(ir.InsertionPoint.current)
        for number, value in enumerate(operands):
            copy.operands[number] = value
        if self.accumulators and name in ("arith.maximumf", "arith.minimumf"):
            # NumPy does not define which zero is the extremum of 0.0 and -0.0, and deciding it
            # would take a third of the loop's time.
            copy.attributes["fastmath"] = self.ops.no_signed_zeros
        if self.in_order and may_reassociate(copy):
            copy.attributes[IN_ORDER] = ir.UnitAttr.get()
        for old, new in zip(op.results, copy.results, strict=True):
            self.values[old] = new

    def _constant(self, op: ir.Operation) -> None:
        result = op.results[0]
        attribute = op.attributes["value"]
        self.values[result] = self.evaluator.constant_value(result.type, attribute)
        if isinstance(attribute, ir.IntegerAttr) and _is_index(result.type):
            self.indices[result] = ix.constant(attribute.value)

    def _if(self, op: ir.Operation) -> None:
        condition = self.operand(op.operands[0])
        copy = ir.Operation.create("scf.if", results=[r.type for r in op.results], operands=[condition], regions=2)
        for region, old in zip(copy.regions, op.regions, strict=True):
            if not len(old.blocks):
                continue
            block = region.blocks.append()
            saved = self.values, self.indices
            self.values, self.indices = dict(self.values), dict(self.indices)
            with self.evaluator.branch(copy, block):
                values = self._block(old.blocks[0])
                ir.Operation.create("scf.yield", operands=values)
            self.values, self.indices = saved
        for old_result, new in zip(op.results, copy.results, strict=True):
            self.values[old_result] = new

    def extract(self, op: ir.Operation) -> ir.Value:
        """The element that a ``tensor.extract`` reads."""
        tensor = self.evaluator.tensor_of(op.operands[0])
        values = list(op.operands)[1:]
        if all(tensor is not other for other, _ in self.op.body.windows):
            return self.evaluator.value(tensor, [self.index_of(v) for v in values])
        # Without clamps, an element is known to be the one that others read at the same index.
        index = [self.index_of(unclamped(v)) for v in values]
        with self.evaluator.through_window():
            return self.evaluator.value(tensor, index)

    # --- operands ------------------------------------------------------------------------------

    def operand(self, value: ir.Value) -> ir.Value:
        """The emitted counterpart of a value used in the region."""
        counterpart = self.values.get(value)
        if counterpart is None:
            number = self.arguments.get(value)
            if number is not None:
                counterpart = self._read(number)
            elif value in self.indices:
                counterpart = self.evaluator.index_data(self.indices[value], value.type)
            else:
                counterpart = self.captured(value)
            self.values[value] = counterpart
        return counterpart

    def captured(self, value: ir.Value) -> ir.Value:
        """A scalar computed outside the region, once per function."""
        for scalar in postorder([value], self._scalar_operands):
            result = self._captured_one(scalar)
        return result

    def _scalar_operands(self, value: ir.Value) -> list[ir.Value]:
        evaluator = self.evaluator
        op = definition(value)
        if op is None or len(op.regions) or evaluator.remembered(("captured", value)) is not None:
            return []
        return [v for v in op.operands if v not in evaluator.graph.values]

    def _captured_one(self, value: ir.Value) -> ir.Value:
        """Emit one captured scalar whose operands have been emitted."""
        evaluator = self.evaluator
        key = ("captured", value)
        result = evaluator.remembered(key)
        if result is not None:
            return result
        symbol = evaluator.symbol_values.get(value)
        if symbol is not None:
            return self.ops.cast_index(symbol, value.type)
        op = definition(value)
        if op is None:
            raise LoweringError(f"{self.op.name} uses a value that is no scalar")
        with evaluator.at(0):
            scalars = BodyEmitter(evaluator, self.op, (), {})
            scalars._operation(op, op.name)
            result = scalars.operand(value)
            evaluator.scope.memo[key] = result
        return result

    def index_of(self, value: ir.Value) -> AffineIndex:
        """An ``index`` or i64 value as an index expression."""
        index = self.indices.get(value)
        if index is not None:
            return index
        emitted = self.operand(value)
        if value in self.indices:
            return self.indices[value]
        evaluator = self.evaluator
        word = self.ops.cast_index(emitted, self.ops.word)
        atom = Opaque(word)
        evaluator.atoms[atom] = (word, len(evaluator.scopes) - 1)
        self.indices[value] = ix.atom(atom)
        return self.indices[value]

    def _define_index(self, value: ir.Value, index: AffineIndex) -> None:
        self.indices[value] = index

    def _index_arithmetic(self, op: ir.Operation, name: str) -> bool:
        """Keep sums of loop indices symbolic, so that reads by index can be hoisted."""
        result = op.results[0]
        if not _is_index(result.type):
            return False
        parts = [self._index_operand(v) for v in op.operands]
        index = ix.arithmetic(name, [p for p in parts if p is not None]) if all(parts) else None
        if index is None:
            return False
        self._define_index(result, index)
        return True

    def _index_operand(self, value: ir.Value) -> AffineIndex | None:
        index = self.indices.get(value)
        if index is None and value not in self.values and value not in self.arguments:
            size = self.evaluator.graph.known_size(value)
            if size is not None:
                index = self.indices[value] = ix.constant(size)
        return index


_PARTS: dict[str, Callable[..., Any]] = {
    "complex.create": Pair,
    "complex.re": operator.attrgetter("real"),
    "complex.im": operator.attrgetter("imag"),
}
_INDEX_OPS = frozenset(("arith.index_cast", "arith.addi", "arith.subi", "arith.muli"))


def _is_index(type_: ir.Type) -> bool:
    return isinstance(type_, ir.IndexType) or (isinstance(type_, ir.IntegerType) and type_.width == 64)


def _attribute_int(op: ir.Operation, name: str) -> int:
    return ir.IntegerAttr(op.attributes[name]).value
