"""The intermediates of a plan that lie in the thread's block."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from ...dialect.dataclass import dataclass
from ...dialect.importers.numpy.python.users_code import generated_file
from ...dialect.ir.size_algebra import substitute
from ...dialect.ir.symbolic import Dim, Dimension, symbol
from .offsets import Placement, bytes_of
from .output_pool import ALIGN_FROM

Described = tuple[int, list[tuple[tuple[int, ...], np.dtype, int]]]


@dataclass(eq=False)
class Intermediates:
    """The arrays of one plan that lie in the block, numbered in the order of `index`.

    Attributes:
        index: value -> number of its array.
        shapes: the shape of each array, as size expressions.
        dtypes: the dtype of each array.
        placement: the places of the arrays in the block.
        reads: (input, axis) of each size on which shapes and places depend.
        shared: all values that may lie in the block, including aliases.
        pauses: number of further calls that may not use the block (`thread_block.forfeit`).
        last_pause: length of the latest pause, in calls.
    """

    index: Mapping[int, int]
    shapes: tuple[tuple[Dim, ...], ...]
    dtypes: tuple[np.dtype, ...]
    placement: Placement
    reads: tuple[tuple[int, int], ...]
    shared: frozenset[int]
    pauses: int = 0
    last_pause: int = 0

    @cached_property
    def nowhere(self) -> tuple[None, ...]:
        """A frame without arrays: the kernels then take memory from the pool."""
        return (None,) * len(self.index)

    @cached_property
    def described(self) -> Callable[[tuple[int, ...]], Described]:
        """A function: sizes in the order of `reads` -> (bytes of the block, array descriptions).

        A description is (shape, dtype, byte offset in the block).
        """
        names = {Dimension(*read): symbol(f"s{k}") for k, read in enumerate(self.reads)}
        lines = ["def described(sizes):"]
        if names:
            lines.append(f"    ({', '.join(map(str, names.values()))},) = sizes")
        lines.append("    t0 = 0")
        for k, room in enumerate(self.placement.rooms):
            lines.append(f"    t{k + 1} = t{k} + {substitute(room, names)}")
        descriptions = []
        for k, place in enumerate(self.placement.where[v] for v in self.index):
            shape = "".join(f"{substitute(size, names)}, " for size in self.shapes[k])
            descriptions.append(f"(({shape}), d[{k}], t{place})")
        lines.append(f"    return t{len(self.placement.rooms)}, [{', '.join(descriptions)}]")
        scope: dict[str, Any] = {"d": self.dtypes}
        exec(compile("\n".join(lines), generated_file("arrays between kernels"), "exec"), scope)
        return scope["described"]


def bytes_in_block(dtype: np.dtype, shape: tuple[Dim, ...]) -> Dim | None:
    """Bytes of an array; None = the block is of no use to an array that is surely so small."""
    nbytes = bytes_of(dtype.itemsize, shape)
    return nbytes if shape and not (isinstance(nbytes, int) and nbytes < ALIGN_FROM) else None
