"""Errors of the code that users hand to the tools: their own, told as such."""

from __future__ import annotations

import importlib
import traceback
from pathlib import Path
from types import ModuleType

from ..dialect.errors import FileError, ProfuseError

_PACKAGE = Path(__file__).resolve().parents[1]
_OURS = tuple(str(_PACKAGE / part) for part in ("dialect", "executor", "lowering", "tools"))


class UsersError(Exception):
    """An error that the user's own code has raised: the message is its traceback, without our frames."""

    def __init__(self, doing: str, error: BaseException) -> None:
        report = traceback.TracebackException.from_exception(error)
        frames = [
            frame
            for frame in report.stack
            if not frame.filename.startswith((*_OURS, "<frozen importlib")) and frame.filename != importlib.__file__
        ]
        report.stack = traceback.StackSummary.from_list(frames)
        super().__init__(f"{doing} raised\n{''.join(report.format(chain=False)).rstrip()}")


def imported(name: str, hint: str | None = None) -> ModuleType:
    """A module of the user's.

    Raises FileError, with this hint, where it is not found, and UsersError for what it raises.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise FileError(f"cannot import {name}: {error}", hint=hint) from None
    except ProfuseError:
        raise
    except Exception as error:
        raise UsersError(f"importing {name}", error) from None
