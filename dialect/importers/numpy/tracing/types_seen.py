"""Substitutes for builtins that ask what a value is: ``type``, ``isinstance``, ``len``, ….

``type`` tells what a traced value stands for. ``isinstance`` and ``x.__class__`` mostly tell that
already, as traced values define ``__class__``; but no class can change what the builtin ``type``
says, and a traced value has methods and attributes which that lacks for which it stands: a NumPy
scalar has no length. So ``hasattr``, ``getattr`` and ``isinstance`` ask the class.

``len(x)`` of a traced array is the traced size that ``x.shape[0]`` is; Python's own ``len`` would
need a number. Where a trace fails with these, another one takes numbers. A ``range`` of traced
numbers is one of plain numbers, which are guarded, as soon as anybody asks for more than an index:
``x[range(len(y))]`` takes it as it is.
"""

from __future__ import annotations

import builtins
import sys
from abc import ABCMeta
from collections.abc import Iterator, Sequence
from operator import index
from types import UnionType
from typing import Any

from ....trees.leaves import TraceValue
from .operators import Recording
from .traced import OF_TAPE, is_differentiated


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


def _stands_in(x: Any) -> bool:
    """True for a traced value. Not by `isinstance`: it says that it is an array, or a number."""
    return issubclass(type(x), Recording) and not x.rec.evaluates


def _has(x: Any, name: Any) -> bool:
    """True if what a traced value stands for has an attribute; its class has all that there are.

    Raises TraceError where an array of the tape has it, and it may be one or not.
    """
    if name in OF_TAPE and (answer := is_differentiated(x)) is not None:
        return answer
    return any(name in vars(cls) for cls in x.__class__.__mro__)


def traced_hasattr(x: Any, name: Any, /) -> bool:
    """Stands in for the builtin ``hasattr`` in a traced function."""
    return _has(x, name) if _stands_in(x) else builtins.hasattr(x, name)


def traced_getattr(x: Any, name: Any, /, *default: Any) -> Any:
    """Stands in for the builtin ``getattr`` in a traced function."""
    if _stands_in(x) and not _has(x, name):
        return builtins.getattr(_NOTHING, name, *default)
    return builtins.getattr(x, name, *default)


class _Nothing:
    """Has no attributes but those of any object."""

    __slots__ = ()


_NOTHING = _Nothing()
# How these tell the classes of an instance.
_BY_CLASS = (type.__instancecheck__, ABCMeta.__instancecheck__)


def traced_isinstance(x: Any, classes: Any, /) -> bool:
    """Stands in for the builtin ``isinstance`` in a traced function."""
    if not _stands_in(x):
        return builtins.isinstance(x, classes)
    if type(classes) in (tuple, UnionType):
        members = classes if type(classes) is tuple else classes.__args__
        return any(traced_isinstance(x, cls) for cls in members)
    if getattr(type(classes), "__instancecheck__", None) in _BY_CLASS:
        return issubclass(x.__class__, classes)
    return builtins.isinstance(x, classes)


class LazyRange(TraceValue):
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

    def bake(self) -> range:
        if self._real is None:
            self._real = range(*map(index, self.bounds))
        return self._real

    def __getattr__(self, name: str) -> Any:
        return getattr(self.bake(), name)

    def __iter__(self) -> Iterator[int]:
        return iter(self.bake())

    def __reversed__(self) -> Iterator[int]:
        return reversed(self.bake())

    def __len__(self) -> int:
        return len(self.bake())

    def __getitem__(self, key: Any) -> Any:
        return self.bake()[key]

    def __contains__(self, item: Any) -> bool:
        return item in self.bake()

    def __eq__(self, other: object) -> bool:
        return self.bake() == (other.bake() if type(other) is LazyRange else other)

    def __hash__(self) -> int:
        return hash(self.bake())

    def __repr__(self) -> str:
        return repr(self.bake())

    def __reduce__(self) -> Any:
        return self.bake().__reduce__()


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
        if len(args) == 3 and type(args[2]) is dict and "__module__" not in args[2]:
            # Python asks the code that calls `type` for its module, which is not this one.
            name = sys._getframe(1).f_globals.get("__name__")
            args = (*args[:2], args[2] if name is None else {**args[2], "__module__": name})
        return type(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, type) if cls is traced_type else super().__instancecheck__(instance)

    def __subclasscheck__(cls, subclass: Any) -> bool:
        return issubclass(subclass, type) if cls is traced_type else super().__subclasscheck__(subclass)


class traced_type(type, metaclass=_TypeMeta):
    """Stands in for the builtin ``type`` in a traced function.

    ``traced_type(x)`` of a traced array is ``np.ndarray``, of a traced NumPy scalar its type, of a
    traced Python number ``int``, ``float``, ``complex`` or ``bool``: real classes, to be compared,
    called and asked for their names. Of everything else, and with three arguments, it is ``type``.
    """
