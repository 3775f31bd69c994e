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
from ...dialect.importers.tracing.pytree import flatten
from ...dialect.importers.tracing.trace_guards import TraceGuard
from ...dialect.reasons import Kind, Reason
from ..arguments.plain_calls import outline, sized_outline
from ..memory.destinations import Destinations
from ..settings.events import Counters, log
from ..settings.fork_lock import ForkLock
from ..settings.knobs import knobs
from ..settings.plain import debugger

if TYPE_CHECKING:
    from .recursion import Recursion

_GUARDED = 3  # refusals per kind of call that hold for some numbers alone; the next holds for all
# A trace that gets too long has a guard for each round. The first ones tell calls apart: to look at
# all would take longer than Python takes for the call.
_LOOKED_AT = 8
_FLAT = 1024  # keys of calls that are known to be Python's
_UNSEEN = 64  # calls of a known outline that are not looked at, as one more might have a graph


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
        lasts: it is known of all calls of this structure, whatever their numbers are.

    Attributes:
        key: of the calls without a graph, if it is not known yet whether Python raises the same.
    """

    def __init__(
        self, error: ProfuseError | None = None, *, raised: Exception | None = None,
        lasts: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.error, self.raised, self.lasts = error, raised, lasts
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
    """

    def __init__(self, fn: Callable[..., Any], name: str, counters: Counters) -> None:
        self._fn, self._name, self._counters = fn, name, counters
        self._lock = ForkLock()
        self._refusals: dict[Hashable, list[_Refusal]] = {}
        self._flat: dict[tuple, None] = {}
        self._outlines: dict[tuple, list[None]] = {}  # -> as many calls as Python takes unseen
        self._mixed: dict[tuple, None] = {}  # outlines that calls with graphs have, too
        self._sooner: dict[tuple, list[None]] = {}  # -> as many calls as Python runs without a race
        self.reasons: dict[str, Reason] = {}
        self.is_last = False  # the last call was one of these
        self.recursion: Recursion | None = None  # where a trace has recursed too deeply

    def serves(self, flat: tuple | None) -> bool:
        """True if all calls with this flat key are Python's."""
        return flat is not None and flat in self._flat

    def takes(self, args: tuple, kwargs: dict[str, Any]) -> bool:
        """True if a call is taken for Python's by its outline alone, without being flattened.

        One in some calls of an outline is not, since its structure may be another one.
        """
        if not self._outlines:
            return False
        left = self._outlines.get(outline(args, kwargs))
        if not left:
            return False
        left.pop()
        return True

    def runs_sooner(self, args: tuple, kwargs: dict[str, Any]) -> bool:
        """True if Python takes less time for calls like this one, which is not looked at then.

        One in some calls is, as there may be another plan.
        """
        if not self._sooner:
            return False
        left = self._sooner.get(sized_outline(args, kwargs))  # type: ignore[arg-type]
        if not left:
            return False
        left.pop()
        return True

    def note_sooner(self, args: tuple, kwargs: dict[str, Any]) -> None:
        """Note that Python takes less time for a call: to find its graph takes time as well."""
        key = sized_outline(args, kwargs) if knobs.demote else None
        if key is not None and (key in self._sooner or len(self._sooner) < _FLAT):
            self._sooner[key] = [None] * _UNSEEN

    def forget_sooner(self) -> None:
        """Look at each call again: the knob that leaves calls to Python has changed."""
        self._sooner.clear()

    def note_outline(self, args: tuple, kwargs: dict[str, Any], *, has_graph: bool) -> None:
        """Note of a call that has been flattened whether there is a graph for it."""
        if has_graph and not self._outlines:
            return
        key = outline(args, kwargs)
        with self._lock:
            if not has_graph:
                if key not in self._mixed and len(self._outlines) < _FLAT:
                    self._outlines[key] = [None] * _UNSEEN
            elif self._outlines.pop(key, None) is not None and len(self._mixed) < _FLAT:
                self._mixed[key] = None

    def find(self, key: Hashable, leaves: Sequence[Any], flat: tuple | None) -> _Refusal | None:
        """Why a call is Python's, if it is; calls with its flat key are found sooner then."""
        for refusal in self._refusals.get(key, ()):
            if refusal.holds(leaves):
                if flat is not None and not refusal.guards and len(self._flat) < _FLAT:
                    self._flat[flat] = None
                return refusal
        return None

    def note(self, key: Hashable, error: ProfuseError) -> None:
        """Leave calls of a kind to Python from now on: a trace was refused with ``error``."""
        reason = self.tell(error)
        with self._lock:
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
        self._count()
        detail = debugger() or ""
        self._tell(Reason(Kind.DEBUGGED, detail=detail, subject=self._name), detail)

    def _count(self, *, is_last: bool = True) -> None:
        self._counters.calls += 1
        self._counters.python_calls += 1
        self.is_last = is_last

    def _note_recursion(self) -> None:
        from .recursion import Recursion  # few functions recurse

        with self._lock:
            self.recursion = self.recursion or Recursion()

    def call(
        self, refused: Refused | None, args: Sequence[Any], kwargs: dict[str, Any], *,
        meanwhile: bool = False,
    ) -> Any:  # fmt: skip
        """Run a call in Python; ``meanwhile``: until the code of a graph is there.

        Raises what the function raises; in place of an exception of NumPy's the one of the trace,
        if that is of the same kind and has its text, as it tells the line.
        """
        self._count(is_last=not meanwhile)
        error = refused.error if refused is not None else None
        if refused is not None and isinstance(refused.raised, RecursionError):
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


def _tells(error: ProfuseError, raised: Exception) -> bool:
    """True if an error of a trace says all that an exception of Python's says."""
    return isinstance(error, type(raised)) and str(raised).strip() in str(error)


def is_lasting(error: ProfuseError) -> bool:
    """True if an error of a trace is about graphs, and says nothing of the program's own faults."""
    return isinstance(error, (TraceError, InternalError))


__all__ = ["PythonCalls", "Refused", "is_lasting"]
