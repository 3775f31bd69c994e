"""Programs as NumPy users write them, unchanged but for the decorator (SPEC: any NumPy program).

Modules of this folder compute with whole arrays; loops over their parts are in `loops`.
"""

from __future__ import annotations

from . import fractals, images, language, learning, loops, particles, signals, stencils
from .program import PROGRAMS, Program

__all__ = [
    "PROGRAMS", "Program", "fractals", "images", "language", "learning", "loops", "particles",
    "signals", "stencils",
]  # fmt: skip
