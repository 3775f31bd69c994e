"""Calls that Python runs as they are, because no graph can hold them, or because it takes less time.

A jitted function never refuses a program (`jit(unsupported="python")`): what a trace cannot hold
runs as it would without `jit`, on the arguments as they were given, so with the effects, the
results and the exceptions of plain NumPy. Such calls are counted (``python_calls``), and `explain`
tells the line that made them so.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ...dialect.errors import ProfuseError
from ...dialect.importers.numpy.tracing.current import current
from ...dialect.reasons import Kind, Reason
from ...dialect.trees.pytree import flatten
from ..interpret.loop_limit import LIMITS, within
from ..memory.destinations import Destinations
from ..routing.ledger import NoGraph, is_lasting
from ..routing.verdict import Cause, Verdict
from ..settings.plain import CHECKPOINT, PlainReason, debugger
from ..settings.strict import RUNS_IN_PYTHON
from .device_arguments import PLAIN_KINDS, are_of_host
from .emission import Emission
from .graphs import Graphs

if TYPE_CHECKING:
    from types import FrameType

    from .tensor_reads import TensorReads

_COMPILING = Cause.COMPILING.verdict
Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class ExchangedCall(Protocol):
    """A call that has got arrays in place of tensors."""

    def undone(self, args: tuple, kwargs: dict[str, Any]) -> Arguments:
        """The arguments as the caller has them, for those of the call; for any others these themselves."""

    def note(self, array: np.ndarray, tensor: Any) -> None:
        """Have a tensor be what stands for an array in the results."""


class Exchanging(threading.local):
    """What is under way in a thread.

    Attributes:
        call: the call with tensors that Python has not run yet; None = there is none.
    """

    call: ExchangedCall | None = None


class PythonCalls:
    """Runs calls of one jitted function in Python.

    Args:
        graphs: of the function.
        emission: its emitted code.

    Attributes:
        exchanging: the call with tensors that is under way.
    """

    def __init__(self, graphs: Graphs, emission: Emission) -> None:
        self._fn, self._name, self._counters, self._ledger = graphs.source.fn, graphs.name, graphs.own, graphs.ledger
        self._has_code = graphs.source.has_code
        self._graphs, self._emission = graphs, emission
        self.exchanging = Exchanging()
        self._tensor_reads: TensorReads | None = None

    def as_given(self, args: tuple, kwargs: dict[str, Any]) -> Arguments:
        """The arguments that Python gets for those of a call.

        Where arrays stand for tensors of the caller's, and the function reads other tensors, it gets the caller's:
        NumPy does not compute with both.
        """
        call, self.exchanging.call = self.exchanging.call, None
        return (args, kwargs) if call is None or not self._reads_tensors(args, kwargs) else call.undone(args, kwargs)

    def _reads_tensors(self, args: tuple, kwargs: dict[str, Any]) -> bool:
        """True if the function reads tensors besides its arguments."""
        variants = [v for of_key in tuple(self._graphs.variants.values()) for v in tuple(of_key)]
        if any(variant.trace.captures_tensors for variant in variants):
            return True
        if self._tensor_reads is None:
            from .tensor_reads import TensorReads

            self._tensor_reads = TensorReads(self._fn)
        values = (*args, *kwargs.values())
        return self._tensor_reads.may(values, are_plain=PLAIN_KINDS.issuperset(map(type, values)))

    def is_plain(self, why: PlainReason, args: tuple, kwargs: dict[str, Any]) -> bool:
        """True if Python runs a call, and nothing else has to do with it.

        For a debugger, it does so where all arguments are of the host: NumPy's functions cannot
        compute what a kernel of a device can. Such calls are counted.
        """
        if not self._has_code or current() is not None:
            return False
        if why is PlainReason.DISABLED:
            return True
        if not are_of_host(args, kwargs):
            return False
        self._note_debugged()
        return True

    def _note_debugged(self) -> None:
        """Count a call that is Python's because of a debugger."""
        self._emission.forget_native()
        self._counters.calls += 1
        self._counters.python_calls += 1
        self._ledger.latest = Cause.DEBUGGED.verdict
        detail = debugger() or ""
        self._ledger.tell_reason(Reason(Kind.DEBUGGED, detail=detail, subject=self._name), detail)

    def call(self, verdict: Verdict, args: tuple, kwargs: dict[str, Any], refused: NoGraph | None = None) -> Any:
        """Run a call in Python; until code is there, the graph counts it.

        A limit of loops that holds is that of a call around this one. Raises what the function raises; in place of an
        exception of NumPy's the one of the trace, if that is of the same kind and has its text, as it tells the line.
        """
        if LIMITS.current is not None:
            with within(None):
                return self.call(verdict, args, kwargs, refused)
        self._emission.forget_native()
        if CHECKPOINT.repeats is not None and current() is None:
            CHECKPOINT.repeats.note_python()
        if verdict.cause.is_of_alike:
            self._ledger.propose_sooner(args, kwargs)
        counters, ledger = self._counters, self._ledger
        counters.python_calls += 1
        counters.calls += verdict is not _COMPILING
        ledger.latest = verdict
        error = None
        if refused is not None:
            counters.python_looks += 1
            error = refused.error
            if isinstance(refused.raised, RecursionError):
                ledger.note_recursion()
        args, kwargs = self.as_given(args, kwargs)
        try:
            if ledger.recursion is None:
                result = self._fn(*args, **kwargs)
            else:
                result = ledger.recursion.call(self._fn, args, kwargs)
        except ProfuseError:
            raise
        except Exception as raised:
            if isinstance(raised, RecursionError):
                ledger.note_recursion()
            if error is not None and not is_lasting(error) and _tells(error, raised):
                raise error from None
            raise
        if refused is not None and refused.key is not None:
            ledger.refuse(refused.key, refused.disproved())
        return result

    def refuse(self, refused: NoGraph, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run a call in Python that was looked at in vain."""
        return self.call(refused.verdict, args, kwargs, refused)

    def why_no_graph(self, frame: FrameType) -> str:
        """The reason why a graph cannot hold the call that a frame of `call` runs; empty if one can."""
        is_held = frame.f_locals["verdict"] is _COMPILING
        return "" if is_held else self._ledger.why_no_graph(frame.f_locals["refused"])

    def put(self, result: Any, out: Any) -> Any:
        """Copy what a call has given into ``out``, and return that."""
        results, tree = flatten(result)
        destinations = Destinations(out, tree, self._name)
        destinations.fill(results)
        self._counters.output_copies += destinations.copied
        return out


RUNS_IN_PYTHON.add(PythonCalls.call.__code__)


def _tells(error: ProfuseError, raised: Exception) -> bool:
    """True if an error of a trace says all that an exception of Python's says."""
    return isinstance(error, type(raised)) and str(raised).strip() in str(error)
