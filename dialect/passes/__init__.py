"""Passes over IR, one a file, in rooms; `load_passes` imports them, and MLIR with them."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache


@cache
def load_passes() -> None:
    """Import every module below this folder, which registers the passes declared there."""
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        importlib.import_module(module.name)
