"""``x is y`` of arrays that are there before the call: a graph holds for one answer, which calls compare.

Each input of a graph has a traced value of its own, also where one array is passed twice, or is passed and read from
outside as well. So what ``is`` says of the traced values tells nothing of the arrays.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from ....ir.types import TensorType
from ....trees.leaves import TraceValue
from .current import trace_error
from .trace_guards import SameObject, evaluate

if TYPE_CHECKING:
    from .recorder import Recorder

_MOST_PAIRS = 64  # that calls compare for code of which the trace does not know what it asks
_ASKED = "whether two arrays are the same object"


def is_one(rec: Recorder, x: Any, y: Any) -> bool:
    """True if two different objects, one of them a traced array, stand for one array; guarded.

    Raises TraceError where that depends on the path that the call takes.
    """
    sides = [(side, _origin(rec, side)) for side in (x, y)]
    if all(origin is not None for _, origin in sides):
        return _guarded(rec, *(origin for _, origin in sides))
    if any(origin is None and _is_merged(rec, side) for side, origin in sides):
        raise trace_error(f"{_ASKED} is asked, of which a loop or a branch decides what it is", "compare elements")
    if any(_may_be_its_source(rec, getattr(side, "_value", None)) for side, _ in sides):
        raise trace_error(f"{_ASKED} is asked, of which the order in memory decides what it is", "compare elements")
    return False


def check_unseen(rec: Recorder) -> None:
    """Guard that no two arrays from outside are the same object, as code may have asked unseen.

    Raises TraceError where two are, or there are too many.
    """
    origins = [_origin(rec, array) for array, _ in tuple(rec.stand_ins.values())]
    pairs = [(x, y) for x, y in combinations(origins, 2) if int in (type(x), type(y))]
    is_open = any(_may_be_its_source(rec, value) for value in rec.layouts.raveled)
    if is_open or len(pairs) > _MOST_PAIRS or any(_guarded(rec, *pair) for pair in pairs):
        raise trace_error(f"{_ASKED} may be asked, by code that Python calls or that cannot be read")


def _origin(rec: Recorder, side: Any) -> Any:
    """What a value stands for: the number of a leaf, or an array from outside; None for neither."""
    entry = rec.stand_ins.get(id(side))
    if entry is None:
        is_outer = issubclass(type(side), np.ndarray) and id(side) not in rec.captures.created
        return side if is_outer else None
    value = entry[1]
    number = rec.leaf_of.get(value)
    if number is not None:
        return number
    return next((array for array, other, _ in rec.captures.known.values() if other == value), None)


def _guarded(rec: Recorder, x: Any, y: Any) -> bool:
    if type(x) is not int:
        x, y = y, x
    if type(x) is not int:
        return x is y  # what is read from outside is compared by itself
    guard = SameObject(x, y)
    answer = evaluate(guard, rec.leaves)
    rec.numbers.guard(guard, answer)
    return answer


def _may_be_its_source(rec: Recorder, value: Any) -> bool:
    """True for what `np.ascontiguousarray` and its like give: an array itself, if it lies in that order."""
    copied = rec.layouts.raveled.get(value)
    return copied is not None and getattr(copied.take, "func", None) is not np.ravel  # which makes a view


def _is_merged(rec: Recorder, side: Any) -> bool:
    """True for a traced array that stands for one of several: a result of a branch, or carried by a loop."""
    value = getattr(side, "_value", None) if issubclass(type(side), TraceValue) else None
    if value is None or not isinstance(rec.hints.get(value), TensorType):
        return False
    definition = rec.defs.get(value)
    return definition is None or bool(definition.blocks)
