"""Nests that take interleaved channels apart: all channels of a pixel in one iteration.

An image of (height, width, 3) numbers becomes three planes. With the pixels innermost and the
channels around them, the image is read three times, a third of each cache line at a time. With the
few channels innermost, LLVM unrolls that loop, and vectorises the one over pixels: it reads whole
vectors, takes them apart by shuffles, and writes one stream per plane.
"""

from __future__ import annotations

from . import affine as ix
from .groups import Grouper, Loop, loop_index
from .memory import buffer_or_none, strides_of
from .nests import Nest

MOST = 4  # channels


def channels_innermost(nest: Nest, grouper: Grouper) -> None:
    """Make the loop over channels of a pointwise nest, if it has one, the innermost loop."""
    if len(nest.stages) != 1 or nest.scratch or nest.tail or nest.accumulated or nest.tile:
        return
    (stage,) = nest.stages
    if stage.reductions or len(stage.parallel) != 1:
        return
    (lane,) = stage.parallel
    candidates = {loop for loop in nest.outer if _is_of_channels(loop, lane, nest, grouper)}
    if len(candidates) == 1:
        (channels,) = candidates
        nest.outer.remove(channels)
        nest.outer.append(lane)
        stage.parallel = [channels]


def _is_of_channels(loop: Loop, lane: Loop, nest: Nest, grouper: Grouper) -> bool:
    """True if a read is interleaved by ``loop``, and all stores are contiguous along ``lane``."""
    count = loop.extent
    if not isinstance(count, int) or count > MOST:
        return False
    group = nest.group
    for op in group.members:
        for number, tensor in enumerate(op.outputs):
            own = [loop_index(group.loops[op][k]) for k in op.axes[number]]
            if ix.linear(own, strides_of(tensor)).coefficient(lane) != 1:
                return False
    for op in group.members:
        for access in grouper.accesses[op]:
            if access.index is not None and buffer_or_none(access.tensor) is not None:
                offset = ix.linear(group.index_of(op, access.index), strides_of(access.tensor))
                if (offset.coefficient(loop), offset.coefficient(lane)) == (1, count):
                    return True
    return False
