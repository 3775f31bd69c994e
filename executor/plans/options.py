"""Settings of one function."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..settings.strategy import Strategy
from .processor import HOST, Processor

if TYPE_CHECKING:
    from ..functions.saved.file import SavedFile


@dataclass(frozen=True)
class Options:
    """What a user may set per function; None = the process-wide setting at construction."""

    strategy: Strategy | None = None
    profiled_runs: int | None = None
    name: str = "main"
    strict: bool = False  # the traced function asked for strict fusion itself (R1.46)
    background: bool = False  # compile in a worker while calls go on
    device: str | None = None  # what a user asked for; None = where the arguments are
    processor: Processor = HOST  # where the values of the graph are
    arguments: str = ""  # dtypes and ranks that the graph holds for, where that is known
    recall: bool = True  # use stored profiles; a flush ends that
    donate: tuple[str, ...] = ()  # parameters whose arrays calls may overwrite
    saved: SavedFile | None = None  # where profiles and compiles are looked for first

    def of_fallback(self, callee: str) -> Options:
        """Of an executor behind a guard, whose inputs its caller may still need."""
        return replace(self, name=f"{self.name}/{callee}", donate=())
