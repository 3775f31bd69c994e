"""Programs as NumPy users write them, unchanged but for the decorator (SPEC: any NumPy program)."""

from __future__ import annotations

from . import fractals, images, language, learning, particles, signals, stencils
from .program import PROGRAMS, Program

__all__ = [
    "PROGRAMS", "Program", "fractals", "images", "language", "learning", "particles", "signals",
    "stencils",
]  # fmt: skip
