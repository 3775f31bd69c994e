"""The graphs of one jitted function: found by the arguments of calls, traced, replaced, dropped."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from threading import get_ident
from typing import TYPE_CHECKING, Any

from ...dialect.errors import ProfuseError, TraceError
from ...dialect.importers.numpy.capture.tracer import Trace, trace
from ...dialect.importers.numpy.python.generators import has_drawn
from ...dialect.importers.numpy.python.users_code import wraps
from ...dialect.importers.numpy.tracing.leaves import leaf_kind
from ...dialect.importers.numpy.tracing.pytree import TreeDef
from ...dialect.importers.numpy.tracing.recorder import Policy
from ...dialect.ir.device import HOST
from ..arguments.checks import check_arity
from ..memory.donation import positions
from ..memory.output_pool import readable
from ..observe import registry
from ..plans.processor import Processor
from ..settings.events import log
from ..settings.knobs import knobs, loop_bytes
from ..tiers.choice import AnyExecutor, make_executor
from ..tiers.profiling import Options
from .device_arguments import check_captured, stand_ins
from .dispatched import DispatchedFunction
from .in_python import PythonCalls, Refused, is_lasting
from .variants import Key, Variant, argument_names

if TYPE_CHECKING:
    from .in_vain import NewNumbers, NewObjects

_CHURN = 8  # graphs in a row that serve fewer calls than this, and are outdated


class TracedFunction(DispatchedFunction):
    """The base class of jitted functions: it has a graph for each kind of call."""

    def __init__(self, fn: Callable[..., Any], options: Options) -> None:
        wraps(self, fn)
        self._has_code = not getattr(type(fn), "only_traced", False)
        super().__init__(options.name, options)
        self._fn = fn
        self._variants: dict[Hashable, list[Variant]] = {}
        self._graphs_made = 0
        self._traced_by: int | None = None  # the thread in which a trace is under way
        self._in_python = PythonCalls(fn, self._name, self._own)
        self._new_objects: NewObjects | None = None
        self._new_numbers: dict[Key, NewNumbers] = {}

    @property
    def _raises(self) -> bool:
        """True if calls without a graph raise errors, False if Python runs them."""
        return (self._options.unsupported or knobs.unsupported) == "raise"

    def _lookup(
        self, flat: tuple | None, leaves: list, tree: TreeDef, args: tuple, kwargs: dict,
        home: str = HOST, *, plain: bool = False,
    ) -> Variant:  # fmt: skip
        """The graph of a call, which is traced if it is new; ``flat`` is stored for later calls.

        ``plain``: its outputs are to be the results. Raises `Refused` for a call that is left to
        Python.
        """
        key = (tree, tuple(map(leaf_kind, leaves)))
        plain = plain or home != HOST or self._raises
        variant = self._find(self._variants.get(key, ()), leaves, plain)
        if variant is None:
            if home != HOST:
                args, kwargs = tree.unflatten(stand_ins(leaves))
                variant = self._trace(key, leaves, args, kwargs, home)
            elif self._raises:
                variant = self._trace(key, leaves, args, kwargs)
            else:
                variant = self._trace_or_leave(key, leaves, args, kwargs, plain)
        if home != HOST:
            self._remember(self._on_device, flat, variant)
        elif self._options.device in (None, HOST):
            self._remember(self._flat, flat, variant)
        return variant

    def _trace_or_leave(
        self, key: Key, leaves: list, args: tuple, kwargs: dict, plain: bool
    ) -> Variant:
        """`_trace`, which leaves the call to Python, by `Refused`, where there is no graph."""
        known = self._in_python.find(key, leaves)
        if known is not None:
            raise known
        check_arity(self._fn, self._name, args, kwargs)
        objects = self._objects_of(key[0])
        if objects is not None:
            self._check_in_vain(objects, lambda: objects.check(key[0]))
        known_graphs = self._variants.get(key, ())
        if len(known_graphs) >= _CHURN:
            numbers = self._numbers_of(key)
            self._check_in_vain(numbers, lambda: numbers.check(known_graphs))
        made = None
        try:
            made = self._trace(key, leaves, args, kwargs, plain=plain)
            return made
        except ProfuseError as error:
            if isinstance(error, TraceError) and not error.is_undone:
                raise  # a run in Python would have the effects of the trace once more
            refused = Refused(error)
            if is_lasting(error):
                self._in_python.note(key, error)
                raise refused from None
        except Refused as error:
            refused = error
        finally:
            if objects is not None:
                objects.note(key[0], made)
        refused.key = key
        if refused.raised is not None:
            refused.by = self._in_python.by_values
        raise refused

    def _objects_of(self, tree: TreeDef) -> NewObjects | None:
        """The latest traces by their objects; None where no call has had any."""
        if self._new_objects is None and tree.statics():
            from .in_vain import NewObjects

            self._new_objects = NewObjects()
        return self._new_objects

    def _check_in_vain(self, latest: NewObjects | NewNumbers, check: Callable[[], None]) -> None:
        """Raise `Refused` where one more trace does not pay."""
        try:
            check()
        except TraceError as error:
            self._in_python.tell(error)
            by, patience = self._in_python.by_kinds, latest.patience
            raise Refused(error, by=by, patience=patience) from None

    def _numbers_of(self, key: Key) -> NewNumbers:
        found = self._new_numbers.get(key)
        if found is None:
            from .in_vain import NewNumbers

            found = self._new_numbers.setdefault(key, NewNumbers())
        return found

    def _inputs(self, variant: Variant, leaves: Sequence[Any]) -> list:
        """The inputs of a graph: the leaves, then the captured arrays with their present contents.

        A captured array that kernels cannot read is copied for each call: a copy that is kept would
        not contain what the user later writes into the array.
        """
        captured = variant.trace.captured
        if not captured:
            return list(leaves)
        before = self._own.input_copies
        inputs = [*leaves, *(readable(array, self._own) for array in captured)]
        if self._own.input_copies != before:
            variant.note_copies()
        return inputs

    def _remember(self, table: dict[tuple, Variant], flat: tuple | None, variant: Variant) -> None:
        """Store a graph in a table, so that later calls with the key ``flat`` find it quickly."""
        if flat is not None and not variant.trace.guards:
            with self._lock:
                # If the graph is not listed, another thread has dropped it.
                if variant in self._variants.get(variant.key, ()):
                    table[flat] = variant
                    self._plans_seen = -1  # look again, even if no plan is new

    @staticmethod
    def _find(variants: Sequence[Variant], leaves: list, plain: bool) -> Variant | None:
        """The graph of these leaves; ``plain``: one whose outputs are the results."""
        for variant in variants:
            is_plain = variant.memory is None or variant.memory.is_plain
            if (is_plain or not plain) and variant.trace.accepts(leaves):
                return variant
        return None

    def _trace(
        self, key: Key, leaves: list, args: tuple, kwargs: dict, home: str = HOST, *,
        plain: bool = True,
    ) -> Variant:  # fmt: skip
        with self._lock:
            known = self._variants.get(key, ())
            variant = self._find(known, leaves, plain)
            if variant is not None:
                return variant
            check_arity(self._fn, self._name, args, kwargs)
            self._check_lengths(key)
            start = time.perf_counter()
            made = self._recorded(args, kwargs, home, fixes_sizes=not known)
            check_captured(made.captured, home)
            reason = "trace guard" if known else "new argument structure, rank or dtype"
            outdated = next((v for v in known if v.is_outdated_by(made)), None)
            if outdated is not None:
                variant, reason = self._renew(outdated, made), "other objects of the same kind"
            else:
                self._check_churn(known)
                variant = self._admit(key, made, home, plain=plain)
            variant.executor.counters.traces += 1
            seconds = time.perf_counter() - start
            variant.executor.work.note("traced", seconds, self._name, reason, before_call=True)
            log("trace", self._name, reason, seconds)
            return variant

    def _recorded(self, args: tuple, kwargs: dict, home: str, *, fixes_sizes: bool) -> Trace:
        """The trace of a call; raises `Refused` where the function itself raises an error.

        Most ints that decide sizes never change, and kernels are better if they know them:
        ``fixes_sizes`` has the first graph hold for one value of each.
        """
        raises, outer = self._raises, self._traced_by
        self._traced_by = get_ident()
        try:
            return trace(
                self._fn, args, kwargs, name=self._name, loop_bytes=loop_bytes(),
                most_ops=None if raises else knobs.trace_ops, writes=home == HOST and not raises,
                draws=home == HOST, loops=_loops(raises),
                fixes_sizes=fixes_sizes and not raises, exact=knobs.exact,
            )  # fmt: skip
        except ProfuseError as error:
            if raises and has_drawn(error):
                raise Refused(error) from None  # Python draws what comes before the error
            raise
        except Exception as error:
            if (raises or home != HOST) and not has_drawn(error):
                raise
            # Python raises it again, and leaves the effects that the function has had before it.
            raise Refused(raised=error) from None
        finally:
            self._traced_by = outer

    def _admit(self, key: Key, made: Trace, home: str = HOST, *, plain: bool = True) -> Variant:
        """Make an executor for a trace and store both; the caller holds the lock.

        ``plain``: the outputs of its graph are the results, in memory of their own.
        """
        memory, keeps_byte_order = None, False
        if not (plain or made.strict or self._options.donate):
            from .byte_order import keeps_byte_order as keeps  # once for each graph
            from .results import results_of

            memory, keeps_byte_order = results_of(made), keeps(made)
        made.hints, made.copied, made.laid = {}, {}, {}
        options = replace(
            self._options, strict=made.strict, processor=Processor(home),
            arguments=made.signature(), writes=bool(made.writes),
        )  # fmt: skip
        graph = made.module if memory is None else memory.module
        executor = make_executor(graph, options, made.depths())
        executor.notes += made.explain()
        executor.input_names = argument_names(made)
        if executor.may_donate and home == HOST:
            executor.donated = positions(made.names[: made.in_tree.leaves], options.donate)
        self._make_room()
        variant = Variant(made, executor, key, used=self._graphs_made, memory=memory)
        variant.keeps_byte_order = keeps_byte_order
        self._variants.setdefault(key, []).append(variant)
        return variant

    def _renew(self, outdated: Variant, made: Trace) -> Variant:
        """Replace a trace by one that reads other objects into the same graph."""
        found = self._variants[outdated.key]
        renewed = outdated.renewed(made)
        found[found.index(outdated)] = renewed
        self._forget(outdated)
        return renewed

    def _check_churn(self, known: Sequence[Variant]) -> None:
        """Raise TraceError where what the function reads changes sooner than graphs pay off."""
        if self._raises:
            return
        baked = [v for v in known if v.trace.bakes_floats][-_CHURN:]
        if len(baked) == _CHURN and all(
            v.executor.counters.current().calls < _CHURN for v in baked
        ):
            guard = next(g for g in baked[-1].trace.guards if g.is_float)
            raise TraceError(
                f"{guard.text} is needed as a number and changes from call to call: each value "
                "would be a graph of its own",
                loc=guard.loc, hint="use NumPy's function in place of that of math",
            )  # fmt: skip
        outdated = [v for v in known if not v.trace.holds_what_it_held()][-_CHURN:]
        if len(outdated) < _CHURN:
            return
        if all(v.executor.counters.current().calls < _CHURN for v in outdated):
            names = {read.place.name for v in outdated for read in v.trace.changed()}
            raise TraceError(
                f"{', '.join(sorted(names)) or 'a captured array'} is read by the function and "
                "changes from call to call: each value would be a graph of its own",
                hint="pass it as an argument",
            )

    def _check_lengths(self, key: Key) -> None:
        """Raise TraceError where containers have another length at each call: so would have graphs.

        As for `_check_churn`, graphs in a row count that serve few calls.
        """
        if self._raises or len(self._variants) < _CHURN or key in self._variants:
            return
        latest = list(self._variants.values())[-_CHURN:]
        lengths = {variants[0].key[0].leaves for variants in latest}
        if len(lengths) < _CHURN or key[0].leaves in lengths:
            return
        if all(v.executor.counters.current().calls < _CHURN for vs in latest for v in vs):
            raise TraceError(
                "the arguments hold another number of items at each call: each number would be a "
                "graph of its own",
                hint="pass one array: np.array(items)",
            )

    def _make_room(self) -> None:
        """Drop the least recently used traces, so that a new one does not exceed ``max_traces``.

        Baked-in sizes and static arguments could otherwise make an unlimited number of traces. To
        keep calls fast, they do not record their time: a trace counts as used now if its executor
        has counted calls since this method last ran.
        """
        every = self._graphs_met()
        self._graphs_made += 1
        look = self._graphs_made
        for v in every:
            if v.executor.counters.calls != v.calls:
                v.calls, v.used = v.executor.counters.calls, look
        while len(every) >= knobs.max_traces:
            oldest = min(every, key=lambda v: v.used)
            every.remove(oldest)
            left = [v for v in self._variants.pop(oldest.key) if v is not oldest]
            if left:
                self._variants[oldest.key] = left
            self._forget(oldest)
            oldest.executor.retire(self._own)
            self._own.dropped_traces += 1
            log("dropped", self._name, f"{knobs.max_traces} traces are kept (max_traces)")

    def look_again(self) -> None:
        """Look at all calls again that have been left to Python."""
        self._in_python.look_again()

    def _forget(self, variant: Variant) -> None:
        """Drop a graph from the tables by which calls find it."""
        for table in (self._flat, self._on_device):
            for flat in [k for k, v in tuple(table.items()) if v is variant]:
                del table[flat]
        self._plans_seen = -1  # so that emitted code drops the trace, too

    def _graphs_met(self) -> list[Variant]:
        return [v for known in self._variants.values() for v in known]

    def _executors(self) -> list[AnyExecutor]:
        with self._lock:
            return [v.executor for v in self._graphs_met()]


def _loops(raises: bool) -> Policy | None:
    """Which loops of the source stay loops.

    Where Python may not run a function, loops over single elements stay loops as well.
    """
    if not knobs.source_loops:
        return None
    return Policy(rounds=knobs.unroll_rounds, elements=raises)


def _switched(_: object) -> None:
    """Look at all calls again when a knob changes that leaves them to Python."""
    for function in registry.functions():
        if isinstance(function, TracedFunction):
            function.look_again()


for _name in ("demote", "unsupported"):
    knobs.watch(_name, _switched)
