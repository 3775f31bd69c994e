"""Errors that are not NumPy's for a known cause: they are counted, by cause, and not shown.

What sizes decide raises while tracing, what contents decide when the graph runs: a later
statement's error may come first. Dead code does not raise. Indices into what has no elements are
not looked at, where the result has none either. Nor does anything refuse to write no elements.
"""

from __future__ import annotations

import re
import traceback
from dataclasses import replace
from types import FrameType

import numpy as np
from profuse.dialect.errors import RangeError

from .compare import Outcome, module, run
from .programs import Program

_MOST = 4  # statements taken away before a program is given up


def comes_later(program: Program, call: int, numpy: Outcome, ours: Outcome) -> bool:
    """Whether an error is that of a later statement: NumPy's, without those that raise before."""
    if numpy.error is None or ours.error is None or _line(ours.error) < _line(numpy.error):
        return False
    if _line(ours.error) == _line(numpy.error):
        # ``x[i] += name``: the index is looked at first, whose contents are not known.
        return isinstance(numpy.error, IndexError) and isinstance(ours.error, NameError)
    error: BaseException | None = numpy.error
    for _ in range(_MOST):
        text = _text(program, error)
        body = [s for s in program.body if text not in map(str.strip, s.split("\n"))]
        program = replace(program, body=tuple(body))
        scope = module(program.source(), program.name)
        error = run(scope["f"], program.calls[call], scope).error
        if error is None:
            return False
        wanted = next(c for c in type(error).__mro__ if c.__module__ == "builtins")
        if isinstance(ours.error, wanted) or wanted is NameError:
            return True  # the later statement needs what is missing now: its sizes are not known
    return False


def is_index_first(numpy: Outcome, ours: Outcome) -> bool:
    """Whether ``x[i] += y`` has an index out of bounds, and a dtype or shape that cannot be stored.

    NumPy looks at the index first, whose contents are not known while tracing.
    """
    if not isinstance(numpy.error, IndexError):
        return False
    told = str(ours.error)
    return ("same_kind" in told or "broadcast" in told) and _line(ours.error) == _line(numpy.error)


def is_of_huge_integers(ours: Outcome) -> bool:
    """Whether a Python integer is refused that 64 bits cannot hold."""
    return isinstance(ours.error, RangeError) and "64 bits" in str(ours.error)


def is_deprecated(program: Program, ours: Outcome) -> bool:
    """Whether NumPy writes with a warning that it will not: to what np.broadcast_arrays made."""
    return "np.broadcast_arrays" in program.source() and "read-only" in str(ours.error)


def is_einsum_of_ones(program: Program, ours: Outcome) -> bool:
    """Whether an axis of np.einsum has size 1 that had that of other operands in the trace."""
    return "np.einsum" in program.source() and "mismatch in its core" in str(ours.error)


def is_of_byte_order(program: Program, call: int) -> bool:
    """Whether a dtype is compared and an argument has swapped bytes: traced dtypes are native."""
    return ".dtype ==" in program.source() and re.search(r"'>\w", program.calls[call]) is not None


def is_view_of_nothing(program: Program, call: int, ours: Outcome) -> bool:
    """Whether an array is written that is a view of a read-only argument without elements.

    NumPy's functions return such views in place of copies; where the error for the write would be
    caught, a trace takes the other way.
    """
    given = re.search(r"\((?:\d+, )*0(?:, \d+)*,?\), '(?:ro|bcast)'", program.calls[call])
    return "read-only" in str(ours.error) and given is not None


def is_stored_by_ml_dtypes(ours: Outcome) -> bool:
    """Whether an array of bfloat16 that is no traced one is given a traced number.

    `ml_dtypes` takes Python's own numbers only, and does not ask others for one.
    """
    return "expected number, got TracedScalar" in str(ours.error)


def is_square_of_bools(program: Program, what: str) -> bool:
    """Whether an array of bools that is no traced one has a traced exponent, which is 2.

    NumPy asks the exponent for the result of np.power, which is of another dtype than ``**``.
    """
    return what == "dtype int64 for int8" and "**" in program.source()


def is_of_objects(program: Program, numpy: Outcome) -> bool:
    """Whether NumPy has a result of dtype object: of numbers whose dtypes have none in common.

    A product of two vectors, one of them of bfloat16, is then a number of Python.
    """
    product = re.search(r"\b(dot|inner|vdot)\(", program.source()) is not None
    return any(getattr(v, "dtype", None) == np.dtype(object) or (product and type(v) is float) for _, v in numpy.value)


def is_dot_with_zero(program: Program, what: str) -> bool:
    """Whether np.dot multiplies infinities or NaN by the number 0: BLAS leaves what it adds to."""
    return what.startswith("nan or infinity") and re.search(r"\b(dot|inner)\(", program.source()) is not None


def is_of_nothing(every: Program, numpy: Outcome, ours: Outcome) -> bool:
    """Whether the statement that raises in NumPy has a result without elements, or writes to one.

    What NumPy's functions return of nothing may be a view of an argument that is read-only.

    Args:
        every: the program, with all its values in a dict as the result.
        numpy: what NumPy makes of it.
        ours: what is returned instead.
    """
    is_write = "read-only" in str(numpy.error)
    if ours.error is not None or not (is_write or isinstance(numpy.error, IndexError)):
        return False
    assert numpy.error is not None
    name = _text(every, numpy.error).split("[" if is_write else " = ")[0]
    values = [v for place, v in ours.value if place == f"[0]['{name}']"]
    return any(isinstance(v, np.ndarray) and not v.size for v in values)


def _line(error: BaseException) -> int:
    """The line of the program's function that an error left."""
    loc = getattr(error, "loc", None)
    if loc is not None:
        return loc.line
    lines = [n for frame, n in traceback.walk_tb(error.__traceback__) if _is_f(frame)]
    return lines[-1] if lines else 0


def _text(program: Program, error: BaseException | None) -> str:
    lines = program.source().split("\n")
    at = _line(error) if error is not None else 0
    return lines[at - 1].strip()


def _is_f(frame: FrameType) -> bool:
    return frame.f_code.co_name == "f" and frame.f_code.co_filename.startswith("<fuzz")
