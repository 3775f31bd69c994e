"""Dropout: elements that random bits make zero, of a key and an offset that each call draws (the op `random_bits`)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..handlers.axes import sizes
from ..python.pausing import unwatched
from ..tracing.composites import composite, recorded
from ..tracing.current import current
from ..world.own_draws import key_pair
from .layer_inputs import array, narrowed, real, wrong_argument

_BITS = 24  # of the 32 of an element, those that are compared


@unwatched
def dropout(input: Any, p: float = 0.5, training: bool = True) -> Any:
    """``input`` with each element zero with probability ``p``, and divided by ``1 - p`` otherwise.

    Args:
        input: a float array of any shape.
        p: from 0 to 1.
        training: False gives ``input`` itself, and draws nothing.

    The result has the dtype and shape of ``input``; so has its gradient, which is zero where the result was made zero.
    Each call draws anew: `manual_seed` says from where on. Which elements are zero follows from the two integers that a
    call draws and from the number of the element alone, so native code drops what plain Python does. Raises
    ArgumentError for another ``p``.
    """
    array("dropout", "input", input)
    if not 0.0 <= p <= 1.0:
        raise wrong_argument("dropout", f"p={p!r} is no probability", "pass a number from 0 to 1")
    if not training or p == 0.0:
        return input
    real("dropout", "input", input)
    if p == 1.0:
        return input * np.zeros((), input.dtype)
    if type(p) is float:
        results = recorded("native_dropout", input, *(keys := numbers_drawn()), p=p, train=True)
        if results is not None:
            return results[0]
        return narrowed(np.where(kept(input.shape, p, keys), input / (1.0 - p), 0), input.dtype)
    return narrowed(np.where(kept(input.shape, p, numbers_drawn()), input / (1.0 - p), 0), input.dtype)


def numbers_drawn() -> tuple[Any, Any]:
    """The key and the offset of one call: integers, in a trace arrays without axes."""
    key, offset = key_pair()
    return (int(key), int(offset)) if current() is None else (key, offset)


def kept(shape: tuple[int, ...], p: float, keys: tuple[Any, Any]) -> Any:
    """A mask of this shape, an element of which is False with probability ``p``."""
    static, dynamic = sizes(shape)
    numbers = composite("random_bits", *keys, *dynamic, shape=static) >> np.uint32(32 - _BITS)
    if type(p) is float:
        return numbers >= np.uint32(math.ceil(p * 2**_BITS))  # of integers, which is exact
    return numbers.astype(np.float64) * 2.0**-_BITS >= p
