"""Calls whose arguments are arrays and numbers by themselves: found without being taken apart."""

from __future__ import annotations

from typing import Any

import numpy as np

NUMBERS = frozenset({bool, int, float, complex})


def flat_key(args: tuple) -> tuple | None:
    """What a call of plain arrays and numbers is looked up by; None for anything else."""
    key: list[Any] = []
    for arg in args:
        kind = type(arg)
        if kind is np.ndarray:
            if not arg.flags.aligned or not arg.dtype.isnative:
                return None
            key += (arg.dtype, arg.ndim)
        elif kind in NUMBERS:
            key.append(kind)
        else:
            return None
    return tuple(key)
