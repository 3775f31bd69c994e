"""Which ops have a place in the kernel of a loop, as far as their classes tell.

The pass `fuse-loops` asks this of ops in IR, and the conversion of Python's source of the ops that
it has recorded, to know whether a loop of single elements will become native code.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.dtypes import F64
from ...ir.op import Fusion, Op
from ...ir.types import ScalarType, Type
from ...reasons import Kind
from ..elementwise.binary import Pow
from ..gradients import Definedness
from ..host_call import HostCall
from ..indexing.inplace import Writing
from ..queries import Item, Truth
from ..speculation import Guard, Identity, Subgraph
from .control import ControlFlow

TO_PYTHON = (Item, Truth)
"""Ops that have a place in kernels within loops only: what they give is no result of a group."""


def is_power_of_floats(cls: type[Op], results: Sequence[Type]) -> bool:
    """True for a power of Python's floats: Python raises where it overflows.

    The kernel of a loop reports what is not finite. Elsewhere Python computes it.
    """
    return cls is Pow and isinstance(results[0], ScalarType) and results[0].dtype is F64


def stands_in_way(cls: type[Op]) -> Kind | None:
    """Why an op in a loop keeps the loop out of kernels, whatever its types; None = it does not."""
    if issubclass(cls, (ControlFlow, Identity)) or cls in TO_PYTHON:
        return None
    if cls is HostCall:
        return Kind.ON_HOST
    if issubclass(cls, (Subgraph, Guard, Definedness)):
        return Kind.NEVER_FUSED
    if cls.writes:
        return None if issubclass(cls, Writing) else Kind.UNKNOWN_WRITER
    if not cls.pure:
        return Kind.SIDE_EFFECTS
    return Kind.NEVER_FUSED if cls.fusion is Fusion.NONE else None


__all__ = ["TO_PYTHON", "is_power_of_floats", "stands_in_way"]
