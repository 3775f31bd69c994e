"""The values that a ``for`` iterates over, as far as a trace sees through it.

`range` with traced bounds, the rows of a traced array, and `enumerate`, `zip` and `reversed` of
these. Each also is an iterable of Python's, which needs the number of its elements as a number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ....dataclass import dataclass
from ..python.pausing import apart
from ..tracing.operators import op
from ..tracing.traced import Traced, TracedArray
from ..tracing.traced_control import required
from ..tracing.traced_scalar import TracedScalar
from ..tracing.types_seen import traced_range


@dataclass(eq=False)
class Counted:
    """``range(lower, upper, step)``, of which bounds may be traced; the step is a number."""

    lower: Any
    upper: Any
    step: int

    def __iter__(self) -> Iterator[Any]:
        return iter(apart(self._range))

    def element(self, index: Any) -> Any:
        """The element of a round, where ``index`` is the index of a range with these bounds."""
        return index

    def number_of(self, index: Any) -> Any:
        """The number of the round that has this index."""
        return (index - self.lower) // self.step if self.step != 1 else index - self.lower

    def __reversed__(self) -> Iterator[Any]:
        return reversed(apart(self._range))

    def _range(self) -> range:
        return range(_number(self.lower), _number(self.upper), self.step)

    def turned(self) -> Counted:
        """The same numbers from the last to the first."""
        step = abs(self.step)
        if step == 1:
            return Counted(self.upper - self.step, self.lower - self.step, -self.step)
        rounds = self.rounds()
        return Counted(self.lower + (rounds - 1) * self.step, self.lower - self.step, -self.step)

    def rounds(self) -> Any:
        """The number of elements, if there are any."""
        if self.step == 1:
            return self.upper - self.lower
        if self.step > 0:
            return (self.upper - self.lower + (self.step - 1)) // self.step
        return (self.lower - self.upper + (-self.step - 1)) // -self.step

    def any(self) -> Any:
        """True if there is an element."""
        if isinstance(self.lower, int) and isinstance(self.upper, int) and not self.is_traced():
            return bool(range(self.lower, self.upper, self.step))
        low, high = (self.lower, self.upper) if self.step > 0 else (self.upper, self.lower)
        return op("lt", low, high)

    def is_traced(self) -> bool:
        """True if a bound is."""
        return type(self.lower) is TracedScalar or type(self.upper) is TracedScalar


@dataclass(eq=False)
class Strided:
    """``range(lower, upper, step)`` whose step is known at run time only; where it is not positive,
    the call is Python's.
    """

    lower: Any
    upper: Any
    step: Any

    def counted(self) -> Counted:
        """The range of the indices."""
        reason = "the step of a range is not positive"
        step = required(self.step, op("gt", self.step, 0), reason)
        return Counted(0, (self.upper - self.lower + step - 1) // step, 1)

    def element(self, index: Any) -> Any:
        """The number of round ``index``."""
        return self.lower + index * self.step

    def __iter__(self) -> Iterator[Any]:
        return iter(range(_number(self.lower), _number(self.upper), _number(self.step)))


@dataclass(eq=False)
class ElementRows:
    """The elements of a traced array along its first axis, or of an iterable that ends with it."""

    array: Traced

    def counted(self) -> Counted:
        """The range of the indices."""
        return Counted(0, self.array.shape[0], 1)

    def element(self, index: Any) -> Any:
        """Row ``index``."""
        return self.array[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.array)


@dataclass(eq=False)
class Enumerated:
    """``enumerate`` of one of these."""

    inner: Any
    start: Any

    def counted(self) -> Counted:
        """The range of the indices."""
        return counted_of(self.inner)

    def element(self, index: Any) -> Any:
        """A pair of the count and the element."""
        return self.start + index, element_of(self.inner, index)

    def __iter__(self) -> Iterator[Any]:
        return enumerate(self.inner, self.start)


@dataclass(eq=False)
class Zipped:
    """``zip`` of some of these."""

    parts: tuple[Any, ...]

    def counted(self) -> Counted:
        """The range of the indices: the shortest part decides."""
        first, *others = map(counted_of, self.parts)
        upper = first.upper
        for other in others:
            if other.upper is not upper:
                upper = op("minimum", upper, other.upper)
        return Counted(0, upper, 1)

    def element(self, index: Any) -> Any:
        """One element of each part."""
        return tuple(element_of(part, index) for part in self.parts)

    def __iter__(self) -> Iterator[Any]:
        return zip(*self.parts, strict=False)


def counted_of(iterable: Any) -> Counted:
    """The range of indices of one of these; from 0 by 1, unless it is a `Counted` itself."""
    if type(iterable) is Counted:
        return Counted(0, iterable.rounds(), 1)
    return iterable.counted()


def element_of(iterable: Any, index: Any) -> Any:
    """Element number ``index`` of one of these."""
    if type(iterable) is Counted:
        return iterable.lower + index * iterable.step
    return iterable.element(index)


def takes_scalars(iterable: Any) -> bool:
    """True if elements are, or have among them, those of an array of one axis: NumPy scalars."""
    if type(iterable) is ElementRows:
        return iterable.array.ndim == 1
    if type(iterable) is Zipped:
        return any(map(takes_scalars, iterable.parts))
    return type(iterable) is Enumerated and takes_scalars(iterable.inner)


def lazy(function: Any, args: tuple[Any, ...]) -> Any:
    """One of these for a call of a builtin; None if the builtin itself is to be called."""
    if function is range or function is traced_range:
        return _range(args)
    if function is enumerate:
        return _enumerate(args)
    if function is zip:
        if args and all(map(is_lazy, args)):
            return Zipped(tuple(map(as_lazy, args)))
        return None
    if function is reversed and len(args) == 1 and type(args[0]) is Counted:
        return args[0].turned()
    return None


def _range(args: tuple[Any, ...]) -> Counted | Strided | None:
    if not any(isinstance(arg, (TracedScalar, Traced)) for arg in args) or len(args) > 3:
        return None
    bounds = [_bound(arg) for arg in args]
    if any(bound is None for bound in bounds):
        return None
    lower, upper, step = {1: lambda: (0, bounds[0], 1), 2: lambda: (*bounds, 1), 3: lambda: tuple(bounds)}[len(args)]()
    if type(step) is TracedScalar and step.is_open:
        return Strided(lower, upper, step)
    if type(step) is TracedScalar:
        step = int(step.bake())
    return Counted(lower, upper, step) if step else None


def _bound(arg: Any) -> Any:
    """A bound as a Python number, traced or not; None for what `range` refuses."""
    if type(arg) is TracedArray:
        fits = arg.ndim == 0 and arg.dtype.kind in "iu"
        return op("item", arg) if fits else None
    if type(arg) is TracedScalar:
        return arg if arg.kind is int else None
    return int(arg) if hasattr(arg, "__index__") else None


def _enumerate(args: tuple[Any, ...]) -> Enumerated | None:
    if len(args) > 2 or not is_lazy(args[0]):
        return None
    start = args[1] if len(args) > 1 else 0
    is_int = type(start) is int or (type(start) is TracedScalar and start.kind is int)
    return Enumerated(as_lazy(args[0]), start) if is_int else None


def is_lazy(iterable: Any) -> bool:
    """True for one of these, and for an array whose rows may be."""
    if type(iterable) is TracedArray:
        return iterable.ndim > 0 and not iterable.rec.evaluates
    return type(iterable) in (Counted, Strided, ElementRows, Enumerated, Zipped)


def as_lazy(iterable: Any) -> Any:
    """One of these for an array; others as they are."""
    return ElementRows(iterable) if type(iterable) is TracedArray else iterable


def _number(bound: Any) -> int:
    return int(bound.bake()) if type(bound) is TracedScalar else bound
