"""The outputs of a graph, and of one that has effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .operators import as_value
from .traced import Traced

if TYPE_CHECKING:
    from ..world.stores import PlaceStore
    from .recorder import Recorder


def outputs_of(
    rec: Recorder,
    results: Sequence[Any],
    stores: Sequence[PlaceStore],
    inputs: Sequence[Any],
    containers: Mapping[int, Any],
    exits: Sequence[int],
) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """`Trace.sources` and the outputs of the graph.

    Args:
        rec: the trace.
        results: the leaves of what the function returns.
        stores: what it assigns.
        inputs: its inputs, traced.
        containers: by identity, what stands in ``sources`` for a container among the arguments.
        exits: values that are computed in any case, of which no ``sources`` speak.

    Raises TraceError for values of a branch or loop that are used outside of it.
    """
    # One object may be in several places; it is computed once, and is one object afterwards.
    own: dict[int, Any] = {id(x): ~k for k, x in enumerate(inputs) if isinstance(x, Traced)}
    own |= containers
    order: dict[int, Any] = {}
    sources = []
    for leaf in (*results, *(x for store in stores for x in store.leaves)):
        if id(leaf) not in own:
            own[id(leaf)] = len(order)
            order[id(leaf)] = leaf
        sources.append(own[id(leaf)])
    outputs = (*output_values(rec, tuple(order.values())), *exits, *rec.written)
    for value in outputs:
        rec.check_visible(value)
    for store in stores:
        store.leaves = ()  # they hold the trace
    return tuple(sources), outputs


def output_values(rec: Recorder, leaves: Sequence[Any]) -> tuple[int, ...]:
    """The values of results; equal constants are one value, but arrays of their own."""
    arrays: dict[int, Any] = {}  # value -> the plain array that it stands for
    values = []
    for x in leaves:
        value = as_value(rec, x)
        is_plain = isinstance(x, np.ndarray) and not isinstance(x, Traced)
        if is_plain and arrays.setdefault(value, x) is not x:
            value = rec.emit("copy", [value])[0]
        values.append(value)
    return tuple(values)
