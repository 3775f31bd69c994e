"""The propagation of types to every value of a function, once those of its arguments are known.

Unlike `specialize`, which believes what a profile has seen, this concludes: a branch's result has
what both sides agree on, and what a loop carries what holds before the first round and after each.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from mlir import ir

from ..errors import ProfuseError
from ..ir.op import Op
from ..ir.types import INT_SCALAR, ListedType, ScalarType, TensorType, Type, erased_value, merge_types
from ..ops.control_flow.control import For, If, While
from .facts import is_constant_op
from .rewrite import attrs_of, body_of, op_class, ops_in, refresh_signature, set_type, terminator_of, type_of, types_of
from .ties import tied_values
from .typed_values import adopt_constants, constant_type, values_of


class Propagation:
    """One forward walk over a function.

    Subclasses say in `transfer` what an op's results are known to be. Nothing is changed before
    `write`.
    """

    def __init__(self, func: ir.Operation) -> None:
        adopt_constants(func)
        self.func = func
        self.facts: dict[ir.Value, Type] = {}

    def run(self) -> None:
        """Find the facts of all values."""
        self._block(body_of(self.func))

    def transfer(self, op: ir.Operation, cls: type[Op]) -> Sequence[Type]:
        """Types of the results of an op; a ProfuseError = nothing is known of them."""
        return cls.infer(self.of(op.operands), attrs_of(op))

    def constant(self, value: ir.Value) -> Type:
        """The type of a constant."""
        return constant_type(value) or type_of(value)

    def __getitem__(self, value: ir.Value) -> Type:
        fact = self.facts.get(value)
        return type_of(value) if fact is None else fact

    def of(self, values: Sequence[ir.Value]) -> list[Type]:
        """Facts of several values."""
        return [self[v] for v in values]

    def common(self, types: Sequence[Type]) -> Type:
        """The one type of values that `scf` ties together."""
        return reduce(merged, types)

    def write(self) -> int:
        """Put the facts on the function's tensors; returns how many types have changed."""
        types = {v: self[v] for v in values_of(self.func)}
        for tied in tied_values(self.func):
            types.update(dict.fromkeys(tied, self.common(self.of(tied))))
        changed = 0
        for value, type_ in types.items():
            if isinstance(type_, TensorType) and type_ != type_of(value):
                set_type(value, type_)
                changed += 1
        refresh_signature(self.func)
        return changed

    # --- walking ------------------------------------------------------------------------------

    def _block(self, block: ir.Block) -> list[Type]:
        """Walk a block; returns the facts of what it yields."""
        for op in ops_in(block):
            cls = op_class(op)
            if is_constant_op(op):
                self.facts[op.results[0]] = self.constant(op.results[0])
            elif cls is If:
                self._if(op)
            elif cls is For:
                self._for(op)
            elif cls is While:
                self._while(op)
            elif cls is not None:
                self._op(op, cls)
        return self.of(terminator_of(block).operands)

    def _op(self, op: ir.Operation, cls: type[Op]) -> None:
        try:
            types = self.transfer(op, cls)
        except ProfuseError:
            types = types_of(op.results)  # it raises at run time, if it runs
        self.facts.update(zip(op.results, types, strict=False))

    def _if(self, op: ir.Operation) -> None:
        blocks = [region.blocks[0] for region in op.regions if len(region.blocks)]
        for block in blocks:
            self._block(block)
        if len(blocks) == 2:
            ends = (terminator_of(block).operands for block in blocks)
            for result, a, b in zip(op.results, *ends, strict=True):
                self.facts[result] = merged(self[a], self[b])

    def _for(self, op: ir.Operation) -> None:
        body = op.regions[0].blocks[0]
        index, *carried = body.arguments
        self.facts[index] = INT_SCALAR
        self._give(carried, _carried(self.of(list(op.operands)[3:])))
        while self._widened(carried, self._block(body)):
            pass
        self._give(op.results, self.of(carried))

    def _while(self, op: ir.Operation) -> None:
        before, body = (region.blocks[0] for region in op.regions)
        self._give(before.arguments, _carried(self.of(op.operands)))
        while True:
            self._give(body.arguments, self._block(before)[1:])
            if not self._widened(before.arguments, self._block(body)):
                break
        self._give(op.results, self.of(body.arguments))

    def _give(self, values: Sequence[ir.Value], facts: Sequence[Type]) -> None:
        self.facts.update(zip(values, facts, strict=True))

    def _widened(self, args: Sequence[ir.Value], after: Sequence[Type]) -> bool:
        """Make what a loop carries hold after a round, too; True if that took something from it."""
        before = self.of(args)
        both = [merged(a, b) for a, b in zip(before, after, strict=True)]
        self._give(args, both)
        return both != before


def merged(a: Type, b: Type) -> Type:
    """The type of a value that is either of two."""
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return merge_types(a, b)
    if isinstance(a, ScalarType) and isinstance(b, ScalarType):
        return a if a == b else ScalarType(a.dtype)
    return a if a == b or not isinstance(a, ListedType) else erased_value(a)


def _carried(inits: Sequence[Type]) -> list[Type]:
    """The types of carried values in any round: numbers keep their dtype, but no value."""
    return list(map(erased_value, inits))
