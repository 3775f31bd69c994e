"""Axes and sizes as torch counts them: a tensor without axes takes 0 and -1 for an axis."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from ....errors import AxisError
from ...numpy.tracing.current import user_loc


def axis_of(dim: Any, ndim: int) -> int:
    """An axis counted from the front; of a tensor without axes 0. Raises AxisError where there is none."""
    axis, count = operator.index(dim), max(ndim, 1)
    if not -count <= axis < count:
        raise AxisError(
            f"dimension {axis} is out of range for a tensor with {ndim} dimensions",
            loc=user_loc(),
            hint=f"pass a dimension from {-count} to {count - 1}",
        )
    return axis % count


def axes_of(dim: Any, ndim: int) -> tuple[int, ...]:
    """Axes that are reduced: all for None or an empty sequence, none of a tensor without axes."""
    if dim is None or (isinstance(dim, Sequence) and not dim):
        return tuple(range(ndim))
    axes = tuple(axis_of(d, ndim) for d in (dim if isinstance(dim, Sequence) else (dim,)))
    return axes if ndim else ()


def each(value: Any, count: int) -> tuple[Any, ...]:
    """One number per spatial axis, of a number or a sequence of one or ``count``."""
    items = tuple(value) if isinstance(value, Sequence) else (value,)
    return items * count if len(items) == 1 else items


def varied(*sizes: Any) -> tuple[Any, ...]:
    """Sizes given one by one, or as one sequence."""
    return tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], Sequence) else sizes
