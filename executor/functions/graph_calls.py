"""Calls that have a graph: whether it serves them or Python, and on which device."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from ...dialect.errors import ArgumentError, TraceError
from ...dialect.importers.numpy.capture.tracer import is_tracing
from ...dialect.importers.numpy.python.float_errors import told_error, told_errors
from ...dialect.importers.numpy.tracing.traced import is_on_tape
from ...dialect.ir.device import HOST
from ...dialect.reasons import Kind, Reason
from ..interpret.loop_limit import Limit, SoonerInPython, TooManyRounds, VoidRun, run_within
from ..memory.output_pool import readable
from ..plans.processor import backend_of
from ..routing.ledger import NoGraph
from ..routing.race import Race
from ..routing.verdict import Cause, Verdict
from ..settings.event_log import STDERR, say
from ..settings.events import log
from ..settings.knobs import knobs
from .device_arguments import home_of
from .emission import Emission
from .graph_runs import GraphRuns
from .graphs import Graphs
from .in_python import PythonCalls
from .variants import Variant

_LOOP_SECONDS = 0.03  # that a call spends in loops op by op, to profile, before Python runs it


class GraphCalls:
    """Serves calls of one function by their graphs; those that are, or turn out to be, Python's are left to it.

    Args:
        graphs: of the function.
        emission: its emitted code.
        python: runs calls in Python.

    Attributes:
        runs: run the graphs.
        reasons: why calls do not run where they were to.
    """

    def __init__(self, graphs: Graphs, emission: Emission, python: PythonCalls) -> None:
        self._graphs, self._emission, self._python = graphs, emission, python
        self.runs = GraphRuns(graphs, emission, python.exchanging)
        self.reasons: list[Reason] = []
        self._untold: set[str] = set()  # what Python has run calls for (`float_errors`)

    def serve(
        self, variant: Variant, leaves: Sequence[Any], originals: Sequence[Any], args: tuple, kwargs: dict[str, Any]
    ) -> Any:
        """The result of a call by its graph, with the effects that the function has; or by Python.

        Args:
            variant: the graph.
            leaves: its arguments, as kernels can read them.
            originals: the same as the caller has them.
            args: those of the call, for Python.
            kwargs: the same, by name.
        """
        trial, raises = variant.trial, self._graphs.raises
        race: Race | None = None
        limit: Limit | None = None
        refused: NoGraph | None = None
        is_raced = False
        verdict = self.unreported() or (None if raises else trial.verdict())
        if verdict is None and not raises:
            is_raced, is_long = trial.is_raced and self._may_race, trial.has_rounds and trial.may_be_pythons
            if is_raced or is_long:
                race = self._race(variant, leaves)
                verdict = race.verdict(may_be_long=is_long) if is_raced else None
            limit = Limit(_LOOP_SECONDS, truncates=True) if is_long and verdict is None else None
        elif verdict is Cause.COMPILING.verdict and trial.has_rounds:
            race = self._race(variant, leaves)  # behind it nobody tries how long Python takes for a loop
        start = time.perf_counter()
        if verdict is None:
            try:
                # A limit of loops that holds is that of a call around this one.
                result = run_within(limit, self.runs.run_call, variant, leaves, originals, args, kwargs)
            except NoGraph as why:
                refused = why.with_traceback(None)
                verdict = refused.verdict
                if verdict.cause is Cause.FAILED:
                    self._note_failure(variant)
            except SoonerInPython as why:
                assert race is not None, "a limit of loops holds for calls that are raced, or that have loops"
                variant.executor.counters.calls -= 1  # Python counts the call
                if isinstance(why, VoidRun):
                    self._note_failure(variant)
                if is_raced and isinstance(why, TooManyRounds):
                    race.is_pythons = True
                verdict = (Cause.LOST if race.is_pythons else Cause.LONG_LOOP).verdict
            else:
                if trial.fails_often:
                    self._note_success(variant)
                if is_raced and race is not None:
                    race.note(time.perf_counter() - start, is_python=False)
                return result
            start = time.perf_counter()
        # No exception is being handled now: the one that Python raises would have it as its context.
        if verdict is Cause.COMPILING.verdict:
            self._emission.current = variant.executor
            variant.executor.counters.calls += 1
            try:
                result = self._python.call(verdict, args, kwargs)
            finally:
                seconds = time.perf_counter() - start
                trial.note_python(seconds)
            if race is not None:
                race.note(seconds, is_python=True)
            return result
        result = self._python.call(verdict, args, kwargs, refused)
        if race is not None and refused is None:
            race.note(time.perf_counter() - start, is_python=True)
        return result

    def _race(self, variant: Variant, leaves: Sequence[Any]) -> Race:
        """The race of calls like this one."""
        # What the function assigns may decide sizes, as the length of a cache does.
        return variant.trial.races.of([*leaves, *(slot.find() for slot in variant.trace.slots)])

    def unreported(self) -> Verdict | None:
        """The verdict that a call is Python's as NumPy is to report floating-point errors; None = it is not to.

        Kernels do not notice them. Raises TraceError if there is no Python for the call.
        """
        how = told_errors()
        if how is None or not self._graphs.source.stands_for_python:
            return None
        if self._graphs.raises:
            raise told_error(how)
        if how not in self._untold:
            self._untold.add(how)
            self._graphs.ledger.tell(told_error(how))
        return Cause.FLOAT_ERRORS.verdict

    @property
    def _may_race(self) -> bool:
        """True if some plans are dispatched in Python, and for good."""
        dispatcher = self._emission.dispatcher
        return bool(knobs.demote and dispatcher is not None and dispatcher.reasons)

    def _note_failure(self, variant: Variant) -> None:
        """Note that Python has to repeat a call; where most calls end so, it runs them."""
        if variant.trial.note_failure():
            self._emission.come_to_python()

    def _note_success(self, variant: Variant) -> None:
        """Have emitted code serve a graph again, as its calls do not raise any more."""
        variant.trial.note_success()
        self._graphs.changes += 1

    def host_leaves(self, leaves: list) -> list:
        """The leaves of a call of `into`, in a form that kernels can read.

        Raises TraceError inside a trace, and ArgumentError for arguments on a device.
        """
        if is_tracing(leaves):
            raise TraceError(
                f"{self._graphs.name}.into is called while another function is traced",
                hint="call the function itself: in a trace there is no memory to write to yet",
            )
        if is_on_tape(leaves):
            from .tape_calls import detached

            leaves = detached(leaves, self._graphs.name)
        leaves, home = self.placed([readable(leaf, self._graphs.own) for leaf in leaves])
        if home != HOST:
            raise ArgumentError(
                f"{self._graphs.name}.into is for host arrays, and the call is one on a device",
                hint="call the function itself; its library makes the results",
            )
        return leaves

    def placed(self, leaves: list) -> tuple[list, str]:
        """The leaves, moved to the device that the user has chosen, and the device of the call.

        If that device cannot be used, the leaves stay and the call runs on the host; the reason is
        logged and the call is counted. Raises ArgumentError for arrays of another processor.
        """
        home, setting = home_of(leaves), self._graphs.options.device
        if setting is None or home != HOST:
            if setting == HOST and home != HOST:
                raise ArgumentError(
                    f"{self._graphs.name} is for host arrays, and an array on {home} was passed",
                    hint='leave device="cpu" away',
                )
            return leaves, home
        device = setting if setting == HOST or ":" in setting else f"{setting}:0"
        backend = backend_of(device)
        reason = backend.unavailable(device)
        if reason:
            if not self._graphs.own.device_fallbacks:
                log("device-fallback", self._graphs.name, f"runs on the host: {reason}")
                if knobs.log != STDERR:  # else the event is such a line
                    say(f"profuse: {self._graphs.name} was made for {device}, runs on the host: {reason}")
                self.reasons.append(Reason(Kind.OFF_DEVICE, subject=device, detail=reason))
            self._graphs.own.device_fallbacks += 1
            return leaves, HOST
        device_leaves = backend.moved(leaves, device)
        return device_leaves, home_of(device_leaves)
