"""In-place operators on traced arrays: which memory they would write, and whether they may.

Graphs have no memory, so ``y += x`` gives ``y`` a new value. That is NumPy's result only while
nobody else sees the memory of ``y``; elsewhere the operator is refused.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

import numpy as np

from ..dtypes import dtype_of
from ..errors import DTypeError, ShapeError
from .recorder import trace_error, user_loc

if TYPE_CHECKING:
    from .traced import Traced


class Storage:
    """Memory that arrays may share: which traced arrays do, and why it must not be written."""

    __slots__ = ("members", "owner")

    def __init__(self, owner: str | None = None) -> None:
        self.owner = owner
        self.members: list[weakref.ref] = []

    def shared(self, by: Traced) -> bool:
        """True if another live array uses this memory."""
        self.members = [m for m in self.members if m() is not None]
        return any(m() is not by for m in self.members)


def update(array: Traced, result: Traced) -> Traced:
    """Give ``array`` the contents of ``result``, as an in-place operator does; it or its successor.

    Raises TraceError where NumPy would change an array seen elsewhere: an argument, memory shared
    with a live view, or an array from outside the current branch or loop body.  Raises DTypeError
    and ShapeError as NumPy does for results that do not fit.
    """
    _check_owner(array)
    if not array.ndim:
        return result  # a NumPy scalar: the name is bound to a new one
    _check_unseen(array)
    if not np.can_cast(result.dtype, array.dtype, "same_kind"):
        raise DTypeError(
            f"Cannot cast ufunc output from {result.dtype!r} to {array.dtype!r} with casting rule "
            "'same_kind'", loc=user_loc(),
        )  # fmt: skip
    if len(result.hint) != len(array.hint) or any(
        a is not None and b is not None and a != b
        for a, b in zip(result.hint, array.hint, strict=True)
    ):
        raise ShapeError(
            f"non-broadcastable output operand with shape {array.hint} doesn't match the "
            f"broadcast shape {result.hint}", loc=user_loc(),
        )  # fmt: skip
    value = result.value
    if result.dtype != array.dtype:
        (value,) = array.rec.emit("cast", [value], {"dtype": dtype_of(array.dtype)})
    array.become(value)
    return array


def _check_owner(array: Traced) -> None:
    owner = array.storage.owner if array.storage else None
    if owner:
        raise trace_error(
            f"an in-place operator would change {owner}, which the caller still sees",
            "write x = x + … instead of x += …",
        )


def _check_unseen(array: Traced) -> None:
    if array.storage and array.storage.shared(array):
        raise trace_error(
            "an in-place operator would change an array of which a view (slice, reshape, "
            "transpose, …) is still in use",
            "write x = x + … instead of x += …",
        )
    if array.rec.home[array.value] is not array.rec.blocks[-1]:
        raise trace_error(
            "an in-place operator in a branch or loop body would change an array from outside",
            "return the new array from the branch or body",
        )
