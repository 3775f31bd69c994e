"""Results that NumPy puts into an array given as ``out=``, or into an operand's memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .current import current, trace_error, user_loc
from .layouts import Copied, Laid
from .mutation import write
from .operators import as_value
from .traced import Traced


def note_copy(copy: Any, source: Any, take: Callable[..., Any] | None = None, operands: Sequence[Any] = ()) -> None:
    """Note a copy where NumPy has a view of ``source``: later writes to either are refused.

    ``take``: gives that view of the array, and of ``operands``; where it is not known, Python runs
    functions that return it.
    """
    if copy.rec.evaluates:
        return
    if not isinstance(source, (Traced, np.ndarray)):
        return
    viewed = as_value(copy.rec, source)
    if copy.value != viewed:
        values = tuple([as_value(copy.rec, x) for x in operands])
        copy.rec.layouts.copied[copy.value] = Copied(viewed, take, values, user_loc())
        if isinstance(source, Traced):
            copy.share(source)


def note_order(out: Any, make: Callable[..., Any], *sources: Any) -> None:
    """Note that an array lies in memory as what ``make`` makes of others does."""
    if isinstance(out, Traced) and not out.rec.evaluates and out.ndim > 1:
        out.rec.layouts.laid.setdefault(out.value, Laid(tuple([as_value(out.rec, x) for x in sources]), make))


def laid_out(out: Any, source: Any, take: Callable[[Any], Any] | None, order: str = "C") -> Any:
    """``out``, which stands for what ``take`` makes of an array: itself, a view, or a copy.

    What has this order in memory gives a view, or is given back; the rest is copied. Only a call
    knows which it is. Where ``take`` is None, Python runs functions that return it.
    """
    if not out.rec.evaluates:
        viewed = as_value(out.rec, source)
        out.rec.layouts.raveled[out.value] = Copied(viewed, take, (), user_loc(), order)
    return out


def write_out(where: str, out: Any, result: Any) -> Any:
    """Write to the ``out=`` of a function that is no ufunc; raises TraceError for other dtypes."""
    targets = out if isinstance(out, tuple) else (out,)
    if len(targets) != 1 or isinstance(result, tuple):
        raise trace_error(f"{where} with several outputs cannot take out= while tracing")
    target = traced_out(where, targets[0])
    if not isinstance(result, Traced) or result.dtype != target.dtype:
        raise trace_error(
            f"{where}(…, out=) of another dtype than its result is not supported while tracing",
            "assign the result: out[...] = result",
        )
    if target.ndim > result.ndim:  # which some of NumPy's functions take, and some do not
        raise trace_error(
            f"{where}(…, out=) of more axes than its result is not supported while tracing",
            "assign the result: out[...] = result",
        )
    return write(target, result)


def note_write() -> None:
    """Note that the function writes to an array of NumPy, which it may have made itself."""
    rec = current()
    if rec is not None:
        rec.writes_new = True


def traced_out(where: str, out: Any) -> Traced:
    """An ``out=`` argument; raises TraceError for an array from outside of the trace."""
    if isinstance(out, Traced):
        return out
    note_write()
    raise trace_error(
        f"{where} is asked to write into an existing array (out=, or an in-place operator on "
        "an array from outside the trace)",
        "use the returned array: y = y + x instead of y += x or out=y; arrays made with "
        "np.zeros_like(x) or np.zeros(x.shape) can be written",
    )
