"""Alias information of functions in IR, for passes that move, merge or delete ops."""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from ..analysis.alias import Aliases, forbidden
from ..ir.op import OPS
from ..ir.program import Block, Instr
from ..ops.create import Constant
from ..ops.speculation import FallbackGraph
from .rewrite import body_of, defining_op, is_terminator, op_class, ops_in, terminator_of, type_of
from .rewrite import walk as walk_ops


class WrittenMemory:
    """The memory that is written in a function, as it is now. Where none is, asking costs one walk."""

    def __init__(self, func: ir.Operation) -> None:
        self._blocks: list[tuple[ir.Block, Block]] = []
        self._instrs: dict[ir.Value, Instr] = {}
        self._aliases: Aliases | None = None
        if any((cls := OPS.get(name)) is not None and cls.writes for name in {op.name for op in walk_ops(func)}):
            self._aliases = Aliases(self._mirror(body_of(func)), type_of)

    def is_written(self, value: ir.Value) -> bool:
        """True if the memory of a value may be written after the value is made."""
        return self._aliases is not None and self._aliases.is_written(value)

    def is_touched(self, op: ir.Operation) -> bool:
        """True if an op reads or makes memory that is written somewhere: it keeps its place."""
        return self._aliases is not None and any(map(self.is_written, (*op.operands, *op.results)))

    def may_stand_for(self, value: ir.Value) -> bool:
        """True if a value may be read in the place of another one, at any later time."""
        op = defining_op(value)
        return not self.is_written(value) and not (op is not None and self.is_touched(op))

    def shares_written(self, op: ir.Operation) -> bool:
        """True if a result is a view, or may be one, of memory that is written."""
        return self._aliases is not None and any(self.is_written(r) and self._aliases.of(r) != {r} for r in op.results)

    def forbidden(self, op: ir.Operation) -> str | None:
        """The reason why an op must not write what it writes, or None."""
        if self._aliases is None or not len(op.results):
            return None
        # Until it is converted, a fallback is taken to return anything that it is given.
        if any(i.op is FallbackGraph for i in self._instrs.values()):
            return None
        return forbidden(self._aliases, self._instrs[op.results[0]])

    def order(self, block: ir.Block) -> Iterator[tuple[int, int]]:
        """Pairs of ops of a block, by number, of which the first must stay before the second: see `Aliases.order`."""
        if self._aliases is None:
            return
        yield from self._aliases.order(next(mine for theirs, mine in self._blocks if theirs == block))

    def _mirror(self, block: ir.Block) -> Block:
        instrs = [self._instr(op) for op in ops_in(block) if not is_terminator(op)]
        mirror = Block(tuple(block.arguments), instrs, tuple(terminator_of(block).operands))
        self._blocks.append((block, mirror))
        return mirror

    def _instr(self, op: ir.Operation) -> Instr:
        cls = Constant if op.name == "arith.constant" else op_class(op)
        blocks = tuple(self._mirror(region.blocks[0]) if len(region.blocks) else Block() for region in op.regions)
        instr = Instr(cls, tuple(op.operands), tuple(op.results), {}, blocks)  # type: ignore[arg-type]
        self._instrs.update(dict.fromkeys(instr.results, instr))
        return instr
