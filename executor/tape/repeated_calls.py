"""How calls of jitted functions in a checkpointed call were served, so that its second run is as the first.

A jitted function is run by Python, profiled and compiled meanwhile, in the background too. Each of these notes
nodes of its own, which save other arrays, and has other last bits. So what the nodes of the first run have saved is
computed again by what ran then: by Python, or by the same plans.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..settings.plain import CHECKPOINT, asked


class RepeatedCall:
    """How one call was served.

    Attributes:
        is_python: Python ran the function; its calls of others follow.
        graph: the graph that ran it on the tape; None = Python did, or no array of the tape was given.
        plans: those that ran the graph, with fallbacks and halves of subgraphs, in their order.
    """

    __slots__ = ("graph", "is_python", "plans")

    def __init__(self) -> None:
        self.is_python, self.graph = False, None
        self.plans: list[Any] = []


class Repeats:
    """The calls in a checkpointed call, in their order.

    Attributes:
        current: the call that is being served.
        is_second: they are served as noted; False = they are being noted.
    """

    def __init__(self) -> None:
        self._calls: list[RepeatedCall] = []
        self._left: Iterator[RepeatedCall] = iter(())
        self._plans: Iterator[Any] = iter(())
        self.current: RepeatedCall | None = None
        self.is_second = False

    @property
    def is_exact(self) -> bool:
        """True if the second run has the bits of the first: no graph without a plan of its own is noted."""
        return all(call.is_python or call.graph is not None for call in self._calls)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note the calls of this thread in the block."""
        with _open(self):
            yield

    @contextmanager
    def repeated(self) -> Iterator[None]:
        """Have the calls of this thread in the block served as noted."""
        self._left, self.is_second = iter(self._calls), True
        with _open(self):
            yield

    @contextmanager
    def call(self) -> Iterator[RepeatedCall]:
        """How the call in the block is to be served; where that is new, to be filled in."""
        before, plans = self.current, self._plans
        served = next(self._left, None) if self.is_second else None
        if served is None:
            served = RepeatedCall()
            if not self.is_second:
                self._calls.append(served)
        self.current, self._plans = served, iter(served.plans)
        try:
            yield served
        finally:
            self.current, self._plans = before, plans

    def note_python(self) -> None:
        """Note that Python runs the function of the present call."""
        if self.current is not None and not self.is_second:
            self.current.is_python = True

    def note_graph(self, graph: Any) -> None:
        """Note the graph that runs the present call on the tape."""
        if self.current is not None and not self.is_second:
            self.current.graph = graph

    def plan(self, plan: Any) -> Any:
        """The plan to run, which is this one where none is noted."""
        served = self.current
        if served is None or served.graph is None:
            return plan
        if self.is_second:
            return next(self._plans, plan)
        served.plans.append(plan)
        return plan


@contextmanager
def _open(repeats: Repeats) -> Iterator[None]:
    before, CHECKPOINT.repeats = CHECKPOINT.repeats, repeats
    try:
        with asked():
            yield
    finally:
        CHECKPOINT.repeats = before
