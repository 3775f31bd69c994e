"""Settings of one function."""

from __future__ import annotations

from dataclasses import dataclass

from .strategy import Strategy


@dataclass(frozen=True)
class Options:
    """What a user may set per function; None = the process-wide setting at construction."""

    strategy: Strategy | None = None
    profiled_runs: int | None = None
    name: str = "main"
    strict: bool = False  # the traced function asked for strict fusion itself (R1.46)
    background: bool = False  # compile in a worker while calls go on
