"""What `profuse.nn` draws from the generator of the process (`generators.own_generator`), and its seed.

It draws keys, of which random bits follow (see `neural.dropout_masks`): two integers for each call. So what a graph
draws from it is a draw as of any other generator, an input of the graph.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ....errors import ArgumentError, GradientError
from ..python.generators import own_generator
from ..tracing.current import current, trace_error, user_loc
from .draw_calls import recorded_draw
from .draws import HINT

_SEEDS = 1 << 64
_KEYS = 1 << 63


def manual_seed(seed: int) -> None:
    """Seed the random numbers of `profuse.nn`: from here on, the same calls draw the same numbers.

    ``seed`` is an integer from 0 to ``2**64 - 1``. What is drawn is the same in plain Python, in native code and on the
    tape, for any number of threads. Without a seed, each process draws other numbers. Raises ArgumentError for other
    values, and TraceError inside a function that is traced, where a seed would hold for the trace alone.
    """
    if current() is not None:
        raise trace_error("pf.manual_seed is called while tracing", "call it outside of the function")
    try:
        number = operator.index(seed)
    except TypeError:
        number = -1
    if isinstance(seed, (bool, np.bool_)) or not 0 <= number < _SEEDS:
        raise ArgumentError(
            f"manual_seed: seed={seed!r} is no integer from 0 to 2**64 - 1", loc=user_loc(), hint="pass such an integer"
        )
    bits = own_generator().bit_generator
    with bits.lock:
        bits.state = np.random.Philox(number).state


class _KeyNotes(threading.local):
    """What one thread draws while a function runs that will run again, or does so now."""

    def __init__(self) -> None:
        self.noted: list[Any] | None = None
        self.again: Iterator[Any] | None = None


_keys = _KeyNotes()


def key_pair() -> Any:
    """The key and the offset of one call that needs random bits: two integers from 0 to ``2**63 - 1``, as an array."""
    if _keys.again is None:
        pair = _drawn(own_generator())
    elif (pair := next(_keys.again, None)) is None:
        raise GradientError(
            "a function that is run again draws more random numbers than before",
            loc=user_loc(),
            hint="let it depend on its arguments alone",
        )
    if _keys.noted is not None:
        _keys.noted.append(pair)
    return pair


def runs_again() -> bool:
    """True where a function is run once more, for its gradient: its effects have happened."""
    return _keys.again is not None


def _drawn(generator: Any) -> Any:
    rec = current()
    if rec is None:
        return generator.integers(0, _KEYS, size=2)
    if not rec.draws.are_taken:
        raise trace_error("random numbers are drawn where graphs draw none", HINT)
    return recorded_draw(rec, generator, "integers", (0, _KEYS), {"size": 2})


@contextmanager
def noted_keys() -> Iterator[list[Any]]:
    """The keys that a function draws, in order."""
    before = _keys.noted
    keys = _keys.noted = list[Any]()
    try:
        yield keys
    finally:
        _keys.noted = before
        if before is not None:
            before += keys


@contextmanager
def keys_again(keys: Sequence[Any]) -> Iterator[None]:
    """Have a function draw these keys, in order, instead of new ones."""
    before, _keys.again = _keys.again, iter(keys)
    try:
        yield
    finally:
        _keys.again = before
