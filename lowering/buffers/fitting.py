"""Loops whose places stay below a number: ``if 0 <= k < bins: counts[k] += 1``.

If the number is no larger than the axis, which is known before the loop, the rounds need not ask
whether the place is on its axis. That case is a loop of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from ...dialect.mlir.nesting import is_inside
from ...dialect.mlir.rewrite import walk
from ..linalg.element import emit, int_type
from .temporaries import LOOP

_MOST = 120  # operations of a loop that may stand there twice
_ULT, _ULE = 6, 7  # of the predicates of ``arith.cmpi``
_KEPT = ("scf.for", "scf.while", "memref.alloc", "memref.alloca")


def set_fitting_apart(func: ir.Operation) -> bool:
    """Version the innermost loops whose places are below numbers; False: there are none."""
    changed = False
    for loop in [op for op in walk(func) if op.name == "scf.for"]:
        inner = list(walk(loop))
        if LOOP in loop.attributes or len(inner) > _MOST or any(op.name in _KEPT for op in inner):
            continue
        answered = {place: pair for place, op in enumerate(inner) for pair in _bounds(op, loop)}
        if answered:
            _version(loop, answered)
            changed = True
    return changed


def _bounds(test: ir.Operation, loop: ir.Operation) -> Iterator[tuple[ir.Value, ir.Value]]:
    """The number that a place is known to be below where a test asks for the axis, and its size."""
    if not _is_below(test) or not _is_steady(test.operands[1], loop):
        return
    place, size = test.operands
    op = test
    while op.parent.operation != loop:
        block, op = op.block, op.parent.operation
        condition = op.operands[0] if op.name == "scf.if" else None
        if condition is None or isinstance(condition, ir.BlockArgument):
            continue
        comparison = condition.owner.operation
        if block not in list(op.regions[0].blocks) or not _is_below(comparison):
            continue
        if comparison.operands[0] == place and _is_steady(comparison.operands[1], loop):
            yield comparison.operands[1], size
            return


def _is_below(op: ir.Operation) -> bool:
    return op.name == "arith.cmpi" and ir.IntegerAttr(op.attributes["predicate"]).value == _ULT


def _is_steady(value: ir.Value, loop: ir.Operation) -> bool:
    """True if a value is the same in all rounds, and can be computed before the loop."""
    if not is_inside(value, loop):
        return True
    op = None if isinstance(value, ir.BlockArgument) else value.owner.operation
    return (
        op is not None
        and op.name in ("arith.maxsi", "arith.minsi", "arith.index_cast", "arith.constant")
        and not any(is_inside(v, loop) for v in op.operands)
    )


def _before(value: ir.Value, loop: ir.Operation) -> ir.Value:
    return value.owner.operation.clone().results[0] if is_inside(value, loop) else value


def _version(loop: ir.Operation, answered: dict[int, tuple[ir.Value, ir.Value]]) -> None:
    """Put two loops in the place of one, of which the first need not ask at these places."""
    truth = int_type(1)
    with ir.InsertionPoint(loop), loop.location:
        fits = emit("arith.constant", truth, value=ir.IntegerAttr.get(truth, 1))
        predicate = ir.IntegerAttr.get(int_type(64), _ULE)
        for number, size in dict.fromkeys(answered.values()):
            ends = (_before(number, loop), _before(size, loop))
            fits = emit("arith.andi", truth, fits, emit("arith.cmpi", truth, *ends, predicate=predicate))
        choice = ir.Operation.create("scf.if", results=[r.type for r in loop.results], operands=[fits], regions=2)
    for old, new in zip(loop.results, choice.results, strict=True):
        old.replace_all_uses_with(new)
    usual, whole = (region.blocks.append() for region in choice.regions)
    with ir.InsertionPoint(usual), loop.location:
        copy = loop.clone(ir.InsertionPoint.current)
        ir.Operation.create("scf.yield", operands=list(copy.results))
    copied = list(walk(copy))
    for place in answered:
        with ir.InsertionPoint(copied[place]), loop.location:
            answer = emit("arith.constant", truth, value=ir.IntegerAttr.get(truth, 1))
        copied[place].results[0].replace_all_uses_with(answer)
    with ir.InsertionPoint(whole), loop.location:
        end = ir.Operation.create("scf.yield", operands=list(loop.results))
    loop.move_before(end)
