"""Programs as NumPy users write them, unchanged but for the decorator (SPEC: any NumPy program).

Straight ones compute with whole arrays, whose loops are few and short; the others are loops.
"""

from __future__ import annotations

from . import fractals, images, language, learning, particles, signals, stencils  # straight
from . import (  # loops
    chance, convergence, counting, factorisations, products, recursive_signals, sequences, tables,
    time_steps, weather_and_flow,
)  # fmt: skip
from .program import PROGRAMS, Program

__all__ = ["PROGRAMS", "Program"]
