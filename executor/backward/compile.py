"""The compiler that captured runs have by default: Profuse's executors."""

from __future__ import annotations

from .backward import Backward
from .key import Compiled


def compiled(made: Backward) -> Compiled:
    """What runs a captured graph."""
    return made.interpret
