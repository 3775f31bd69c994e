"""The draws of a call: random numbers that the function draws, before its graph runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dialect.errors import InternalError
from ...dialect.importers.numpy.capture.trace import Trace
from ...dialect.importers.numpy.python.generators import reentrant, restores, same_state
from ...dialect.importers.numpy.tracing.trace_guards import evaluate
from ...dialect.importers.numpy.world.draws import Input, Number
from ..settings.events import log

if TYPE_CHECKING:
    from ..tiers.choice import AnyExecutor

_MOST = 1 << 27  # bytes of what the rounds of a loop draw; more is drawn by Python, one by one


class Drawing:
    """The draws of one call, which can be taken back.

    Args:
        trace: the graph.
        generators: those of the arguments that draw, by position or name (`Draw.argument`).
    """

    def __init__(self, trace: Trace, generators: Mapping[int | str, Any]) -> None:
        self._draws, self._values = trace.draws, trace.module.main.inputs
        self._generators = [d.generator if d.argument is None else generators[d.argument] for d in self._draws]
        self._bits: list[Any] = []
        self._states: list[tuple[Any, Any, Any]] = []

    @property
    def can_undo(self) -> bool:
        """True if `undo` restores all that the generators keep."""
        return all(map(restores, self._generators))

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Draw; the results are the last inputs of the graph, behind ``inputs``.

        No other thread draws from these generators in between. An error leaves nothing drawn.
        """
        bits = {id(b): b for b in (g.bit_generator for g in self._generators)}
        # In one order, lest two calls wait for each other.
        self._bits = [bits[key] for key in sorted(bits)]
        with _alone(self._bits):
            return self._draw(inputs)

    def _draw(self, inputs: Sequence[Any]) -> list[Any]:
        before = [(b, b.state) for b in self._bits]
        values = dict(zip(self._values, inputs, strict=False))  # behind these come the draws
        try:
            for draw, generator in zip(self._draws, self._generators, strict=True):
                args = [_value(x, inputs, values) for x in draw.args]
                kwargs = {key: _value(x, inputs, values) for key, x in draw.kwargs.items()}
                if draw.of_rounds and 8 * math.prod(kwargs["size"]) > _MOST:
                    raise MemoryError("what all rounds of a loop draw is too much at once")
                result = values[draw.value] = getattr(generator, draw.method)(*args, **kwargs)
                if _kind(result) != draw.kind:
                    raise InternalError("a random generator has returned another kind of result")
        except BaseException:
            for b, state in before:
                b.state = state
            raise
        self._states = [(b, state, b.state) for b, state in before]
        return [values[draw.value] for draw in self._draws]

    def undo(self) -> bool:
        """Take all back; False, and nothing is done, where another thread has drawn since."""
        with _alone(self._bits):
            for bits, _, after in self._states:
                if not same_state(bits.state, after):
                    return False
            for bits, before, _ in self._states:
                bits.state = before
        return True

    def take_back(self, executor: AnyExecutor) -> bool:
        """`undo` where the graph of an executor has failed; that it cannot be done is counted, and told."""
        if self.undo():
            return True
        executor.counters.last_heir().lost_draws += 1
        why = "another thread has drawn between the draws of a call and the moment at which its graph has failed"
        log("draws-lost", executor.options.name, why)
        return False


@contextmanager
def _alone(bits: Sequence[Any]) -> Iterator[None]:
    """No other thread draws from these bit generators meanwhile."""
    with ExitStack() as locks:
        for one in bits:
            # Older versions of NumPy have a lock that the methods could not take once more.
            locks.enter_context(reentrant(one) or nullcontext())
        yield


def drawing_of(trace: Trace, args: Sequence[Any], kwargs: dict[str, Any]) -> Drawing | None:
    """The draws of a call; None if an argument is a generator that the graph is not made for."""
    arguments = (*args, *kwargs.values())
    if any(x is g for g in trace.generators for x in arguments):
        return None
    generators: dict[int | str, Any] = dict(enumerate(args))
    generators.update(kwargs)
    drawing = Drawing(trace, generators)
    return drawing if drawing.can_undo else None


def _kind(x: Any) -> Any:
    return (x.dtype, x.ndim) if type(x) is np.ndarray else type(x)


def _value(x: Any, inputs: Sequence[Any], values: dict[int, Any]) -> Any:
    kind = type(x)
    if kind is Input:
        return values[x.value]
    if kind is Number:
        number = evaluate(x.expr, inputs)
        return x.kind(number) if type(number) is not x.kind else number
    if kind in (tuple, list):
        return kind(_value(item, inputs, values) for item in x)
    return x
