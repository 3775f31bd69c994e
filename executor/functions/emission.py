"""Keeps the emitted code of a function up to date: one builtin for calls, one for calls of `into`."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ..dispatch.debounce import Later
from ..dispatch.dispatcher import Dispatcher, unserved
from ..plans.plan import PLANS
from ..tiers.choice import AnyExecutor
from .graphs import Graphs

if TYPE_CHECKING:
    from .reverse_calls import Pull

Calls = Callable[..., Any]


class Emission:
    """The emitted code of one function.

    Args:
        graphs: of the function.
        attach: gets the builtins; None in place of one = Python dispatches the calls.
        call: runs any call in Python, from its arguments by position and by name.
        into: the same for calls of `into`, whose first argument is where results are written.

    The three are bound methods; this object, and emitted code, do not keep their objects alive.

    Attributes:
        dispatcher: makes the code of calls; None before the first one.
        writer: makes that of calls of `into`, likewise.
    """

    def __init__(self, graphs: Graphs, attach: Callable[[Calls | None, Calls | None], None], call: Calls, into: Calls):
        self._graphs, self._attach = graphs, weakref.WeakMethod(attach)
        self._call, self._into = weakref.WeakMethod(call), weakref.WeakMethod(into)
        self.dispatcher: Dispatcher | None = None
        self.writer: Dispatcher | None = None
        self._attached: tuple[Calls | None, Calls | None] = None, None
        self._called: AnyExecutor | None = None
        self._seen = 0  # plans and changes of graphs
        self._reverse: WeakKeyDictionary[Any, Pull] = WeakKeyDictionary()
        self._emission = Later(self._emit)

    @property
    def native(self) -> Calls | None:
        """The builtin that serves calls; None = Python dispatches them."""
        return self._attached[0]

    def write(self) -> None:
        """Emit code for calls of `into`, too."""
        if self.writer is None:
            with self._graphs.lock:
                self.writer = self.writer or self._made(self._into, into=True)
            self._graphs.changes += 1

    def _made(self, python: weakref.WeakMethod, *, into: bool = False) -> Dispatcher:
        slow = _slow_path(weakref.ref(self), python, "writer" if into else "dispatcher")
        return Dispatcher(self._graphs.name, slow, into=into, asks=self._graphs.source.has_code)

    def look(self) -> None:
        """Emit code again if there are new plans of the function."""
        version = PLANS.count + self._graphs.changes
        if self._seen == version:
            return
        self._seen = version
        graphs, pulls = self._graphs_met(), self.pulls()
        if not any(
            dispatcher.needs(graphs) or dispatcher.call is not call
            for dispatcher, call in zip(self.dispatchers(), self._attached, strict=False)
        ) and not any(pull.is_stale for pull in pulls):
            return
        if self._graphs.options.background:
            self._emission.ask()
        else:
            self._emit()

    def _pulled(self, *, is_new: bool) -> None:
        """A reverse half has run in Python; ``is_new``: for inputs of a kind not met before."""
        self._graphs.changes += is_new
        self.look()

    def _graphs_met(self) -> list:
        with self._graphs.lock:
            self.dispatcher = self.dispatcher or self._made(self._call)
            return self._graphs.every()

    def dispatchers(self) -> list[Dispatcher]:
        """The dispatchers that make the code, that of calls first."""
        return [dispatcher for dispatcher in (self.dispatcher, self.writer) if dispatcher is not None]

    def reasons(self) -> dict[str, None]:
        """The reasons why calls are dispatched in Python, if any are."""
        every = [*self.dispatchers(), *(pull.dispatcher for pull in self.pulls())]
        reasons = {reason: None for dispatcher in every for reason in dispatcher.reasons}
        with self._graphs.lock:
            return reasons | {why: None for v in self._graphs.every() if (why := unserved(v)) is not None}

    def _emit(self) -> None:
        """Emit code for the present plans; no lock is held, as this takes as long as a compile."""
        graphs, pulls, dispatchers = self._graphs_met(), self.pulls(), self.dispatchers()
        for dispatcher in dispatchers:
            dispatcher.refresh(graphs)
        for pull in pulls:
            pull.refresh()
        with self._graphs.lock:
            for pull in pulls:
                pull.attach(self._reverse)
            calls = {d: None if d.needs(graphs) else d.call for d in dispatchers}
            # A dispatcher that was flushed meanwhile is neither of the present ones.
            present = zip((self.dispatcher, self.writer), self._attached, strict=True)
            native, native_into = (calls.get(d, call) if d is not None else None for d, call in present)
            self._put(native, native_into)

    def _put(self, native: Calls | None, native_into: Calls | None) -> None:
        self._attached = native, native_into
        attach = self._attach()
        if attach is not None:
            attach(native, native_into)

    def pulls(self) -> list[Pull]:
        """The dispatch of the reverse halves of the graphs that are noted on the tape."""
        with self._graphs.lock:
            graphs = [g for g in self._graphs.every() if g.executor.noted]
            if not graphs:
                return []
            from .reverse_calls import Pull, noted_graphs

            ops = [op for graph in graphs for op in noted_graphs(graph.executor)]
            for op in ops:
                if op not in self._reverse:
                    self._reverse[op] = Pull(op, self._graphs.name, weakref.WeakMethod(self._pulled))
            return [self._reverse[op] for op in ops]

    def wait(self, deadline: float) -> bool:
        """Wait for code under way until ``deadline``, in seconds of `time.monotonic`; whether it has ended."""
        return self._emission.wait(max(0.0, min(deadline - time.monotonic(), threading.TIMEOUT_MAX)))

    def detach(self) -> None:
        """Return to the Python dispatcher until there are new plans; the caller holds no lock."""
        with self._graphs.lock:
            self._put(None, None)
            self.dispatcher = self.writer = None
            # What nodes have of it stays, as its counts go to the heirs of dropped executors.
            self._reverse = WeakKeyDictionary()
            self._graphs.changes += 1

    def come_to_python(self) -> None:
        """Send calls to the Python dispatcher, which requests plans, until code is emitted (A2)."""
        with self._graphs.lock:
            self._put(None, None)
            for pull in list(self._reverse.values()):
                pull.detach()
            self._graphs.changes += 1

    @property
    def current(self) -> AnyExecutor | None:
        """The executor of the last call that had one."""
        return self.current_native() or self._called

    @current.setter
    def current(self, executor: AnyExecutor | None) -> None:
        self._called = executor
        self.forget_native()

    def current_native(self) -> AnyExecutor | None:
        """The executor of the last call, if emitted code ran it."""
        return next((d.current for d in self.dispatchers() if d.current is not None), None)

    def forget_native(self) -> None:
        """Note that the last call ran in the Python dispatcher."""
        if self.dispatcher is not None:
            self.dispatcher.forget_current()
        if self.writer is not None:
            self.writer.forget_current()


def _slow_path(emission: weakref.ref[Emission], python: weakref.WeakMethod, which: str) -> Calls:
    """A callable for emitted code to use if no specialisation fits; it holds weak references only.

    Args:
        emission: that of the function.
        python: the method that takes the call.
        which: name of the attribute with the dispatcher of the emitted code.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        run, owner = python(), emission()
        if run is None or owner is None:
            raise ReferenceError("the function of this dispatcher is gone")
        dispatcher = getattr(owner, which)
        if dispatcher is not None:
            dispatcher.add_up_misses()
        return run(args, kwargs)

    return call
