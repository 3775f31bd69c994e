"""Sizes of a function's tensors before it is lowered, as far as they are literals."""

from __future__ import annotations

from ...dialect.errors import ProfuseError
from ...dialect.ir.program import Instr, Program
from ...dialect.ir.types import TENSOR, TensorType, Type
from ...dialect.ops.control_flow.control import For, If, While


class Shapes:
    """The types of values, found when they are asked for."""

    def __init__(self, function: Program) -> None:
        self._function = function
        self._made: dict[int, Instr] = {}
        self._first: dict[int, int] = {}  # what a loop carries -> what it begins with
        self._types: dict[int, Type] = {}
        for instr in function.body.walk():
            self._made.update(dict.fromkeys(instr.results, instr))
            if instr.op is For:
                (body,) = instr.blocks
                self._first.update(zip(body.args[1:], instr.operands[3:], strict=True))
                self._first.update(zip(instr.results, instr.operands[3:], strict=True))
            elif instr.op is While:
                before, after = instr.blocks
                self._first.update(zip(before.args, instr.operands, strict=True))
                self._first.update(zip(after.args, before.outputs[1:], strict=True))
                self._first.update(zip(instr.results, before.outputs[1:], strict=True))
            elif instr.op is If:
                self._first.update(zip(instr.results, instr.blocks[0].outputs, strict=True))

    def size(self, value: int, axis: int) -> int | None:
        """The size of an axis; None = it is not known."""
        type_ = self._type(value)
        shape = type_.shape if isinstance(type_, TensorType) else None
        if shape is None or not -len(shape) <= axis < len(shape):
            return None
        size = shape[axis]
        return size if isinstance(size, int) else None

    def _type(self, value: int) -> Type:
        if value not in self._types:
            self._types[value] = TENSOR  # until it is known
            self._types[value] = self._found(value)
        return self._types[value]

    def _found(self, value: int) -> Type:
        type_ = self._function.type_of(value)
        if not isinstance(type_, TensorType) or type_.shape is not None:
            return type_
        if value in self._first:
            return self._type(self._first[value])
        instr = self._made.get(value)
        if instr is None or instr.blocks:
            return type_
        try:
            attrs = instr.op.full_attrs(instr.attrs)
            types = instr.op.infer([self._type(v) for v in instr.operands], attrs)
        except ProfuseError:
            return type_
        return types[instr.results.index(value)]
