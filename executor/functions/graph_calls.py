"""Calls that have a graph: who serves them, the results, their memory in Python, and the effects of the function."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from sys import is_finalizing
from typing import Any

from ...dialect.errors import ArgumentError, ProfuseError, TraceError
from ...dialect.importers.numpy.capture.tracer import is_tracing
from ...dialect.importers.numpy.python.float_errors import told_error, told_errors
from ...dialect.importers.numpy.tracing.traced import is_on_tape
from ...dialect.ir.device import HOST
from ...dialect.reasons import Kind, Reason
from ..interpret.evaluate import evaluate
from ..interpret.loop_limit import LIMITS, Limit, SoonerInPython, TooManyRounds, VoidRun, within
from ..memory.destinations import Destinations
from ..memory.output_pool import readable
from ..plans.processor import backend_of
from ..routing.ledger import NoGraph
from ..routing.verdict import Cause, Verdict
from ..settings.event_log import STDERR, say
from ..settings.events import log
from ..settings.knobs import knobs
from ..tiers.choice import AnyExecutor
from .byte_order import FOREIGN_ORDER, has_foreign
from .device_arguments import home_of, present
from .emission import Emission
from .graphs import Graphs
from .in_python import PythonCalls
from .variants import Variant

_LOOP_SECONDS = 0.03  # that a call spends in loops op by op, to profile, before Python runs it


@functools.cache
def _effects() -> tuple[Callable[..., Any], ...]:
    """`apply_effects`, `are_apart`, `lent` and `note_captured_writes`, which few processes need."""
    from .write_back import apply_effects, are_apart, lent, note_captured_writes

    return apply_effects, are_apart, lent, note_captured_writes


class GraphCalls:
    """Serves calls of one function by their graphs; those that are, or turn out to be, Python's are left to it.

    Args:
        graphs: of the function.
        emission: its emitted code.
        python: runs calls in Python.

    Attributes:
        reasons: why calls do not run where they were to.
    """

    def __init__(self, graphs: Graphs, emission: Emission, python: PythonCalls) -> None:
        self._graphs, self._emission, self._python = graphs, emission, python
        self.reasons: list[Reason] = []
        self._untold: set[str] = set()  # what Python has run calls for (`float_errors`)

    def serve(
        self, variant: Variant, leaves: Sequence[Any], originals: Sequence[Any], args: tuple, kwargs: dict[str, Any]
    ) -> Any:
        """The result of a call by its graph, with the effects that the function has.

        Args:
            variant: the graph.
            leaves: its arguments, as kernels can read them.
            originals: the same as the caller has them.
            args: those of the call, for Python.
            kwargs: the same, by name.
        """
        unreported = self.unreported()
        if unreported is not None:
            return self._python.call(unreported, args, kwargs)
        if self._graphs.raises:
            return self._unlimited(variant, leaves, originals, args, kwargs)
        trial = variant.trial
        verdict = trial.verdict()
        if verdict is Cause.COMPILING.verdict:
            self._emission.current = variant.executor
            variant.executor.counters.calls += 1
            start = time.perf_counter()
            try:
                return self._python.call(verdict, args, kwargs)
            finally:
                trial.note_python(time.perf_counter() - start)
        if verdict is not None:
            return self._python.call(verdict, args, kwargs)
        is_raced = trial.is_raced and self._may_race
        if not (is_raced or (trial.has_rounds and trial.may_be_pythons)):
            return self._unlimited(variant, leaves, originals, args, kwargs)
        # What the function assigns may decide sizes, as the length of a cache does.
        race = trial.races.of([*leaves, *(slot.find() for slot in variant.trace.slots)])
        verdict = race.verdict(may_be_long=trial.has_rounds) if is_raced else None
        if verdict is None:
            limit = Limit(_LOOP_SECONDS, truncates=True) if trial.has_rounds else None
            start = time.perf_counter()
            try:
                with within(limit):
                    result = self._computed(variant, leaves, originals, args, kwargs)
            except SoonerInPython as why:
                variant.executor.counters.calls -= 1  # Python counts the call
                if isinstance(why, VoidRun):
                    self._note_failure(variant)
                if is_raced and isinstance(why, TooManyRounds):
                    race.is_pythons = True
                verdict = (Cause.LOST if race.is_pythons else Cause.LONG_LOOP).verdict
            else:
                if is_raced and self._graphs.ledger.latest is None:
                    race.note(time.perf_counter() - start, is_python=False)
                return result
        start = time.perf_counter()
        result = self._python.call(verdict, args, kwargs)
        race.note(time.perf_counter() - start, is_python=True)
        return result

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

    def _unlimited(
        self, variant: Variant, leaves: Sequence[Any], originals: Sequence[Any], args: tuple, kwargs: dict[str, Any]
    ) -> Any:
        """`_computed`; a limit of loops that holds is that of a call around this one."""
        if LIMITS.current is None:
            return self._computed(variant, leaves, originals, args, kwargs)
        with within(None):
            return self._computed(variant, leaves, originals, args, kwargs)

    def _computed(
        self, variant: Variant, leaves: Sequence[Any], originals: Sequence[Any], args: tuple, kwargs: dict[str, Any]
    ) -> Any:
        """The result of a call by its executor; raises SoonerInPython within a limit of loops."""
        trace, memory, may_be_pythons = variant.trace, variant.memory, variant.trial.may_be_pythons
        captured = present(trace.captured)
        exchange = self._python.exchanging.call
        if exchange is not None:
            for array, tensor in zip(captured, trace.captured, strict=True):
                if array is not tensor:
                    exchange.note(array, tensor)
        objects: Sequence[Any] | None = None
        if variant.is_untaped and is_on_tape(originals):
            from .tape_calls import untaped

            objects, originals = originals, untaped(originals)
        if variant.keeps_byte_order:
            arrays = [*originals, *captured, *(slot.find() for slot in trace.slots)]
            if has_foreign(arrays):
                return self._python.refuse(self.told(FOREIGN_ORDER), args, kwargs)
        if not trace.has_effects:
            every = [*originals, *captured] if memory is not None else ()
            if memory is not None and may_be_pythons and not memory.is_known(every):
                from .results import ORDER_UNKNOWN

                return self._python.refuse(self.told(ORDER_UNKNOWN), args, kwargs)
            failed: ProfuseError | None = None
            try:
                outputs = self.run(variant.executor, self._graphs.inputs(variant, leaves))
                if memory is not None:
                    outputs = memory.put(outputs, every)
            except ProfuseError as error:
                if self._graphs.raises or not may_be_pythons:
                    raise
                failed = error
            if failed is not None:
                # Python raises what NumPy raises, or computes what the graph cannot. No exception
                # is being handled then: the one that it raises would have it as its context.
                variant.executor.counters.calls -= 1  # Python counts the call
                self._note_failure(variant)
                return self._python.refuse(NoGraph(Cause.FAILED, failed), args, kwargs)
            if variant.trial.fails_often:
                self._note_success(variant)
            if objects is not None:
                outputs = variant.untaped.retaped(outputs, objects)
            return trace.out_tree.unflatten(outputs)
        return self._with_effects(variant, leaves, originals, captured, objects, args, kwargs)

    def _with_effects(
        self,
        variant: Variant,
        leaves: Sequence[Any],
        originals: Sequence[Any],
        captured: Sequence[Any],
        objects: Sequence[Any] | None,
        args: tuple,
        kwargs: dict[str, Any],
    ) -> Any:
        """`_computed` where the function has effects.

        Args:
            variant, leaves, args, kwargs: as `serve` has them.
            originals: the leaves as the caller has them, without the tape.
            captured: what the function closes over, as arrays.
            objects: ``originals`` with arrays of the tape; None = there are none.
        """
        trace, memory = variant.trace, variant.memory
        apply_effects, are_apart, lent, note_captured_writes = _effects()
        slots = [slot.find() for slot in trace.slots]
        originals = [*originals, *slots, *captured]
        containers: list[Any] = [] if trace.containers is None else trace.containers.find(args, kwargs)
        drawing = None
        if is_drawn := bool(trace.draws or trace.generators):
            from .drawing import drawing_of

            drawing = drawing_of(trace, args, kwargs)
        if (
            (is_drawn and drawing is None)
            or not (trace.containers is None or trace.containers.are_apart(containers))
            or not are_apart(trace, originals)
            or not (memory is None or not variant.trial.may_be_pythons or memory.is_known(originals))
        ):
            return self._with_effects_of_python(args, kwargs)
        inputs = [*leaves, *(readable(value, self._graphs.own) for value in slots)]
        draws: list[Any] = []
        has_failed = False
        try:
            if drawing is not None:
                draws = drawing.run(originals)
            with lent(trace):
                outputs = self.run(variant.executor, [*self._graphs.inputs(variant, inputs), *draws])
        except SoonerInPython:
            if drawing is None or drawing.undo():
                raise
            # Other threads have drawn since: Python would draw other numbers.
            with within(None), lent(trace):
                outputs = self.run(variant.executor, [*self._graphs.inputs(variant, inputs), *draws])
        except Exception:
            # Python would draw other numbers, may not repeat the call, or is not there.
            lost = drawing is not None and not drawing.take_back(variant.executor)
            if lost or not (self._graphs.source.has_code and variant.trial.may_be_pythons):
                raise
            has_failed = True
        if has_failed:
            if drawing is None:
                variant.executor.counters.calls -= 1  # Python counts the call
            self._note_failure(variant)
            # Python leaves what NumPy has written before the error, and raises that again.
            return self._python.call(Cause.FAILED.verdict, args, kwargs)
        if variant.trial.fails_often:
            self._note_success(variant)
        note_captured_writes(trace.writes, originals, trace.captured)
        if memory is not None:
            outputs = memory.put(outputs, [*originals, *draws])
        if trace.sources is None:
            return trace.out_tree.unflatten(outputs)
        every = [*originals, *draws, *containers]
        if objects is None:
            return apply_effects(trace, outputs, every)
        from .tape_calls import note_writes

        objects = [*objects, *every[len(objects) :]]
        result = apply_effects(trace, variant.untaped.retaped(outputs, objects), every, objects)
        note_writes([objects[k] for k in trace.writes])
        return result

    def _with_effects_of_python(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Have Python run a call on which the graph would have other effects; raises TraceError without any Python."""
        if not self._graphs.source.has_code:
            raise TraceError(
                f"{self._graphs.name} writes to an array that shares memory with another one of the call, or draws "
                "from a generator that it was not made for",
                hint="pass arrays that do not overlap: x.copy()",
            )
        return self._python.call(Cause.EFFECTS.verdict, args, kwargs)

    def _note_failure(self, variant: Variant) -> None:
        """Note that Python has to repeat a call; where most calls end so, it runs them."""
        if variant.trial.note_failure():
            self._emission.come_to_python()

    def _note_success(self, variant: Variant) -> None:
        """Have emitted code serve a graph again, as its calls do not raise any more."""
        variant.trial.note_success()
        self._graphs.changes += 1

    def told(self, error: ProfuseError, cause: Cause = Cause.MEMORY) -> NoGraph:
        """The reason why a call is Python's, though there is a graph; told once."""
        self._graphs.ledger.tell(error)
        return NoGraph(cause, error)

    def run(self, executor: AnyExecutor, inputs: list, into: Destinations | None = None) -> list:
        """Run an executor, with the results in memory of their own, or in ``into``."""
        self._graphs.ledger.latest = None
        executor.counters.calls += 1
        if is_finalizing():  # nothing can be imported any more, nor a plan be made
            outputs = evaluate(executor.module, inputs)
            if into is not None:
                into.fill(outputs)
            return outputs
        self._emission.current = executor
        return executor.run(inputs, into)

    def run_on_tape(self, executor: AnyExecutor, inputs: list) -> list:
        """Run an executor on inputs any of which may be on the tape."""
        from .tape_calls import untaped

        self._graphs.ledger.latest = None
        executor.counters.calls += 1
        runner = executor.serving(inputs)
        outputs = runner.run(untaped(inputs) if runner is executor else inputs)
        self._emission.current = runner
        return outputs

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

    def serve_on_device(self, variant: Variant, leaves: list) -> Any:
        """The result of a call on a device, whose backend moves arguments and handles failures."""
        executor, captured = variant.executor, self._graphs.inputs(variant, ())
        if is_finalizing():
            outputs = self.run(executor, [*leaves, *captured])
        else:
            backend = backend_of(executor.options.processor.device)
            outputs = backend.call(self.run, executor, leaves, captured)
        return variant.trace.out_tree.unflatten(outputs)
