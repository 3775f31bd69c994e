"""Lists to which rounds of a recorded loop append: traced arrays of what is appended.

A recorded body runs once, so a list itself cannot grow. A `GrowingList` stands for it, in the
rounds and behind the loop: what is appended are rows of an array that the body writes, at the
number of the round, or where a counter says, if a round may append nothing, or more than once.
It does what can be recorded of a list; whatever else asks for one has the rounds recorded one by
one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..handlers.creation import CREATION
from ..tracing.operators import op
from ..tracing.traced import TracedArray
from ..tracing.traced_control import fori_loop, required
from ..tracing.traced_scalar import TracedScalar
from .appends import AppendedRow, array_for, fitting, hold, is_as, row_of

if TYPE_CHECKING:
    from ..tracing.recorder import Recorder

_JOINS = frozenset({"concatenate", "stack", "vstack", "hstack", "dstack", "column_stack", "block", "array_equal"})
_NO_ELEMENT = "a list has no element of this number"


class AppendingLoop(Protocol):
    """A loop that is being recorded, of Python source or of another system's graph, as its lists see it.

    Attributes:
        rec: the trace.
        depth: of the blocks around it.
        may_be_left: a round may be the last one, so that the number of rounds is not known before it.
        statements: those that are being recorded, the innermost one last; each says whether it ``is_loop``.
    """

    rec: Recorder
    depth: int

    @property
    def may_be_left(self) -> bool: ...

    @property
    def statements(self) -> Sequence[Any]: ...

    def number(self) -> Any:
        """The number of the round that is being recorded."""
        ...

    def wants_first(self) -> bool:
        """Have the first round recorded on its own; False if it has been already."""
        ...

    def choose(self, condition: Any, then: Callable[[], Any], other: Callable[[], Any]) -> Any:
        """``then() if condition else other()``."""
        ...

    def refuse(self, why: str) -> Any:
        """Raise the error that has the loop's rounds recorded one by one."""
        ...


class GrowingList:
    """One list of a recorded loop.

    Args:
        loop: the loop.
        name: the variable.
        start: Python's list, with what it holds before the loop.

    Attributes:
        arrays: with the parts of each row; none as long as it is not known what is appended.
        is_stale: True if the trial has found out what the next one has to know from the start.
    """

    def __init__(self, loop: AppendingLoop, name: str, start: list[Any]) -> None:
        self._loop, self._name, self.start = loop, name, start
        self.arrays: list[TracedArray] = []
        self._row: AppendedRow | None = None
        self._is_counted = loop.may_be_left
        self._counter: TracedArray | None = None  # how many rows there are, if that is counted
        self._calls = 0  # of `append` in this round
        self._most = 1  # calls in a round
        self._reads = False  # rounds read the list
        self._front = 0  # rows that hold the last of what the list has before the loop
        self._is_open = True
        self._depth = 0  # statements that are recorded where the loop ends
        self._tail: list[Any] = []  # what is appended behind the loop
        self.is_stale = False

    __class__ = property(lambda self: list)
    __hash__ = None  # type: ignore[assignment]

    # --- what the loop asks ---------------------------------------------------------------------

    def begin(self) -> None:
        """Begin a round."""
        self._calls = 0

    def make(self, rounds: Any) -> None:
        """Make the arrays, before the loop, for so many rounds."""
        self.is_stale, self.arrays = False, []
        if self._row is None:
            return
        start, rows = self.start, rounds * self._most if self._most > 1 else rounds
        self._front = self._alike() if self._reads else 0
        for k, element in enumerate(self._row.parts):
            last = start[-1] if element.rank or self._front else None
            last = last[k] if self._row.is_tuple and last is not None else last
            array = array_for(element, rows + self._front if self._front else rows, last)
            for place, value in enumerate(start[len(start) - self._front :]):
                part = value[k] if self._row.is_tuple else value
                if element.rank:
                    hold(part)
                    part = fitting(part, last)
                array[place] = part
            self.arrays.append(array)
        if self._is_counted:
            self._counter = CREATION["zeros"](1, np.int64)

    def forget(self) -> None:
        """Forget all trials: the list has changed."""
        self._row, self.arrays, self._most, self.is_stale = None, [], 1, False
        self._reads, self._is_counted = False, self._loop.may_be_left

    def close(self) -> None:
        """End the rounds."""
        self._is_open, self._depth = False, len(self._loop.statements)

    @property
    def needs_a_round(self) -> bool:
        """True if the arrays are right only if each round appends, and there is one."""
        return bool(self.arrays) and not self._is_counted

    # --- what rounds do -------------------------------------------------------------------------

    def append(self, value: Any) -> None:
        """Record that a round appends a value; behind the loop, append it."""
        loop = self._loop
        opened = loop.statements
        if not self._is_open and len(opened) == self._depth:
            self._tail.append(value)
            return
        if not self._is_open or loop not in opened:
            self._cannot()
        inner = opened[opened.index(loop) + 1 :]
        if any(statement.is_loop for statement in inner):
            loop.refuse(f"a loop in it appends to {self._name}")
        row = row_of(value, loop.rec, loop.rec.blocks[loop.depth :])
        if isinstance(row, str):
            loop.refuse(row)
            return
        if self._row is not None and row != self._row:
            loop.refuse(f"elements of several kinds are appended to {self._name}")
        self._calls += 1
        if self._calls > self._most or ((inner or self._calls > 1) and not self._is_counted):
            self._is_counted, self._most, self.is_stale = True, max(self._calls, self._most), True
        if self._row is None:
            self._row, self.is_stale = row, True
            if any(part.rank for part in row.parts):
                loop.wants_first()
        if self.arrays and not self.is_stale:
            self._put(value)

    def _put(self, value: Any) -> None:
        assert self._row is not None
        new = self._new() if self._is_counted else self._loop.number()
        place = new + self._front if self._front else new
        parts = value if self._row.is_tuple else (value,)
        for k, part in enumerate(parts):
            if self._row.parts[k].rank:
                like = self.start[-1]
                part = fitting(part, like[k] if self._row.is_tuple else like)
            self.arrays[k][place] = part
        if self._counter is not None:
            self._counter[0] = new + 1

    # --- what is asked of a list ----------------------------------------------------------------

    def length(self) -> Any:
        """The number of elements, traced."""
        if self._is_open and not self._ask():
            return self._loop.number()
        new, others = self._new(), len(self.start) + len(self._tail)
        return new + others if others else new

    def is_filled(self) -> Any:
        """True if the list has elements; traced where that is not known."""
        if self.start or self._tail or (self.needs_a_round and not self._is_open):
            return True
        return op("gt", self.length(), 0)

    def _new(self) -> Any:
        """The number of rows, without those of the start."""
        if self._counter is not None:
            return op("item", self._counter[0])
        if self._is_open:
            number = self._loop.number()
            return number + self._calls if self._calls else number
        rows = self.arrays[0].shape[0]
        return rows - self._front if self._front else rows

    def _ask(self) -> bool:
        """Have the last of the start in the arrays, as a round reads the list.

        False if it is not known yet what is appended: this trial goes on with any value.
        """
        if not self._reads or not self.arrays:
            self._reads, self.is_stale = True, True
        return bool(self.arrays)

    def _alike(self) -> int:
        """The number of the last elements before the loop that the arrays can hold."""
        row, count = self._row, 0
        if row is None:
            return 0
        for value in reversed(self.start):
            parts = value if row.is_tuple else (value,)
            fits = type(parts) is tuple and len(parts) == len(row.parts)
            if not fits or not all(map(is_as, parts, row.parts)):
                break
            count += 1
        return count

    def __getitem__(self, index: Any) -> Any:
        is_number = type(index) is int
        if not is_number and not (type(index) is TracedScalar and index.kind is int):
            return self._cannot()
        if self._tail:
            return self._tail[index] if is_number and -len(self._tail) <= index < 0 else self._cannot()
        if self._is_open and not self._ask():
            return self.start[-1] if self.start else self._loop.number() * 1.0
        assert self._row is not None
        place = self._place_from_end(index) if is_number and index < 0 else self._place(index)
        values = []
        for element, array in zip(self._row.parts, self.arrays, strict=True):
            value = array[place]
            if element.kind == "array":
                value = op("copy", value)
                hold(value)
            values.append(op("item", value) if element.kind == "number" else value)
        return tuple(values) if self._row.is_tuple else values[0]

    def _place_from_end(self, index: int) -> Any:
        if not self._is_open and not self._is_counted:
            # There was a round. What the start holds may be no element of the arrays.
            return index if index == -1 else self._place(index)
        if self._is_open and -index > self._front and self.start:
            # Behind a first round, the last element is one of those that rounds append.
            if not self._loop.wants_first() or -index > len(self.start):
                self._loop.refuse(f"{self._name} has elements of several kinds")
            return 0
        place = self._new() + (self._front + index)
        if -index <= self._front:
            return place
        return required(place, op("ge", place, 0), _NO_ELEMENT)

    def _place(self, index: Any) -> Any:
        if self._front < len(self.start):
            self._loop.refuse(f"{self._name} has elements of several kinds")
        if not self._is_open and not self._is_counted and type(index) is int:
            return index
        count = self.length()
        place = index
        if type(index) is not int:
            place = self._loop.choose(op("lt", index, 0), lambda: index + count, lambda: index)
        fits = op("bitwise_and", op("le", 0, place), op("lt", place, count))
        return required(place, fits, _NO_ELEMENT)

    def stacked(self) -> Any:
        """The array that `np.array` makes of the list."""
        if self._is_open:
            return self._cannot()
        # What is of the start and in the arrays, too, is taken from there.
        before = self.start[: len(self.start) - self._front]
        parts = [before] * bool(before) + [self._columns()] + [self._tail] * bool(self._tail)
        return np.concatenate([CREATION["array"](x) for x in parts]) if parts[1:] else parts[0]

    def _columns(self) -> Any:
        assert self._row is not None
        arrays = list(self.arrays)
        if self._is_counted:
            count = self._new()
            rows = count + self._front if self._front else count
            arrays = [array[:rows] for array in arrays]
            if not self.start:
                reason = "a list without elements is made an array"
                arrays = [required(array, op("gt", count, 0), reason) for array in arrays]
        if not self._row.is_tuple:
            return op("copy", arrays[0])
        if len({(e.kind, e.dtype, e.rank) for e in self._row.parts}) > 1:
            return self._loop.refuse("tuples of several kinds of values are made an array")
        return np.stack(arrays, axis=1)

    def folded(self, function: Any) -> Any:
        """``min``, ``max`` or ``sum`` of the list, in Python's order of operations.

        The call is Python's if the list is empty.
        """
        kinds = {("number", np.dtype(int)), ("number", np.dtype(float)), ("scalar", np.dtype("f8"))}
        row = self._row
        if self._is_open or row is None or row.is_tuple or row.parts[0][:2] not in kinds:
            return self._cannot()
        # From Python 3.12 on, `sum` makes up for the roundings of Python's floats.
        is_plain = sys.version_info < (3, 12) or row.parts[0][:2] != ("number", np.dtype(float))
        alike = [*self.start, *self._tail]
        if not all(is_as(value, row.parts[0]) for value in alike) or (function is sum and not is_plain):
            return self._cannot()
        count = self._new() + self._front
        if self._is_counted and not self.start:
            count = required(count, op("gt", count, 0), "a list is empty")

        def element(index: Any) -> Any:
            value = self.arrays[0][index]
            return op("item", value) if row.parts[0].kind == "number" else value

        def joined(best: Any, value: Any) -> Any:
            if function is sum:
                return best + value
            is_better = op("lt" if function is min else "gt", value, best)
            return self._loop.choose(is_better, lambda: value, lambda: best)

        before = self.start[: len(self.start) - self._front]
        first = before[0] if before else element(0)
        best = 0 + first if function is sum else first
        for value in before[1:]:
            best = joined(best, value)
        first = 0 if before else 1
        best = fori_loop(first, count, lambda k, best: joined(best, element(k)), best)
        for value in self._tail:
            best = joined(best, value)
        return best

    def as_rows(self) -> tuple[tuple[bool, tuple[str, ...], bool, int], tuple[Any, ...]]:
        """The parts of which `containers` makes a list as a result: see `list_of_rows`."""
        if self._is_open:
            self._cannot()
        assert self._row is not None
        kinds = tuple(part.kind for part in self._row.parts)
        arrays = [array[self._front :] if self._front else array for array in self.arrays]
        count = (self._counter,) if self._is_counted else ()
        meta = self._row.is_tuple, kinds, self._is_counted, len(self._tail)
        return meta, (*self.start, *arrays, *count, *self._tail)

    def __len__(self) -> int:
        return int(self.length())

    def __bool__(self) -> bool:
        return self.is_filled() is True or bool(self._cannot())

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = function.__name__
        is_of_vectors = self._row is not None and self._row.parts[0].rank == 1
        if name in ("stack", "vstack") and len(args) == 1 and not kwargs and is_of_vectors:
            return self.stacked()
        if name in _JOINS:
            return self._cannot()
        args = tuple([x.stacked() if type(x) is GrowingList else x for x in args])
        kwargs = {k: x.stacked() if type(x) is GrowingList else x for k, x in kwargs.items()}
        return function(*args, **kwargs)

    def _cannot(self, *_: Any) -> Any:
        """Refuse what cannot be recorded."""
        return self._loop.refuse("a list that its rounds append to is used in another way")

    def __getattr__(self, name: str) -> Any:
        return self._cannot()

    __iter__ = __reversed__ = __contains__ = __eq__ = __ne__ = __lt__ = __le__ = _cannot
    __gt__ = __ge__ = __add__ = __radd__ = __iadd__ = __mul__ = __rmul__ = __imul__ = _cannot
    __setitem__ = __delitem__ = __array__ = __array_ufunc__ = __repr__ = __str__ = _cannot
    __format__ = __reduce_ex__ = __copy__ = __deepcopy__ = _cannot
