"""Values to which `scf` gives one type: what blocks yield, what loops carry, results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlir import ir

from ..ops.control_flow.control import For, If, While
from .rewrite import op_class, terminator_of, walk


def tied_values(func: ir.Operation) -> list[list[ir.Value]]:
    """Classes of values to which `scf` gives one type."""
    parent: dict[ir.Value, ir.Value] = {}

    def find(value: ir.Value) -> ir.Value:
        while parent.setdefault(value, value) != value:
            value = parent[value]
        return value

    for op in walk(func):
        for values in _ties(op):
            for other in values[1:]:
                parent[find(other)] = find(values[0])
    classes: dict[ir.Value, list[ir.Value]] = {}
    for value in list(parent):
        classes.setdefault(find(value), []).append(value)
    return list(classes.values())


def _ties(op: ir.Operation) -> Iterator[Sequence[ir.Value]]:
    cls = op_class(op)
    if cls not in (If, For, While):
        return
    blocks = [region.blocks[0] for region in op.regions if len(region.blocks)]
    ends = [list(terminator_of(block).operands) for block in blocks]
    results = list(op.results)
    if cls is If:
        yield from zip(results, *ends, strict=True)
    elif cls is For:
        inits, carried = list(op.operands)[3:], list(blocks[0].arguments)[1:]
        yield from zip(inits, carried, ends[0], results, strict=True)
    else:
        before, body = blocks
        yield from zip(op.operands, before.arguments, ends[1], strict=True)
        yield from zip(ends[0][1:], body.arguments, results, strict=True)
