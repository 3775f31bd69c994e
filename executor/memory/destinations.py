"""The caller's arrays into which results are written (`GraphFunction.into`)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dialect.errors import ArgumentError, DTypeError, ShapeError
from ...dialect.importers.numpy.tracing.pytree import TreeDef, flatten
from ...dialect.ir.program import Block, Instr, Program
from ...dialect.ops.control_flow.control import If
from ...dialect.ops.speculation import FusionGroup


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
        found, given = flatten(out)
        if given != tree:
            raise ArgumentError(
                f"{name}.into: the arrays given are {given}, the results {tree}",
                hint="pass arrays nested as the function returns its results",
            )
        self.arrays: list[np.ndarray] = found
        self.direct: tuple[np.ndarray | None, ...] = ()
        self.copied = 0
        for where, array in zip(self._places(), found, strict=True):
            if not isinstance(array, np.ndarray):
                raise ArgumentError(f"{where} is no array but {type(array).__name__} {array!r:.40}")
            if not array.flags.writeable:
                raise ArgumentError(f"{where} is read-only")
        places = tuple(zip(self._places(), found, strict=True))
        for (first, a), (second, b) in itertools.combinations(places, 2):
            if np.shares_memory(a, b):
                raise ArgumentError(f"{first} and {second} share memory, each is for one result")

    def _places(self) -> list[str]:
        if len(self.arrays) == 1:
            return [f"{self._name}.into: the array given"]
        return [f"{self._name}.into: the array for result {k}" for k in range(len(self.arrays))]

    def open(self, inputs: Sequence[Any]) -> None:
        """Set `direct`: arrays that a kernel's output may use while the kernel reads ``inputs``."""
        read = [x for x in inputs if isinstance(x, np.ndarray)]
        self.direct = tuple(
            array if is_plain(array) and not any(np.may_share_memory(array, x) for x in read)
            else None
            for array in self.arrays
        )  # fmt: skip

    def fill(self, results: Sequence[Any]) -> None:
        """Copy the results that have not been written in place.

        The results must share no memory with the inputs. Raises ShapeError and DTypeError before
        anything is copied, if an array and its result differ in shape or dtype.
        """
        for where, array, result in zip(self._places(), self.arrays, results, strict=True):
            made = np.asarray(result)
            if made.shape != array.shape:
                raise ShapeError(f"{where} has shape {array.shape}, the result {made.shape}")
            if made.dtype != array.dtype:
                raise DTypeError(f"{where} is of {array.dtype}, the result of {made.dtype}")
        for array, result in zip(self.arrays, results, strict=True):
            if result is not array:
                np.copyto(array, result)
                self.copied += 1


def is_plain(array: np.ndarray) -> bool:
    """Whether an array has the layout of a kernel's output: C-contiguous, aligned, rank > 0."""
    flags = array.flags
    plain = type(array) is np.ndarray and array.ndim > 0 and array.dtype.isnative
    return plain and flags.c_contiguous and flags.aligned


def destined(main: Program) -> dict[int, int]:
    """Map results of fusion groups to the outputs of the graph that they become."""
    return made_by_groups(main.body, main.outputs)


def made_by_groups(body: Block, outputs: Sequence[int]) -> dict[int, int]:
    """Map results of fusion groups to the outputs of their block that they become, by index.

    Groups inside loops are left out, because they run more than once. In a branch, a group counts
    only if the side that yields its result also contains the group: otherwise the branch may choose
    another value after the group has written the output.
    """
    found: dict[int, int] = {}
    open_: list[tuple[Block, int, int]] = [(body, v, k) for k, v in enumerate(outputs)]
    makers: dict[int, dict[int, Instr]] = {}
    while open_:
        block, value, output = open_.pop()
        known = makers.get(id(block))
        if known is None:
            known = makers[id(block)] = {r: i for i in block.instrs for r in i.results}
        maker = known.get(value)
        if maker is None:
            continue
        if maker.op is FusionGroup:
            found.setdefault(value, output)
        elif maker.op is If:
            index = maker.results.index(value)
            open_ += [(side, side.outputs[index], output) for side in maker.blocks]
    return found
