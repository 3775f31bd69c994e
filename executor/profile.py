"""The profiling record: what observers saw, per run, and what of it can be relied on.

A run is one frame. Inside a frame repeated hits of an observer merge by R1.19; when the counter
reaches zero all frames merge into the earliest (R1.20, R1.21) and every observer of the
instrumented program gets its ``profiled_type``.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..dialect.program import Module
from ..dialect.symbolic import symbol
from ..dialect.types import MaybeDim, TensorType, merge_types, type_of

Frame = dict[int, TensorType]


class Record:
    """Types seen by the observers of one instrumented graph during its first runs.

    Args:
        module: the instrumented graph; `finish` writes ``profiled_type`` into it.
        runs: runs to record before the record is ready; 0 = ready at once.
    """

    def __init__(self, module: Module, runs: int) -> None:
        self.module = module
        self._left = runs
        self._frames: list[Frame] = []
        self._lock = threading.Lock()

    @property
    def ready(self) -> bool:
        """True once enough runs have finished; read without the lock (R1.20)."""
        return self._left == 0

    def frame(self) -> tuple[Frame, Callable[[int, Any], None]]:
        """A new frame and the ``observe(site, value)`` that fills it."""
        frame: Frame = {}

        def observe(site: int, value: Any) -> None:
            if not isinstance(value, (np.ndarray, np.generic)):
                return  # non-tensors are ignored (R1.18)
            seen = type_of(value)
            assert isinstance(seen, TensorType)
            old = frame.get(site)
            frame[site] = seen if old is None else merge_types(old, seen)

        return frame, observe

    def finish(self, frame: Frame) -> bool:
        """Count a finished run; True if this one made the record ready.

        A record in which no observer was ever hit never becomes ready (R1.20), unless the graph
        has no observer at all, in which case there is nothing to wait for.
        """
        with self._lock:
            if self._left == 0:
                return False
            self._frames.append(frame)
            if self._left == 1 and not any(self._frames) and self._has_observers():
                return False
            self._left -= 1
            if self._left:
                return False
            self._write(merge_frames(self._frames))
            self._frames.clear()
            return True

    def _has_observers(self) -> bool:
        return any(i.op.name == "profile" for i in self.module.main.body.walk())

    def _write(self, merged: Frame) -> None:
        for instr in self.module.main.body.walk():
            if instr.op.name == "profile":
                found = merged.get(instr.attrs["site"])
                if found is not None:
                    instr.attrs["profiled_type"] = found


def merge_frames(frames: list[Frame]) -> Frame:
    """Merge the frames of several runs into the first (R1.21).

    Equal sizes stay literal; a size that changed becomes a symbol shared by all positions with
    the same (old, new) pair; sizes already unknown get fresh symbols; differing ranks lose all.
    """
    merged: Frame = {}
    names = (f"p{k}" for k in itertools.count())
    for frame in frames:
        shared: dict[tuple[MaybeDim, MaybeDim], MaybeDim] = {}
        for site, seen in frame.items():
            old = merged.get(site)
            merged[site] = seen if old is None else _merge_across(old, seen, shared, names)
    return merged


def _merge_across(old: TensorType, new: TensorType, shared: dict, names: Any) -> TensorType:
    if old.shape is None or new.shape is None or len(old.shape) != len(new.shape):
        return replace(old, shape=None, strides=None)
    shape: list[MaybeDim] = []
    for a, b in zip(old.shape, new.shape, strict=True):
        if a is not None and a == b:
            shape.append(a)
        elif a is None or b is None:
            shape.append(symbol(next(names)))
        else:
            if (a, b) not in shared:
                shared[a, b] = symbol(next(names))
            shape.append(shared[a, b])
    kept = old if tuple(shape) == old.shape else replace(old, strides=_common_layout(old, new))
    dtype = old.dtype if old.dtype == new.dtype else None
    return replace(kept, dtype=dtype, shape=tuple(shape))


def _common_layout(old: TensorType, new: TensorType) -> str | None:
    """Exact strides of changing sizes mean nothing; C-contiguity in both runs does."""
    return "contiguous" if old.strides == new.strides == "contiguous" else None
