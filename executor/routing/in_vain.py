"""Calls of one kind with other objects, numbers or attributes each time: a graph for each would serve few.

An object is part of the structure of a call, a number that decides what is recorded holds for its
graph, and so does what the function reads of objects. A trace takes much longer than Python takes for
a call of a short function. So where new ones come again and again, Python runs the calls, and only
one in many is traced.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...dialect.dataclass import dataclass
from ...dialect.errors import TraceError
from ...dialect.trees.pytree import TreeDef
from ...dialect.trees.static_objects import real
from .patience import TRIES, Patience

if TYPE_CHECKING:
    from ..functions.variants import Variant

_REFUSED = 4  # so many graphs of the `TRIES` is a trace that was refused, and would be again
_LOOK = 1e-4  # seconds of a look at a call with objects or containers, or somewhat more
_GAIN = 0.5  # the part of Python's time that a graph may save


@dataclass(eq=False)
class _Traced:
    """A trace of the kind.

    Attributes:
        keys: the objects, texts and the like it was made for.
        variant: its graph; None = it was refused, or the graph has been dropped.
        weight: so many of the `TRIES` it counts for.
        seconds: what it took.
        before: calls of the graph before it, which may have been that of an earlier trace.
        served: calls since, once there is a later trace of the graph.
    """

    keys: list[Any]
    variant: Variant | None
    weight: int
    seconds: float
    before: int = 0
    served: int | None = None

    @property
    def calls(self) -> int:
        """The calls that the trace has served."""
        variant = self.variant  # read once, as another thread may drop it
        if variant is None or self.served is not None:
            return self.served or 0
        return _calls_of(variant) - self.before

    def pays(self, python: float | None) -> bool:
        """True if it has served as many calls as pay for it; ``python``: seconds of one there, if known."""
        if python is None:
            return self.calls >= TRIES
        return self.calls * python * _GAIN >= self.seconds


class LatestTraces:
    """The latest traces of calls of one kind: of arguments of the same structure, dtypes, ranks and classes."""

    def __init__(self) -> None:
        self._latest: deque[_Traced] = deque(maxlen=TRIES)
        self._error: TraceError | None = None  # of the latest check, until there is another trace
        self.patience = Patience()
        self.patience.lengthen()

    def check(self, tree: TreeDef) -> None:
        """Raise TraceError if it does not pay to trace one more call, of this structure."""
        rows = self._in_vain()
        if not rows or self._is_tried():
            return
        if self._error is None:
            self._error = self._told(rows, tree.static_keys())
        raise self._error

    @property
    def is_short(self) -> bool:
        """True if Python takes less time for a call than the look at whether there is a graph."""
        python = self._python_seconds()
        return python is not None and python < _LOOK

    def _in_vain(self) -> list[_Traced]:
        """The latest traces, the last one first, if they are many and none has paid; else none."""
        python = self._python_seconds()
        weight, rows = 0, []
        for traced in reversed(tuple(self._latest)):  # other threads add some
            if traced.pays(python):
                return []
            rows.append(traced)
            weight += traced.weight
            if weight >= TRIES:
                return rows
        return []

    def _python_seconds(self) -> float | None:
        """The mean time of the calls that Python has run while there was no code; None = there were none."""
        graphs = [v for t in tuple(self._latest) if (v := t.variant) is not None]
        trials = {id(v.trial): v.trial for v in graphs}
        calls = sum(trial.python_calls for trial in trials.values())
        return sum(trial.python_seconds for trial in trials.values()) / calls if calls else None

    def _is_tried(self) -> bool:
        """True if a call is traced, though the traces before it were in vain."""
        if self.patience.passes():
            return False
        self.patience.lengthen()
        return True

    @staticmethod
    def _told(rows: list[_Traced], keys: list[Any]) -> TraceError:
        """The error that says what is another one at each call."""
        places = [k for k, x in enumerate(keys) if _differ([x, *(row.keys[k] for row in rows)])]
        if places:
            kinds = ", ".join(sorted({type(real(keys[k])).__name__ for k in places}))
            return TraceError(
                f"the arguments are, or hold, other objects at each call ({kinds}): each call would "
                "have a graph of its own",
                hint="pass the arrays and numbers, or use the same objects again",
            )
        traces = [v.trace for row in rows if (v := row.variant) is not None]
        if len(traces) > 1 and traces[0].guards:
            before = {guard.text: guard.expected for guard in traces[1].guards}
            others = (g for g in traces[0].guards if before.get(g.text, g.expected) != g.expected)
            guard = next(others, traces[0].guards[-1])
            return TraceError(
                f"{guard.text} is needed as a number and changes from call to call: each value would be a graph of its "
                "own",
                loc=guard.loc,
                hint="pass an array with all values, and compute with it at once",
            )
        return changing({read.place.name for trace in traces for read in trace.changed()})

    def note(self, tree: TreeDef, variant: Variant | None, seconds: float) -> None:
        """Note a trace that took so many seconds, and its graph; None = it was refused."""
        before, keys = 0, tree.static_keys()
        if variant is None and not keys:
            return  # the refusal holds for all calls with such arguments
        if variant is not None:
            for traced in self._of(variant):
                traced.served = traced.calls
            before = _calls_of(variant)
        self._error = None
        self._latest.append(_Traced(keys, variant, 1 if variant is not None else _REFUSED, seconds, before))

    def forget(self, variant: Variant) -> None:
        """Note that a graph is dropped, and hold it no longer."""
        for traced in self._of(variant):
            traced.served, traced.variant = traced.calls, None

    def _of(self, variant: Variant) -> list[_Traced]:
        """The traces of a graph."""
        return [t for t in tuple(self._latest) if (v := t.variant) is not None and v.executor is variant.executor]


def changing(names: set[str]) -> TraceError:
    """The error for what a function reads, and what is another one again and again."""
    return TraceError(
        f"{', '.join(sorted(names)) or 'a captured array'} is read by the function and "
        "changes from call to call: each value would be a graph of its own",
        hint="pass it as an argument",
    )


def _calls_of(graph: Variant) -> int:
    return graph.executor.counters.current().calls


def _differ(objects: Sequence[Any]) -> bool:
    """True if no two of these are equal; 1 and True are two things."""
    return len({(type(x), x) for x in objects}) == len(objects)
