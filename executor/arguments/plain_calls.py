"""The look-up key of calls without nested arguments, which need no flattening."""

from __future__ import annotations

from typing import Any

import numpy as np

NUMBERS = frozenset({bool, int, float, complex})


def flat_key(args: tuple) -> tuple | None:
    """The look-up key of a call: dtype and rank of each array, type of each number.

    None if an argument is neither a Python number nor an aligned np.ndarray in native byte order.
    """
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
