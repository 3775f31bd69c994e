"""Passes over IR, one a file; `load_passes` imports them, and MLIR with them."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache


@cache
def load_passes() -> None:
    """Import every module of this folder, which registers the passes declared there."""
    for found in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{found.name}")
