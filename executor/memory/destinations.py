"""The caller's arrays into which results are written (`GraphFunction.into`)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dialect.errors import ArgumentError, DTypeError, ShapeError
from ...dialect.trees.pytree import TreeDef, flatten


class Destinations:
    """The destination arrays of a call, one per result.

    Args:
        out: the arrays, nested in the structure of the results.
        tree: the structure of the results.
        name: name of the function, for messages.

    Attributes:
        arrays: one array per result.
        direct: per result, the array if kernels may write to it directly, else None; see `open`.
        copied: number of results that were made in other memory and copied.

    Raises ArgumentError unless ``out`` has the right structure, and its arrays are writable and do
    not overlap each other.
    """

    def __init__(self, out: Any, tree: TreeDef, name: str) -> None:
        self._name = name
        arrays, structure = flatten(out)
        if structure != tree:
            raise ArgumentError(
                f"{name}.into: the arrays given are {structure}, the results {tree}",
                hint="pass arrays nested as the function returns its results",
            )
        self.arrays: list[np.ndarray] = arrays
        self.direct: tuple[np.ndarray | None, ...] = ()
        self.copied = 0
        for where, array in zip(self._places(), arrays, strict=True):
            if not isinstance(array, np.ndarray):
                raise ArgumentError(f"{where} is no array but {type(array).__name__} {array!r:.40}")
            if not array.flags.writeable:
                raise ArgumentError(f"{where} is read-only")
        places = tuple(zip(self._places(), arrays, strict=True))
        for (first, a), (second, b) in itertools.combinations(places, 2):
            if np.shares_memory(a, b):
                raise ArgumentError(f"{first} and {second} share memory, each is for one result")

    def _places(self) -> list[str]:
        if len(self.arrays) == 1:
            return [f"{self._name}.into: the array given"]
        return [f"{self._name}.into: the array for result {k}" for k in range(len(self.arrays))]

    def open(self, inputs: Sequence[Any]) -> None:
        """Set `direct`: arrays that a kernel's output may use while the kernel reads ``inputs``."""
        sources = [x for x in inputs if isinstance(x, np.ndarray)]
        self.direct = tuple(
            array if is_plain(array) and not any(np.may_share_memory(array, x) for x in sources) else None
            for array in self.arrays
        )

    def fill(self, results: Sequence[Any]) -> None:
        """Copy the results that have not been written in place.

        The results must share no memory with the inputs. Raises ShapeError and DTypeError before
        anything is copied, if an array and its result differ in shape or dtype.
        """
        for where, array, result in zip(self._places(), self.arrays, results, strict=True):
            value = np.asarray(result)
            if value.shape != array.shape:
                raise ShapeError(f"{where} has shape {array.shape}, the result {value.shape}")
            if value.dtype != array.dtype:
                raise DTypeError(f"{where} is of {array.dtype}, the result of {value.dtype}")
        for array, result in zip(self.arrays, results, strict=True):
            if result is not array:
                np.copyto(array, result)
                self.copied += 1


def is_plain(array: np.ndarray) -> bool:
    """True if an array has the layout of a kernel's output: C-contiguous, aligned, rank > 0."""
    flags = array.flags
    plain = type(array) is np.ndarray and array.ndim > 0 and array.dtype.isnative
    return plain and flags.c_contiguous and flags.aligned
