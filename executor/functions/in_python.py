"""Calls that Python runs as they are, because no graph can hold them.

A jitted function never refuses a program (`jit(unsupported="python")`): what a trace cannot hold
runs as it would without `jit`, on the arguments as they were given, so with the effects, the
results and the exceptions of plain NumPy. Such calls are counted (``python_calls``), and `explain`
tells the line that made them so.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from ...dialect.dataclass import dataclass
from ...dialect.errors import InternalError, ProfuseError, TraceError
from ...dialect.importers.numpy.tracing.pytree import flatten
from ...dialect.importers.numpy.tracing.trace_guards import TraceGuard
from ...dialect.reasons import Kind, Reason
from ..arguments.plain_calls import (
    Unseen,
    outline,
    outline_of_kinds,
    sized_outline,
    valued_outline,
)
from ..memory.destinations import Destinations
from ..settings.events import Counters, log
from ..settings.fork_lock import ForkLock
from ..settings.knobs import knobs
from ..settings.plain import debugger
from ..settings.strict import RUNS_IN_PYTHON

if TYPE_CHECKING:
    from types import FrameType

    from .in_vain import Patience
    from .recursion import Recursion

_GUARDED = 3  # refusals per kind of call that hold for some numbers alone; the next holds for all
# A trace that gets too long has a guard for each round. The first ones tell calls apart: to look at
# all would take longer than Python takes for the call.
_LOOKED_AT = 8
_REFUSALS = 256  # kinds of calls, which may hold objects
_FLAT = 1024  # keys of calls that are known to be Python's


@dataclass(eq=False)
class _Refusal:
    """Why a trace was refused, and the numbers that had been baked into it by then."""

    guards: Sequence[TraceGuard]
    reason: Reason

    def holds(self, leaves: Sequence[Any]) -> bool:
        return all(guard.holds(leaves) for guard in self.guards)


class Refused(Exception):
    """A call without a graph.

    Args:
        error: why; None = it is known already, or the function raised an error of its own.
        raised: the error that the function itself raised while it was traced.
        by: which outline tells calls that have none either; None = that is not known.
        patience: how long others with the same outline are left unseen; None = for ever longer.

    Attributes:
        key: of the calls without a graph, if it is not known yet whether Python raises the same.
    """

    def __init__(
        self, error: ProfuseError | None = None, *, raised: Exception | None = None,
        by: Unseen | None = None, patience: Patience | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.error, self.raised, self.by, self.patience = error, raised, by, patience
        self.key: Hashable | None = None

    def disproved(self) -> ProfuseError:
        """What stands in the way where Python raises nothing."""
        error = self.error or self.raised
        told, loc = (error.what, error.loc) if isinstance(error, ProfuseError) else (error, None)
        return TraceError(
            f"the trace raised {type(error).__name__} ({told}), and Python did not", loc=loc
        )


class PythonCalls:
    """The calls of one jitted function that Python runs.

    Args:
        fn: the Python function.
        name: what the function is called in messages.
        counters: where the calls are counted.

    Attributes:
        by_kinds, by_identities, by_values: calls that are Python's by an outline of arguments: for
            other objects and texts of the same kinds, for the same ones, for the same numbers.
        sooner: calls that Python takes less time for.
    """

    def __init__(self, fn: Callable[..., Any], name: str, counters: Counters) -> None:
        self._fn, self._name, self._counters = fn, name, counters
        self._lock = ForkLock()
        self._refusals: dict[Hashable, list[_Refusal]] = {}
        self._flat: dict[tuple, None] = {}
        self.by_kinds, self.by_identities = Unseen(outline_of_kinds), Unseen(outline)
        self.by_values, self.sooner = Unseen(valued_outline), Unseen(sized_outline, grows=False)
        self._unseen: list[Unseen] = []  # those that know of calls
        self.reasons: dict[str, Reason] = {}
        self.is_last = False  # the last call was one of these
        self.recursion: Recursion | None = None  # where a trace has recursed too deeply

    def serves(self, flat: tuple | None) -> bool:
        """True if all calls with this flat key are Python's."""
        return flat in self._flat

    def takes(self, args: tuple, kwargs: dict[str, Any]) -> bool:
        """True if a call is taken for Python's by an outline alone, without being flattened.

        One in many is not, since its structure may be another one.
        """
        for unseen in self._unseen:  # noqa: SIM110  (a generator takes as long again)
            if unseen.takes(args, kwargs):
                return True
        return False

    def note_unseen(
        self, refused: Refused, flat: tuple | None, args: tuple, kwargs: dict[str, Any]
    ) -> None:
        """Leave calls that look like one that was refused to Python, without a look."""
        by, patience = refused.by, refused.patience
        if by is None:
            return
        with self._lock:
            if flat is not None and patience is None and by is not self.by_values:
                if len(self._flat) < _FLAT:  # the key tells all that decides
                    self._flat[flat] = None
                return
            if by.note(args, kwargs, None if patience is None else patience.left):
                if patience is not None:
                    patience.skip()
                every = self.by_kinds, self.by_identities, self.by_values
                self._unseen = [u for u in every if u is by or u in self._unseen]

    def note_graph(self, args: tuple, kwargs: dict[str, Any]) -> None:
        """Look at calls like this one, which has a graph."""
        for unseen in self._unseen:
            unseen.drop(args, kwargs)

    def look_again(self) -> None:
        """Look at each call again: a knob that leaves calls to Python has changed."""
        with self._lock:
            self._flat.clear()
            for unseen in (*self._unseen, self.sooner):
                unseen.clear()

    def note_sooner(self, args: tuple, kwargs: dict[str, Any]) -> None:
        """Note that Python takes less time for a call: to find its graph takes time as well."""
        if knobs.demote:
            self.sooner.note(args, kwargs)

    def find(self, key: Hashable, leaves: Sequence[Any]) -> Refused | None:
        """The refusal of a call that is known to be Python's; None = it is not."""
        for refusal in self._refusals.get(key, ()):
            if refusal.holds(leaves):
                return Refused(by=self.by_values if refusal.guards else self.by_identities)
        return None

    def note(self, key: Hashable, error: ProfuseError) -> None:
        """Leave calls of a kind to Python from now on: a trace was refused with ``error``."""
        reason = self.tell(error)
        with self._lock:
            while len(self._refusals) >= _REFUSALS and key not in self._refusals:
                del self._refusals[next(iter(self._refusals))]
            known = self._refusals.setdefault(key, [])
            guards = tuple(error.guards)[:_LOOKED_AT] if isinstance(error, TraceError) else ()
            known.append(_Refusal(guards if len(known) < _GUARDED else (), reason))

    def tell(self, error: ProfuseError) -> Reason:
        """Tell why a trace was refused, once."""
        reason = Reason.of_error(Kind.NO_GRAPH, error, subject=self._name)
        self._tell(reason, str(error))
        return reason

    def _tell(self, reason: Reason, event: str) -> None:
        with self._lock:
            is_new = reason.told not in self.reasons
            self.reasons.setdefault(reason.told, reason)
        if is_new:
            log("python", self._name, event)

    def note_debugged(self) -> None:
        """Count a call that is Python's because of a debugger."""
        self._counters.calls += 1
        self._counters.python_calls += 1
        self.is_last = True
        detail = debugger() or ""
        self._tell(Reason(Kind.DEBUGGED, detail=detail, subject=self._name), detail)

    def _note_recursion(self) -> None:
        from .recursion import Recursion  # few functions recurse

        with self._lock:
            self.recursion = self.recursion or Recursion()

    def call(
        self, refused: Refused | None, args: Sequence[Any], kwargs: dict[str, Any], *,
        meanwhile: bool = False,
    ) -> Any:  # fmt: skip
        """Run a call in Python; ``meanwhile``: for a graph, which counts it, until there is code.

        Raises what the function raises; in place of an exception of NumPy's the one of the trace,
        if that is of the same kind and has its text, as it tells the line.
        """
        counters = self._counters
        counters.python_calls += 1
        counters.calls += not meanwhile
        self.is_last = not meanwhile
        error = None
        if refused is not None:
            counters.python_looks += 1
            error = refused.error
            if isinstance(refused.raised, RecursionError):
                self._note_recursion()
        try:
            if self.recursion is None:
                result = self._fn(*args, **kwargs)
            else:
                with self.recursion.run():
                    result = self._fn(*args, **kwargs)
        except ProfuseError:
            raise
        except Exception as raised:
            if isinstance(raised, RecursionError):
                self._note_recursion()
            if error is not None and not is_lasting(error) and _tells(error, raised):
                raise error from None
            raise
        if refused is not None and refused.key is not None:
            self.note(refused.key, refused.disproved())
        return result

    def why_no_graph(self, frame: FrameType) -> str:
        """Why a graph cannot hold the call that a frame of `call` runs; empty if one can."""
        refused = frame.f_locals["refused"]
        if frame.f_locals["meanwhile"]:
            return ""
        found = [reason for reason in self.reasons.values() if reason.kind is Kind.NO_GRAPH]
        if not found and refused is not None and refused.error is not None:
            found = [Reason.of_error(Kind.NO_GRAPH, refused.error, subject=self._name)]
        return "; ".join(f"{self._name} runs {reason.told}" for reason in found)

    def into(self, refused: Refused, out: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Run a call of `GraphFunction.into` in Python, and copy its results."""
        return self.put(self.call(refused, args, kwargs), out)

    def put(self, result: Any, out: Any) -> Any:
        """Copy what a call has given into ``out``, and return that."""
        results, tree = flatten(result)
        found = Destinations(out, tree, self._name)
        found.fill(results)
        self._counters.output_copies += found.copied
        return out

    def explain(self) -> list[str]:
        """One sentence per reason."""
        return [f"{self._name} runs {reason.told}" for reason in self.reasons.values()]


RUNS_IN_PYTHON.add(PythonCalls.call.__code__)


def _tells(error: ProfuseError, raised: Exception) -> bool:
    """True if an error of a trace says all that an exception of Python's says."""
    return isinstance(error, type(raised)) and str(raised).strip() in str(error)


def is_lasting(error: ProfuseError) -> bool:
    """True if an error of a trace is about graphs, and says nothing of the program's own faults."""
    return isinstance(error, (TraceError, InternalError))


__all__ = ["PythonCalls", "Refused", "is_lasting"]
