"""The functions that users hold: calls, states, explanations and saving."""

from __future__ import annotations

import math
import os
import time
from dataclasses import replace
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, SupportsIndex

from ...dialect.errors import ArgumentError
from ...dialect.importers.numpy.python.users_code import JITTED, wraps
from ...dialect.ir.program import Module
from ...dialect.trees.pytree import call_text
from .. import explain
from ..arguments.user_input import check_environment, check_path
from ..memory import thread_block
from ..observe import live_functions
from ..routing.verdict import Cause
from ..settings.dynamo import tell_dynamo, unseen_by_dynamo
from ..settings.events import log, new_counters
from ..settings.knobs import knobs
from ..settings.plain import is_disabled, read_knobs
from ..tiers.choice import AnyExecutor
from ..tiers.profiling import Options
from .emission import Calls
from .graph_source import GraphSource
from .graphs import Graphs
from .router import Router

if TYPE_CHECKING:
    from ..explain.state import DebugState, ExecutorState
    from ..tiers.keyed import KeyedState

_LOOK_SECONDS = 0.05  # a compile can become obsolete while it is waited for


class GraphFunction:
    """A function whose graphs are profiled, specialised and run natively.

    Args:
        source: where its graphs come from.
        options: per-function settings.

    Its own state is in slots: what its dict holds is the user's, as of a plain function, and traces watch it.
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_call_python",
        "_emission",
        "_graphs",
        "_name",
        "_native_into",
        "_options",
        "_own",
        "_router",
        "_source",
        "native",
    )

    def __init__(self, source: GraphSource, options: Options) -> None:
        wraps(self, source.fn)
        check_environment()
        self._source, self._options, self._name = source, options, options.name
        self._own = new_counters(self)
        self._graphs = Graphs(source, options, self._own)
        self.native: Calls | None = None
        self._native_into: Calls | None = None
        self._router = Router(self._graphs, self._attach)
        self._emission = self._router.emission
        self._call_python = self._router.call
        read_knobs()
        if knobs.trace:
            from ..observe.perfetto import trace_from_environment

            trace_from_environment(knobs.trace)
        live_functions.add(self)
        tell_dynamo()

    @unseen_by_dynamo
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        native = self.native
        if native is not None:
            return native(*args, **kwargs) if kwargs else native(*args)
        return self._call_python(args, kwargs)

    def _attach(self, native: Calls | None, native_into: Calls | None) -> None:
        """Have emitted code serve calls; None = Python dispatches them."""
        self.native, self._native_into = native, native_into

    @unseen_by_dynamo
    def into(self, out: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call with these arguments, write the results into ``out``, and return it.

        ``out`` holds writable arrays of the shapes and dtypes of the results, nested as the
        function returns them. Kernels write to arrays that are C-contiguous and overlap no
        argument; into others results are copied (counter ``output_copies``), and an array may well
        be an argument at the same time. What is in ``out`` after an error is not defined.

        Raises ArgumentError for another structure, read-only arrays, and arrays that share memory;
        ShapeError and DTypeError where they do not fit the results; TraceError inside another
        function's trace; and what a call raises.
        """
        native = self._native_into
        if native is not None:
            return native(out, *args, **kwargs)
        return self._router.into((out, *args), kwargs)

    def _executors(self) -> list[AnyExecutor]:
        return self._graphs.executors()

    @property
    def _current(self) -> AnyExecutor | None:
        """The executor of the last call that had one."""
        return self._emission.current

    def state(self) -> ExecutorState:
        """Tier, specialisations, counters and reasons, over all graphs and fallbacks."""
        ledger = self._graphs.ledger
        state = explain.state_of(self._executors(), self._current, (self._own,), self._router.graph_calls.reasons)
        reasons, latest = tuple(ledger.reasons), ledger.latest
        has_left = latest is not None and latest.cause is not Cause.COMPILING
        is_pythons = has_left and (bool(reasons) or state.tier == "optimized")
        tier = "python" if is_pythons and self._emission.current_native() is None else state.tier
        emitted, emitted_into = self.native is not None, self._native_into is not None
        return replace(state, tier=tier, reasons=(*reasons, *state.reasons), emitted=emitted, emitted_into=emitted_into)

    def debug_state(self) -> DebugState | KeyedState:
        """A snapshot of the graph used last: its optimised plan, or its plans (R1.15, R2.16).

        Raises ArgumentError while there is no plan.
        """
        return explain.debug_state_of(self._current, self._name)

    def explain(self) -> str:
        """Text that says which parts run as native code, which do not, why, and what to do."""
        executors = self._executors()
        if not executors:
            return "\n".join(self._remarks()) or f"{self._name} has not been called yet."
        texts = [f"{self._name} runs {reason}." for reason in self._router.graph_calls.reasons]
        texts += self._explained(executors) + self._remarks()
        return "\n".join(texts + explain.dropped_traces(self._own.dropped_traces, self._name))

    def _explained(self, executors: list[AnyExecutor]) -> list[str]:
        """The text of `explain` on each graph."""
        if len(executors) == 1 or not self._source.stands_for_python:
            return [explain.explained(e, self._name) for e in executors]
        with self._graphs.lock:
            traces = {v.executor: v.trace for v in self._graphs.every()}
        return [
            explain.explained(e, self._name, f"{self._name}({call_text(self._source.fn, t.in_tree, t.kinds)})")
            for e in executors
            if (t := traces.get(e)) is not None  # None: the graph was dropped meanwhile
        ]

    def _remarks(self) -> list[str]:
        """The reasons why calls are Python's, or are dispatched in Python, if any are."""
        reasons = self._emission.reasons()
        with self._graphs.lock:
            every = self._graphs.every()
        lines = self._graphs.ledger.explain()
        if self._source.has_code and is_disabled():
            lines.insert(0, Cause.DISABLED.says.replace("It", self._name, 1))
        standing = set() if self._graphs.raises else set().union(*(v.trial.standing() for v in every))
        if not reasons:
            standing.discard(Cause.NUMBERS)
        lines += [f"  {cause.says}" for cause in Cause if cause in standing]
        lines += [f"  Calls are dispatched in Python: {reason}" for reason in reasons]
        lines += [
            f"  Some calls run in Python, in {1e6 * race.python:.1f} us, where the plan takes {1e6 * race.plan:.1f} us."
            for v in every
            for race in v.trial.races.lost()
        ]
        plans = [s.plan for v in every if v.executor.may_donate for s in v.executor.compiled()]
        if self._options.donate and any(p.kind == "optimized" and not p.donations for p in plans):
            lines.append(
                "  Nothing is made in the memory of donated arguments: no kernel of the plan is "
                "the last to read one and can write to where it reads (see `donate`)."
            )
        return lines

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for background work, at most ``timeout`` seconds; returns whether all has ended."""
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        while under_way := [p for e in self._executors() for p in e.under_way()]:
            seconds = deadline - time.monotonic()
            if seconds <= 0:
                return False
            under_way[0].wait(min(seconds, _LOOK_SECONDS))
        return self._emission.wait(deadline)

    def warmup(self, *args: Any, **kwargs: Any) -> None:
        """Call with these arguments until their optimised plan exists; drops the results."""
        for _ in range(self._options.recorded_runs + 1):
            self(*args, **kwargs)
            self.wait()

    def save(self, path: str | os.PathLike) -> None:
        """Write graphs, profiles and compiled code to one file, for other processes and machines.

        `load` makes a function from the file, without the Python source. ``jit(profile=path)`` lets
        a function with source use the profiles and the code in the file. `save` waits for compiles
        under way. The file contains the arrays that the function closes over, and machine code that
        runs without further checks, so load only files that you trust.

        Raises ArgumentError before the first call, and for structures with classes of the user's;
        FileError if the file cannot be written.
        """
        from .saved.file import SavedFile

        check_path("save", path)
        executors = self._executors()
        if not executors:
            raise ArgumentError(f"{self._name} has no graph to save yet", hint="call it first")
        self.wait()
        entries = [entry for e in executors for member in e.chain() for entry in member.entries()]
        graphs = tuple(self._source.stored(self._graphs))
        SavedFile(os.fspath(path), self._name, graphs, tuple(entries)).write(path)
        log("save", self._name, "", graphs=len(graphs), entries=len(entries))

    def flush(self) -> None:
        """Drop all profiles, plans and kernels; the next call profiles again (R1.14)."""
        for executor in self._executors():
            executor.flush()
        thread_block.release()
        self._emission.detach()  # last, so that code which another thread attached meanwhile goes too

    def ir(self, stage: str = "optimized", specialization: int = 0) -> str:
        """IR text of a stage of the graph used last.

        Args:
            stage: ``"graph"``, ``"profiled"``, ``"optimized"``, or a stage of the kernels:
                ``"linalg"``, ``"loops"``, ``"llvm"``, ``"asm"``; of a GPU's, ``"linalg"``,
                ``"gpu"``, ``"nvvm"``, ``"ptx"``.
            specialization: index of an executor in the fallback chain, outermost first; without
                profiling, index of a plan in the order of compilation.

        Raises ArgumentError if the graph has not reached that stage, or if there is no such stage.
        """
        if self._current is None:
            raise ArgumentError(f"{self._name} has no IR yet", hint="call it first")
        stages = explain.stages_of(self._current)
        if not 0 <= specialization < len(stages):
            raise ArgumentError(f"specialization {specialization} does not exist", hint=f"there are {len(stages)}")
        return explain.stage_text(stages[specialization], stage)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        is_method = instance is not None and self._source.stands_for_python
        return MethodType(self, instance) if is_method else self

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple:
        """Pickle and copy without profiles and plans."""
        return self._source.reduced(self, protocol)

    @property
    def _by_name(self) -> FunctionType | None:
        """A copy of the Python function that can be imported by its name; None if there is none."""
        return self._source.by_name(self)

    @property
    def module(self) -> Module:
        """The graph, as loaded; functions in NumPy have none."""
        return self._source.module  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"<{self._source!r}>"


live_functions.kinds.append(GraphFunction)
JITTED.add(GraphFunction)


def _release_switched(_: bool) -> None:
    """Send calls to Python when the knob changes: emitted code requests no plan to release."""
    for function in live_functions.functions():
        function._emission.come_to_python()


def _look_again(_: object) -> None:
    """Look at all calls again when a knob changes that leaves them to Python."""
    for function in live_functions.functions():
        function._graphs.ledger.look_again()


knobs.watch("release_profiling_graph", _release_switched)
for _name in ("demote", "unsupported"):
    knobs.watch(_name, _look_again)
