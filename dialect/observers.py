"""Where observers go (R1.16, R1.17): one rule for programs and for the `insert-profile` pass."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

from .base import Fusion, Op
from .ops.speculation import Profile, ProfileCounter
from .program import Block, Instr, Module, Program
from .types import TENSOR, ListType, TensorType, Type


def wants_profiled_inputs(op: type[Op]) -> bool:
    """True for ops whose operands are worth observing: what may be fused, and type queries."""
    return op.fusion is not Fusion.NONE


def wants_profiled_outputs(op: type[Op] | None) -> bool:
    """True for ops whose results are worth observing at every use; None = a block argument."""
    return op is not None and op.fusion not in (Fusion.NONE, Fusion.QUERY)


def erased(type_: Type) -> Type:
    """The type without anything a profile or a user's annotation has said of tensors (R1.16)."""
    if isinstance(type_, TensorType):
        return TENSOR
    return ListType() if isinstance(type_, ListType) else type_


def instrument(module: Module) -> Module:
    """A copy of ``module`` whose main program is unrefined, observed, and counts its runs.

    Equals what the `insert-profile` pass makes of the printed module.
    """
    main = module.main
    types = {value: erased(main.type_of(value)) for value in range(main.count)}
    copy = Program(main.name, types=types, count=main.count)
    producers = {r: instr.op for instr in main.body.walk() for r in instr.results}
    copy.body = _Instrumenter(copy, producers).block(main.body)
    copy.body.instrs.append(Instr(ProfileCounter, (), ()))
    return Module(copy, dict(module.functions), module.semantics)


class _Instrumenter:
    """Copies blocks; sites are numbered in the order in which a walk meets the observers."""

    def __init__(self, program: Program, producers: Mapping[int, type[Op]]) -> None:
        self.program = program
        self.producers = producers
        self.sites = count()

    def block(self, block: Block) -> Block:
        out = Block(block.args)
        for instr in block.instrs:
            seen: dict[int, int] = {}
            wants = wants_profiled_inputs(instr.op)
            operands = tuple(
                self.observed(v, out, seen, instr)
                if wants or wants_profiled_outputs(self.producers.get(v))
                else v
                for v in instr.operands
            )
            blocks = tuple(self.block(b) for b in instr.blocks)
            out.instrs.append(
                Instr(instr.op, operands, instr.results, dict(instr.attrs), blocks, instr.loc)
            )
        seen = {}
        out.outputs = tuple(self.observed(v, out, seen, None) for v in block.outputs)
        return out

    def observed(self, value: int, out: Block, seen: dict[int, int], user: Instr | None) -> int:
        """The observer of ``value`` for one user (one per value), or the value if no tensor."""
        if not isinstance(self.program.type_of(value), TensorType):
            return value
        if value not in seen:
            seen[value] = self.program.new_value()
            attrs = {"site": next(self.sites)}
            loc = user.loc if user else None
            out.instrs.append(Instr(Profile, (value,), (seen[value],), attrs, loc=loc))
        return seen[value]
