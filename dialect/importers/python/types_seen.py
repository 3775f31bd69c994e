"""Substitutes for the builtins ``type``, ``len`` and ``range`` in a traced function.

``type`` tells what a traced value stands for. ``isinstance`` and ``x.__class__`` tell that already,
as traced values define ``__class__``; but no class can change what the builtin ``type`` says.

``len(x)`` of a traced array is the traced size that ``x.shape[0]`` is; Python's own ``len`` would
need a number. Where a trace fails with these, another one takes numbers. A ``range`` of traced
numbers is one of plain numbers, which are guarded, as soon as anybody asks for more than an index:
``x[range(len(y))]`` takes it as it is.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from operator import index
from typing import Any

from ..tracing.operators import Recording


def traced_len(x: Any, /) -> Any:
    """Stands in for the builtin ``len`` in a traced function."""
    # Not by `isinstance`: a traced value says that it is an array.
    kind = type(x)
    if not issubclass(kind, Recording) or kind.lifts or x.rec.evaluates or not x.rec.lazy_sizes:
        return builtins.len(x)
    if not getattr(x, "ndim", 0):
        return builtins.len(x)
    x.rec.gave_sizes = True
    return x.shape[0]


class LazyRange:
    """A ``range`` of traced numbers; whatever is asked of it guards them, but `bounds`.

    Attributes:
        bounds: the arguments of ``range``.
    """

    __slots__ = ("_real", "bounds")

    def __init__(self, *bounds: Any) -> None:
        self.bounds = bounds
        self._real: range | None = None

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return range

    def real(self) -> range:
        """The range of plain numbers."""
        if self._real is None:
            self._real = range(*map(index, self.bounds))
        return self._real

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real(), name)

    def __iter__(self) -> Iterator[int]:
        return iter(self.real())

    def __reversed__(self) -> Iterator[int]:
        return reversed(self.real())

    def __len__(self) -> int:
        return len(self.real())

    def __getitem__(self, key: Any) -> Any:
        return self.real()[key]

    def __contains__(self, item: Any) -> bool:
        return item in self.real()

    def __eq__(self, other: object) -> bool:
        return self.real() == (other.real() if type(other) is LazyRange else other)

    def __hash__(self) -> int:
        return hash(self.real())

    def __repr__(self) -> str:
        return repr(self.real())

    def __reduce__(self) -> Any:
        return self.real().__reduce__()


def _is_int(x: Recording) -> bool:
    return getattr(x, "kind", None) is int


class _RangeMeta(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        traced = [x for x in args if issubclass(type(x), Recording)]
        plain = all(type(x) is int for x in args if not issubclass(type(x), Recording))
        if traced and plain and len(args) < 4 and all(_is_int(x) for x in traced):
            rec = traced[0].rec
            rec.gave_sizes |= rec.lazy_sizes
            if rec.lazy_sizes:
                return LazyRange(*args)
        return range(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, range)

    def __subclasscheck__(cls, subclass: Any) -> bool:
        return subclass is cls or issubclass(subclass, range)

    def __eq__(cls, other: object) -> bool:  # tables have types as keys
        return other is cls or other is range

    def __hash__(cls) -> int:
        return hash(range)


class traced_range(metaclass=_RangeMeta):
    """Stands in for the builtin ``range`` in a traced function, and is what `type` says of one."""


Sequence.register(traced_range)


class _TypeMeta(type):
    """Makes calls of `traced_type`, and checks against it, behave like those of ``type``."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is not traced_type:  # a metaclass of the user's, derived from it
            return super().__call__(*args, **kwargs)
        if len(args) == 1 and not kwargs:
            kind = type(args[0])
            if issubclass(kind, Recording):
                return args[0].__class__
            if kind is range or kind is LazyRange:
                return traced_range
        return type(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, type)
            if cls is traced_type
            else super().__instancecheck__(instance)
        )

    def __subclasscheck__(cls, subclass: Any) -> bool:
        return (
            issubclass(subclass, type)
            if cls is traced_type
            else super().__subclasscheck__(subclass)
        )


class traced_type(type, metaclass=_TypeMeta):
    """Stands in for the builtin ``type`` in a traced function.

    ``traced_type(x)`` of a traced array is ``np.ndarray``, of a traced NumPy scalar its type, of a
    traced Python number ``int``, ``float``, ``complex`` or ``bool``: real classes, to be compared,
    called and asked for their names. Of everything else, and with three arguments, it is ``type``.
    """


__all__ = ["LazyRange", "traced_len", "traced_range", "traced_type"]
