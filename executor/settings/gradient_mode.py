"""Whether a graph has to be differentiated (R2.13)."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialect.ir.gradient_mode import gradient_mode
from ...dialect.ir.program import Module
from ...dialect.ir.types import TensorType, Type


def needs_gradient(module: Module, inputs: Sequence[Type | None]) -> bool:
    """Whether the graph has to be differentiated when called with inputs of these types (R2.13).

    It is never differentiated with gradient mode off. Otherwise it is if an input requires
    gradients, or if the graph contains a foreign op, whose effect on gradients is unknown.
    """
    if not gradient_mode():
        return False
    if any(instr.op.foreign for instr in module.main.body.walk()):
        return True
    return any(isinstance(t, TensorType) and bool(t.requires_grad) for t in inputs)
