"""`ndarray.flat` of arrays in traces and on the tape: elements in C order."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from .current import trace_error
from .handler_tables import METHODS
from .operators import Recording


class Flat:
    """The object ``x.flat``; ``array`` is the one whose elements it has."""

    def __init__(self, array: Any) -> None:
        self._array = array
        self._left: Iterator[Any] | None = None

    def __iter__(self) -> Flat:
        return self

    def __next__(self) -> Any:
        if self._left is None:
            self._left = iter(METHODS["ravel"](self._array))
        return next(self._left)

    def __len__(self) -> int:
        return int(self._array.size)

    def __getitem__(self, key: Any) -> Any:
        result = METHODS["ravel"](self._array)[self._index(key)]
        return result.copy() if getattr(result, "ndim", 0) else result

    def __setitem__(self, key: Any, value: Any) -> None:
        index = self._index(key)
        if issubclass(type(index), Recording):
            np.put(self._array, index, value)
            return
        # The places along the axes, as it is not known whether the memory has the elements' order.
        shape = tuple(int(size) for size in self._array.shape)
        numbers = np.arange(math.prod(shape))[index]
        if np.ndim(value):
            if not self._is_apart(value):
                # NumPy reads and writes one element after the other.
                raise trace_error(
                    "x.flat[key] is set to elements of an array whose memory may be that of x",
                    "give it a copy of the elements",
                )
            value = np.reshape(value, (-1,))
            if int(np.size(value)) != numbers.size or not numbers.ndim:
                raise trace_error(
                    "x.flat[key] is set to values that are repeated or left out",
                    "give one value, or one for each element",
                )
        if numbers.size:
            self._array[np.unravel_index(numbers.reshape(-1), shape)] = value

    def _is_apart(self, value: Any) -> bool:
        """True for values that are known to be in other memory than the array."""
        if not issubclass(type(value), Recording):
            return type(value) in (list, tuple)
        if value.rec.evaluates:
            return not np.may_share_memory(value.data, self._array.data)
        return value.storage is None

    def _index(self, key: Any) -> Any:
        """A key as an integer, a slice, or an array of integers; raises TraceError for others."""
        if key is Ellipsis:
            return slice(None)
        if isinstance(key, slice):
            return key
        dtype = getattr(key, "dtype", None)
        if isinstance(key, bool) or (dtype is not None and dtype.kind not in "iu"):
            raise trace_error(
                "x.flat[key] is supported with integers, slices and arrays of integers only", "write x.reshape(-1)[key]"
            )
        if dtype is None and not isinstance(key, list):
            operator.index(key)
        return key

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise trace_error("x.flat is given to a function of NumPy", "give it x.ravel()")

    def __getattr__(self, name: str) -> Any:
        raise trace_error(f"x.flat.{name} is not supported while tracing", "index x.flat itself")
