"""Numbers among the attributes of an op that operands can give: bounds of slices, indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...dialect.ir.attrs import DYNAMIC
from ...dialect.ir.op import Op
from ...dialect.ops.indexing.slicing import ABSENT


def takes_sizes(op: type[Op], attrs: Mapping[str, Any]) -> bool:
    """True if operands give numbers among the attributes, which no rule asks for."""
    names = [*op.dynamic, *(["shape"] if "shape" in attrs else [])]
    return any(DYNAMIC in _entries(attrs[name]) for name in names if attrs[name] is not None)


def bounds_of(op: type[Op], attrs: Mapping[str, Any]) -> tuple[int, ...]:
    """The numbers among the attributes that operands can give; () where some do already."""
    numbers = tuple(n for name in op.dynamic for n in _entries(attrs[name]))
    return () if DYNAMIC in numbers else tuple(n for n in numbers if n != ABSENT)


def with_bounds(op: type[Op], attrs: Mapping[str, Any], passed: Sequence[bool]) -> Mapping[str, Any]:
    """The attributes with DYNAMIC in the place of those of `bounds_of` that operands give."""
    if not any(passed):
        return attrs
    is_passed = iter(passed)

    def entry(n: int) -> int:
        return DYNAMIC if n != ABSENT and next(is_passed) else n

    changed = {name: entry(v) if isinstance(v := attrs[name], int) else tuple(map(entry, v)) for name in op.dynamic}
    return {**attrs, **changed}


def _entries(value: Any) -> Sequence[int]:
    return (value,) if isinstance(value, int) else value
