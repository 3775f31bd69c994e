"""Loops whose condition branches test it at the end of each round, and once before the first.

In ``while j >= 0 and a[j] > key`` LLVM's own rotation moves the first half to the end alone, so
that each round jumps twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from ...dialect.mlir.rewrite import walk

_MOST = 24  # operations of a condition that is there twice


def rotate_loops(module: ir.Module) -> None:
    """Rotate the loops of a module whose condition is short, and branches."""
    for view in module.body.operations:
        for loop in [op for op in walk(view.operation) if op.name == "scf.while"]:
            inside = list(walk(loop.regions[0].blocks[0]))
            if len(inside) <= _MOST and any(op.name == "scf.if" for op in inside):
                _rotate(loop)


def _rotate(loop: ir.Operation) -> None:
    before, after = (region.blocks[0] for region in loop.regions)
    with loop.location:
        with ir.InsertionPoint(loop):
            inits = _copied(before, list(loop.operands))
            while_ = ir.Operation.create("scf.while", results=[r.type for r in loop.results], operands=inits, regions=2)
        first = while_.regions[0].blocks.append(*[v.type for v in inits])
        with ir.InsertionPoint(first):
            condition, *values = first.arguments
            ir.Operation.create("scf.condition", operands=[condition, *values])
        end = after.operations[len(after.operations) - 1].operation
        with ir.InsertionPoint(end):
            ir.Operation.create("scf.yield", operands=_copied(before, list(end.operands)))
    end.erase()
    after.append_to(while_.regions[1])
    for old, new in zip(loop.results, while_.results, strict=True):
        old.replace_all_uses_with(new)
    loop.erase()


def _copied(condition: ir.Block, arguments: Sequence[ir.Value]) -> list[ir.Value]:
    """Compute a condition for these values: whether there is a round, and what it is given."""
    values = dict(zip(condition.arguments, arguments, strict=True))
    for view in condition.operations:
        op = view.operation
        if op.name == "scf.condition":
            return [values.get(v, v) for v in op.operands]
        copy = op.clone(ir.InsertionPoint.current)
        for inner in (copy, *walk(copy)):
            for k, value in enumerate(inner.operands):
                inner.operands[k] = values.get(value, value)
        values.update(zip(op.results, copy.results, strict=True))
    raise AssertionError("a condition ends with scf.condition")
