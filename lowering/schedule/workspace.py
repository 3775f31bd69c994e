"""The workspace of a kernel: places of temporaries, which share memory where their lives do not overlap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...dialect.analysis.regions import Tenant, shared_regions
from ...dialect.dataclass import dataclass
from ...dialect.errors import LoweringError, ShapeError
from ...dialect.ir.size_algebra import sym_max
from ...dialect.ir.symbolic import Dim, Sym
from ...dialect.ops.sizes import is_nonnegative
from . import affine as ix
from .graph import Buffer, Graph, Tensor
from .memory import element_bytes

ALIGNMENT = 64  # bytes


@dataclass
class Life:
    """The numbers of the first and of the last step that need a buffer."""

    first: int
    last: int


def place_buffers(lives: Mapping[Any, Life], graph: Graph) -> tuple[dict[Buffer, Dim], Dim]:
    """Give workspace buffers their places; returns their offsets and the bytes of all, as expressions.

    Args:
        lives: by owner of a buffer, the steps that need it.
        graph: what is scheduled.

    Raises LoweringError for a size that has no closed form over the size symbols.
    """
    offsets: dict[Buffer, Dim] = {}
    end: Dim = 0
    for region in shared_regions(_tenant(owner, life) for owner, life in lives.items() if _is_workspace(owner)):
        offsets |= dict.fromkeys(region.values, end)
        try:
            end = end + region.nbytes(ALIGNMENT)
        except ShapeError as error:
            raise LoweringError("a workspace size is too long to be written down") from error
    if isinstance(end, Sym) and end.symbols & set(graph.opaque):
        raise LoweringError("a workspace size has no closed form over the size symbols")
    if isinstance(end, Sym) and end.symbols & set(graph.strides):
        raise LoweringError("a workspace size depends on run-time strides")
    return offsets, end


def _is_workspace(owner: Any) -> bool:
    return owner.buffer.kind == "workspace"


def _tenant(owner: Any, life: Life) -> Tenant:
    """The buffer of an owner. Memory of chunks, which is to stay in a cache, says little of whole arrays."""
    buffer = owner.buffer
    need = ix.product(buffer.dims) * element_bytes(buffer.element)
    if not is_nonnegative(need):
        need = sym_max(need, 0)  # such a run is voided, but its buffers must still not overlap
    return Tenant(buffer, need, life.first, life.last, kind=isinstance(owner, Tensor))
