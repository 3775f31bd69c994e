"""Keeps the builtin of a jitted function up to date.

The builtin is a callable made of emitted machine code (see docs/dispatch.md). The modules that emit
it are loaded when the first builtin is made.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...dialect.errors import ProfuseError
from ...dialect.ir.device import HOST
from ..arguments.device_kinds import kinds_met
from ..compile.request import compiler_errors
from ..plans.plan import Plan
from ..settings.events import log
from ..settings.fork_gate import loaded
from ..settings.fork_lock import ForkLock
from ..settings.knobs import knobs
from ..tiers.choice import AnyExecutor

if TYPE_CHECKING:
    from ..functions.variants import Variant
    from .attach import Made
    from .entry import Entry

Chain = list[tuple[AnyExecutor, Plan]]


class Dispatcher:
    """Keeps the builtin of a function up to date with the plans of its specialisations.

    Args:
        name: name of the function.
        slow: the Python dispatcher, called with the same arguments if no specialisation fits.
        into: True = the first argument is the array into which the result is written.

    Attributes:
        reasons: why plans were left to the Python dispatcher, oldest first.
    """

    def __init__(self, name: str, slow: Callable[..., Any], *, into: bool = False) -> None:
        self._name, self._slow, self._into = name, slow, into
        self.reasons: dict[str, None] = {}
        self._lock = ForkLock()  # held while code is emitted; calls take no lock
        self._made: Made | None = None
        self._served: list[tuple[Any, Chain, int]] = []
        self._clock = 0  # the value of the entry's clock when misses were last added up

    @property
    def entry(self) -> Entry | None:
        """The builtin and its table; None while Python dispatches the calls."""
        made = self._made
        return made.entry if made else None

    @property
    def call(self) -> Callable[..., Any] | None:
        """The builtin; None while Python dispatches the calls."""
        made = self._made
        return made.entry.call if made else None

    @property
    def current(self) -> AnyExecutor | None:
        """The outermost executor of the last call; None if that call ran in Python."""
        made = self._made
        number = made.entry.current if made else 0
        return made.executors[number - 1] if made and number else None

    def forget_current(self) -> None:
        """Note that the last call ran in the Python dispatcher."""
        made = self._made
        if made:
            made.entry.forget()

    def add_up_misses(self) -> None:
        """Add the misses of emitted code to the guards, before Python code counts another miss."""
        made = self._made
        if made and made.entry.clock != self._clock:
            self._clock = made.entry.clock
            for counts in made.counts:
                counts.add_up()

    def _clock_now(self) -> int:
        """The clock of the present builtin, with which the next one goes on."""
        self.add_up_misses()
        return self._clock

    def needs(self, variants: Sequence[Variant]) -> bool:
        """Whether `refresh` has something to do."""
        return knobs.native_dispatch and self._chains(variants) != self._served

    def _chains(self, variants: Sequence[Variant]) -> list[tuple[Variant, Chain, int]]:
        """The graphs that emitted code may serve.

        Each comes with its chain of plans, and with the number of device array types seen so far
        (0 on the host): a new type needs new code.
        """
        out = []
        for variant in variants:
            on_host, chain = variant.executor.options.processor.is_host, _chain(variant.executor)
            if self._into and not on_host:
                continue  # `into` is for host arrays
            if chain and unserved(variant) is None:
                out.append((variant, chain, 0 if on_host else kinds_met()))
        return out

    def refresh(self, variants: Sequence[Variant]) -> None:
        """Replace the builtin if the function has other plans than those that the builtin serves.

        Args:
            variants: the graphs of the function.
        """
        with self._lock:
            self._refresh(variants)

    def _refresh(self, variants: Sequence[Variant]) -> None:
        found = self._chains(variants)
        if found == self._served or not knobs.native_dispatch:
            return
        self._served = found
        start = time.perf_counter()
        made: Made | None
        try:
            with compiler_errors("emitting the dispatcher"):
                plans = [(variant, chain) for variant, chain, _ in found]
                made = loaded("executor.dispatch.attach").made_of(
                    plans, self._slow, self._clock_now, self._refuse, into=self._into
                )
        except ProfuseError as error:
            self._refuse(error.what)
            made = None
        self._made = made
        if made is not None:
            seconds, count = time.perf_counter() - start, len(made.counts)
            log("dispatch", self._name, "calls run in emitted code", seconds, specialisations=count)

    def _refuse(self, reason: str) -> None:
        if reason not in self.reasons:
            self.reasons[reason] = None
            log("dispatch-refused", self._name, reason)


def unserved(variant: Variant) -> str | None:
    """Why calls of a graph can never run in emitted code; None = they can."""
    if variant.executor.python_only:
        return variant.executor.python_only
    options = variant.executor.options
    if options.processor.is_host and options.device not in (None, HOST):
        return "each call looks for the device that was asked for"
    return None


def _chain(executor: AnyExecutor | None) -> Chain:
    """An executor and its fallbacks with their settled plans, outermost first.

    Each attribute is read once, because another thread may flush the executors meanwhile.
    """
    chain: Chain = []
    while executor is not None:
        plan = executor.settled
        if plan is None or plan.kind != "optimized":
            break
        chain.append((executor, plan))
        children = tuple(executor.fallbacks.values())
        if executor.settled is not plan:
            break
        executor = children[0] if len(children) == 1 else None
    return chain
