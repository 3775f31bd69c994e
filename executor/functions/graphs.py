"""The graphs of one function: found by the arguments of calls, traced, replaced, dropped."""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...dialect.errors import GradientError, ProfuseError, TraceError
from ...dialect.importers.numpy.capture.trace import Trace
from ...dialect.ir.device import HOST
from ...dialect.trees.leaves import leaf_kind
from ...dialect.trees.pytree import TreeDef
from ..arguments.user_input import check_arity
from ..memory.donation import positions
from ..memory.output_pool import readable
from ..plans.processor import Processor
from ..routing.graph_trial import GraphTrial
from ..routing.in_vain import LatestTraces, changing
from ..routing.ledger import Ledger, NoGraph, is_lasting
from ..routing.patience import TRIES, are_in_vain, serves
from ..routing.verdict import Cause
from ..settings.events import Counters, log
from ..settings.fork_lock import ForkLock
from ..settings.knobs import knobs
from ..tiers.choice import AnyExecutor, make_executor
from ..tiers.profiling import Options
from .device_arguments import check_captured, present, stand_ins
from .variants import Key, Variant, argument_names

if TYPE_CHECKING:
    from .graph_source import GraphSource
    from .results import Results

_KINDS = 256  # kinds of calls whose latest traces are kept


class Graphs:
    """A graph for each kind of call of a function.

    Args:
        source: where the graphs come from.
        options: per-function settings.
        own: counts that belong to no executor: those from before the graph of a call is known, and
            those of dropped graphs.

    Attributes:
        flat: the graphs by the key of a call without containers.
        on_device: the same for calls on device arrays.
        made: how many graphs have been made.
        changes: how often emitted code had to be made anew, though no plan was new.
        traced_by: the thread in which a trace is under way.
    """

    def __init__(self, source: GraphSource, options: Options, own: Counters) -> None:
        self.source, self.options, self.own, self.name = source, options, own, options.name
        self.lock = ForkLock()
        self.ledger = Ledger(self.name)
        self.variants: dict[Hashable, list[Variant]] = {}
        self.flat: dict[tuple, Variant] = {}
        self.on_device: dict[tuple, Variant] = {}
        self.made = self.changes = 0
        self.traced_by: int | None = None
        self._latest: dict[Key, LatestTraces] = {}

    @property
    def raises(self) -> bool:
        """True if calls without a graph raise errors, False if Python runs them."""
        return self.source.raises or (self.options.unsupported or knobs.unsupported) == "raise"

    @property
    def _shares_memory(self) -> bool:
        """True if results are arguments, and views of these and of each other, where the function gives such."""
        return not self.raises or self.source.shares_memory

    def lookup(
        self,
        flat: tuple | None,
        leaves: list,
        tree: TreeDef,
        args: tuple,
        kwargs: dict,
        home: str = HOST,
        *,
        plain: bool = False,
    ) -> Variant:
        """The graph of a call, which is traced if it is new; ``flat`` is stored for later calls.

        ``plain``: its outputs are to be the results. Raises `NoGraph` for a call that is left to
        Python.
        """
        key = (tree, kinds_of(leaves))
        plain = plain or home != HOST or not self._shares_memory
        variant = self.find(self.variants.get(key, ()), leaves, plain)
        if variant is None:
            if home != HOST:
                args, kwargs = tree.unflatten(stand_ins(leaves))
                variant = self.trace(key, leaves, args, kwargs, home)
            elif self.raises:
                variant = self.trace(key, leaves, args, kwargs, plain=plain)
            else:
                variant = self._trace_or_leave(key, leaves, args, kwargs, plain)
        if home != HOST:
            self._remember(self.on_device, flat, variant)
        elif self.options.device in (None, HOST) and variant.serves(plain=False):
            self._remember(self.flat, flat, variant)
        return variant

    def _trace_or_leave(self, key: Key, leaves: list, args: tuple, kwargs: dict, plain: bool) -> Variant:
        """`_trace`, which leaves the call to Python, by `NoGraph`, where there is no graph."""
        refused = self.ledger.refused(key, leaves)
        if refused is not None:
            raise refused
        latest = self._latest_of(key)
        try:
            latest.check(key[0])
        except TraceError as error:
            self.ledger.tell(error)
            by, patience = self.ledger.by_kinds, latest.patience
            raise NoGraph(Cause.IN_VAIN, error, by=by, patience=patience, of_all=latest.is_short) from None
        check_arity(self.source.fn, self.name, args, kwargs)
        start = time.perf_counter()
        variant = None
        try:
            variant = self.trace(key, leaves, args, kwargs, plain=plain)
            return variant
        except ProfuseError as error:
            if isinstance(error, TraceError) and not error.is_undone:
                raise  # a run in Python would have the effects of the trace once more
            if isinstance(error, GradientError):
                raise  # a run in Python might lose gradients, of tensors that the function closes over
            refused = NoGraph(Cause.NO_GRAPH if is_lasting(error) else Cause.RAISED, error)
            if is_lasting(error):
                self.ledger.refuse(key, error)
                raise refused from None
        except NoGraph as error:
            refused = error
        finally:
            latest.note(key[0], variant, time.perf_counter() - start)
        refused.key = key
        if refused.raised is not None:
            refused.by = self.ledger.by_values
        raise refused

    def _latest_of(self, key: Key) -> LatestTraces:
        """The latest traces of calls with such arguments, whichever objects are among them."""
        tree, kinds = key
        kind = tree.with_statics(type), kinds
        latest = self._latest.get(kind)
        if latest is None:
            if len(self._latest) >= _KINDS:
                self._latest.clear()
            latest = self._latest[kind] = LatestTraces()
        return latest

    def inputs(self, variant: Variant, leaves: Sequence[Any]) -> list:
        """The inputs of a graph: the leaves, then the captured arrays with their present contents.

        A captured array that kernels cannot read is copied for each call: a copy that is kept would
        not contain what the user later writes into the array.
        """
        captured = variant.trace.captured
        if not captured:
            return list(leaves)
        before = self.own.input_copies
        inputs = [*leaves, *(readable(array, self.own) for array in present(captured, self.own))]
        if self.own.input_copies != before:
            variant.note_copies()
        return inputs

    def _remember(self, table: dict[tuple, Variant], flat: tuple | None, variant: Variant) -> None:
        """Store a graph in a table, so that later calls with the key ``flat`` find it quickly."""
        if flat is not None and not variant.trace.guards:
            with self.lock:
                # If the graph is not listed, another thread has dropped it.
                if variant in self.variants.get(variant.key, ()):
                    table[flat] = variant
                    self.changes += 1  # look again, even if no plan is new

    @staticmethod
    def find(variants: Sequence[Variant], leaves: list, plain: bool) -> Variant | None:
        """The graph of these leaves; ``plain``: one whose outputs are the results, in memory of their own."""
        for variant in variants:
            if variant.serves(plain=plain) and variant.trace.accepts(leaves):
                return variant
        return None

    def trace(
        self, key: Key, leaves: list, args: tuple, kwargs: dict, home: str = HOST, *, plain: bool = True
    ) -> Variant:
        with self.lock:
            variants = self.variants.get(key, ())
            variant = self.find(variants, leaves, plain)
            if variant is not None:
                return variant
            check_arity(self.source.fn, self.name, args, kwargs)
            self._check_lengths(key)
            start = time.perf_counter()
            trace = self.source.graph(self, key, leaves, args, kwargs, home)
            check_captured(trace.captured, home)
            reason = "trace guard" if variants else "new argument structure, rank or dtype"
            outdated = next((v for v in variants if v.is_outdated_by(trace)), None)
            if outdated is not None:
                variant, reason = self._renew(outdated, trace), "other objects of the same kind"
            else:
                self._check_churn(variants)
                variant = self.admit(key, trace, home, plain=plain)
            if not self.source.stands_for_python:
                return variant
            variant.executor.counters.traces += 1
            seconds = time.perf_counter() - start
            variant.executor.work.note("traced", seconds, self.name, reason, before_call=True)
            log("trace", self.name, reason, seconds)
            return variant

    def admit(self, key: Key, trace: Trace, home: str = HOST, *, plain: bool = True) -> Variant:
        """Make an executor for a trace and store both; the caller holds the lock.

        ``plain``: the outputs of its graph are the results, in memory of their own.
        """
        memory, keeps_byte_order, is_copied = None, False, False
        has_others = home == HOST and self._shares_memory and self.source.has_code  # calls that share memory
        if not (trace.strict or self.options.donate) and (has_others or not plain):
            from .byte_order import keeps_byte_order as keeps  # once for each graph
            from .results import results_of

            try:
                memory = results_of(trace, orders=not self.raises)
            except TraceError:  # Python's, where results share memory
                if not plain:
                    raise
                is_copied = True
            if plain and memory is not None and not memory.is_plain:
                memory, is_copied = None, True
            keeps_byte_order = not (self.raises or is_copied) and keeps(trace)
        trace.hints, trace.copied, trace.laid = {}, {}, {}
        executor = self.source.executor(home, self.options) or self._executor(trace, memory, home)
        self._make_room()
        variant = Variant(trace, executor, key, GraphTrial(trace, executor), used=self.made, memory=memory)
        variant.keeps_byte_order, variant.is_copied = keeps_byte_order, is_copied
        self.variants.setdefault(key, []).append(variant)
        return variant

    def _executor(self, trace: Trace, memory: Results | None, home: str) -> AnyExecutor:
        """An executor for a trace."""
        options = replace(
            self.options,
            strict=trace.strict,
            processor=Processor(home),
            arguments=trace.signature(),
            writes=bool(trace.writes),
        )
        graph = trace.module if memory is None else memory.module
        executor = make_executor(graph, options, trace.depths())
        executor.notes += trace.explain()
        executor.input_names = argument_names(trace)
        if executor.may_donate and home == HOST:
            executor.donated = positions(trace.names[: trace.in_tree.leaves], options.donate)
        return executor

    def _renew(self, outdated: Variant, trace: Trace) -> Variant:
        """Replace a trace by one that reads other objects into the same graph."""
        variants = self.variants[outdated.key]
        renewed = outdated.renewed(trace)
        variants[variants.index(outdated)] = renewed
        self._forget(outdated)
        return renewed

    def _check_churn(self, known: Sequence[Variant]) -> None:
        """Raise TraceError where what the function reads changes sooner than graphs pay off."""
        if self.raises:
            return
        baked = [v for v in known if v.trace.bakes_floats]
        if are_in_vain(baked):
            guard = next(g for g in baked[-1].trace.guards if g.is_float)
            raise TraceError(
                f"{guard.text} is needed as a number and changes from call to call: each value "
                "would be a graph of its own",
                loc=guard.loc,
                hint="use NumPy's function in place of that of math",
            )
        outdated = [v for v in known if not v.trace.holds_what_it_held()]
        if are_in_vain(outdated):
            raise changing({read.place.name for v in outdated[-TRIES:] for read in v.trace.changed()})

    def _check_lengths(self, key: Key) -> None:
        """Raise TraceError where containers have another length at each call: so would have graphs.

        As for `_check_churn`, graphs in a row count that serve few calls.
        """
        if self.raises or len(self.variants) < TRIES or key in self.variants:
            return
        latest = list(self.variants.values())[-TRIES:]
        lengths = {variants[0].key[0].leaves for variants in latest}
        if len(lengths) < TRIES or key[0].leaves in lengths:
            return
        if not any(serves(v) for variants in latest for v in variants):
            raise TraceError(
                "the arguments hold another number of items at each call: each number would be a graph of its own",
                hint="pass one array: np.array(items)",
            )

    def _make_room(self) -> None:
        """Drop the least recently used traces, so that a new one does not exceed ``max_traces``.

        Baked-in sizes and static arguments could otherwise make an unlimited number of traces. To
        keep calls fast, they do not record their time: a trace counts as used now if its executor
        has counted calls since this method last ran.
        """
        every = self.every()
        self.made += 1
        look = self.made
        for v in every:
            if v.executor.counters.calls != v.calls:
                v.calls, v.used = v.executor.counters.calls, look
        while len(every) >= knobs.max_traces:
            oldest = min(every, key=lambda v: v.used)
            every.remove(oldest)
            rest = [v for v in self.variants.pop(oldest.key) if v is not oldest]
            if rest:
                self.variants[oldest.key] = rest
            self._forget(oldest)
            for latest in tuple(self._latest.values()):  # other threads add some
                latest.forget(oldest)
            if all(v.executor is not oldest.executor for v in every):
                oldest.executor.retire(self.own)
            self.own.dropped_traces += 1
            log("dropped", self.name, f"{knobs.max_traces} traces are kept (max_traces)")

    def _forget(self, variant: Variant) -> None:
        """Drop a graph from the tables by which calls find it."""
        for table in (self.flat, self.on_device):
            for flat in [k for k, v in tuple(table.items()) if v is variant]:
                del table[flat]
        self.changes += 1  # so that emitted code drops the trace, too

    def every(self) -> list[Variant]:
        """All graphs; the caller holds the lock, if the graphs may change meanwhile."""
        return [v for variants in self.variants.values() for v in variants]

    def executors(self) -> list[AnyExecutor]:
        """The outermost executors, each once."""
        with self.lock:
            return list(dict.fromkeys([*self.source.executors(), *(v.executor for v in self.every())]))


def kinds_of(leaves: Sequence[Any]) -> tuple:
    """The kind of each leaf, which a graph assumes; None for an undefined tensor (R2.7)."""
    return tuple([None if leaf is None else leaf_kind(leaf) for leaf in leaves])
