"""Process-wide switches as functions; every setter returns the previous value (R1.2)."""

from __future__ import annotations

from ...dialect.guards.relaxed import get_size_checks, set_size_checks
from .knobs import knobs


def get_executor_mode() -> bool:
    """True if graphs made from now on profile and specialise (R1.2)."""
    return knobs.executor_mode


def set_executor_mode(on: bool) -> bool:
    """Switch the profiling executor; graphs made while it is off run op by op for good (R1.2).

    A graph is made at the first call with a new structure, rank or dtype; existing ones stay as
    they are.
    """
    return knobs.exchange("executor_mode", bool(on))


def get_profiling_mode() -> bool:
    """True if graphs are profiled and specialised."""
    return knobs.profiling_mode


def set_profiling_mode(on: bool) -> bool:
    """Switch profiling.

    Graphs made while it is off get the spec-keyed executor, for good (R2.1). Other graphs run op by
    op while it is off, unless they have an optimised plan (R1.8). A graph is made at the first call
    with a new structure, rank or dtype.
    """
    return knobs.exchange("profiling_mode", bool(on))


def get_optimize() -> bool:
    """True if graphs are optimised at all."""
    return knobs.optimize


def set_optimize(on: bool) -> bool:
    """Switch optimisation as a whole (R1.8)."""
    return knobs.exchange("optimize", bool(on))


def get_num_profiled_runs() -> int:
    """Runs recorded before a graph is specialised."""
    return knobs.profiled_runs


def set_num_profiled_runs(runs: int) -> int:
    """Set the number of profiled runs of graphs first called from now on; 0 compiles at once."""
    return knobs.exchange("profiled_runs", runs)


__all__ = [
    "get_executor_mode",
    "get_num_profiled_runs",
    "get_optimize",
    "get_profiling_mode",
    "get_size_checks",
    "set_executor_mode",
    "set_num_profiled_runs",
    "set_optimize",
    "set_profiling_mode",
    "set_size_checks",
]
