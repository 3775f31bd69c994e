"""Arrays that a traced function closes over, and those that NumPy makes while it is traced."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import ProfuseError, TraceError
from ....ir.dtypes import dtype_of
from ....ir.types import TensorType
from ....trees.leaves import check_array, converted, memory_of
from .current import user_loc

if TYPE_CHECKING:
    from .recorder import Recorder


class Captures:
    """The arrays of one trace that are no arguments.

    Args:
        rec: the trace.

    Attributes:
        known: by identity, captured arrays, their values, and their checksums where nothing else
            sees changes.
        inputs: these values, which are inputs of the graph behind the arguments.
        created: by identity, arrays that the function itself has made.
        viewed: those of them with views, and their checksums.
    """

    def __init__(self, rec: Recorder) -> None:
        self._rec = rec
        self.known: dict[int, tuple[Any, int, int | None]] = {}
        self.inputs: list[int] = []
        self.created: dict[int, np.ndarray] = {}
        self.viewed: list[tuple[np.ndarray, int]] = []

    def take(self, array: Any, stand_in: np.ndarray | None = None) -> int:
        """An array the function closes over: an extra input, taken by reference.

        ``stand_in``: a host array of its dtype and shape, for one in the memory of a device.
        """
        entry = self.known.get(id(array))
        if entry is not None:
            return entry[1]
        if stand_in is None:
            try:
                check_array(array, "an array that the function uses: ")
            except ProfuseError as error:
                raise type(error)(error.what, loc=user_loc(), hint=error.hint) from None
        if id(array) in self.created and array.size <= 64:
            return self._rec.constant(array)
        shown = array if stand_in is None else stand_in
        type_ = TensorType(dtype_of(shown.dtype), shown.shape)
        value = self._rec.new_value(type_, home=self._rec.program.body)
        # Arrays on a device are not read, so that changes of them remain unseen.
        seen = stand_in is not None or self._rec.journal.watches_array(array)
        before = None if seen else checksum(array)
        self.known[id(array)] = (array, value, before)
        self.inputs.append(value)
        return value

    def take_raw(self, tensor: Any) -> int:
        """A tensor of another library that code has got past the shadows, as `take` does.

        Raises TraceError for one of the host: code of its library may have made it of another tensor
        while the function is traced, and would make another one at each call.
        """
        entry = self.known.get(id(tensor))
        if entry is not None:
            return entry[1]
        leaf = None if memory_of(tensor) is not None else converted(tensor)
        if leaf is None:
            error = TraceError(
                f"the function computes with a {type(tensor).__name__} that an object of its library gives",
                loc=user_loc(),
                hint="pass it as an argument",
            )
            error.library = type(tensor).__module__.partition(".")[0]
            raise error
        return self.take(tensor, leaf.stand_in())

    def note_view(self, array: np.ndarray) -> None:
        """Have `check` refuse later changes of ``array``, if the function has made it."""
        if id(array) in self.created:
            self.viewed.append((array, checksum(array)))

    def check(self) -> None:
        """Raise TraceError if the function changed a captured array while it was traced."""
        captured = [(array, before) for array, _, before in self.known.values()]
        for array, before in (*captured, *self.viewed):
            if before is not None and checksum(array) != before:
                error = TraceError(
                    f"an array of shape {array.shape} that the function uses was changed in "
                    "place while it was traced: its earlier uses would see the change",
                    hint="build a new array instead of assigning to one",
                )
                error.is_undone = id(array) in self.created
                raise error

    def drop_unused(self, read: Iterable[int]) -> None:
        """Forget captured arrays that no instruction reads, and nothing else: draws and outputs."""
        used = set(read)
        for instr in self._rec.program.body.walk():
            used.update(instr.operands)
            for block in instr.blocks:
                used.update(block.outputs)
        self.known = {k: c for k, c in self.known.items() if c[1] in used}
        self.inputs = [value for _, value, _ in self.known.values()]

    def written(self) -> set[int]:
        """The ids of the captured arrays that the function writes to."""
        return {id(array) for array, value, _ in self.known.values() if value in self._rec.written}


def checksum(array: np.ndarray) -> int:
    """A number that tells whether the elements of an array have been changed."""
    if array.flags.c_contiguous:
        return zlib.crc32(array.reshape(-1).view(np.uint8).data) if array.size else 0
    return zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
