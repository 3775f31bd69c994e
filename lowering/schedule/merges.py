"""Merged loops: pointwise nests over contiguous arrays have one loop in place of two.

The rows of an array of (512, 16, 16) numbers are 16 elements long: loops over them cost more to
enter than to run, and LLVM unrolls them and then vectorises across rows, by gathers. Where every
operand and every result steps from one row to the next as it steps from element to element, two
loops are one, of more iterations.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...dialect.ir.postorder import postorder
from ...dialect.ir.symbolic import Dim
from ...dialect.ops.sizes import is_nonnegative
from . import affine as ix
from .affine import AffineIndex
from .graph import Compute, RowMajorReshape, Tensor, operands
from .groups import Group, Grouper, Loop, loop_index
from .memory import strides_of

LONG = 256  # iterations of a loop that gains nothing from being merged


def merge_loops(group: Group, grouper: Grouper) -> None:
    """Merge loops of a group without reductions, where that does not change what is accessed.

    The inner one of two merged loops gets all iterations, the other one the extent 1.
    """
    loops = [loop for loop in group.outer if loop.extent != 1]
    if len(loops) < 2 or not _is_pointwise(group):
        return
    offsets = _offsets(group, grouper)
    if offsets is None:
        return
    while pair := _pair(loops, offsets):
        outer, inner = pair
        loops.remove(outer)
        inner.extent = outer.extent * inner.extent
        outer.extent = 1


def _is_pointwise(group: Group) -> bool:
    outer = set(group.outer)
    return not any(
        op.is_reduction or set(group.loops[op]) != outer or len(outer) != len(group.loops[op]) for op in group.members
    )


def _pair(loops: list[Loop], offsets: list[AffineIndex]) -> tuple[Loop, Loop] | None:
    """Two loops that can be one, the one with the longer step first; None = there are none."""
    candidates = [loop for loop in loops if is_nonnegative(loop.extent)]
    for inner in reversed(candidates):
        if isinstance(inner.extent, int) and inner.extent >= LONG:
            continue
        for outer in candidates:
            if outer is not inner and all(_follows(offset, outer, inner) for offset in offsets):
                return outer, inner
    return None


def _follows(offset: AffineIndex, outer: Loop, inner: Loop) -> bool:
    """True if one step of ``outer`` is as long as all steps of ``inner`` together."""
    step: Dim = offset.coefficient(inner) * inner.extent
    return offset.coefficient(outer) == step


def _offsets(group: Group, grouper: Grouper) -> list[AffineIndex] | None:
    """Offsets, over its loops, of all that a group reads and stores; None = some are computed."""
    offsets = []
    for op in group.members:
        if any(inlined.body.loops for inlined in _inlined(op)):
            return None
        for access in grouper.accesses[op]:
            if access.index is None or access.reinterpreted:
                return None
            index = group.index_of(op, access.index)
            offsets.append(ix.linear(index, strides_of(access.tensor)))
        for number, tensor in enumerate(op.outputs):
            own = tuple(loop_index(group.loops[op][k]) for k in op.axes[number])
            offsets.append(ix.linear(own, strides_of(tensor)))
    if any(not isinstance(atom, Loop) for offset in offsets for atom in offset.terms):
        return None
    return offsets


def _inlined(op: Compute) -> Iterator[Compute]:
    """An operation and all operations that are inlined into it."""

    def before(tensor: Tensor) -> list[Tensor]:
        producer = tensor.producer
        if isinstance(producer, RowMajorReshape):
            return [producer.source]
        if isinstance(producer, Compute) and (producer is op or not producer.anchor):
            return operands(producer)
        return []

    for tensor in postorder([op.outputs[0]], before):
        producer = tensor.producer
        if isinstance(producer, Compute) and (producer is op or not producer.anchor):
            yield producer
