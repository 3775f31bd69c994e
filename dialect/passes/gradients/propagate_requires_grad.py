"""Marks of the values that gradients flow into (R2.10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from mlir import ir

from ...ir.op import Op
from ...ir.types import TensorType, Type
from ...mlir.aliases import WrittenMemory
from ...mlir.propagation import Propagation
from ...mlir.rewrite import type_of, types_of
from ...mlir.typed_values import main_functions
from ..base import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class PropagateRequiresGrad(Pass):
    """Say of every tensor whether it requires gradients, as far as the inputs' types tell.

    A result does if it is floating-point and an operand does; constants never do. What is in memory
    that is written may require them, as what is written may.
    """

    name: ClassVar[str] = "propagate-requires-grad"

    def run(self, module: ir.Module) -> None:
        for func in main_functions(module):
            facts = _Gradients(func)
            facts.run()
            self.count("types-found", facts.write())


class _Gradients(Propagation):
    def __init__(self, func: ir.Operation) -> None:
        super().__init__(func)
        self.memory = WrittenMemory(func)

    def transfer(self, op: ir.Operation, cls: type[Op]) -> Sequence[Type]:
        flags = [t.requires_grad for t in self.of(op.operands) if isinstance(t, TensorType)]
        if True in flags:
            needs: bool | None = True
        else:
            is_written = any(map(self.memory.is_written, op.results))
            needs = None if None in flags or is_written else False
        return [_marked(t, needs) for t in types_of(op.results)]

    def constant(self, value: ir.Value) -> Type:
        return _marked(type_of(value), False)


def _marked(type_: Type, needs: bool | None) -> Type:
    if not isinstance(type_, TensorType) or type_.dtype is None:
        return type_
    return replace(type_, requires_grad=needs if type_.dtype.kind in "fc" else False)
