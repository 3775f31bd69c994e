"""One guard of a plan and how it fared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..dialect.types import TensorType


@dataclass
class Guard:
    """One guard of a plan and how it fared.

    Attributes:
        types: expected types of the checked values.
        behavior: ``"static"``, ``"dynamic"`` or ``"relaxed"`` (R3.42).
        callee: the fusion function it protects.
        fallback: the fallback function on its other side.
        operands: the checked values of the graph.
        forced: misses that stress mode made; they are not kept in ``last_miss``.
        counted, missed, missed_types: hits, misses and ``last_miss`` as far as they are added up.
        missed_at: the latest miss in emitted code that is in them, on its clock.
        timed, timed_seconds: hits that were timed, and how long their groups took.
        native: counts up what emitted code has counted.
        stressed: True if it fails on purpose now and then.
    """

    types: tuple[TensorType, ...]
    behavior: str
    callee: str = ""
    fallback: str = ""
    counted: int = 0
    missed: int = 0
    operands: tuple[int, ...] = ()
    missed_types: tuple[Any, ...] | None = None
    missed_at: int = 0
    forced: int = 0
    timed: int = 0
    timed_seconds: float = 0.0
    native: Callable[[], object] | None = None
    stressed: bool = False

    def _add_up(self) -> None:
        if self.native is not None:
            self.native()

    @property
    def hits(self) -> int:
        """How often the guard has held."""
        self._add_up()
        return self.counted

    @property
    def misses(self) -> int:
        """How often it has not."""
        self._add_up()
        return self.missed

    @property
    def last_miss(self) -> tuple[Any, ...] | None:
        """The values' types at the latest miss (None = never missed)."""
        self._add_up()
        return self.missed_types

    @property
    def run_seconds(self) -> float:
        """Time that the group behind the guard has run, taken from the timed hits."""
        hits = self.hits  # read first: it brings the others up to date
        return self.timed_seconds / self.timed * hits if self.timed else 0.0
