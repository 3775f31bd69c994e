"""Programs as NumPy users write them, unchanged but for the decorator (SPEC: any NumPy program).

Modules of this folder compute with whole arrays; loops over their parts are in `loops`.
"""

from __future__ import annotations

import os

# NumPy's BLAS reads these once, when it is loaded, which modules of this package do first.
for name in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{name}_NUM_THREADS", "1")

from . import fractals, images, language, learning, loops, particles, products, signals, stencils  # noqa: E402
from .program import PROGRAMS, Program  # noqa: E402

__all__ = [
    "PROGRAMS",
    "Program",
    "fractals",
    "images",
    "language",
    "learning",
    "loops",
    "particles",
    "products",
    "signals",
    "stencils",
]
