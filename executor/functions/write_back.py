"""Writes of a function to its arguments: results of its graph, which go into the caller's arrays.

The graph reads each written argument through a copy, and its last outputs are what these copies
hold in the end. They are written when everything has been computed: a call that fails has written
nothing yet, and Python runs it anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dialect.importers.tracing.tracer import Trace


def are_apart(trace: Trace, leaves: Sequence[Any]) -> bool:
    """True if the written arguments can be written, and share no memory with what the graph reads.

    Where arrays overlap, a write to one is seen through the other, which no graph shows.
    """
    others = [*leaves, *trace.captured]
    for k in trace.writes:
        array = leaves[k]
        if not isinstance(array, np.ndarray) or not array.flags.writeable:
            return False
        for j, other in enumerate(others):
            if j != k and isinstance(other, np.ndarray) and np.may_share_memory(array, other):
                return False
    return True


def write_back(trace: Trace, outputs: Sequence[Any], leaves: Sequence[Any]) -> None:
    """Give the written arguments what the graph has computed for them."""
    for leaf, made in zip(reversed(trace.writes), reversed(outputs), strict=False):
        np.copyto(leaves[leaf], made)


__all__ = ["are_apart", "write_back"]
