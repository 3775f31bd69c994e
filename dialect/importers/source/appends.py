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

from ...ir.dtypes import DTYPES, dtype_of
from ...ir.symbolic import Sym
from ..numpy.creation import CREATION
from ..tracing.inline import recorded_size
from ..tracing.mutation import is_immutable
from ..tracing.operators import op, wrap
from ..tracing.traced import TracedArray, TracedScalar

if TYPE_CHECKING:
    from .loops import Loop

_JOINS = frozenset({
    "concatenate", "stack", "vstack", "hstack", "dstack", "column_stack", "block", "array_equal",
})  # fmt: skip


class Element(NamedTuple):
    """What the elements of such a list are.

    Attributes:
        kind: ``number`` of Python's, NumPy's ``scalar``, or ``array``.
        dtype: theirs, or that of an array of them.
        shape: theirs, of ints and size expressions.
    """

    kind: str
    dtype: np.dtype
    shape: tuple[Any, ...] = ()


class Appended:
    """One list of a recorded loop.

    Args:
        element: what each round appends.
        array: with one element per round, made before the loop.
    """

    def __init__(self, element: Element, array: TracedArray) -> None:
        self.element, self.array = element, array


def element_of(value: Any, references: int) -> Element | str:
    """What an appended value is, or why it cannot be recorded.

    ``references``: how many there are to the value; what others have may be written later.
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
    if references > _TEMPORARY or made is None or made.op.aliases or made.op.writes:
        return "an array that has a name is appended to a list"
    shape = value.rec.derivation.symbolic_shape(value.value)
    if shape is None:
        return "an array of unknown sizes is appended to a list"
    return Element("array", value.dtype, shape)


def array_for(loop: Loop, element: Element, rounds: Any) -> TracedArray:
    """The array for what the rounds append, of zeros so far."""
    rec = loop.rec
    sizes = [
        wrap(rec, recorded_size(rec, size)) if isinstance(size, Sym) else size
        for size in element.shape
    ]
    return CREATION["zeros"]((rounds, *sizes), element.dtype)


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

    __class__ = property(lambda self: list)  # type: ignore[assignment]
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
        return self._array.shape[0] + len(self._head)

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
        name, rank = function.__name__, len(self._element.shape)
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


class _Asks:
    def append(self, loop: Any, name: str, target: list, value: Any) -> int:
        return sys.getrefcount(value)


_TEMPORARY = _Asks().append(None, "", [], object())  # references to what has no name


def _references(frame: types.FrameType, name: str) -> int:
    return sys.getrefcount(frame.f_locals.get(name))


def _alone() -> int:
    fresh: list[Any] = []
    return _references(sys._getframe(), "fresh") if fresh is not None else 0


_ALONE = _alone()  # references to what one variable has


def are_shared(frame: types.FrameType, names: Sequence[str]) -> frozenset[str]:
    """The variables whose lists something else has, too, and may look at while a loop runs."""
    return frozenset(name for name in names if _references(frame, name) > _ALONE)


__all__ = ["Appended", "Element", "TracedRows", "are_shared", "array_for", "element_of"]
