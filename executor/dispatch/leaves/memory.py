"""Memory for the intermediates of a leaf: offsets in one block, reused once an array is dead.

Only the kernels of the same call can see these arrays. So they need no array objects, and each has
a fixed place in the block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....dialect.ir.device import HOST
from ...memory import placement
from ...memory.placement import Moment, Placement, bytes_of
from ..leaf_spec import MadeValue, Step, Value


def lay_out(
    steps: Sequence[Step], values: Mapping[int, Value], outputs: Sequence[int]
) -> Placement:
    """Places for the arrays that a step makes and that are not returned."""
    last = {o: k for k, step in enumerate(steps) for o in (*step.results, *step.operands)}
    moments, nbytes = [], {}
    for index, step in enumerate(steps):
        for result in step.results:
            made = values[result]
            if not isinstance(made, MadeValue) or result in outputs:
                continue
            if made.sizes or made.device != HOST:  # the host's of rank 0 lie on the stack
                nbytes[result] = bytes_of(made.dtype.itemsize, made.sizes)
        touched = dict.fromkeys((*step.results, *step.operands))
        moments.append(Moment(step.results, [v for v in touched if last[v] == index]))
    return placement.lay_out(moments, nbytes)
