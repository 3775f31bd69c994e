"""The types of a call's arguments, written onto the inputs of a graph (R2.8)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from ..ir.program import Block, Instr, Module, Program
from ..ir.types import TensorType, Type
from ..ops.control_flow.control import ControlFlow
from ..ops.gradient_ops import AutogradZero
from ..ops.speculation import Profile
from .observers import erased


def with_input_types(module: Module, types: Sequence[Type | None]) -> Module:
    """A copy of ``module`` of which nothing is known but these types of inputs; None = not said.

    An input that is undefined is no longer read: ``autograd_zero`` stands for it. Where control
    flow ties an input to values that nothing is known of, it passes through an observer, which
    `propagate-shapes` removes.
    """
    main = module.main
    bare = {value: erased(main.type_of(value)) for value in range(main.count)}
    copy = Program(main.name, types=bare, count=main.count)
    writer = _BlockCopier(copy, main.inputs, types)
    copy.body = writer.block(main.body)
    copy.body.instrs[:0] = writer.head
    return Module(copy, dict(module.functions))


class _BlockCopier:
    """Copies blocks: ``absent`` inputs are replaced, ``typed`` ones forgotten where tied."""

    def __init__(self, program: Program, inputs: Sequence[int], types: Sequence[Type | None]) -> None:
        self.program = program
        self.sites = count()
        self.head: list[Instr] = []
        self.absent: dict[int, int] = {}
        self.typed: set[int] = set()
        for value, type_ in zip(inputs, types, strict=True):
            if isinstance(type_, TensorType) and type_.defined is False:
                self.absent[value] = program.new_value()
                self.head.append(Instr(AutogradZero, (), (self.absent[value],)))
            elif type_ is not None:
                self.typed.add(value)
                program.types[value] = type_

    def block(self, block: Block, *, nested: bool = False) -> Block:
        out = Block(block.args)
        for instr in block.instrs:
            tied = issubclass(instr.op, ControlFlow)
            operands = self._values(instr.operands, out, tied)
            blocks = tuple(self.block(b, nested=True) for b in instr.blocks)
            out.instrs.append(Instr(instr.op, operands, instr.results, dict(instr.attrs), blocks, instr.loc))
        out.outputs = self._values(block.outputs, out, nested)
        return out

    def _values(self, values: Sequence[int], out: Block, tied: bool) -> tuple[int, ...]:
        return tuple(self._forgotten(v, out) if tied and v in self.typed else self.absent.get(v, v) for v in values)

    def _forgotten(self, value: int, out: Block) -> int:
        """``value`` with nothing known of it."""
        result = self.program.new_value()
        out.instrs.append(Instr(Profile, (value,), (result,), {"site": next(self.sites)}))
        return result
