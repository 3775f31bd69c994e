"""Every error a user can meet, and the source location it points at.

One base class, :class:`ProfuseError`; each message says what happened, where (the user's own
line), why, and what to do next.  Subclasses also derive from the built-in exception that NumPy
raises for the same mistake, so ``except ValueError`` written for NumPy code keeps working.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from numpy.exceptions import AxisError as NumpyAxisError
from numpy.linalg import LinAlgError

from .dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Loc:
    """A position in the user's source: file, line (1-based) and column (0 = unknown)."""

    file: str
    line: int
    col: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.col}" if self.col else f"{self.file}:{self.line}"


class Noticing(threading.local):
    """What a thread calls when it makes an error of an operation, before anybody catches it: its trace."""

    notice: Callable[[], None] | None = None


NOTICING = Noticing()


class ProfuseError(Exception):
    """Base of every error raised on purpose by this package.

    Args:
        what: one sentence saying what happened and why.
        loc: where in the user's source, when known.
        hint: what to do next.

    ``sizes`` of an error that only arises because two sizes are not known to be equal holds
    these, or the one size that is not known to be positive; passes that assume sizes read it.
    """

    sizes: tuple[Any, ...] = ()

    def __init__(self, what: str, *, loc: Loc | None = None, hint: str | None = None) -> None:
        self.what, self.loc, self.hint = what, loc, hint
        super().__init__(self._text())
        if NOTICING.notice is not None and not isinstance(self, TraceError):
            NOTICING.notice()

    def _text(self) -> str:
        text = f"{self.loc}: {self.what}" if self.loc else self.what
        return f"{text}\n  hint: {self.hint}" if self.hint else text

    def place(self, loc: Loc | None) -> None:
        """Say where the error arose, unless it says so."""
        if self.loc is None and loc is not None:
            self.loc = loc
            self.args = (self._text(),)


class TraceError(ProfuseError, TypeError):
    """The Python function cannot be turned into a graph; nothing has run.

    ``guards`` holds what the trace had assumed of numbers by then: the error is certain where these
    hold (`numpy.tracing.trace_guards.TraceGuard`). ``is_undone`` is False if the trace has
    changed something that it could not give back what it held. ``of_contents`` is True if Python
    needs a number, or the truth of one, that contents of arrays decide; ``of_world`` if the
    function uses what is outside of the program, or may change unseen: no other trace would do.
    ``library`` is the package of a function of C code that the trace would not call.
    """

    guards: Sequence[Any] = ()
    is_undone: bool = True
    of_contents: bool = False
    of_world: bool = False
    library: str = ""


class ShapeError(ProfuseError, ValueError):
    """Operand shapes do not fit together (NumPy raises ValueError for the same call)."""


class BoundsError(ProfuseError, IndexError):
    """An index lies outside its axis (NumPy raises IndexError for the same call)."""


class AxisError(ShapeError, NumpyAxisError):
    """An axis is out of range."""

    __str__ = Exception.__str__  # NumPy's makes the text of numbers that this one does not have

    def __init__(self, what: str, *, loc: Loc | None = None, hint: str | None = None) -> None:
        super().__init__(what, loc=loc, hint=hint)
        self.args = (self._text(),)  # which NumPy's leaves as it was


class DTypeError(ProfuseError, TypeError):
    """A dtype is unsupported, or an operation has no loop for the operand dtypes."""


class RangeError(ProfuseError, OverflowError):
    """A Python number does not fit where it has to go (OverflowError in NumPy and Python)."""


class SingularError(ShapeError, LinAlgError):
    """A matrix has no inverse, or a decomposition does not converge (NumPy's LinAlgError)."""


class DivisionError(ProfuseError, ZeroDivisionError):
    """A Python number is divided by zero."""


class ArgumentError(ProfuseError, TypeError):
    """A call's arguments do not fit the function: arity, structure, or an unsupported object."""


class ModelError(ProfuseError, RuntimeError):
    """A model of another system raises an exception of its own, whose text this has."""


class GradientError(ProfuseError, RuntimeError):
    """Gradients of a run cannot be computed: what they need is gone, or was never recorded."""


class IRError(ProfuseError, ValueError):
    """IR text that does not parse or does not verify."""


class PipelineError(ProfuseError, ValueError):
    """A pass pipeline string is malformed, or a pass failed."""


class FileError(ProfuseError, OSError):
    """A file is missing, unreadable, or not what its name says."""


class LoweringError(ProfuseError):
    """A fusion group has no lowering for the target; callers pin the group to its fallback."""


class WorkerError(ProfuseError):
    """A compile worker was lost with the request it had, or can take no request now."""


class KnobError(ProfuseError, ValueError):
    """A knob or environment variable has a value outside its domain."""


class StrictFusionError(ProfuseError):
    """Inside `strict_fusion` a function did not become one guarded group and nothing else."""


class DeviceError(ProfuseError, RuntimeError):
    """Arrays in a device's memory can be neither computed with nor read."""


class InternalError(ProfuseError, AssertionError):
    """An invariant of the compiler is broken; compilation stops, the call falls back."""


_COUNTERPARTS: dict[type[Exception], type[ProfuseError]] = {  # the first that fits holds
    LinAlgError: SingularError,
    NumpyAxisError: AxisError,
    ValueError: ShapeError,
    IndexError: BoundsError,
    TypeError: DTypeError,
    OverflowError: RangeError,
    ZeroDivisionError: DivisionError,
}
# What NumPy and Python raise for operands that an operation cannot take.
COMPLAINTS = tuple(_COUNTERPARTS)


def located(error: Exception, loc: Loc | None) -> ProfuseError:
    """One of `COMPLAINTS` as our error: same built-in class, plus the user's line."""
    ours = next(ours for theirs, ours in _COUNTERPARTS.items() if isinstance(error, theirs))
    return ours(str(error), loc=loc)
