"""Whether a graph has to be differentiated (R2.13)."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialect.ir.gradient_mode import gradient_mode
from ...dialect.ir.program import Module
from ...dialect.ir.types import TensorType, Type


def needs_gradient(module: Module, inputs: Sequence[Type | None]) -> bool:
    """Whether the graph has to be differentiated when called with inputs of these types (R2.13).

    Never with gradient mode off; else if it holds a foreign op, of which nobody knows what it does
    with gradients, or if an input requires gradients.
    """
    if not gradient_mode():
        return False
    if any(instr.op.foreign for instr in module.main.body.walk()):
        return True
    return any(isinstance(t, TensorType) and bool(t.requires_grad) for t in inputs)
