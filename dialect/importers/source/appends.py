"""Lists to which each round of a recorded loop appends: one traced array of what is appended.

A recorded body runs once, so the list itself cannot grow. Its new elements are the rows of an array
that the body writes; behind the loop, the list's name holds a `TracedRows`, which has the elements
the list had before and these rows. It stands for a list where that can be recorded; what else
asks for the list has the rounds recorded one by one.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...ir.dtypes import DTYPES
from ..numpy.creation import CREATION
from ..tracing.mutation import Storage, is_immutable
from ..tracing.operators import op
from ..tracing.traced import TracedArray, TracedScalar

if TYPE_CHECKING:
    from ...ir.program import Block
    from .loops import Loop

_OWNER = "an array that a list holds"
_JOINS = frozenset({
    "concatenate", "stack", "vstack", "hstack", "dstack", "column_stack", "block", "array_equal",
})  # fmt: skip


class Element(NamedTuple):
    """What the elements of such a list are.

    Attributes:
        kind: ``number`` of Python's, NumPy's ``scalar``, or ``array``.
        dtype: theirs, or that of an array of them.
        rank: how many axes they have.
    """

    kind: str
    dtype: np.dtype
    rank: int = 0


class Appended:
    """One list of a recorded loop.

    Args:
        element: what each round appends.
        array: with one element per round, made before the loop.
    """

    def __init__(self, element: Element, array: TracedArray) -> None:
        self.element, self.array = element, array


def element_of(value: Any, block: Block) -> Element | str:
    """What an appended value is, or why it cannot be recorded; ``block``: the round.

    The list holds an array itself, so nothing may write to that from here on.
    """
    kind = value.kind if type(value) is TracedScalar else type(value)
    if kind in (bool, int, float, complex):
        return Element("number", np.dtype(kind))
    if isinstance(value, np.generic) and value.dtype in {d.numpy for d in DTYPES}:
        return Element("scalar", value.dtype)
    if type(value) is not TracedArray:
        return f"an object of type {type(value).__name__} is appended to a list"
    if not value.ndim:
        if not is_immutable(value):
            return "an array without axes is appended to a list"
        return Element("scalar", value.dtype)
    made = value.rec.defs.get(value.value)
    if made is None or made.op.aliases or made.op.writes or made.blocks or made not in block.instrs:
        return "an array that is not made anew in each round is appended to a list"
    hold(value)
    return Element("array", value.dtype, value.ndim)


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


def array_for(element: Element, rounds: Any, head: list[Any]) -> TracedArray:
    """The array for what the rounds append, of zeros so far.

    ``head``: the elements before, of which the last one has the sizes of an array that is appended.
    """
    sizes = head[-1].shape if element.rank else ()
    return CREATION["zeros"]((rounds, *sizes), element.dtype)


def fitting(value: Any, like: Any) -> Any:
    """An appended array, which has the sizes of another one, or the call is Python's."""
    fits = True
    for size, wanted in zip(value.shape, like.shape, strict=True):
        fits = op("bitwise_and", op("eq", size, wanted), fits)
    return op("require", value, fits, message="arrays of several sizes are appended to a list")


class TracedRows:
    """A list that a recorded loop has appended to.

    Args:
        loop: the loop.
        head: the elements that the list had before.
        element: what the others are.
        array: with the others as its rows.
    """

    def __init__(self, loop: Loop, head: list[Any], element: Element, array: TracedArray) -> None:
        self._loop, self._head, self._element, self._array = loop, head, element, array

    __class__ = property(lambda self: list)
    __hash__ = None  # type: ignore[assignment]

    def _refuse(self, *_: Any) -> Any:
        return self._loop.refuse("a list that its rounds append to is used in another way")

    def stacked(self) -> Any:
        """The array that `np.array` makes of the list."""
        if not self._head:
            return op("copy", self._array)
        array = CREATION["array"]
        rest = array(self._array)
        return np.concatenate([array(self._head), rest])

    def as_rows(self) -> tuple[str, tuple[Any, ...]]:
        """The kind of the new elements, and the old ones with the array: see `containers`."""
        return self._element.kind, (*self._head, self._array)

    def length(self) -> Any:
        """The number of elements, traced."""
        new = self._array.shape[0]
        return new + len(self._head) if self._head else new

    def __len__(self) -> int:
        return int(self.length())

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, index: Any) -> Any:
        if type(index) is not int or self._head or self._element.kind == "array":
            return self._refuse()
        found = self._array[index]
        return op("item", found) if self._element.kind == "number" else found

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name, rank = function.__name__, self._element.rank
        if name in ("stack", "vstack") and len(args) == 1 and not kwargs and rank == 1:
            return self.stacked()
        if name in _JOINS:
            return self._refuse()
        args = tuple([x.stacked() if type(x) is TracedRows else x for x in args])
        kwargs = {k: x.stacked() if type(x) is TracedRows else x for k, x in kwargs.items()}
        return function(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return self._refuse()

    __iter__ = __reversed__ = __contains__ = __eq__ = __ne__ = __lt__ = __le__ = _refuse
    __gt__ = __ge__ = __add__ = __radd__ = __iadd__ = __mul__ = __rmul__ = __imul__ = _refuse
    __setitem__ = __delitem__ = __array__ = __array_ufunc__ = __repr__ = __str__ = _refuse
    __format__ = __reduce_ex__ = __copy__ = __deepcopy__ = _refuse


def _references(frame: types.FrameType, name: str) -> int:
    return sys.getrefcount(frame.f_locals.get(name))


def _alone() -> int:
    fresh: list[Any] = []
    return _references(sys._getframe(), "fresh") if fresh is not None else 0


_ALONE = _alone()  # references to what one variable has


def are_shared(frame: types.FrameType, names: Sequence[str]) -> frozenset[str]:
    """The variables whose lists something else has, too, and may look at while a loop runs."""
    return frozenset(name for name in names if _references(frame, name) > _ALONE)


__all__ = [
    "Appended",
    "Element",
    "TracedRows",
    "are_shared",
    "array_for",
    "element_of",
    "fitting",
    "hold",
    "is_held",
]
