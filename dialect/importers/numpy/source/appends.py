"""The values that rounds of a recorded loop append to a list: which of them an array of the graph can hold."""

from __future__ import annotations

import sys
import types
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ....ir.dtypes import DTYPES
from ..handlers.creation import CREATION
from ..tracing.mutation import Storage, is_immutable
from ..tracing.operators import op
from ..tracing.traced import TracedArray
from ..tracing.traced_control import required
from ..tracing.traced_scalar import TracedScalar

if TYPE_CHECKING:
    from ....ir.program import Block
    from ..tracing.recorder import Recorder

_OWNER = "an array that a list holds"
_NUMBERS = (bool, int, float, complex)


class Element(NamedTuple):
    """The kind of the elements of a list, or of one part of each.

    Attributes:
        kind: ``number`` of Python's, NumPy's ``scalar``, or ``array``.
        dtype: theirs, or that of an array of them.
        rank: how many axes they have.
    """

    kind: str
    dtype: np.dtype
    rank: int = 0


class AppendedRow(NamedTuple):
    """The kind of an appended value: one value, or a tuple of some.

    Attributes:
        parts: what each is.
        is_tuple: whether they are in a tuple.
    """

    parts: tuple[Element, ...]
    is_tuple: bool = False


def row_of(value: Any, rec: Recorder, blocks: Sequence[Block]) -> AppendedRow | str:
    """The row of an appended value, or the reason why it cannot be recorded.

    The list holds an array itself, so nothing may write to that from here on.

    Args:
        value: what is appended.
        rec: the trace.
        blocks: those that a round runs, the innermost one last.
    """
    if type(value) is not tuple:
        element = _element_of(value, rec, blocks)
        return element if isinstance(element, str) else AppendedRow((element,))
    parts = [_element_of(part, rec, blocks) for part in value]
    reason = next((part for part in parts if isinstance(part, str)), None)
    if reason is not None or not parts:
        return reason or "an empty tuple is appended to a list"
    return AppendedRow(tuple(part for part in parts if not isinstance(part, str)), is_tuple=True)


def _element_of(value: Any, rec: Recorder, blocks: Sequence[Block]) -> Element | str:
    kind = value.kind if type(value) is TracedScalar else type(value)
    if kind in _NUMBERS:
        return Element("number", np.dtype(kind))
    if isinstance(value, np.generic) and value.dtype in {d.numpy for d in DTYPES}:
        return Element("scalar", value.dtype)
    if type(value) is not TracedArray:
        return f"an object of type {type(value).__name__} is appended to a list"
    if not value.ndim:
        if not is_immutable(value):
            return "an array without axes is appended to a list"
        return Element("scalar", value.dtype)
    definition = rec.defs.get(value.value)
    is_new = definition is not None and not (definition.op.aliases or definition.op.writes or definition.blocks)
    if not is_new or not any(definition in block.instrs for block in blocks):
        return "an array that is not made anew in each round is appended to a list"
    hold(value)
    return Element("array", value.dtype, value.ndim)


def is_as(value: Any, element: Element) -> bool:
    """True for a value before the loop that the array for this element can hold as well."""
    kind = value.kind if type(value) is TracedScalar else type(value)
    if element.kind == "number":
        return kind in _NUMBERS and np.dtype(kind) == element.dtype
    if element.kind == "scalar" and isinstance(value, np.generic):
        return bool(value.dtype == element.dtype)
    if type(value) is not TracedArray or value.dtype != element.dtype or value.ndim != element.rank:
        return False
    # What the caller has may be written to while the loop runs.
    is_its_own = value.storage is None or value.storage.owner in (None, _OWNER)
    return is_its_own if element.rank else is_immutable(value)


def hold(array: Any) -> None:
    """Have the trace refuse writes to an array from here on."""
    if array.storage is None:
        array.storage = Storage()
    array.storage.owner = array.storage.owner or _OWNER


def is_held(value: Any) -> bool:
    """True for an array that a list holds."""
    if type(value) is not TracedArray or value.storage is None:
        return False
    return bool(value.storage.owner == _OWNER)


def array_for(element: Element, rows: Any, like: Any) -> TracedArray:
    """An array of zeros with so many rows; ``like``: an array with the sizes of each row."""
    return CREATION["zeros"]((rows, *(like.shape if element.rank else ())), element.dtype)


def fitting(value: Any, like: Any) -> Any:
    """An appended array, which has the sizes of another one, or the call is Python's."""
    fits = True
    for size, expected in zip(value.shape, like.shape, strict=True):
        fits = op("bitwise_and", op("eq", size, expected), fits)
    return required(value, fits, "arrays of several sizes are appended to a list")


def _references(frame: types.FrameType, name: str) -> int:
    return sys.getrefcount(frame.f_locals.get(name))


def _alone() -> int:
    fresh: list[Any] = []
    return _references(sys._getframe(), "fresh") if fresh is not None else 0


_ALONE = _alone()  # references to what one variable has


def own_list(frame: types.FrameType, name: str) -> list[Any] | None:
    """The list that a variable holds; None if something else has it, and may look at it."""
    if _references(frame, name) > _ALONE:
        return None
    value = frame.f_locals.get(name)
    return value if type(value) is list else None
