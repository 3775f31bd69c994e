"""`jit` and the functions that it makes: one trace per argument structure, rank and dtype.

Arguments and results are arrays, NumPy numbers and Python numbers, which may be nested in tuples,
lists and dicts. Results share memory with arguments, and with each other, as those of Python do
(`results`); where Python may not run calls, they have memory of their own.
"""

from __future__ import annotations

import functools
import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from sys import is_finalizing
from threading import get_ident
from types import FunctionType
from typing import TYPE_CHECKING, Any, SupportsIndex

from ...dialect.errors import ArgumentError, ProfuseError, TraceError
from ...dialect.importers.numpy.capture.inline import example_of, inline_trace
from ...dialect.importers.numpy.capture.tracer import is_tracing, trace_inline
from ...dialect.importers.numpy.python.float_errors import told_error, told_errors
from ...dialect.importers.numpy.python.generators import is_plain_generator
from ...dialect.importers.numpy.tracing.current import current
from ...dialect.importers.numpy.tracing.leaves import leaf_kind
from ...dialect.importers.numpy.tracing.pytree import TreeDef, call_text, flatten_call
from ...dialect.importers.numpy.tracing.traced import is_on_tape
from ...dialect.ir.device import HOST
from .. import explain
from ..arguments.checks import check_arity, check_length, check_path, check_settings
from ..arguments.plain_calls import flat_key
from ..dispatch.dispatcher import unserved
from ..interpret.loop_limit import LIMITS, Limit, SoonerInPython, TooManyRounds, VoidRun, within
from ..memory.donation import parameter_names
from ..memory.output_pool import readable
from ..observe import registry
from ..settings.knobs import knobs
from ..settings.plain import Plain, is_disabled, plain, read_knobs
from ..settings.strategy import normalize
from ..settings.strict import is_strict
from ..settings.strict import refused as strict_refused
from ..tiers.choice import AnyExecutor
from ..tiers.profiling import Options
from .byte_order import FOREIGN_ORDER, has_foreign
from .device_arguments import are_of_host, flat_leaves
from .graphs import TracedFunction
from .in_python import Refused
from .pickling import importable, reduced
from .variants import Key, Variant

if TYPE_CHECKING:
    from ..explain.state import ExecutorState
    from ..memory.destinations import Destinations
    from .saved.file import SavedFile, StoredGraph

_NO_OWN_TRACE = 256
_PATIENCE = 0.03  # seconds that a call spends in loops op by op, to profile, before Python runs it


@functools.cache
def _effects() -> tuple[Callable[..., Any], ...]:
    """`apply_effects`, `are_apart` and `lent`, which few processes need."""
    from .write_back import apply_effects, are_apart, lent

    return apply_effects, are_apart, lent


@registry.kind
class JitFunction(TracedFunction):
    """A function that `jit` has made: traced, profiled, specialised and run natively."""

    def __init__(self, fn: Callable[..., Any], options: Options) -> None:
        super().__init__(fn, options)
        self._named: FunctionType | None = None
        self._untold: set[str] = set()  # what Python has run calls for (`float_errors`)
        self._no_own_trace: dict[Key, None] = {}  # calls in traces that are recorded there
        read_knobs()
        self._enter()

    def _call_python(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run any call; settled specialisations get here only if there is no emitted code."""
        if is_finalizing():
            return self._call_at_end(args, kwargs)
        why = plain()
        if why is not None and self._is_plain(why, args, kwargs):
            return self._fn(*args, **kwargs)
        recursion = self._in_python.recursion
        if recursion is not None and recursion.is_open:
            return self._fn(*args, **kwargs)
        if self._in_python.sooner.takes(args, kwargs) and current() is None:
            return self._leave(None, args, kwargs)
        key = None if kwargs else flat_key(args)
        variant = None if key is None else self._flat.get(key)
        if variant is None or not variant.trace.holds_what_it_held():
            is_pythons = self._in_python.serves(key) or self._takes_unseen(args, kwargs)
            if is_pythons and not is_strict():
                return self._leave(None, args, kwargs)
            result = self._call_any(key, args, kwargs)
        else:
            result = self._serve(variant, args, args, args, kwargs)
        self._look()
        return result

    def _is_plain(self, why: Plain, args: tuple, kwargs: dict[str, Any]) -> bool:
        """Whether Python runs a call, and nothing else has to do with it.

        For a debugger, it does so where all arguments are of the host: NumPy's functions cannot
        compute what a kernel of a device can. Such calls are counted.
        """
        if not self._has_code or current() is not None:
            return False
        if why is Plain.DISABLED:
            return True
        if not are_of_host(args, kwargs):
            return False
        self._in_python.note_debugged()
        self._forget_native()
        return True

    def _call_at_end(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run a call of a finalizer while the interpreter ends, when nothing can be imported.

        Python computes it, or a graph op by op that holds what Python cannot compute, as gradients.
        """
        if not self._raises:
            return self._fn(*args, **kwargs)
        leaves, tree = self._flattened(args, kwargs)
        key = (tree, tuple(map(leaf_kind, leaves)))
        variant = self._find(self._variants.get(key, ()), leaves, plain=True)
        if variant is None or variant.trace.has_effects:
            return self._fn(*args, **kwargs)
        outputs = self._run(variant.executor, self._inputs(variant, leaves))
        return variant.trace.out_tree.unflatten(outputs)

    def _serve(
        self, variant: Variant, leaves: Sequence[Any], given: Sequence[Any], args: tuple,
        kwargs: dict[str, Any],
    ) -> Any:  # fmt: skip
        """The result of a call by its graph, with the effects that the function has.

        Args:
            variant: the graph.
            leaves: its arguments, as kernels can read them.
            given: the same as the caller has them.
            args: those of the call, for Python.
            kwargs: the same, by name.
        """
        if (told := told_errors()) is not None:
            self._note_untold(told)
            return self._leave(None, args, kwargs)
        if self._raises:
            return self._unlimited(variant, leaves, given, args, kwargs)
        if variant.python_serves():
            self._in_python.note_sooner(args, kwargs)
            return self._leave(None, args, kwargs)
        if variant.waits():
            self._current = variant.executor
            variant.executor.counters.calls += 1
            return self._leave(None, args, kwargs, meanwhile=True)
        is_raced = variant.is_raced and self._may_race
        if not (is_raced or variant.has_rounds):
            return self._unlimited(variant, leaves, given, args, kwargs)
        # What the function assigns may decide sizes, as the length of a cache does.
        race = variant.races.of([*leaves, *(slot.find() for slot in variant.trace.slots)])
        if not (is_raced and race.is_next_pythons(may_be_long=variant.has_rounds)):
            limit = Limit(_PATIENCE, truncates=True) if variant.has_rounds else None
            start = time.perf_counter()
            try:
                with within(limit):
                    result = self._computed(variant, leaves, given, args, kwargs)
            except SoonerInPython as why:
                variant.executor.counters.calls -= 1  # Python counts the call
                if isinstance(why, VoidRun):
                    self._note_failure(variant)
                if is_raced and isinstance(why, TooManyRounds):
                    race.is_pythons = True
            else:
                if is_raced and not self._in_python.is_last:
                    race.note(time.perf_counter() - start, is_python=False)
                return result
        if race.is_pythons:
            self._in_python.note_sooner(args, kwargs)
        start = time.perf_counter()
        result = self._leave(None, args, kwargs)
        race.note(time.perf_counter() - start, is_python=True)
        return result

    def _note_untold(self, how: str) -> None:
        """Tell why a call is Python's: kernels do not notice the floating-point errors asked for.

        Raises TraceError if there is no Python for it.
        """
        if self._raises:
            raise told_error(how)
        if how not in self._untold:
            self._untold.add(how)
            self._in_python.tell(told_error(how))

    def _unlimited(
        self, variant: Variant, leaves: Sequence[Any], given: Sequence[Any], args: tuple,
        kwargs: dict[str, Any],
    ) -> Any:  # fmt: skip
        """`_computed`; a limit of loops that holds is that of a call around this one."""
        if LIMITS.current is None:
            return self._computed(variant, leaves, given, args, kwargs)
        with within(None):
            return self._computed(variant, leaves, given, args, kwargs)

    @property
    def _may_race(self) -> bool:
        """Whether some plans are dispatched in Python, and for good."""
        dispatcher = self._dispatcher
        return bool(knobs.demote and dispatcher is not None and dispatcher.reasons)

    def _computed(
        self, variant: Variant, leaves: Sequence[Any], given: Sequence[Any], args: tuple,
        kwargs: dict[str, Any],
    ) -> Any:  # fmt: skip
        """`_serve` by the executor; raises SoonerInPython within a limit of loops."""
        trace, memory = variant.trace, variant.memory
        objects: Sequence[Any] | None = None
        if variant.is_untaped and is_on_tape(given):
            from .on_tape import untaped

            objects, given = given, untaped(given)
        if variant.keeps_byte_order:
            read = [*given, *trace.captured, *(slot.find() for slot in trace.slots)]
            if has_foreign(read):
                return self._leave(self._told(FOREIGN_ORDER), args, kwargs)
        if not trace.has_effects:
            every = [*given, *trace.captured] if memory is not None else ()
            if memory is not None and not memory.is_known(every):
                from .results import ORDER_UNKNOWN

                return self._leave(self._told(ORDER_UNKNOWN), args, kwargs)
            failed: ProfuseError | None = None
            try:
                outputs = self._run(variant.executor, self._inputs(variant, leaves))
                if memory is not None:
                    outputs = memory.put(outputs, every)
            except ProfuseError as error:
                if self._raises or not variant.may_be_pythons:
                    raise
                failed = error
            if failed is not None:
                # Python raises what NumPy raises, or computes what the graph cannot. No exception
                # is being handled then: the one that it raises would have it as its context.
                variant.executor.counters.calls -= 1  # Python counts the call
                self._note_failure(variant)
                return self._leave(Refused(failed), args, kwargs)
            if variant.fails_often:
                self._note_success(variant)
            if objects is not None:
                outputs = variant.untaped.retaped(outputs, objects)
            return trace.out_tree.unflatten(outputs)
        apply_effects, are_apart, lent = _effects()
        slots = [slot.find() for slot in trace.slots]
        given = [*given, *slots, *trace.captured]
        found: list[Any] = []
        if trace.containers is not None:
            found = trace.containers.find(args, kwargs)
            if not trace.containers.are_apart(found):
                return self._leave(None, args, kwargs)
        drawing = None
        if trace.draws or trace.generators:
            from .drawing import drawing_of

            drawing = drawing_of(trace, args, kwargs)
            if drawing is None:
                return self._leave(None, args, kwargs)
        if not are_apart(trace, given) or (memory is not None and not memory.is_known(given)):
            return self._leave(None, args, kwargs)
        inputs = [*leaves, *(readable(value, self._own) for value in slots)]
        drawn: list[Any] = []
        has_failed = False
        try:
            if drawing is not None:
                drawn = drawing.run(given)
            with lent(trace):
                outputs = self._run(variant.executor, [*self._inputs(variant, inputs), *drawn])
        except SoonerInPython:
            if drawing is None or drawing.undo():
                raise
            # Other threads have drawn since: Python would draw other numbers.
            with within(None), lent(trace):
                outputs = self._run(variant.executor, [*self._inputs(variant, inputs), *drawn])
        except Exception:
            if drawing is not None and not drawing.undo():
                raise  # other threads have drawn since: Python would draw other numbers
            has_failed = True
        if has_failed:
            if drawing is None:
                variant.executor.counters.calls -= 1  # Python counts the call
            self._note_failure(variant)
            # Python leaves what NumPy has written before the error, and raises that again.
            return self._leave(None, args, kwargs)
        if variant.fails_often:
            self._note_success(variant)
        if memory is not None:
            outputs = memory.put(outputs, [*given, *drawn])
        if trace.sources is None:
            return trace.out_tree.unflatten(outputs)
        every = [*given, *drawn, *found]
        if objects is None:
            return apply_effects(trace, outputs, every)
        from .on_tape import note_writes

        objects = [*objects, *every[len(objects) :]]
        result = apply_effects(trace, variant.untaped.retaped(outputs, objects), every, objects)
        note_writes([objects[k] for k in trace.writes])
        return result

    def _note_failure(self, variant: Variant) -> None:
        """Note that Python has to repeat a call; where most calls end so, it runs them."""
        if variant.note_failure():
            self.come_to_python()

    def _note_success(self, variant: Variant) -> None:
        """Have emitted code serve a graph again, as its calls do not raise any more."""
        variant.note_success()
        self._plans_seen = -1

    def _told(self, error: ProfuseError) -> Refused:
        """Why a call is Python's, though there is a graph; told once."""
        self._in_python.tell(error)
        return Refused(error)

    def _run(self, executor: AnyExecutor, inputs: list, into: Destinations | None = None) -> list:
        self._in_python.is_last = False
        return super()._run(executor, inputs, into)

    def _run_on_tape(self, executor: AnyExecutor, inputs: list) -> list:
        self._in_python.is_last = False
        return super()._run_on_tape(executor, inputs)

    def state(self) -> ExecutorState:
        """Tier, specialisations, counters and reasons, over all graphs and fallbacks."""
        found = super().state()
        python = self._in_python
        told = tuple(python.reasons)
        is_pythons = python.is_last and (bool(told) or found.tier == "optimized")
        tier = "python" if is_pythons and self._in_native() is None else found.tier
        return replace(found, tier=tier, reasons=(*told, *found.reasons))

    def _explained(self, executors: list[AnyExecutor]) -> list[str]:
        if len(executors) == 1:
            return super()._explained(executors)
        with self._lock:
            traces = {v.executor: v.trace for v in self._graphs_met()}
        return [
            explain.explained(
                e, self._name, f"{self._name}({call_text(self._fn, t.in_tree, t.kinds)})"
            )
            for e in executors
            if (t := traces.get(e)) is not None  # None: the graph was dropped meanwhile
        ]

    def _remarks(self) -> list[str]:
        """Why calls are dispatched in Python, if any are."""
        reasons: dict[str, None] = {}
        for dispatcher in (self._dispatcher, self._writer):
            reasons |= dispatcher.reasons if dispatcher else {}
        for pull in self._pulls():
            reasons |= pull.dispatcher.reasons
        with self._lock:
            every = self._graphs_met()
        reasons |= {why: None for v in every if (why := unserved(v)) is not None}
        lines = self._in_python.explain()
        if self._has_code and is_disabled():
            lines.insert(0, f"{self._name} is switched off: each call is that of the function.")
        if reasons and any(v.is_pythons for v in every) and not self._raises:
            lines.append(
                "  Calls that compute numbers alone run in Python, which takes less than a plan."
            )
        if any(v.gives_views for v in every) and not self._raises:
            lines.append("  Calls that give arguments, or views of them, run in Python.")
        if any(v.has_waited for v in every) and not self._raises:
            lines.append("  Python runs the calls meanwhile.")
        lines += [f"  Calls are dispatched in Python: {reason}" for reason in reasons]
        lines += [
            f"  Some calls run in Python, in {1e6 * race.python:.1f} us, where the plan takes "
            f"{1e6 * race.plan:.1f} us."
            for v in every
            for race in v.races.lost()
        ]
        plans = [s.plan for v in every if v.executor.may_donate for s in v.executor.compiled()]
        if self._options.donate and any(p.kind == "optimized" and not p.donations for p in plans):
            lines.append(
                "  Nothing is made in the memory of donated arguments: no kernel of the plan is "
                "the last to read one and can write to where it reads (see `donate`)."
            )
        return lines

    def _call_any(self, flat: tuple | None, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run a call that `_flat` does not serve.

        Its arguments are nested, traced, new, on a device, need copies, or no graph can take them.
        """
        known = self._graphs_made
        try:
            result = self._call_graph(flat, args, kwargs)
        except Refused as error:
            refused = error
            if is_strict() and refused.raised is None and current() is None:
                why = refused.error or TraceError("; ".join(self._in_python.reasons))
                raise strict_refused(self._name, why) from None
        else:
            if self._graphs_made == known:  # a new graph may serve no other call
                self._in_python.note_graph(args, kwargs)
            return result
        python = self._in_python
        if refused.key is None:
            python.note_unseen(refused, flat, args, kwargs)
            return self._leave(refused, args, kwargs)
        try:
            return self._leave(refused, args, kwargs)
        except Exception:
            python.note_unseen(refused, flat, args, kwargs)  # Python raises it as well
            raise

    def _takes_unseen(self, args: tuple, kwargs: dict[str, Any]) -> bool:
        """True if a call is taken for Python's at once; calls in a trace never are."""
        return self._in_python.takes(args, kwargs) and current() is None

    def _leave(
        self, refused: Refused | None, args: tuple, kwargs: dict[str, Any], *,
        meanwhile: bool = False,
    ) -> Any:  # fmt: skip
        """Run a call in Python; ``meanwhile``: until the code of a graph is there."""
        self._forget_native()
        if LIMITS.current is not None:
            with within(None):
                return self._in_python.call(refused, args, kwargs, meanwhile=meanwhile)
        return self._in_python.call(refused, args, kwargs, meanwhile=meanwhile)

    def _call_graph(self, flat: tuple | None, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The same with a graph; raises `Refused` for calls that are left to Python."""
        found = None if kwargs or flat is not None else flat_leaves(args)
        if found is not None and self._options.device != HOST:
            flat, leaves = found
            variant = self._on_device.get(flat)
            if variant is not None and variant.trace.holds_what_it_held():
                return self._run_on_device(variant, leaves)
        leaves, tree = self._flattened(args, kwargs)
        if is_tracing(leaves):
            return self._call_traced(leaves, tree, args, kwargs)
        if self._in_python.recursion is not None and current() is not None:
            raise Refused()  # the trace of one level would trace the next
        if is_on_tape(leaves):
            return self._call_on_tape(leaves, tree, args, kwargs)
        given = leaves
        leaves, home = self._placed([readable(leaf, self._own) for leaf in leaves])
        if home != HOST:
            self._check_no_generators(tree)
            flat = None if found is None else flat
            variant = self._lookup(flat, leaves, tree, args, kwargs, home)
            return self._run_on_device(variant, leaves)
        variant = self._lookup(flat, leaves, tree, args, kwargs)
        return self._serve(variant, leaves, given, args, kwargs)

    def _check_no_generators(self, tree: TreeDef) -> None:
        """Raise `Refused` for a call on a device with a generator, which draws on the host."""
        if any(map(is_plain_generator, tree.statics())):
            error = ArgumentError(
                "a random generator is passed with arrays of a device, and draws on the host",
                hint="draw the numbers outside and pass them as an argument",
            )
            if self._raises:
                raise error
            self._in_python.note(None, error)
            raise Refused(error)

    def _call_on_tape(
        self, leaves: list, tree: TreeDef, args: tuple, kwargs: dict[str, Any]
    ) -> Any:  # fmt: skip
        """Run a call with arrays of the tape; the graph is that of a call with plain arrays."""
        from .on_tape import as_arrays, taped_inputs, untaped

        given, plain = taped_inputs(leaves, self._own), untaped(leaves)
        variant = self._lookup(None, plain, tree, *tree.unflatten(plain), plain=True)
        refused = variant.off_tape()
        if refused is not None:
            if not variant.untaped.serves(leaves):
                raise self._told(refused)
            variant.is_untaped = True
            inputs = [readable(x, self._own) for x in plain]
            return self._serve(variant, inputs, leaves, args, kwargs)
        # Emitted code does not look at the mode of the caller.
        if not variant.takes_tape and not variant.trace.asks_for_gradients:
            variant.takes_tape, self._plans_seen = True, -1
        outputs = self._run_on_tape(variant.executor, self._inputs(variant, given))
        return variant.trace.out_tree.unflatten(as_arrays(outputs))

    def _run_on_device(self, variant: Variant, leaves: list) -> Any:
        outputs = self._run_at_home(variant.executor, leaves, self._inputs(variant, ()))
        return variant.trace.out_tree.unflatten(outputs)

    def _into_python(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        if is_finalizing():
            result = self._call_at_end(args[1:], kwargs)
            return self._in_python.put(result, args[0])
        why = plain()
        if why is not None and self._is_plain(why, args[1:], kwargs):
            return self._in_python.put(self._fn(*args[1:], **kwargs), args[0])
        try:
            return super()._into_python(args, kwargs)
        except Refused as error:
            refused = error
        return self._in_python.into(refused, args[0], args[1:], kwargs)

    def _flattened(self, args: tuple, kwargs: dict[str, Any]) -> tuple[list, TreeDef]:
        """Leaves and structure of a call; raises `Refused` for arguments that no graph can take."""
        may_leave = not self._raises and current() is None
        try:
            if may_leave:
                check_length(args, kwargs)
            return flatten_call(self._fn, args, kwargs, generators=True)
        except ProfuseError as error:
            if not may_leave:
                raise
            refused = error
        check_arity(self._fn, self._name, args, kwargs)
        self._in_python.note(None, refused)
        raise Refused(refused, by=self._in_python.by_kinds)

    def _resolved(self, args: tuple, kwargs: dict[str, Any]) -> tuple[AnyExecutor, list, TreeDef]:
        leaves, tree = self._flattened(args, kwargs)
        flat, leaves = None if kwargs else flat_key(args), self._host_leaves(leaves, self._own)
        variant = self._lookup(flat, leaves, tree, args, kwargs, plain=True)
        if (told := told_errors()) is not None:
            self._note_untold(told)
            raise Refused()
        if variant.trace.has_effects:
            raise Refused()
        return variant.executor, self._inputs(variant, leaves), variant.trace.out_tree

    def _call_traced(self, leaves: list, tree: TreeDef, args: tuple, kwargs: dict) -> Any:
        """Handle a call within another function's trace.

        If the graph was made while profiling mode was off, or is made now in that mode, its trace
        is inlined (R2.14). Otherwise, and if ranks or dtypes of arguments are unknown, the Python
        function is called and its operations are recorded in the outer trace. So they are where
        the outer trace is one of this function: each level would be traced for each one above it.
        """
        examples = [example_of(leaf) for leaf in leaves]
        if self._traced_by == get_ident() or any(example is None for example in examples):
            return trace_inline(self._fn, args, kwargs, leaves)
        key = (tree, tuple(map(leaf_kind, examples)))
        variant = self._find(self._variants.get(key, ()), examples, plain=False)
        if variant is None and not knobs.profiling_mode and key not in self._no_own_trace:
            try:
                variant = self._trace(key, examples, *tree.unflatten(examples))
            except (ProfuseError, Refused) as error:
                raised = error.raised if isinstance(error, Refused) else None
                if isinstance(raised, RecursionError):
                    raise raised from None  # so would the outer trace end, after as many again
                # The function may use values of the outer trace, so a trace of its own fails. If it
                # fails for another reason, the call below raises the error in the outer trace.
                if len(self._no_own_trace) < _NO_OWN_TRACE:
                    self._no_own_trace[key] = None
                return trace_inline(self._fn, args, kwargs, leaves)
        if (
            variant is None
            or variant.trace.has_effects
            or not (variant.executor.joins_traces and variant.trace.tells_gradients)
        ):
            return trace_inline(self._fn, args, kwargs, leaves)
        variant.executor.count_invocation()
        return inline_trace(variant.trace, leaves)

    def _graphs(self) -> list[StoredGraph]:
        from ...dialect.importers.numpy.capture.stored_trace import trace_to_json
        from ...dialect.ops.host_call import calls_users_functions
        from .saved.file import StoredGraph

        with self._lock:
            every = self._graphs_met()
        # A trace that closes over device arrays is valid in this process only.
        host = [v.trace for v in every if v.executor.options.processor.is_host]
        # Others would not be called again, need the caller's arrays, or functions of this process.
        kept = [t for t in host if t.tells_gradients and not (t.has_effects or t.takes_generators)]
        kept = [t for t in kept if not calls_users_functions(t.module)]
        traces = [t for t in kept if t.holds_what_it_held()]
        return [StoredGraph({"trace": trace_to_json(t)}, tuple(t.captured)) for t in traces]

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple:
        """Pickle and copy like the Python function, without profiles and plans."""
        return reduced(self, self._fn, self._options, protocol)

    @property
    def _by_name(self) -> FunctionType | None:
        """A copy of the Python function that can be imported by its name; None if not a function.

        The name of a decorated function refers to the `JitFunction`, so no pickler could import the
        function itself by that name. The copy has the name ``<name>._by_name``.
        """
        if self._named is None and isinstance(self._fn, FunctionType):
            made = importable(self._fn, self.__module__, getattr(self, "__qualname__", ""))
            with self._lock:
                self._named = self._named or made
        return self._named

    def __repr__(self) -> str:
        return f"<profuse.jit of {self._fn!r}>"


def jit(
    fn: Callable[..., Any] | None = None,
    *,
    strategy: Sequence[tuple[str, int]] | None = None,
    profiled_runs: int | None = None,
    device: str | None = None,
    background: bool | None = None,
    profile: str | os.PathLike | None = None,
    donate: str | int | Sequence[str | int] | None = None,
    unsupported: str | None = None,
    name: str | None = None,
) -> Any:
    """Turn ``fn``, written in plain NumPy, into a function that specialises to its arguments.

    Args:
        fn: the function; absent in the form ``@jit(...)``.
        strategy: e.g. ``[("static", 2), ("dynamic", 10)]``; default: the process-wide strategy.
        profiled_runs: number of recorded runs before the function is specialised; default: the
            knob (1).
        device: ``None`` = the device of the arguments; ``"cuda"`` or ``"cuda:1"`` = every call
            copies host arrays to that GPU and the results back; ``"cpu"`` = only host arrays.
        background: True = compile in a worker process, while calls run on the best plan available.
            If a worker is lost, one event is logged, and the graph that it compiled stays on tier 0
            with the reason. False = the call that completes the profile waits for the compile.
            Default: the knob (True). See the methods `wait` and `warmup` of the result.
        profile: a file that ``save`` wrote, of this function or of one with the same graphs. A
            graph's profile in the file replaces recorded runs. Its compiled code is used if it is
            for this CPU and these versions. Graphs that the file lacks are profiled as usual, and
            `explain` says why the file did not fit.
        donate: parameters, by name or position, whose arrays calls may overwrite and return as
            results; nobody may read these arrays afterwards. Optimised plans reuse an array if
            their kernel can, and if the array is writable, C-contiguous, no view, and overlaps no
            other argument (counter ``donated_results``).
        unsupported: what becomes of calls that no graph can hold (effects, control flow on data,
            functions without a graph form): ``"python"`` runs them as they are, counted and
            explained; ``"raise"`` raises TraceError, ArgumentError or DTypeError. Default: the knob
            (``"python"``).
        name: the name in messages and IR; default: the name of ``fn``.

    Raises ArgumentError if ``fn`` cannot be called, KnobError for wrong settings, and FileError if
    the profile cannot be read.
    """
    if fn is None:
        return functools.partial(
            jit, strategy=strategy, profiled_runs=profiled_runs, device=device,
            background=background, profile=profile, donate=donate,
            unsupported=unsupported, name=name,
        )  # fmt: skip
    check_settings(fn, device, background, profiled_runs, name, unsupported)
    frozen = None if strategy is None else normalize(strategy)
    label = name or str(getattr(fn, "__name__", type(fn).__name__))
    background = knobs.background if background is None else background
    saved = None if profile is None else _saved_file(profile)
    options = Options(
        frozen, profiled_runs, _symbol(label), background=background,
        donate=parameter_names(fn, donate), saved=saved, device=device,
        unsupported=unsupported,
    )  # fmt: skip
    return JitFunction(fn, options)


def _saved_file(path: str | os.PathLike) -> SavedFile:
    from .saved.file import SavedFile

    check_path("profile", path)
    return SavedFile.read(path)


def _symbol(name: str) -> str:
    """The name as a valid function name in IR."""
    name = re.sub(r"\W", "_", name, flags=re.ASCII) or "main"
    return f"_{name}" if name[0].isdigit() else name
