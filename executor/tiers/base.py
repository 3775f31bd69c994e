"""What executors have in common that lie behind each other's guards: counts, and how they end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..compile.pending import Pending
from ..settings.events import Counters, absorb, log, new_counters
from ..settings.fork_lock import ForkLock


class ChainMember:
    """An executor with its fallback executors; deeper members lie behind their guards.

    Attributes:
        pending: the compile that runs elsewhere for this one; None = there is none.
        fallbacks: by the name of the fallback function.
        donated: inputs that may be overwritten.
    """

    pending: Pending | None
    fallbacks: dict[str, Any]
    donated: tuple[int, ...] = ()

    def __init__(self) -> None:
        self._counters = new_counters(self)
        self._lock = ForkLock(self._start_over)

    def _reset(self) -> None:
        raise NotImplementedError

    def _start_over(self) -> None:
        """Another thread was changing this object when the process was forked."""
        self._reset()
        log("flush", reason="another thread was changing the plans when the process forked")

    @property
    def counters(self) -> Counters:
        """What this executor has done, calls in emitted code included."""
        found = self._counters if self._counters.heir is None else self._counters.last_heir()
        return found.current() if found.native else found

    def _count_op(self) -> None:
        self.counters.evaluated_ops += 1

    def chain(self) -> Iterator[Any]:
        """This executor and every fallback executor below it, outermost first."""
        yield self
        for child in tuple(self.fallbacks.values()):
            yield from child.chain()

    def under_way(self) -> list[Pending]:
        """Compiles that run elsewhere, of the whole chain."""
        found = (member.pending for member in self.chain())
        return [p for p in found if p is not None and not p.is_lost]

    def retire(self, into: Counters) -> None:
        """Leave the counts of the whole chain to another object; nobody will call it again."""
        with self._lock:
            self._retire_fallbacks()
            self._cancel()
            absorb(into, self.counters)

    def _cancel(self) -> None:
        if self.pending is not None:
            self.pending.cancel()
            self.pending = None

    def _retire_fallbacks(self) -> None:
        for child in self.fallbacks.values():
            child._retire_fallbacks()
            child._cancel()
            absorb(self.counters, child.counters)
