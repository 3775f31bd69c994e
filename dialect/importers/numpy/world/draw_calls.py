"""The functions that a traced function calls in place of a generator's methods: they record draws."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ....errors import TraceError
from ....ir.types import ScalarType
from ..python.generators import is_plain_generator, restores
from ..tracing.current import current, trace_error
from ..tracing.operators import wrap
from .draws import BEFORE_OUT, HINT, METHODS, record
from .round_draws import drawn_by_rounds

if TYPE_CHECKING:
    from ..tracing.recorder import Recorder


def draws_of(bound: Any) -> Callable | None:
    """The function that records a draw in place of a method of a generator; None if it cannot be recorded."""
    rec = current()
    owner = getattr(bound, "__self__", None)
    name = getattr(bound, "__name__", "")
    if rec is None or not rec.draws.are_taken or rec.draws.are_refused or name not in METHODS:
        return None
    if not is_plain_generator(owner) or not restores(owner):
        return None

    @functools.wraps(bound)
    def call(*args: Any, **kwargs: Any) -> Any:
        if current() is not rec:
            raise TraceError(f"{name} of a generator is called outside of its trace")
        return recorded_draw(rec, owner, name, args, kwargs)

    return call


def recorded_draw(rec: Recorder, owner: Any, name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
    """What a call of a generator's method gives in a trace: a new input; raises TraceError where it cannot be one."""
    what = f"Generator.{name}"
    if rec.catching():
        raise trace_error(f"{what} is called where the function would catch its errors", HINT)
    if "out" in kwargs or len(args) > BEFORE_OUT.get(name, len(args)):
        raise trace_error(f"{what} is called with out=", HINT)
    if rec.draws.repeating(rec.blocks):
        return drawn_by_rounds(rec, owner, name, args, kwargs)
    value = record(rec, owner, name, args, kwargs)
    if isinstance(rec.hints[value], ScalarType):
        return wrap(rec, value)
    # The function may write to an array that it has drawn, but not to an input.
    copy = value if value in rec.scalars else rec.emit("copy", [value])[0]
    rec.draws.copies[copy] = value
    return wrap(rec, copy)
