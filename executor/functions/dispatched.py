"""Functions whose calls run in emitted code once their plans have settled."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from sys import is_finalizing
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ..dispatch.debounce import Later
from ..dispatch.dispatcher import Dispatcher
from ..observe import registry
from ..plans.options import Options
from ..plans.plan import PLANS
from ..settings.knobs import knobs
from ..tiers.choice import AnyExecutor
from .base import GraphFunction

if TYPE_CHECKING:
    from ..explain.state import ExecutorState
    from .reverse_calls import Pull
    from .variants import Variant

_FOREVER = threading.TIMEOUT_MAX


class DispatchedFunction(GraphFunction):
    """A function with two builtins: one for calls, one for calls of `into`.

    Attributes:
        _has_code: whether Python can run calls: there is code, which needs no trace.
    """

    _has_code = False

    def __init__(self, name: str, options: Options) -> None:
        self._dispatcher: Dispatcher | None = None
        self._writer: Dispatcher | None = None  # from the first call of `into` on
        self._called: AnyExecutor | None = None
        super().__init__(name, options)
        self._flat: dict[tuple, Variant] = {}  # key of a call without containers -> its graph
        self._on_device: dict[tuple, Variant] = {}  # the same for calls on device arrays
        self._native: Callable[..., Any] | None = None
        self._native_into: Callable[..., Any] | None = None
        self._plans_seen = 0
        self._reverse: WeakKeyDictionary[Any, Pull] = WeakKeyDictionary()
        self._emission = Later(self._emit)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        native = self._native
        if native is not None:
            return native(*args, **kwargs) if kwargs else native(*args)
        return self._call_python(args, kwargs)

    def _call_python(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run any call; settled specialisations get here only if there is no emitted code."""
        raise NotImplementedError

    def into(self, out: Any, /, *args: Any, **kwargs: Any) -> Any:
        native = self._native_into
        if native is not None:
            return native(out, *args, **kwargs)
        return self._into_python((out, *args), kwargs)

    into.__doc__ = GraphFunction.into.__doc__

    def _into_python(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        result = super().into(*args, **kwargs)
        if is_finalizing():
            return result
        if self._writer is None:
            with self._lock:
                self._writer = self._writer or Dispatcher(
                    self._name, _slow_path(self, "_into_python", "_writer"), into=True,
                    asks=self._has_code,
                )  # fmt: skip
            self._plans_seen = -1
        self._look()
        return result

    def _look(self) -> None:
        """Emit code again if there are new plans of this function."""
        if self._plans_seen == PLANS.made:
            return
        self._plans_seen = PLANS.made
        found, graphs = self._dispatchers()
        attached = self._native, self._native_into
        pulls = self._pulls()
        if not any(
            dispatcher.needs(graphs) or dispatcher.call is not call
            for dispatcher, call in zip(found, attached, strict=False)
        ) and not any(pull.is_stale for pull in pulls):
            return
        if self._options.background:
            self._emission.ask()
        else:
            self._emit()

    def _pulled(self, *, is_new: bool) -> None:
        """A reverse half has run in Python; ``is_new``: for inputs of a kind not met before."""
        if is_new:
            self._plans_seen = -1
        self._look()

    def _dispatchers(self) -> tuple[list[Dispatcher], list[Variant]]:
        with self._lock:
            if self._dispatcher is None:
                slow = _slow_path(self, "_call_python", "_dispatcher")
                self._dispatcher = Dispatcher(self._name, slow, asks=self._has_code)
            found = [self._dispatcher, *([self._writer] if self._writer else [])]
            return found, self._graphs_met()

    def _graphs_met(self) -> list[Variant]:
        """All graphs of this function; the caller holds the lock."""
        raise NotImplementedError

    def _emit(self) -> None:
        """Emit code for the present plans; no lock is held, as this takes as long as a compile."""
        found, graphs = self._dispatchers()
        pulls = self._pulls()
        for dispatcher in found:
            dispatcher.refresh(graphs)
        for pull in pulls:
            pull.refresh()
        with self._lock:
            for pull in pulls:
                pull.attach(self._reverse)
            for dispatcher in found:  # a dispatcher that was flushed meanwhile matches neither
                call = None if dispatcher.needs(graphs) else dispatcher.call
                if dispatcher is self._dispatcher:
                    self._native = call
                elif dispatcher is self._writer:
                    self._native_into = call

    def _pulls(self) -> list[Pull]:
        """What dispatches the reverse halves of the graphs that are noted on the tape."""
        with self._lock:
            graphs = [g for g in self._graphs_met() if g.executor.noted]
            if not graphs:
                return []
            from .reverse_calls import Pull, noted_graphs

            ops = [op for graph in graphs for op in noted_graphs(graph.executor)]
            for op in ops:
                if op not in self._reverse:
                    self._reverse[op] = Pull(op, self._name, weakref.WeakMethod(self._pulled))
            return [self._reverse[op] for op in ops]

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for background work, at most ``timeout`` seconds; returns whether all has ended."""
        start = time.monotonic()
        if not super().wait(timeout):
            return False
        left = _FOREVER if timeout is None else max(0.0, start + timeout - time.monotonic())
        return self._emission.wait(left)

    def _detach(self) -> None:
        """Return to the Python dispatcher until there are new plans; the caller holds the lock."""
        self._native = self._native_into = self._dispatcher = self._writer = None
        # What nodes have of it stays, as its counts go to the heirs of dropped executors.
        self._reverse = WeakKeyDictionary()
        self._plans_seen = -1

    def come_to_python(self) -> None:
        """Send calls to the Python dispatcher, which requests plans, until code is emitted (A2)."""
        with self._lock:
            self._native = self._native_into = None
            for pull in list(self._reverse.values()):
                pull.detach()
            self._plans_seen = -1

    def state(self) -> ExecutorState:
        """Tier, specialisations, counters and reasons, over all graphs and fallbacks."""
        emitted, emitted_into = self._native is not None, self._native_into is not None
        return replace(super().state(), emitted=emitted, emitted_into=emitted_into)

    def flush(self) -> None:
        """Drop all profiles, plans and kernels; the next call profiles again (R1.14)."""
        super().flush()
        with self._lock:  # last, so that code which another thread attached meanwhile goes too
            self._detach()

    @property
    def _current(self) -> AnyExecutor | None:
        """The executor of the last call that had one."""
        return self._in_native() or self._called

    @_current.setter
    def _current(self, executor: AnyExecutor | None) -> None:
        self._called = executor
        self._forget_native()

    def _in_native(self) -> AnyExecutor | None:
        """The executor of the last call, if emitted code ran it."""
        for dispatcher in (self._dispatcher, self._writer):
            native = dispatcher.current if dispatcher else None
            if native is not None:
                return native
        return None

    def _forget_native(self) -> None:
        if self._dispatcher is not None:
            self._dispatcher.forget_current()
        if self._writer is not None:
            self._writer.forget_current()


def _release_switched(_: bool) -> None:
    """Send calls to Python when the knob changes: emitted code requests no plan to release."""
    for function in registry.functions():
        if isinstance(function, DispatchedFunction):
            function.come_to_python()


knobs.watch("release_profiling_graph", _release_switched)


def _slow_path(function: DispatchedFunction, method: str, dispatcher: str) -> Callable[..., Any]:
    """A callable for emitted code to use if no specialisation fits; it holds weak references only.

    Args:
        function: the function.
        method: name of the method that takes the call.
        dispatcher: name of the attribute with the dispatcher of the emitted code.
    """
    known = weakref.ref(function)

    def call(*args: Any, **kwargs: Any) -> Any:
        called = known()
        if called is None:
            raise ReferenceError("the function of this dispatcher is gone")
        found = getattr(called, dispatcher)
        if found is not None:
            found.add_up_misses()
        return getattr(called, method)(args, kwargs)

    return call
