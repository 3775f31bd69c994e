"""Calls on stand-ins of torch tensors, and whether emitted code answers them."""

from __future__ import annotations

from typing import Any

import fakelib as xp
import numpy as np
import profuse as pf
import stand_ins


def tensor(array: np.ndarray, device: int = 0) -> stand_ins.Tensor:
    """A copy on a device."""
    return stand_ins.Tensor(xp.array(array, device), index=device)


def get(t: stand_ins.Tensor) -> np.ndarray:
    """A copy on the host."""
    return stand_ins.download(t.held)


def warmed(fn: Any, *args: Any, **options: Any) -> Any:
    """A function whose calls on these arguments are emitted."""
    f = pf.jit(fn, **options)
    for _ in range(3):
        f(*args)
    assert f.state().emitted, f.explain()
    return f
