"""The base class of traced and loaded functions: calls, states, explanations and saving."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from sys import is_finalizing
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dialect.errors import ArgumentError, TraceError
from ...dialect.importers.numpy.capture.tracer import is_tracing
from ...dialect.importers.numpy.tracing.traced import is_on_tape
from ...dialect.ir.device import HOST
from ...dialect.reasons import Kind, Reason
from .. import explain
from ..arguments.checks import check_environment, check_path
from ..interpret.evaluate import evaluate
from ..memory import thread_block
from ..memory.destinations import Destinations
from ..memory.output_pool import readable
from ..observe import registry
from ..plans.processor import backend_of
from ..settings.event_log import STDERR, say
from ..settings.events import Counters, log, new_counters
from ..settings.fork_lock import ForkLock
from ..settings.knobs import knobs
from ..tiers.choice import AnyExecutor
from ..tiers.keyed import KeyedState
from ..tiers.profiling import Options
from .device_arguments import home_of

if TYPE_CHECKING:
    from ...dialect.importers.numpy.tracing.pytree import TreeDef
    from ..explain.state import DebugState, ExecutorState
    from .saved.file import StoredGraph

_LOOK_SECONDS = 0.05  # a compile can become obsolete while it is waited for


class GraphFunction:
    """The base class of the functions that users hold."""

    def __init__(self, name: str, options: Options) -> None:
        check_environment()
        self._name = name
        self._options = options
        self._lock = ForkLock()
        self._current: AnyExecutor | None = None
        # Counts and reasons that belong to no executor: those from before the graph of a call is
        # known, and those of dropped graphs.
        self._own = new_counters(self)
        self._reasons: list[Reason] = []

    def _enter(self) -> None:
        """Register this function, which is ready now, in the list of all functions."""
        if knobs.trace:
            from ..observe.perfetto import trace_from_environment

            trace_from_environment(knobs.trace)
        registry.add(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def _executors(self) -> list[AnyExecutor]:
        raise NotImplementedError

    def _resolved(self, args: tuple, kwargs: dict[str, Any]) -> tuple[AnyExecutor, list, TreeDef]:
        """The executor of a call, its inputs, and the structure of its results.

        Raises TraceError inside another function's trace.
        """
        raise NotImplementedError

    def _run(self, executor: AnyExecutor, inputs: list, into: Destinations | None = None) -> list:
        executor.counters.calls += 1
        if is_finalizing():  # nothing can be imported any more, nor a plan be made
            outputs = evaluate(executor.module, inputs)
            if into is not None:
                into.fill(outputs)
            return outputs
        self._current = executor
        return executor.run(inputs, into)

    def _run_on_tape(self, executor: AnyExecutor, inputs: list) -> list:
        """Run an executor on inputs any of which may be on the tape."""
        from .on_tape import untaped

        executor.counters.calls += 1
        found = executor.serving(inputs)
        outputs = found.run(untaped(inputs) if found is executor else inputs)
        self._current = found
        return outputs

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
        executor, inputs, tree = self._resolved(args, kwargs)
        found = Destinations(out, tree, self._name)
        self._run(executor, inputs, found)
        executor.counters.output_copies += found.copied
        return out

    def _host_leaves(self, leaves: list, counters: Counters) -> list:
        """The leaves of a call of `into`, in a form that kernels can read.

        Raises TraceError inside a trace, and ArgumentError for arguments on a device.
        """
        if is_tracing(leaves):
            raise TraceError(
                f"{self._name}.into is called while another function is traced",
                hint="call the function itself: in a trace there is no memory to write to yet",
            )
        if is_on_tape(leaves):
            from .on_tape import detached

            leaves = detached(leaves, self._name)
        leaves, home = self._placed([readable(leaf, counters) for leaf in leaves])
        if home != HOST:
            raise ArgumentError(
                f"{self._name}.into is for host arrays, and the call is one on a device",
                hint="call the function itself; its library makes the results",
            )
        return leaves

    def _placed(self, leaves: list) -> tuple[list, str]:
        """The leaves, moved to the device that the user has chosen, and the device of the call.

        If that device cannot be used, the leaves stay and the call runs on the host; the reason is
        logged and the call is counted. Raises ArgumentError for arrays of another processor.
        """
        home, asked = home_of(leaves), self._options.device
        if asked is None or home != HOST:
            if asked == HOST and home != HOST:
                raise ArgumentError(
                    f"{self._name} is for host arrays, and an array on {home} was passed",
                    hint='leave device="cpu" away',
                )
            return leaves, home
        device = asked if asked == HOST or ":" in asked else f"{asked}:0"
        backend = backend_of(device)
        reason = backend.unavailable(device)
        if reason:
            if not self._own.device_fallbacks:
                log("device-fallback", self._name, f"runs on the host: {reason}")
                if knobs.log != STDERR:  # else the event is such a line
                    say(f"profuse: {self._name} was made for {device}, runs on the host: {reason}")
                self._reasons.append(Reason(Kind.OFF_DEVICE, subject=device, detail=reason))
            self._own.device_fallbacks += 1
            return leaves, HOST
        found = backend.moved(leaves, device)
        return found, home_of(found)

    def _run_at_home(
        self, executor: AnyExecutor, leaves: list, captured: Sequence[np.ndarray] = ()
    ) -> list:
        """Run an executor on its processor; the backend moves arguments and handles failures."""
        if is_finalizing():
            return self._run(executor, [*leaves, *captured])
        backend = backend_of(executor.options.processor.device)
        return backend.call(self._run, executor, leaves, captured)

    def state(self) -> ExecutorState:
        """Tier, specialisations, counters and reasons, over all graphs and fallbacks."""
        return explain.state_of(self._executors(), self._current, (self._own,), self._reasons)

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
        texts = [f"{self._name} runs {reason}." for reason in self._reasons]
        texts += self._explained(executors) + self._remarks()
        return "\n".join(texts + explain.dropped_traces(self._own.dropped_traces, self._name))

    def _explained(self, executors: list[AnyExecutor]) -> list[str]:
        """The text of `explain` on each graph."""
        return [explain.explained(e, self._name) for e in executors]

    def _remarks(self) -> list[str]:
        """The text of `explain` on all graphs together."""
        return []

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for background compiles, at most ``timeout`` seconds; returns whether all ended."""
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        while under_way := [p for e in self._executors() for p in e.under_way()]:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            under_way[0].wait(min(left, _LOOK_SECONDS))
        return True

    def warmup(self, *args: Any, **kwargs: Any) -> None:
        """Call with these arguments until their optimised plan exists; drops the results."""
        runs = self._options.profiled_runs
        for _ in range((knobs.profiled_runs if runs is None else runs) + 1):
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
        graphs = tuple(self._graphs())
        SavedFile(os.fspath(path), self._name, graphs, tuple(entries)).write(path)
        log("save", self._name, "", graphs=len(graphs), entries=len(entries))

    def _graphs(self) -> list[StoredGraph]:
        raise NotImplementedError

    def flush(self) -> None:
        """Drop all profiles, plans and kernels; the next call profiles again (R1.14)."""
        for executor in self._executors():
            executor.flush()
        thread_block.release()

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
        made = explain.stages_of(self._current)
        if not 0 <= specialization < len(made):
            raise ArgumentError(
                f"specialization {specialization} does not exist", hint=f"there are {len(made)}"
            )
        return explain.stage_text(made[specialization], stage)
