"""Settings of one function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .processor import HOST, Processor
from .strategy import Strategy

if TYPE_CHECKING:
    from .saved.file import SavedFile


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
    recall: bool = True  # use stored profiles; a flush ends that
    saved: SavedFile | None = None  # where profiles and compiles are looked for first
