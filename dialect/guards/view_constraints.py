"""The way in which the sizes of a reshaped array follow from those of the array, whatever these are (R3.40, R3.41).

A kernel that reshapes is made for a way of regrouping axes, and not for sizes: which axes have size 1,
which are merged, and by which factors what was merged is split. The way is told as text, with ``s0``,
``s1``, … for the sizes of the array's axes::

    view_constraint((2, 6), (2, 2, 3)) == "s0, s1 -> s0, (s1 // 3), 3"
    view_constraint((4, 1, 6), (24, 1)) == "s0, 1, s2 -> s0*s2, 1"

Of the axes that a part of the array is split into, the first has any size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..ir.size_algebra import parse_dim, substitute
from ..ir.symbolic import Dim, symbol

_ARROW = " -> "


def inferred_sizes(sizes: Sequence[int], view_sizes: Sequence[int]) -> tuple[int, ...] | None:
    """The sizes of a view, of which one may be given as -1; None if no view has them."""
    holes = [axis for axis, size in enumerate(view_sizes) if size == -1]
    others = math.prod(size for size in view_sizes if size != -1)
    total = math.prod(sizes)
    if len(holes) > 1 or any(size < -1 for size in view_sizes) or any(size < 0 for size in sizes):
        return None
    if not holes:
        return tuple(view_sizes) if total == others else None
    if others == 0 or total % others:
        return None
    return tuple(total // others if size == -1 else size for size in view_sizes)


def view_constraint(sizes: Sequence[int], view_sizes: Sequence[int]) -> str | None:
    """The way in which an array of these sizes becomes a view of those (R3.40).

    Args:
        sizes: of the array.
        view_sizes: of the view; one may be -1.

    Returns the text of it; None if numbers of elements differ.
    """
    view = inferred_sizes(sizes, view_sizes)
    if view is None:
        return None
    if 0 in sizes:  # no element tells which axes belong together
        return f"{', '.join(map(str, sizes))}{_ARROW}{', '.join(map(str, view))}"
    before: list[Dim] = [size if size == 1 else symbol(f"s{axis}") for axis, size in enumerate(sizes)]
    after: list[Dim] = list(view)
    wide, split = ([axis for axis, size in enumerate(shape) if size != 1] for shape in (sizes, view))
    while wide:
        merged, parts = [wide.pop(0)], [split.pop(0)]
        while (whole := math.prod(sizes[a] for a in merged)) != (viewed := math.prod(view[a] for a in parts)):
            if whole < viewed:
                merged.append(wide.pop(0))
            else:
                parts.append(split.pop(0))
        after[parts[0]] = math.prod(before[a] for a in merged) // math.prod(view[a] for a in parts[1:])
    return f"{', '.join(map(str, before))}{_ARROW}{', '.join(map(str, after))}"


def view_fits(constraint: str, sizes: Sequence[int], view_sizes: Sequence[int] | None) -> bool:
    """True if an array of these sizes becomes a view of those in a recorded way (R3.41).

    Args:
        constraint: what `view_constraint` says of profiled sizes.
        sizes: of the array.
        view_sizes: of the view that is asked for; one may be -1. If numbers of elements differ, the
            answer is False, and for None as well.
    """
    return view_sizes is not None and view_constraint(sizes, view_sizes) == constraint


def view_shape(constraint: str, sizes: Sequence[Dim]) -> tuple[Dim, ...]:
    """The sizes of the view of an array of these sizes, which may be symbols, by a recorded way."""
    after = constraint.partition(_ARROW)[2]
    texts = after.split(", ") if after else []
    values = {f"s{axis}": size for axis, size in enumerate(sizes)}
    return tuple(substitute(parse_dim(text), values) for text in texts)
