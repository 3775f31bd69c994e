"""``raise`` and ``assert`` where contents decide: what makes a run void, so that Python repeats it.

The branch that raises is not recorded. What follows is recorded as if it were not taken, and a bool
says whether that is so: `require` makes the run void where it is not. Python then runs the call, on
arguments that nothing has written yet: the exception, its text, its traceback and all effects
before it are Python's. The bool is an output of the graph, so that nothing drops it, and it is
carried by loops and joined by branches as an item that they change (`places`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..tracing.current import contents_error, user_loc
from ..tracing.operators import as_value, op, wrap
from ..tracing.traced_control import required
from ..tracing.traced_scalar import TracedScalar

if TYPE_CHECKING:
    from ..tracing.recorder import Recorder

_PASSED = "passed"
_TOLD = "the function raises an exception here"


class Exits:
    """The exits of one trace.

    Attributes:
        held: what says that none has been taken, behind what has been recorded; a dict, as a
            statement that is recorded looks for items that it changes.
    """

    def __init__(self, rec: Recorder) -> None:
        self._rec = rec
        self.held: dict[str, Any] = {}

    @property
    def output(self) -> tuple[int, ...]:
        """The outputs of the graph besides its results."""
        return tuple([as_value(self._rec, passed) for passed in self.held.values()])

    def begin(self) -> None:
        """Have statements that are recorded from now on carry whether an exit has been taken."""
        self.held.setdefault(_PASSED, wrap(self._rec, self._rec.constant(np.True_)))

    def leave_unless(self, holds: Any, depth: int, message: str | None = None) -> None:
        """Make runs void for which a traced bool is false.

        ``depth``: of the block of the innermost statement that is being recorded; ``message``: of the
        exception of a model, which no Python repeats. Raises TraceError where Python may not do so, and within an
        expression of which one side alone is computed.
        """
        why = ""
        if not self._rec.takes_writes:
            why = "Python may not repeat the call here"
        if len(self._rec.blocks) != depth:
            why = "this is in the middle of another statement"
        if why:
            raise contents_error(
                "whether the function raises an exception depends on an array's contents, which "
                f"are not known while tracing, and {why}",
                "raise it outside of the function",
            )
        self.begin()
        self._rec.remark(f"a run for which {user_loc()} raises an exception is void: Python repeats it")
        is_models = message is not None
        self.held[_PASSED] = op("require", self.held[_PASSED], holds, message=message or _TOLD, of_model=is_models)

    def also(self, condition: Any) -> Any:
        """A traced bool that is true where a condition is, and no exit has been taken.

        A loop that goes on as long as this is true waits for the exits before it: it might not end
        for what these are there to keep out.
        """
        for passed in self.held.values():
            condition = op("bitwise_and", condition, passed)
        return condition

    def bounded(self, bound: Any) -> Any:
        """The bound of a loop, which contents may decide: the exits before it come first."""
        if type(bound) is TracedScalar and bound.is_open:
            for passed in self.held.values():
                bound = required(bound, passed, _TOLD)
        return bound
