"""Programs of loops: over elements, rows, time steps, samples, until something has converged."""

from __future__ import annotations

from . import (
    chance,
    checked,
    convergence,
    counting,
    factorisations,
    products,
    recursive_signals,
    sequences,
    tables,
    time_steps,
    weather_and_flow,
)

__all__ = [
    "chance",
    "checked",
    "convergence",
    "counting",
    "factorisations",
    "products",
    "recursive_signals",
    "sequences",
    "tables",
    "time_steps",
    "weather_and_flow",
]
