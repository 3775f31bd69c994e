"""What neural ops ask of their operands, and the errors for those that do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import DTypeError, ShapeError
from ..broadcast import shape_text
from .expanded_values import Part


def check_float(name: str, *xs: Any) -> None:
    """Raise DTypeError unless every operand is an array of real floats; None is left out."""
    for x in xs:
        if x is not None and (dtype := np.dtype(x.dtype)).kind not in "fV":
            raise DTypeError(f"{name} takes arrays of real floats, not of {dtype}", hint="convert it with astype")


def check_rank(name: str, x: Any, least: int, most: int | None = None) -> None:
    """Raise ShapeError unless an array has a number of axes in a range."""
    if x.ndim < least or (most is not None and x.ndim > most):
        wanted = f"{least}" if most == least else f"at least {least}" if most is None else f"{least} to {most}"
        raise ShapeError(f"{name} takes an array of {wanted} axes, not of {x.ndim}")


def check_sizes_from(name: str, what: str, x: Any, sizes: Sequence[Any]) -> None:
    """Raise ShapeError unless ``x``, which may be None, has a shape, as far as its sizes are numbers.

    Of sizes of a trace the op has made sure when it was recorded.
    """
    if x is None:
        return
    if x.ndim != len(sizes) or any(map(_differ, x.shape, sizes)):
        raise ShapeError(f"{name}: {what} has shape {_shown(x.shape)}, not {_shown(sizes)}")


def with_last_sizes(b: Any, name: str, x: Any, sizes: Sequence[int]) -> Any:
    """``x``, the last axes of which have these sizes; raises ShapeError for others.

    A kernel for sizes that are open is not made: nothing in it would tell that they differ.
    """
    lead = x.ndim - len(sizes)
    last = x.shape[max(lead, 0) :]
    if lead < 0 or any(map(_differ, last, sizes)):
        raise ShapeError(f"{name} over axes of sizes {_shown(sizes)}: the array has shape {_shown(x.shape)}")
    if any(isinstance(d, Part) for d in last):
        return broadcast_to(b, x, (*x.shape[:lead], *sizes))
    return x


def split_sizes(sizes: Sequence[Any]) -> tuple[tuple[int, ...], list[Any]]:
    """Sizes as a size attribute and the operands that give its DYNAMIC entries."""
    from ...ir.attrs import DYNAMIC

    static = tuple(size if type(size) is int else DYNAMIC for size in sizes)
    return static, [size for size in sizes if type(size) is not int]


def is_open(size: Any) -> bool:
    """True for a size that is a value of a composition, or that a run alone tells."""
    return isinstance(size, Part) or bool(getattr(size, "is_open", False))


def known_sizes(sizes: Sequence[Any]) -> tuple[int, ...] | None:
    """Sizes as numbers; None if one `is_open`.

    A size of a trace is that of its arguments, for which the graph then holds.
    """
    if any(map(is_open, sizes)):
        return None
    return tuple(map(int, sizes))


def broadcast_to(b: Any, x: Any, sizes: Sequence[Any]) -> Any:
    """``x`` broadcast to sizes, some of which may be values."""
    static, dynamic = split_sizes(sizes)
    return b.op("broadcast_to", x, *dynamic, shape=static)


def reshaped(b: Any, x: Any, sizes: Sequence[Any]) -> Any:
    """``x`` with other sizes, some of which may be values."""
    static, dynamic = split_sizes(sizes)
    return b.op("reshape", x, *dynamic, shape=static)


def _differ(size: Any, other: Any) -> bool:
    """True if two sizes are numbers, and not the same."""
    return type(size) is int and type(other) is int and size != other


def _shown(sizes: Sequence[Any]) -> str:
    return shape_text(tuple(d if type(d) is int else None for d in sizes))
