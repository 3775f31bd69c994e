"""Buffers, and everything that can go wrong with them.

A buffer holds one equal slot per owner: one slot for the device (global memory), one per block
(workgroup memory) or one per thread (private memory).  Next to its bytes it keeps which of them
hold values and, within one launch, who touched them last (`races`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .faults import KernelFault, SimtError
from .grid import Active
from .races import Ledger

WIDEST = 16  # bytes of one access of a thread; a vector is aligned to this, or its size if less


class Buffer:
    """Memory of one address space.

    Args:
        name: for messages, e.g. ``"output 0"``.
        space: ``"global"``, ``"workgroup"`` or ``"private"``.
        slot_bytes: bytes per owner.
        slots: number of owners.
        unit: bytes that are tracked together; divides the size of every element.
        misalignment: address of the first byte, modulo `WIDEST`.
    """

    def __init__(
        self, name: str, space: str, slot_bytes: int, slots: int = 1, unit: int = 1, misalignment: int = 0
    ) -> None:
        self.name, self.space, self.unit = name, space, unit
        self.slot_bytes, self.misalignment = slot_bytes, misalignment
        # Padded, so that slots of different owners are aligned alike.
        self.pitch = -(-slot_bytes // WIDEST) * WIDEST
        self.raw = np.full(self.pitch * slots, 0xA5, np.uint8)
        self.defined = np.zeros(self.raw.size // unit, bool)
        self.wholly_defined = False
        self.writable = True
        self.ledger: Ledger | None = None

    def fill(self, start: int, data: np.ndarray) -> None:
        """Give the bytes from ``start`` on these values."""
        data = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        self.raw[start : start + data.size] = data
        self.defined[start // self.unit : (start + data.size) // self.unit] = True

    def track_races(self) -> None:
        """Start a launch in which threads may write here."""
        self.ledger = Ledger(self.defined.size)

    def slot_of(self, active: Active) -> np.ndarray | int:
        """The first byte of the slot of each active thread."""
        if self.space == "workgroup":
            return active.blocks_in_wave * self.pitch
        if self.space == "private":
            return active.lanes * self.pitch
        return 0


@dataclass(frozen=True)
class MemRef:
    """A view of a buffer, the same for all threads.

    Attributes:
        offset: of element 0, in bytes of the slot.
        shape, strides: in elements; a size of None is bounded by the slot alone.
    """

    buffer: Buffer
    dtype: np.dtype
    shape: tuple[int | None, ...] = (None,)
    strides: tuple[int, ...] = (1,)
    offset: int = 0

    @property
    def size(self) -> int:
        """Elements from element 0 to the end of the slot, or the product of the shape."""
        if None in self.shape:
            return (self.buffer.slot_bytes - self.offset) // self.dtype.itemsize
        return int(np.prod(self.shape, dtype=int))

    def viewed(self, offset: int, dtype: np.dtype, shape: tuple[int | None, ...]) -> MemRef:
        """The contiguous view of this shape, ``offset`` bytes further on."""
        return replace(self, dtype=dtype, shape=shape, strides=row_major(shape), offset=self.offset + offset)

    def __str__(self) -> str:
        shape = "x".join(str(self.size if n is None else n) for n in self.shape)
        return f"{self.buffer.name} ({shape} elements of {self.dtype})"


def row_major(shape: tuple[int | None, ...]) -> tuple[int, ...]:
    """Element strides of a contiguous array; only the first size may be unknown."""
    strides = [1]
    for size in reversed(shape[1:]):
        if size is None:
            raise SimtError("a memref of dynamic inner sizes is not emulated")
        strides.append(strides[-1] * size)
    return tuple(reversed(strides))


@dataclass
class Access:
    """One op's accesses of memory by the active threads.

    Attributes:
        active: the threads.
        memref: what they access.
        indices: one array per axis, a row per active thread.
        count: consecutive elements per thread; 0 = one, as a scalar.
        alignment: bytes that addresses must be multiples of.
    """

    active: Active
    memref: MemRef
    indices: tuple[np.ndarray, ...]
    count: int = 0
    alignment: int = 1

    def __post_init__(self) -> None:
        ref, size = self.memref, self.memref.dtype.itemsize
        linear = np.zeros(self.active.lanes.size, np.int64)
        width = max(self.count, 1)
        for axis, (index, stride) in enumerate(zip(self.indices, ref.strides, strict=True)):
            bound = ref.shape[axis]
            if bound is not None:
                last = width - 1 if axis == len(ref.strides) - 1 else 0
                self._check_bounds((index < 0) | (index + last >= bound), last)
            linear += index * stride
        start = ref.offset + linear * size
        self._check_bounds((start < 0) | (start + width * size > ref.buffer.slot_bytes), width - 1)
        address = ref.buffer.misalignment + start
        if (bad := address % self.alignment != 0).any():
            what = f"{self._index(bad)} of {ref} is not aligned to {self.alignment} bytes"
            self.active.fault("alignment", what, bad)
        if (bad := start % size != 0).any():
            what = f"{self._index(bad)} of {ref} is not aligned to its {size} bytes"
            self.active.fault("alignment", what, bad)
        self.start = start + ref.buffer.slot_of(self.active)

    def load(self) -> np.ndarray:
        """What the active threads read: a row each."""
        buffer = self.memref.buffer
        if not buffer.wholly_defined and not (known := buffer.defined[self._units]).all():
            bad = ~known.all(axis=1)
            what = f"reads {self._index(bad)} of {self.memref}, which nothing has written"
            self.active.fault("uninitialised", what, bad)
        if buffer.ledger is not None:
            conflict = buffer.ledger.read(self._units, self.active, buffer.space)
            self._report(conflict, "reads")
        return self._elements(buffer.raw.view(self.memref.dtype))

    def store(self, values: np.ndarray) -> None:
        """Write a row per active thread."""
        buffer = self._written()
        if buffer.ledger is not None:
            self._report(buffer.ledger.write(self._units, self.active, buffer.space), "writes")
        view = buffer.raw.view(self.memref.dtype)
        first = self.start // self.memref.dtype.itemsize
        if self.count:
            view[first[:, None] + np.arange(self.count)] = values
        else:
            view[first] = values
        buffer.defined[self._units] = True

    def update(self, function: Callable, values: np.ndarray) -> np.ndarray:
        """Replace elements by ``function(old, value)``, thread by thread; returns the old ones."""
        buffer = self._written()
        if not (known := buffer.defined[self._units]).all():
            bad = ~known.all(axis=1)
            what = f"updates {self._index(bad)} of {self.memref}, which nothing has written"
            self.active.fault("uninitialised", what, bad)
        if buffer.ledger is not None:
            conflict = buffer.ledger.update(self._units, self.active, buffer.space)
            self._report(conflict, "atomically updates")
        view = buffer.raw.view(self.memref.dtype)
        first = self.start // self.memref.dtype.itemsize
        old = np.empty_like(view, shape=first.shape)
        for now in _one_per_address(first):
            old[now] = view[first[now]]
            view[first[now]] = function(old[now], values[now])
        return old

    def _written(self) -> Buffer:
        buffer = self.memref.buffer
        if not buffer.writable and self.active.lanes.size:
            first = np.arange(self.active.lanes.size) == 0
            self.active.fault("read-only", f"writes {self.memref}", first)
        return buffer

    def _elements(self, view: np.ndarray) -> np.ndarray:
        first = self.start // self.memref.dtype.itemsize
        return view[first[:, None] + np.arange(self.count)] if self.count else view[first]

    @cached_property
    def _units(self) -> np.ndarray:
        """The tracked units that each active thread touches, a row each."""
        size = max(self.count, 1) * self.memref.dtype.itemsize
        unit = self.memref.buffer.unit
        return (self.start // unit)[:, None] + np.arange(size // unit)

    def _check_bounds(self, bad: np.ndarray, last: int) -> None:
        if bad.any():
            what = f"{self._index(bad, last)} is out of bounds of {self.memref}"
            self.active.fault("bounds", what, bad)

    def _index(self, bad: np.ndarray, last: int | None = None) -> str:
        place = int(np.argmax(bad))
        position = [int(index[place]) for index in self.indices]
        words = ", ".join(map(str, position))
        span = max(self.count, 1) - 1 if last is None else last
        if span:
            inner = ", ".join([*map(str, position[:-1]), str(position[-1] + span)])
            return f"index {words} to {inner}"
        return f"index {words}"

    def _report(self, conflict: tuple[np.ndarray, str] | None, verb: str) -> None:
        if conflict is None:
            return
        bad, other = conflict
        what = f"{verb} {self._index(bad)} of {self.memref}, which {other}"
        raise KernelFault("race", what + " with no barrier between", self.active.site, *self.active.where(bad))


def _one_per_address(addresses: np.ndarray) -> list[np.ndarray]:
    """The threads in rounds of distinct addresses; threads of one address in their order."""
    order = np.argsort(addresses, kind="stable")
    ordered = addresses[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    turn = np.arange(order.size) - np.repeat(starts, np.diff(np.r_[starts, order.size]))
    by_turn = order[np.argsort(turn, kind="stable")]
    return np.split(by_turn, np.cumsum(np.bincount(turn))[:-1])
