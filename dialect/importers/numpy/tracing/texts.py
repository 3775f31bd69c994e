"""The texts that `repr`, `str` and `format` give of traced values.

To the traced function, text of a value is that of the number, under a guard; where contents of
arrays decide it, the call is Python's. Python's containers call `__repr__` of what they hold, and
so do libraries. A debugger, and whoever finds a traced value when its trace has ended, reads what
it stands for instead (`described_array`): code of the importer that tells people of one asks that.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import TraceError
from .current import contents_error

if TYPE_CHECKING:
    from .operators import Recording
    from .recorder import Recorder
    from .traced import Traced
    from .traced_scalar import TracedScalar

_DEBUGGERS = frozenset({"bdb", "pdb", "pydevd", "_pydevd_bundle", "debugpy"})


def text(x: Recording, describe: Callable[[Any], str]) -> str:
    """``describe`` of what a traced value stands for."""
    try:
        value = known_element(x) if hasattr(x, "ndim") else x.bake()
    except TraceError as error:
        # Code that makes texts may go on where it gets none, as `reprlib` does.
        x.rec.refused = x.rec.refused or error
        raise
    return describe(value)


def known_element(x: Any) -> Any:
    """The NumPy scalar, or array without axes, that a traced one stands for, under a guard.

    Raises TraceError where contents decide what it holds.
    """
    x.check_live()
    if x.ndim or x.value not in x.rec.known:
        raise contents_error(
            "the text of an array is needed here, and its contents are not known while tracing",
            "make texts of results, outside of the function",
        )
    element = x.dtype.type(x.bake())
    return np.array(element) if isinstance(x, np.ndarray) else element


def shown(x: Any) -> str:
    """The text that `repr` gives: for people if the trace has ended, or a debugger asks for it."""
    if x.rec.runs and not _is_debugged(x.rec):
        return text(x, repr)
    return described_array(x) if hasattr(x, "ndim") else described_number(x)


def _is_debugged(rec: Recorder) -> bool:
    """True where a debugger has stopped the traced function."""
    frame: FrameType | None = sys._getframe(3)
    end = getattr(rec, "entry", None)
    while frame is not None and frame.f_code is not end:
        name = frame.f_globals.get("__name__")
        if isinstance(name, str) and name.partition(".")[0] in _DEBUGGERS:
            return True
        frame = frame.f_back
    return False


def described_number(x: TracedScalar) -> str:
    """A traced number as people see it; looking at a size records nothing."""
    number = x.rec.known.get(x.value) if x._dim is None else x.rec.shape(x._dim[0])[x._dim[1]]
    return f"<traced {x.kind.__name__}{'' if number is None else f', here {number!r}'}>"


def described_array(x: Traced) -> str:
    """A traced array as people see it."""
    if type(x).lifts:
        return f"<traced {x.dtype} array, picked by a mask>"
    sizes = ", ".join("?" if d is None else str(d) for d in x.hint)
    return f"<traced {x.dtype} array, here of shape ({sizes})>"
