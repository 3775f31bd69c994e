"""The test for gradients: the one place where a value's flag and the thread's mode are asked.

Records, guards of all kinds and argument specs ask here (R1.18, R1.39, R2.7, R3.42).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

LOOP_BYTES = 256 << 20
"""The memory policy of gradients of loops, where nothing else is said."""


class _Mode(threading.local):
    """Gradient mode of each thread.

    ``on`` is read where a call of `gradient_mode` would count; `set_gradient_mode` sets it.
    """

    on = True


MODE = _Mode()
# Has an element for each thread in which the mode is off, mostly none: asked sooner than `MODE`.
OFF: list[None] = []


def gradient_mode() -> bool:
    """True if operations of this thread are differentiable; True at the start of a thread."""
    return MODE.on


def set_gradient_mode(on: bool) -> bool:
    """Switch gradient mode of this thread; returns what it was."""
    before = MODE.on
    if on:
        if not before:
            MODE.on = True
            OFF.pop()
    elif before:
        MODE.on = False
        OFF.append(None)
    return before


@contextmanager
def gradients(on: bool) -> Iterator[None]:
    """Switch gradient mode of this thread for the duration of a ``with`` block."""
    before = set_gradient_mode(on)
    try:
        yield
    finally:
        set_gradient_mode(before)


def requires_grad(value: object) -> bool:
    """The flag of a value AND gradient mode.

    Tensors of devices have a flag; NumPy's own arrays and scalars, and Python's numbers, have none.
    """
    if type(value) is np.ndarray:
        return False
    return bool(getattr(value, "requires_grad", False)) and MODE.on
