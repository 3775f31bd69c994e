"""MLIR module -> `program.Module`, the inverse of `Module.to_mlir`.

Values are numbered in the order in which they appear, so a decoded program prints the same text
again once its values are numbered that way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import IRError
from ..ir.attrs import VALUE
from ..ir.op import Op, op_named
from ..ir.program import Block, Instr, Module, Program
from ..ir.types import Type, type_from_object
from .context import loc_of, near, position_of, similar_op
from .rewrite import attrs_of, body_of, functions, is_private, is_terminator, op_class, ops_in, symbol_of

if TYPE_CHECKING:
    from mlir import ir


def decode_module(module: ir.Module, main: str | None = None) -> Module:
    """The module as programs.

    ``main`` names the main function; by default it is the first that is not private.  Raises
    IRError, located, for what programs cannot hold: unknown ops, foreign types, several blocks.
    """
    from .. import ops  # noqa: F401  (defining the classes fills the table)

    _refuse_others(module)
    funcs = {symbol_of(func): func for func in functions(module)}
    if main is None:
        main = next((name for name, func in funcs.items() if not is_private(func)), None)
        if main is None:
            raise IRError("the module has no public function")
    elif main not in funcs:
        raise IRError(f"the module has no function @{main}", hint=near(main, funcs))
    programs = {name: decode_function(func) for name, func in funcs.items()}
    return Module(programs.pop(main), programs)


def decode_function(func: ir.Operation) -> Program:
    """One ``func.func`` as a program. Raises IRError."""
    program = Program(symbol_of(func))
    _Decoder(program).block(body_of(func), program.body)
    return program


def _refuse_others(module: ir.Module) -> None:
    for op in module.body.operations:
        if op.operation.name != "func.func":
            raise _unknown(op.operation)


def _unknown(op: ir.Operation) -> IRError:
    return IRError(f"unknown op {op.name!r}", loc=position_of(op.location), hint=similar_op(op.name))


class _Decoder:
    """Holds the numbering of one function's values."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.numbers: dict[ir.Value, int] = {}

    def block(self, source: ir.Block, into: Block) -> None:
        into.args = tuple(self.define(a, source.owner.operation) for a in source.arguments)
        for op in ops_in(source):
            if is_terminator(op):
                into.outputs = tuple(self.numbers[v] for v in op.operands)
            else:
                into.instrs.append(self.instr(op))

    def define(self, value: ir.Value, owner: ir.Operation) -> int:
        number = self.program.new_value(self.known(value, owner))
        self.numbers[value] = number
        return number

    def known(self, value: ir.Value, owner: ir.Operation) -> Type:
        try:
            return type_from_object(value.type)
        except IRError as error:
            raise IRError(error.what, loc=position_of(owner.location)) from None

    def instr(self, op: ir.Operation) -> Instr:
        if op.name == "arith.constant":
            return self.constant(op)
        cls = op_class(op)
        if cls is None:
            raise _unknown(op)
        operands = tuple(self.numbers[v] for v in op.operands)
        attrs = attrs_of(op) if cls.attrs else {}
        results = tuple(self.define(r, op) for r in op.results)
        blocks = self.blocks(cls, op) if cls.regions else ()
        return Instr(cls, operands, results, attrs, blocks, loc_of(op.location))

    def constant(self, op: ir.Operation) -> Instr:
        """``arith.constant`` as our own: what people write in IR text."""
        cls = op_named("constant")
        results = tuple(self.define(r, op) for r in op.results)
        value = VALUE.decode(op.attributes["value"])
        return Instr(cls, (), results, {"value": value}, (), loc_of(op.location))

    def blocks(self, cls: type[Op], op: ir.Operation) -> tuple[Block, ...]:
        decoded = []
        for region in op.regions:
            sources = list(region.blocks)
            if len(sources) > 1:
                raise IRError(f"{op.name} has a region of several blocks", loc=position_of(op.location))
            block = Block()
            # An absent else block yields nothing, as an empty one does.
            if sources:
                self.block(sources[0], block)
            decoded.append(block)
        return tuple(decoded)
