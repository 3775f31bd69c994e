"""Assignments to small parts of arrays: written over the array, as NumPy does it.

The result of such an assignment is another tensor, of which the elements elsewhere are those of the
array. Where it is stored, so that a nest would go through all of it, and where nothing needs the
array any more, the two are one buffer, and the nest goes through the part alone.
"""

from __future__ import annotations

from typing import Any

from . import affine as ix
from .access import require
from .graph import Compute, Graph, Tensor, operands, results

_LEAST = 8  # how many times the part the array is, at least


def write_parts(graph: Graph) -> None:
    """Give arrays the buffers of results that are these arrays but for a small part.

    What the new elements are made of the array itself is stored before they are written.
    """
    # The last assignment first: its result is stored, and so are those before it, then.
    for op in reversed(graph.operations):
        if isinstance(op, Compute) and op.part and op.outputs[0].buffer is not None and _is_small(op):
            _write(op, graph)


def _is_small(op: Compute) -> bool:
    if not all(isinstance(n, int) for n in op.extents):
        return False
    sizes = {loop: size for loop, _, size in op.part}
    part = ix.product(sizes.get(k, op.extents[k]) for k in op.loops)
    whole = ix.product(op.extents)
    return isinstance(part, int) and isinstance(whole, int) and part * _LEAST <= whole


def _write(op: Compute, graph: Graph) -> None:
    base, output = op.reads[0].tensor, op.outputs[0]
    producer = base.producer
    if not isinstance(producer, Compute) or len(producer.outputs) != 1 or not op.reads[0].is_elementwise:
        return
    if base.required or base.buffer is not None or (base.dims, base.element) != (output.dims, output.element):
        return
    if sum(tensor is base for tensor in operands(op)) != 1:
        return
    derived = _read_before(op, base, graph.uses())
    if derived is None:
        return
    for tensor in operands(op):
        if tensor in derived:
            require(tensor)
    base.buffer, base.required, op.partial = output.buffer, True, True


def _read_before(op: Compute, base: Tensor, uses: dict[Tensor, list[Any]]) -> set[Tensor] | None:
    """All that is made of a tensor, if that is for ``op`` alone; else None."""
    derived: set[Tensor] = set()
    waiting = [base]
    while waiting:
        for user in uses.get(waiting.pop(), ()):
            if user is None:
                return None
            for tensor in [] if user is op else results(user):
                if tensor not in derived:
                    derived.add(tensor)
                    waiting.append(tensor)
    return derived
