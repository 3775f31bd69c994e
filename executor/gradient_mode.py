"""The gradient-mode switch of a thread, and whether a graph has to be differentiated (R2.13)."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..dialect.program import Module
from ..dialect.types import TensorType, Type


class _Mode(threading.local):
    on = True


_MODE = _Mode()


def gradient_mode() -> bool:
    """Whether operations of this thread are differentiable; True at the start of a thread."""
    return _MODE.on


@contextmanager
def gradients(on: bool) -> Iterator[None]:
    """Switch gradient mode of this thread for the duration of a ``with`` block."""
    before, _MODE.on = _MODE.on, on
    try:
        yield
    finally:
        _MODE.on = before


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
