"""Leaves of nested arguments: what may be one, and what a trace takes it for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import ArgumentError, DTypeError, ProfuseError
from ..importers.numpy.python.pausing import apart
from ..ir.device import DeviceTensor
from ..ir.dtypes import NUMBERS, dtype_of

LEAF_TYPES: list[type] = []  # further leaf types: traced arrays and numbers, device tensors
_conversions: list[Callable[[Any], Any]] = []  # see `register_leaf_conversion`
_memories: list[Callable[[Any], np.ndarray | None]] = []  # see `register_memory`


class TraceValue:
    """The base of what stands for a plain value in a trace."""

    __slots__ = ()

    def bake(self) -> Any:
        """The plain value for the example arguments, guarded; raises TraceError if none is known."""
        raise NotImplementedError


def register_leaf_type(cls: type) -> type:
    """Make instances of exactly this class leaves."""
    LEAF_TYPES.append(cls)
    return cls


def register_leaf_conversion(convert: Callable[[Any], Any]) -> None:
    """Register a function of objects that are neither leaf nor container; its result is the leaf.

    The function returns None for an object that it knows nothing of.
    """
    _conversions.append(convert)


def converted(value: Any) -> Any:
    """The leaf that the registered conversions make of an object; None if they know nothing of it."""
    return apart(_converted, value)  # what arrays do to be exchanged is not the function's


def _converted(value: Any) -> Any:
    leaves = (convert(value) for convert in _conversions)
    return next((leaf for leaf in leaves if leaf is not None), None)


def register_memory(view: Callable[[Any], np.ndarray | None]) -> None:
    """Register a function that gives an array of a foreign tensor's memory, and None for other objects."""
    _memories.append(view)


def memory_of(value: Any) -> np.ndarray | None:
    """An array of the memory of a tensor of another library on the host; None for all other objects.

    Raises ProfuseError for a tensor whose elements no array can show, or that would lose gradients.
    """
    return apart(_memory_of, value)


def _memory_of(value: Any) -> np.ndarray | None:
    arrays = (view(value) for view in _memories)
    return next((array for array in arrays if array is not None), None)


def kind_of(value: Any) -> Any:
    """The `leaf_kind` of an array or number of the host, and None for all else."""
    if type(value) in NUMBERS or isinstance(value, np.generic):
        return type(value)
    if not issubclass(type(value), np.ndarray):  # what else says that it is one is none of NumPy's
        return None
    try:
        check_array(value, "")
    except ProfuseError:
        return None
    return value.dtype, value.ndim


def leaf_kind(leaf: Any) -> Any:
    """The assumption of a trace about a leaf, hashable: (dtype, rank) or the number's type.

    A device tensor has its device as well. A NumPy scalar is no array of rank 0: code may ask which
    it has, and ``+=`` changes an array, but no scalar. Graphs of IR text take tuples and strings as they are.
    """
    kind = type(leaf)
    if kind in NUMBERS or isinstance(leaf, np.generic) or kind in (tuple, str):
        return kind
    if isinstance(leaf, DeviceTensor):
        return leaf.kind
    return leaf.dtype, leaf.ndim


def kind_text(kind: Any) -> str:
    """A `leaf_kind` in words: ``f32[?, ?]``, ``int``, ``f32[?] on cuda:0``."""
    if isinstance(kind, type):
        return kind.__name__
    dtype, rank, *device = kind
    return " on ".join((f"{dtype_of(dtype)}[{', '.join('?' * rank)}]", *map(str, device)))


PLAIN_ARRAY = "pass a plain array: np.asarray(x)"
# What a subclass may define and still compute what plain arrays do.
_HARMLESS = frozenset(
    {
        "__new__",
        "__init__",
        "__module__",
        "__doc__",
        "__dict__",
        "__weakref__",
        "__qualname__",
        "__reduce__",
        "__reduce_ex__",
        "__setstate__",
        "__repr__",
        "__str__",
        "__format__",
        "__init_subclass__",
        "__class_getitem__",
        "__array_priority__",
        "__slots__",
        "__firstlineno__",
        "__static_attributes__",
        "__annotations__",
        "__orig_bases__",
        "__parameters__",
        "__hash__",
        "__del__",
        "__copy__",
        "__deepcopy__",
    }
)


@lru_cache(maxsize=256)
def overrides(kind: Any) -> str | None:
    """The reason why arrays of this subclass of `np.ndarray` are no plain ones; None if they are.

    Operators, functions and methods that a class defines give its arrays another meaning (units,
    masks, matrix products), while a graph computes what plain arrays give.
    """
    if kind is np.memmap:
        return None
    for cls in kind.__mro__[: kind.__mro__.index(np.ndarray)]:
        if cls is np.memmap:
            continue
        for name in vars(cls):
            if name in _HARMLESS or not hasattr(np.ndarray, name):
                continue
            return f"{kind.__name__}, which has its own {name}: it differs from plain arrays"
    return None


def check_array(array: Any, where: str) -> None:
    """Raise ArgumentError or DTypeError, at ``where``, for arrays that no graph can take."""
    if type(array) is not np.ndarray and isinstance(array, np.ndarray):
        if isinstance(array, np.matrix) or _is_masked(array):
            raise ArgumentError(
                f"{where}{type(array).__name__} arrays are not supported, their operators differ "
                "from those of plain arrays",
                hint=PLAIN_ARRAY,
            )
        kind: Any = type(array)
        why = overrides(kind)
        if why is not None:
            raise ArgumentError(f"{where}array of type {why}", hint=PLAIN_ARRAY)
    try:
        dtype_of(array.dtype)
    except DTypeError as error:
        raise DTypeError(f"{where}{error.what}", hint=error.hint) from None


def _is_masked(array: Any) -> bool:
    """True for a masked array; none exists unless `numpy.ma`, which is slow to load, is loaded."""
    module = sys.modules.get("numpy.ma")
    return isinstance(array, getattr(module, "MaskedArray", ()))
