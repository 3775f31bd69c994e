"""Effects of a function: results of its graph that go where the function writes them.

The graph reads each array that is written through a copy, and its last outputs are what these
copies hold in the end; what the function assigns to attributes and items are outputs, too. All is
written when everything has been computed: a call that fails has written nothing yet, and Python
runs it anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dialect.importers.tracing.tracer import Trace


def are_apart(trace: Trace, inputs: Sequence[Any]) -> bool:
    """True if the written arrays can be written, and share no memory with what the graph reads.

    Where arrays overlap, a write to one is seen through the other, which no graph shows.
    """
    for k in trace.writes:
        array = inputs[k]
        if not isinstance(array, np.ndarray) or not array.flags.writeable:
            return False
        for j, other in enumerate(inputs):
            if j != k and isinstance(other, np.ndarray) and np.may_share_memory(array, other):
                return False
    return True


def apply_effects(trace: Trace, outputs: Sequence[Any], inputs: Sequence[Any]) -> Any:
    """Write what a graph has computed where the function writes it.

    Args:
        trace: the graph.
        outputs: of the graph.
        inputs: of the graph, as the caller and the objects from outside have them.

    Returns the result of the call.
    """
    finals = outputs[len(outputs) - len(trace.writes) :]
    for k, made in zip(trace.writes, finals, strict=True):
        np.copyto(inputs[k], made)
    leaves = [outputs[k] if k >= 0 else inputs[~k] for k in trace.sources or ()]
    first = trace.out_tree.leaves
    for store in trace.stores:
        if store.tree is None:
            store.place.put(store.kept)
        else:
            last = first + store.tree.leaves
            store.place.put(store.tree.unflatten(leaves[first:last]))
            first = last
    return trace.out_tree.unflatten(leaves[: trace.out_tree.leaves])


__all__ = ["apply_effects", "are_apart"]
