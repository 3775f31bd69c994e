"""The race of Python and a graph's plan: the calls of both are timed.

A plan that emitted code cannot run is dispatched in Python, op by op where there is no kernel. For
small arrays, and for loops that no kernel has, the user's own function takes less time. A user
never pays for having written `jit`: after a plan is there, its first calls alternate.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

from ...dialect.dataclass import dataclass
from ..arguments.plain_calls import magnitude
from .verdict import Cause, Verdict

_KEPT = 32  # classes of sizes
_TIMES = 4  # calls of each
_CLOSE = 2.0  # the one takes less than so many times as long as the other
_TIMES_IF_CLOSE = 12  # calls of each then: on a busy machine, few are as fast as they can be
# A plan that takes this part of Python's time is not compared any further, by the calls of Python's
# there have been: the first ones may have been slow.
_CLEAR = (0.0, 0.2, 0.5, 0.7)
_SLICE = 0.05  # seconds for which a busy machine may stop a thread: one call that takes less may be a stopped one
_EQUAL = 0.95  # Python has to take less than this part of the plan's time
_SURE = 0.01  # seconds of a plan, of which what a first call does besides is a small part
_FAR = 0.3  # Python, with less than this part of the time of a long plan, is not compared any further
_LONG = 0.05  # seconds of a call of the plan: nobody waits that long to find out about Python's


@dataclass(eq=False)
class Race:
    """The least times of a call, in seconds, of one class of sizes.

    Attributes:
        plan: of the plan.
        python: of the user's function.
        plans: calls of the plan.
        pythons: calls of the function.
        is_pythons: Python has won; None = nothing is decided.
    """

    plan: float = inf
    python: float = inf
    plans: int = 0
    pythons: int = 0
    is_pythons: bool | None = None

    def note(self, seconds: float, *, is_python: bool) -> None:
        """Add a call."""
        if is_python:
            self.python, self.pythons = min(self.python, seconds), self.pythons + 1
        else:
            self.plan, self.plans = min(self.plan, seconds), self.plans + 1

    def verdict(self, *, may_be_long: bool) -> Verdict | None:
        """The verdict that Python runs the next call; None = the plan does.

        ``may_be_long``: Python's time may be any multiple of the plan's, as for loops.
        """
        if self.is_pythons is None:
            self._decide(may_be_long)
        if self.is_pythons is not None:
            return Cause.LOST.verdict if self.is_pythons else None
        return Cause.RACE.verdict if 1 < self.plans > self.pythons else None

    def _decide(self, may_be_long: bool) -> None:
        if _SURE < self.plan < inf and self.python < _FAR * self.plan:
            self.is_pythons = True
        elif self.plans < 2:  # the first one may have made memory, or loaded code
            return
        elif self.python == inf:
            if may_be_long or self.plan > _LONG:
                self.is_pythons = False
        elif self._is_clear():
            self.is_pythons = False
        elif min(self.plans, self.pythons) >= self._times():
            self.is_pythons = self.python < _EQUAL * self.plan

    def _is_clear(self) -> bool:
        """True if the plan takes so much less that Python need not run more calls."""
        if self.pythons == 1 and self.python < _SLICE:
            return False
        return self.plan < self.python * _CLEAR[min(self.pythons, len(_CLEAR) - 1)]

    def _times(self) -> int:
        """The number of calls of each that decides."""
        is_close = self.plan < self.python * _CLOSE and self.python < self.plan * _CLOSE
        return _TIMES_IF_CLOSE if is_close else _TIMES


class Races:
    """The races of one graph, by the magnitudes of its arguments."""

    def __init__(self) -> None:
        self._races: dict[tuple[int, ...], Race] = {}

    def of(self, leaves: Sequence[Any]) -> Race:
        """The race of calls with arguments like these."""
        key = tuple([magnitude(leaf) for leaf in leaves])
        race = self._races.get(key)
        if race is None:
            race = Race()
            if len(self._races) < _KEPT:
                self._races[key] = race
        return race

    def restart(self) -> None:
        """Forget the times of a plan that is no longer used; Python's hold."""
        for race in self._races.values():
            race.plan, race.plans, race.is_pythons = inf, 0, None

    def lost(self) -> list[Race]:
        """Those that Python has won."""
        return [race for race in tuple(self._races.values()) if race.is_pythons]
