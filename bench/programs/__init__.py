"""Programs as NumPy users write them, unchanged but for the decorator (SPEC: any NumPy program).

Straight ones compute with whole arrays, whose loops are few and short; the others are loops.
"""

from __future__ import annotations

from . import (  # straight  # loops
    chance,
    convergence,
    counting,
    factorisations,
    fractals,
    images,
    language,
    learning,
    particles,
    products,
    recursive_signals,
    sequences,
    signals,
    stencils,
    tables,
    time_steps,
    weather_and_flow,
)  # fmt: skip
from .program import PROGRAMS, Program

__all__ = ["PROGRAMS", "Program"]
