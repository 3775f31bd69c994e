"""The sizes that a graph has met, over the executors that it was specialised by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...dialect.ir.types import UNDEFINED, TensorType, type_of

Types = tuple[TensorType, ...]

_MAX_SEEN = 16  # distinct argument types kept of the profiled runs, to tell which sizes change


def tensor_types(values: Sequence[Any]) -> Types:
    """Types of the tensors among run-time values; None is the undefined one."""
    types = (UNDEFINED if value is None else type_of(value) for value in values)
    return tuple(t for t in types if isinstance(t, TensorType))


def stable_sizes(history: Sequence[Types]) -> set[int]:
    """Sizes that every record of the same operands agrees on, wherever they occur.

    A dynamic specialisation keeps them literal where it cannot do without: a model's width does
    not change, its batch does.
    """
    if not history:
        return set()
    *outer, last = history
    alike = [h for h in outer if [t.rank for t in h] == [t.rank for t in last]]
    stable: set[int] = set()
    changed: set[int] = set()
    for k, type_ in enumerate(last):
        for axis, size in enumerate(type_.shape or ()):
            sizes = {(h[k].shape or ())[axis] for h in alike}
            (stable if sizes == {size} else changed).add(size)  # type: ignore[arg-type]
    return stable - changed


def note_types(seen: dict[Types, None], inputs: Sequence[Any]) -> None:
    """Add the types of a call's inputs to those seen, which are bounded."""
    if len(seen) < _MAX_SEEN:
        seen[tensor_types(inputs)] = None
