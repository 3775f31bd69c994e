"""The settings of one function."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...dialect.dataclass import dataclass
from ..settings.strategy import Strategy
from .processor import HOST, Processor

if TYPE_CHECKING:
    from ..functions.saved.file import SavedFile


@dataclass(frozen=True)
class Options:
    """The settings of one function; None = the process-wide setting at construction."""

    strategy: Strategy | None = None
    profiled_runs: int | None = None
    name: str = "main"
    strict: bool = False  # the traced function asked for strict fusion itself (R1.46)
    background: bool = False  # compile in a worker while calls go on
    device: str | None = None  # the user's choice; None = the device of the arguments
    processor: Processor = HOST  # the processor on which the graph's values are
    arguments: str = ""  # dtypes and ranks for which the graph is valid; "" = unknown
    recall: bool = True  # use stored profiles; a flush sets this to False
    donate: tuple[str, ...] = ()  # parameters whose arrays calls may overwrite
    saved: SavedFile | None = None  # a file that is searched for profiles and compiles first

    def of_fallback(self, callee: str) -> Options:
        """The options of a fallback executor; it may not overwrite its caller's values."""
        return replace(self, name=f"{self.name}/{callee}", donate=())
