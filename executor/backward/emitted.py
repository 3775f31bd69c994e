"""Captured runs in emitted code: their guards and kernels without Python (docs/dispatch.md).

A graph that calls code of users before its end has none, nor has one that writes gradients of many bytes to saved
arrays that nobody else holds, which emitted code does not look for.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ...dialect.trees.leaves import leaf_kind
from ...dialect.trees.pytree import flatten
from ..dispatch.dispatcher import Dispatcher, PositionalGraph
from ..plans.plan import PLANS, Plan
from ..tiers.choice import AnyExecutor
from ..tiers.release import SWITCH

_OFTEN = 8  # runs by a plan of Python, after which code is emitted
_SMALL = 1 << 15  # bytes of a saved array that is as well left alone


class EmittedRuns(PositionalGraph):
    """Keeps the emitted code of a captured graph up to date.

    Args:
        executor: of the graph.
        name: of the run.
        count: of results.
        slow: runs the graph in Python, given the inputs by position.
    """

    counts_calls: ClassVar[bool] = True

    def __init__(self, executor: AnyExecutor, name: str, count: int, slow: Callable[..., Any]) -> None:
        self.executor = executor
        _, self.results = flatten((0,) * count)
        self.dispatcher = Dispatcher(name, _told(slow, weakref.ref(self)))
        self._call: Callable[..., Any] | None = None
        self._plan: Plan | None = None  # that the code is for
        self._left = _OFTEN
        self._seen = -1  # how many plans there were when code was last asked for

    @property
    def call(self) -> Callable[..., Any] | None:
        """The code, if it is for the executor's present plan."""
        if self._call is None or SWITCH.on or self.executor.settled is not self._plan:
            return None
        return self._call

    def wants(self, inputs: Sequence[Any]) -> bool:
        """Count a run in Python; whether code should be emitted, for inputs like these."""
        plan = self.executor.settled
        if plan is None or plan.kind != "optimized" or self._seen == PLANS.count:
            return False
        self._left -= 1
        if self._left > 0:
            return False
        self._left, self._seen = _OFTEN, PLANS.count
        if any(inputs[k].nbytes > _SMALL for _, k in plan.donations):
            return False
        if any(x is None for x in inputs):  # emitted code is given arrays and numbers
            return False
        self.kinds = tuple(map(leaf_kind, inputs))
        return self.dispatcher.needs([self])

    def emit(self) -> None:
        """Emit code for the present plans."""
        plan = self.executor.settled
        self.dispatcher.refresh([self])
        self._call, self._plan = self.dispatcher.call, plan


def _told(slow: Callable[..., Any], runs: weakref.ref[EmittedRuns]) -> Callable[..., Any]:
    """``slow``, with misses counted first: guards count the next one behind them."""

    def call(*inputs: Any) -> Any:
        referent = runs()
        if referent is not None:
            referent.dispatcher.add_up_misses()
        return slow(*inputs)

    return call
