"""Verdicts: who serves a call, why, and until when; the causes are all the ways that a call can take.

`docs/ways-of-a-call.md` is made from these enumerations.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from ...dialect.dataclass import dataclass
from ...dialect.reasons import Reason

if TYPE_CHECKING:
    from ...dialect.importers.numpy.tracing.trace_guards import TraceGuard


class Server(Enum):
    """The server of a call: it computes the result."""

    EMITTED = "emitted code"
    PLAN = "a plan"
    INTERPRETER = "op by op"
    PYTHON = "Python"


class Until(Enum):
    """The event that ends a verdict."""

    CALL = "the call ends"
    SETTING = "the setting, or the debugger, ends"
    PATIENCE = "some calls have passed (`Patience`)"
    SWITCH = "`demote` or `unsupported` changes"
    FLUSH = "`flush`"
    RECORD = "the record is ready"
    COMPILED = "code is there"
    PLAN = "there is another plan"


@dataclass(frozen=True)
class Verdict:
    """A decision on who serves a kind of calls.

    Attributes:
        cause: why; it tells the server, and what ends the verdict.
        calls: what the calls have in common: a key, or an outline; None = it is about one call.
        guards: numbers that the calls have in common besides.
        reason: what has been told of the calls; None = nothing, or it is told by the cause alone.
    """

    cause: Cause
    calls: Hashable = None
    guards: Sequence[TraceGuard] = ()
    reason: Reason | None = None

    @property
    def server(self) -> Server:
        """The server of the calls."""
        return self.cause.server

    @property
    def until(self) -> Until:
        """The event that ends the verdict."""
        return self.cause.until

    def holds(self, leaves: Sequence[Any]) -> bool:
        """True if the verdict is about a call with these leaves."""
        return all(guard.holds(leaves) for guard in self.guards)


_NUMBERS = "Calls that compute numbers alone run in Python, which takes less than a plan."


class Cause(Enum):
    """The causes for which a call is served as it is, in the order in which a call meets the causes.

    Attributes:
        step: where it is decided.
        server: who serves the call.
        until: what ends the verdict.
        says: the cause in words.
        verdict: the verdict about one call.
        is_of_alike: calls that look like this one are Python's as well, for a while, without a look for their graph.
    """

    def __init__(self, step: str, server: Server, until: Until, says: str) -> None:
        self.step, self.server, self.until, self.says = step, server, until, says
        self.verdict = Verdict(self)
        self.is_of_alike = step == "serve" and until in (Until.PATIENCE, Until.FLUSH, Until.PLAN)

    EMITTED = "entry", Server.EMITTED, Until.PLAN, "The guards of a settled plan hold."
    ENDING = "entry", Server.PYTHON, Until.CALL, "The interpreter ends, and nothing can be imported."
    DISABLED = "entry", Server.PYTHON, Until.SETTING, "It is switched off: each call is that of the function."
    DEBUGGED = "entry", Server.PYTHON, Until.SETTING, "A debugger is at work."
    RECURSES = "entry", Server.PYTHON, Until.CALL, "A trace has recursed too deeply in a call around this one."
    SOONER = "entry", Server.PYTHON, Until.PATIENCE, "Python took less time for calls of this outline."
    KEY = "look-up", Server.PYTHON, Until.SWITCH, "No graph takes arguments of these dtypes and ranks."
    OUTLINE = "look-up", Server.PYTHON, Until.PATIENCE, "A call of this outline had no graph."
    ARGUMENTS = "look-up", Server.PYTHON, Until.PATIENCE, "No graph can take the arguments."
    REFUSED = "look-up", Server.PYTHON, Until.FLUSH, "A trace of such a call was refused."
    IN_VAIN = "trace", Server.PYTHON, Until.PATIENCE, "The latest traces have served few calls each."
    NO_GRAPH = "trace", Server.PYTHON, Until.FLUSH, "No graph can hold the call."
    RAISED = "trace", Server.PYTHON, Until.PATIENCE, "The trace raised an error, which may be Python's as well."
    ON_TAPE = "serve", Server.PYTHON, Until.CALL, "The tape has to note what the graph does not tell."
    FLOAT_ERRORS = "serve", Server.PYTHON, Until.SETTING, "NumPy is to report floating-point errors."
    RAISES = "serve", Server.PYTHON, Until.PATIENCE, "Most calls raise an exception."
    NUMBERS = "serve", Server.PYTHON, Until.PLAN, _NUMBERS
    COMPILING = "serve", Server.PYTHON, Until.COMPILED, "Python runs the calls meanwhile."
    RACE = "serve", Server.PYTHON, Until.CALL, "Times of the plan and of Python are compared."
    LOST = "serve", Server.PYTHON, Until.PLAN, "Python won the comparison for calls of this size."
    LONG_LOOP = "run", Server.PYTHON, Until.CALL, "Loops take long op by op."
    MEMORY = "run", Server.PYTHON, Until.CALL, "The byte order or the layout of an argument decides the results."
    EFFECTS = "run", Server.PYTHON, Until.CALL, "Effects on arguments that overlap, or on random generators."
    FAILED = "run", Server.PYTHON, Until.CALL, "The run raised an error, which Python raises again."
    NO_OPT = "plan", Server.INTERPRETER, Until.SETTING, "Optimisation or profiling is switched off."
    PROFILING = "plan", Server.INTERPRETER, Until.RECORD, "A run records types."
    INTERIM = "plan", Server.INTERPRETER, Until.COMPILED, "Python may not run the calls, and code is under way."
    SIMPLE = "plan", Server.INTERPRETER, Until.FLUSH, "No depth is left, or the graph could not be compiled."
    DISPATCHED = "plan", Server.PLAN, Until.PLAN, "The plan is not settled, or emitted code cannot run it."
