"""Errors of the code that users hand to the tools: their own, told as such."""

from __future__ import annotations

import importlib
import traceback
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_OURS = tuple(str(_PACKAGE / part) for part in ("dialect", "executor", "lowering", "tools"))


class UsersError(Exception):
    """What the user's own code has raised: the message is its traceback, without our frames."""

    def __init__(self, doing: str, error: BaseException) -> None:
        told = traceback.TracebackException.from_exception(error)
        frames = [
            frame for frame in told.stack
            if not frame.filename.startswith((*_OURS, "<frozen importlib"))
            and frame.filename != importlib.__file__
        ]  # fmt: skip
        told.stack = traceback.StackSummary.from_list(frames)
        super().__init__(f"{doing} raised\n{''.join(told.format(chain=False)).rstrip()}")
