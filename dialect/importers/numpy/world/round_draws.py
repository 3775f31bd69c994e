"""Draws in the rounds of recorded loops: one draw before the graph, of what all rounds draw.

A method of `np.random.Generator` that is asked for many numbers gives those that as many calls
would give, in order, and leaves the generator as these would. So the rounds read an array with the
numbers of all rounds, if it is known before the loop how many there are, each round draws equally
often, and nothing else draws from the generator in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ....dataclass import dataclass
from ....ir.program import Block
from ..tracing.current import trace_error
from ..tracing.operators import op, wrap
from .draws import HINT, METHODS, places_of, record

if TYPE_CHECKING:
    from ..source.loops import RecordedLoop
    from ..tracing.recorder import Recorder

# Methods whose arrays hold what single calls give: `choice` and `permutation` treat all elements
# together.
_FILL = frozenset(METHODS) - {"choice", "permutation"}
_OF_NUMPY = frozenset({"integers"})  # a single draw is NumPy's scalar, not a number of Python's


@dataclass(eq=False)
class RoundDraws:
    """The draws of the rounds of a loop from one generator.

    Attributes:
        number: of the draw in `Recorder.draws`.
        value: the input of the graph: an array with an axis for each loop, one for the draws of a
            round, and the axes of a single draw.
        call: the method and its arguments, in all draws.
        outer: the loop.
        body: the block that is recorded, of this loop or of one in it.
        most: so many draws of a round are in ``value``.
        count: so many this round has made.
    """

    number: int
    value: int
    call: tuple
    outer: RecordedLoop
    body: Block
    most: int
    count: int = 0


def drawn_by_rounds(rec: Recorder, owner: Any, name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The drawn value that a round gets; raises TraceError where the loops decide what is drawn."""
    what = f"Generator.{name}"
    loops = _loops(rec, what)
    args, kwargs, size = _taken_apart(name, args, kwargs, what)
    call = (name, *(places_of(rec, x, what) for x in (args, kwargs, size)))
    inner, key = loops[-1], id(owner.bit_generator)
    draws = rec.draws.in_loops.get(key)
    is_gone = draws is None or draws.number >= len(rec.draws.made)  # with a trial
    if draws is None or is_gone or draws.outer is not loops[0]:
        most = inner.draws.get(key, 1)
        counts = (*(loop.rounds for loop in loops), most, *size)
        value = record(rec, owner, name, args, {**kwargs, "size": counts})
        number, body = len(rec.draws.made) - 1, rec.blocks[-1]
        rec.draws.made[number].of_rounds = True
        draws = RoundDraws(number, value, call, loops[0], body, most)
        rec.draws.in_loops[key] = draws
    elif draws.body is not rec.blocks[-1] or draws.call != call:
        raise trace_error(f"{what} is called in a loop that draws otherwise, too", HINT)
    number, draws.count = draws.count, draws.count + 1
    if draws.count > draws.most:
        inner.draws_again(key, draws.count)
        number = 0
    places = (*(loop.number() for loop in loops), number)
    element = wrap(rec, draws.value)[places]
    if size:
        return op("copy", element)  # to which the function may write
    return element if name in _OF_NUMPY else op("item", element)


def _loops(rec: Recorder, what: str) -> list[RecordedLoop]:
    """The loops that are recorded, the innermost one last; raises TraceError for what else is."""
    loops = list(rec.source.open) if rec.source is not None else []
    if rec.draws.repeating(rec.blocks) != len(loops) or not all(loop.runs_each_round_once for loop in loops):
        raise trace_error(
            f"{what} is called in a branch or in a loop that may end early: which numbers are drawn must not "
            "depend on what runs",
            HINT,
        )
    return loops  # type: ignore[return-value]


def _taken_apart(name: str, args: tuple, kwargs: dict[str, Any], what: str) -> tuple[tuple, dict[str, Any], tuple]:
    """The arguments of a draw without its size, and that size."""
    at = METHODS[name]
    size = kwargs.get("size", args[at] if len(args) > at >= 0 else None)
    others = {k: x for k, x in kwargs.items() if k != "size"}
    # Integers of few bits are taken several at a time from what a generator gives.
    is_plain = name in _FILL and len(args) <= at + 1 and "dtype" not in others
    if not is_plain or size == () or any(np.ndim(x) for x in (*args[:at], *others.values())):
        raise trace_error(f"{what} of this kind is called in a loop", HINT)
    sizes = () if size is None else size if isinstance(size, tuple) else (size,)
    return args[:at], others, sizes
