"""The verdicts that stand on calls of one function, and what has been told of them.

To flatten a call, to find its graph and to find that there is none takes up to a hundred times as
long as Python takes for a short function. So a verdict on one call holds for those that look like it.
An outline tells less than a look, hence one call in many is looked at all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ...dialect.errors import InternalError, ProfuseError, TraceError
from ...dialect.importers.numpy.tracing.current import current
from ...dialect.reasons import Kind, Reason
from ..arguments.plain_calls import outline, outline_of_kinds, sized_outline, valued_outline
from ..settings.events import log
from ..settings.fork_lock import ForkLock
from ..settings.knobs import knobs
from .patience import Patience
from .recursion import Recursion
from .verdict import Cause, Verdict

_GUARDED = 3  # refusals per kind of call that hold for some numbers alone; the next holds for all
# A trace that gets too long has a guard for each round. The first ones tell calls apart: to look at
# all would take longer than Python takes for the call.
_LOOKED_AT = 8
_REFUSALS = 256  # kinds of calls, which may hold objects
_KEPT = 1024  # outlines, and keys of calls without containers

Outline = Callable[[tuple, dict[str, Any]], Hashable]


class Verdicts:
    """The verdicts on calls by one kind of outline.

    Args:
        outline: of a call; None for calls of which it tells too little.
        cause: that of each verdict.
        most: how many calls are left unseen at most; see `Patience`.

    Attributes:
        left: how many calls of each outline are left to Python.
    """

    def __init__(self, outline: Outline, cause: Cause, most: int = Patience.most) -> None:
        self._outline, self._verdict, self._most = outline, cause.verdict, most
        self.left: dict[Hashable, Patience] = {}
        self._mixed: dict[Hashable, None] = {}  # outlines that calls with graphs have, too

    def find(self, args: tuple, kwargs: dict[str, Any]) -> Verdict | None:
        """The verdict that stands for a call; None = it is to be looked at."""
        patience = self.left.get(self._outline(args, kwargs))
        return None if patience is None or not patience.passes() else self._verdict

    def propose(
        self, args: tuple, kwargs: dict[str, Any], patience: Patience | None = None, of_all: bool = False
    ) -> bool:
        """Leave calls like one that was looked at to Python; returns whether that could be noted.

        ``patience``: has the calls that pass unseen; None = ever more. ``of_all``: those with a graph as well.
        """
        key = self._outline(args, kwargs)
        if key is None or (key in self._mixed and not of_all):
            return False
        entry = self.left.get(key)
        if entry is None and len(self.left) >= _KEPT:  # of objects that are gone, for the most part
            self.left.clear()
        if entry is None:
            entry = self.left[key] = Patience(most=self._most)
        if patience is None:
            entry.lengthen()
        else:
            entry.take(patience)
        return True

    def drop(self, args: tuple, kwargs: dict[str, Any]) -> None:
        """Look at all calls like this one from now on: it has a graph."""
        if not self.left:
            return
        key = self._outline(args, kwargs)
        if self.left.pop(key, None) is not None and len(self._mixed) < _KEPT:
            self._mixed[key] = None

    def clear(self) -> None:
        """Look at each call again."""
        self.left.clear()


class NoGraph(Exception):
    """The proposal that Python runs a call, and others like it.

    Args:
        cause: why.
        error: what stands in the way; None = it is known already, or the function raised an error.
        raised: the error that the function itself raised while it was traced.
        by: which outline tells calls that have none either; None = that is not known.
        patience: how long others with the same outline are left unseen; None = for ever longer.
        of_all: so are those that have a graph.

    Attributes:
        key: of the calls without a graph, if it is not known yet whether Python raises the same.
    """

    def __init__(
        self,
        cause: Cause,
        error: ProfuseError | None = None,
        *,
        raised: Exception | None = None,
        by: Verdicts | None = None,
        patience: Patience | None = None,
        of_all: bool = False,
    ) -> None:
        super().__init__()
        self.verdict = cause.verdict
        self.error, self.raised, self.by, self.patience, self.of_all = error, raised, by, patience, of_all
        self.key: Hashable | None = None

    def disproved(self) -> ProfuseError:
        """The error of a graph's trace where Python raises nothing."""
        error = self.error or self.raised
        message, loc = (error.what, error.loc) if isinstance(error, ProfuseError) else (error, None)
        return TraceError(f"the trace raised {type(error).__name__} ({message}), and Python did not", loc=loc)


class Ledger:
    """The verdicts of one function.

    Args:
        name: what the function is called in messages.

    Attributes:
        by_kinds, by_identities, by_values: verdicts by an outline of arguments: on other objects
            and texts of the same kinds, on the same ones, on the same numbers.
        sooner: calls that Python takes less time for.
        reasons: why calls are Python's, by the words; each has been told once.
        latest: by which the latest call was Python's; None = its graph was run.
        recursion: where a trace has recursed too deeply.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = ForkLock()
        self._refused: dict[Hashable, list[Verdict]] = {}
        self._flat: dict[tuple | None, Verdict] = {}
        self.by_kinds = Verdicts(outline_of_kinds, Cause.OUTLINE)
        self.by_identities = Verdicts(outline, Cause.OUTLINE)
        self.by_values = Verdicts(valued_outline, Cause.OUTLINE)
        self.sooner = Verdicts(sized_outline, Cause.SOONER, most=Patience.first)
        self._unseen: list[Verdicts] = []  # those that know of calls
        self.reasons: dict[str, Reason] = {}
        self.latest: Verdict | None = None
        self.recursion: Recursion | None = None

    def find(self, flat: tuple | None, args: tuple, kwargs: dict[str, Any]) -> Verdict | None:
        """The verdict that stands for a call without a look at its arguments; None = it has to be flattened.

        One call in many of an outline is, since its structure may be another one, and so is each
        that is being traced.
        """
        if flat is not None and (verdict := self._flat.get(flat)) is not None:
            return verdict
        for table in self._unseen:
            if table.left and (verdict := table.find(args, kwargs)) is not None:
                return None if current() is not None else verdict
        return None

    def refused(self, key: Hashable, leaves: Sequence[Any]) -> NoGraph | None:
        """The refusal of a call that is known to have no graph; None = it is not."""
        for verdict in self._refused.get(key, ()):
            if verdict.holds(leaves):
                return NoGraph(verdict.cause, by=self.by_values if verdict.guards else self.by_identities)
        return None

    def propose(self, refused: NoGraph, flat: tuple | None, args: tuple, kwargs: dict[str, Any]) -> None:
        """Leave calls that look like one without a graph to Python, without a look."""
        by, patience = refused.by, refused.patience
        if by is None:
            return
        with self._lock:
            if flat is not None and patience is None and by is not self.by_values:
                if len(self._flat) < _KEPT:  # the key tells all that decides
                    self._flat[flat] = Verdict(Cause.KEY, flat)
            elif by.propose(args, kwargs, patience, refused.of_all):
                every = self.by_kinds, self.by_identities, self.by_values
                self._unseen = [table for table in every if table is by or table in self._unseen]

    def propose_sooner(self, args: tuple, kwargs: dict[str, Any]) -> None:
        """Leave calls like one that Python takes less time for: to find its graph takes time as well."""
        if knobs.demote:
            self.sooner.propose(args, kwargs)

    def refuse(self, key: Hashable, error: ProfuseError) -> None:
        """Leave calls of a kind to Python from now on: a trace was refused with ``error``."""
        reason = self.tell(error)
        with self._lock:
            while len(self._refused) >= _REFUSALS and key not in self._refused:
                del self._refused[next(iter(self._refused))]
            verdicts = self._refused.setdefault(key, [])
            guards = tuple(error.guards)[:_LOOKED_AT] if isinstance(error, TraceError) else ()
            verdicts.append(Verdict(Cause.REFUSED, key, guards if len(verdicts) < _GUARDED else (), reason))

    def withdraw(self, args: tuple, kwargs: dict[str, Any]) -> None:
        """Look at calls like this one, which has a graph."""
        for table in self._unseen:
            table.drop(args, kwargs)

    def look_again(self) -> None:
        """Look at each call again: a knob that leaves calls to Python has changed."""
        with self._lock:
            self._flat.clear()
            for table in (*self._unseen, self.sooner):
                table.clear()

    def tell(self, error: ProfuseError) -> Reason:
        """Tell why a call has no graph, once."""
        reason = Reason.of_error(Kind.NO_GRAPH, error, subject=self._name)
        self.tell_reason(reason, str(error))
        return reason

    def tell_reason(self, reason: Reason, event: str) -> None:
        """Tell why a call is Python's, once."""
        with self._lock:
            is_new = reason.told not in self.reasons
            self.reasons.setdefault(reason.told, reason)
        if is_new:
            log("python", self._name, event)

    def note_recursion(self) -> None:
        """Have Python run all calls within those whose trace recurses too deeply."""
        with self._lock:
            self.recursion = self.recursion or Recursion()

    def why_no_graph(self, refused: NoGraph | None) -> str:
        """The reasons why graphs cannot hold calls of the function, this one among them; empty if they can."""
        reasons = [reason for reason in self.reasons.values() if reason.kind is Kind.NO_GRAPH]
        if not reasons and refused is not None and refused.error is not None:
            reasons = [Reason.of_error(Kind.NO_GRAPH, refused.error, subject=self._name)]
        return "; ".join(f"{self._name} runs {reason.told}" for reason in reasons)

    def explain(self) -> list[str]:
        """One sentence per reason."""
        return [f"{self._name} runs {reason.told}" for reason in self.reasons.values()]


def is_lasting(error: ProfuseError) -> bool:
    """True if an error of a trace is about graphs, and says nothing of the program's own faults."""
    return isinstance(error, (TraceError, InternalError))
