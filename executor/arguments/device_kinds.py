"""The types of device arrays that this process has met, and how each becomes a leaf."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

converts: dict[type, Callable[[Any], Any]] = {}  # type of device arrays -> function to a leaf


def kinds_met() -> int:
    """The number of types of device arrays that this process has seen."""
    return len(converts)
