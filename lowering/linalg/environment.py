"""The values of one function while it is lowered, instruction by instruction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlir import ir

from ...dialect.errors import InternalError, Loc, LoweringError, ProfuseError
from ...dialect.guards.checks import described
from ...dialect.ir.types import ListedType, ListType, ScalarType, TensorType, Type, known_value
from ...dialect.mlir.context import to_location
from .element import emit, storage_type
from .stored_element import load
from .tensor_builder import Builder, TensorValue

if TYPE_CHECKING:
    from ...dialect.ir.program import Instr, Program


class Environment:
    """The values of one function: tensors, scalars, and numbers and sizes known while lowering."""

    def __init__(self, function: Program, builder: Builder) -> None:
        self.function, self.builder = function, builder
        self.types: dict[int, Type] = {}
        self.values: dict[int, Any] = {}

    def bind(self, number: int, type_: Type, value: ir.Value) -> None:
        """Define an argument."""
        self.types[number] = type_
        if isinstance(type_, TensorType):
            self.values[number] = TensorValue(value, type_)
        else:
            assert isinstance(type_, ScalarType)
            element = emit("tensor.extract", storage_type(type_.dtype), value)
            self.values[number] = load(element, type_.dtype)

    def run(self, instr: Instr) -> None:
        """Lower one instruction; raises LoweringError at its location."""
        operands = [self.types[v] for v in instr.operands]
        try:
            attrs = instr.op.full_attrs(instr.attrs)
            types = self._result_types(instr, operands, attrs)
            constants = [known_value(t) for t in types]
            if types and all(v is not None for v in constants):
                results: Sequence[Any] = constants
            else:
                with to_location(instr.loc) if instr.loc else ir.Location.current:
                    args = [self.values[v] for v in instr.operands]
                    lowered = self.lower(instr, attrs, types, args)
                results = lowered if isinstance(lowered, (tuple, list)) else (lowered,)
        except ProfuseError as error:
            raise located(error, instr.loc) from error
        for number, type_, value in zip(instr.results, types, results, strict=True):
            self.types[number], self.values[number] = type_, value
            for size in (type_.shape or ()) if isinstance(type_, TensorType) else ():
                self.builder.check_size(size)

    def lower(self, instr: Instr, attrs: dict, types: tuple[Type, ...], args: list[Any]) -> Any:
        """The results of an instruction, one or several."""
        if not instr.op.can_lower():
            raise LoweringError(f"{instr.op.full_name()} has no lowering")
        return instr.op.lower(self.builder, attrs, types, *args)

    def _result_types(self, instr: Instr, operands: list[Type], attrs: dict) -> tuple[Type, ...]:
        types = instr.op.infer(operands, attrs)
        for type_ in types:
            if isinstance(type_, ListType) or (isinstance(type_, ListedType) and not type_.is_complete):
                raise LoweringError(f"{instr.op.full_name()} gives {described(type_)}")
            if isinstance(type_, TensorType) and not type_.is_complete:
                raise LoweringError(f"the type of a result of {instr.op.full_name()} is not known: {type_}")
        return types

    def output(self, number: int) -> TensorValue:
        """A result of the function; a number becomes a 0-d tensor."""
        value = self.values[number]
        if isinstance(value, TensorValue):
            return value
        scalar = self.builder.scalar(value)
        return TensorValue(None, TensorType(scalar.dtype, ()), scalar)


def located(error: ProfuseError, loc: Loc | None) -> ProfuseError:
    """The error as one of lowering, at a place unless it has one."""
    kind = InternalError if isinstance(error, InternalError) else LoweringError
    return kind(error.what, loc=error.loc or loc, hint=error.hint)
