"""Finishing: the steps between a capture and its compile, in order (R4.29)."""

from __future__ import annotations

from .backward import Backward


def finish(made: Backward) -> None:
    """Run the steps on a captured graph."""
