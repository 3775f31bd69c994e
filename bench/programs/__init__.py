"""Programs as NumPy users write them, unchanged but for the decorator (SPEC: any NumPy program).

Those in modules of this folder compute with whole arrays; loops over parts of arrays are in `loops`.
"""

from __future__ import annotations

from . import fractals, images, language, learning, loops, particles, signals, stencils
from .program import PROGRAMS, Program

__all__ = [
    "PROGRAMS", "Program", "fractals", "images", "language", "learning", "loops", "particles",
    "signals", "stencils",
]  # fmt: skip
