"""The ops that have a place in the kernel of a loop, as far as their classes tell.

The pass `fuse-loops` asks this of ops in IR, and the conversion of Python's source of the ops that
it has recorded, to know whether a loop of single elements will become native code.
"""

from __future__ import annotations

from ...ir.op import Fusion, Op
from ...ir.types import ScalarType, Type
from ...reasons import Kind, Reason
from ..gradient_ops import Definedness
from ..host_call import HostCall
from ..indexing.inplace import Writing
from ..queries import Item, Truth
from ..speculation import Guard, Identity, Subgraph
from .control import ControlFlow, IfThenElse

TO_PYTHON = (Item, Truth)
"""Ops that have a place in kernels within loops only: what they give is no result of a group."""


def stands_in_way(cls: type[Op]) -> Kind | None:
    """The reason why an op in a loop keeps the loop out of kernels, whatever its types; None = it does not."""
    if issubclass(cls, (ControlFlow, IfThenElse, Identity)) or cls in TO_PYTHON:
        return None
    if issubclass(cls, HostCall):
        return Kind.ON_HOST
    if issubclass(cls, (Subgraph, Guard, Definedness)):
        return Kind.NEVER_FUSED
    if cls.writes:
        return None if issubclass(cls, Writing) else Kind.UNKNOWN_WRITER
    if not cls.pure:
        return Kind.SIDE_EFFECTS
    return Kind.NEVER_FUSED if cls.fusion is Fusion.NONE else None


def raises_for_infinities(reason: Reason, result: Type) -> bool:
    """True for a refusal that speaks of numbers which are finite unless Python raises.

    The kernel of a loop looks at these.
    """
    if not isinstance(result, ScalarType) or reason.kind is not Kind.PYTHON_RAISES:
        return False
    return result.dtype.is_float or result.dtype.is_complex
