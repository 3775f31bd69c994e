"""The decision to differentiate a graph (R1.28, R2.13), and the debug switch of subgraphs."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...dialect.ir.gradient_mode import gradient_mode
from ...dialect.ir.program import Module
from ...dialect.ir.types import TensorType, Type
from ...dialect.ops.speculation import Profile


class _ModeSwitch(threading.local):
    on = True


_INLINING = _ModeSwitch()


def inlines_subgraphs() -> bool:
    """True if small differentiable subgraphs are put back in their places (R1.29, R2.15)."""
    return _INLINING.on


@contextmanager
def subgraph_inlining(on: bool) -> Iterator[None]:
    """Switch that for this thread, for the duration of a ``with`` block; for debugging."""
    before, _INLINING.on = _INLINING.on, on
    try:
        yield
    finally:
        _INLINING.on = before


def was_differentiated(module: Module) -> bool:
    """True if any observer of an instrumented graph has seen what requires gradients (R1.28).

    Observers in blocks count: what requires gradients may flow in a branch alone.
    """
    types = (instr.attrs.get("profiled_type") for instr in module.main.body.walk() if instr.op is Profile)
    return any(isinstance(t, TensorType) and bool(t.requires_grad) for t in types)


def needs_gradient(module: Module, inputs: Sequence[Type | None]) -> bool:
    """True if the graph has to be differentiated when called with inputs of these types (R2.13).

    It is never differentiated with gradient mode off. Otherwise it is if an input requires
    gradients, or if the graph contains a foreign op, whose effect on gradients is unknown.
    """
    if not gradient_mode():
        return False
    if any(instr.op.foreign for instr in module.main.body.walk()):
        return True
    return any(isinstance(t, TensorType) and bool(t.requires_grad) for t in inputs)
