"""What torch's Dynamo is told of this package: it runs the package's functions as Python does.

Nothing is imported, and each process loads this module: torch is there once a user has imported it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from .events import log

_not_told: list[Callable[..., Any]] = []  # of which Dynamo has not been told yet


def unseen_by_dynamo(function: Callable[..., Any]) -> Callable[..., Any]:
    """Have Dynamo run a function of this package, and all that it calls, as Python does.

    It would trace the package, and the user's function would be traced by two systems at once.
    """
    vars(function).update(
        _torchdynamo_disable=True, _torchdynamo_disable_msg="Profuse compiles the function that is called here."
    )
    _not_told.append(function)
    return function


def tell_dynamo() -> None:
    """Tell Dynamo of all functions that are `unseen_by_dynamo`, once torch is there."""
    frames = getattr(getattr(sys.modules.get("torch"), "_C", None), "_dynamo", None)
    if not _not_told or frames is None:
        return
    try:
        skip = frames.eval_frame._FrameAction.SKIP
        strategy = frames.eval_frame._FrameExecStrategy(skip, skip)  # of the frame, and of those that it calls
        while _not_told:
            frames.eval_frame.set_code_exec_strategy(_not_told[-1].__code__, strategy)
            _not_told.pop()
    except (AttributeError, TypeError) as error:  # a torch without these
        log("slower", "torch.compile", f"Dynamo traces this package where its regions call jitted functions: {error}")
        _not_told.clear()
