"""Loop versioning: loops whose bodies select rarely needed values (`math.emitter.K.rarely`).

A test precedes each block of elements: if no element of it needs the rare values, the loop without
them runs. Both versions give an element the same bits. The test is a loop of its own that computes
the conditions from what the body reads. Selects stay as they are if their conditions take many
operations, or depend on what the loop itself writes or carries.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from ...dialect.mlir.rewrite import walk
from ..math.emitter import RARE
from ..schedule.graph import definition
from .base import IN_PLACE, Ops, iterations

BLOCK = 2048  # elements per test
_MAX_TEST = 24  # most operations of a test, besides addresses and constants
_FREE = ("arith.constant", "llvm.getelementptr")
_CHEAP = ("llvm.load", "math.absf", "math.copysign", "math.fma", "math.sqrt")


def version_loops(ops: Ops, function: ir.Operation) -> None:
    """Make two versions of each innermost loop of a function that selects rare values."""
    in_place = IN_PLACE in function.attributes
    for loop in _innermost(function.regions[0].blocks[0]):
        inside = _operations(loop)
        written = {_root(op.operands[1]) for op in walk(loop) if op.name == "llvm.store"}
        tested: dict[ir.Value, list[ir.Operation]] = {}
        for op in inside:
            if RARE in op.attributes and op.operands[0] not in tested:
                needed = _needed(op.operands[0], loop, set() if in_place else written)
                if needed is not None:
                    tested[op.operands[0]] = needed
        if tested:
            _version(ops, loop, list(tested), list(tested.values()))
    for op in walk(function):
        if RARE in op.attributes:
            del op.attributes[RARE]


def _innermost(block: ir.Block) -> list[ir.Operation]:
    found: list[ir.Operation] = []
    for view in block.operations:
        op = view.operation
        inner = [o for region in op.regions for b in region.blocks for o in _innermost(b)]
        found += inner or ([op] if op.name == "scf.for" else [])
    return found


def _operations(loop: ir.Operation) -> list[ir.Operation]:
    return [view.operation for view in loop.regions[0].blocks[0].operations]


def _root(pointer: ir.Value) -> ir.Value:
    """The base that an address is computed from; different bases never overlap."""
    op = definition(pointer)
    while op is not None and op.name == "llvm.getelementptr":
        pointer = op.operands[0]
        op = definition(pointer)
    return pointer


def _needed(
    condition: ir.Value, loop: ir.Operation, written: set[ir.Value]
) -> list[ir.Operation] | None:
    """The operations of a loop's body that compute a condition, in order; None = too many."""
    body = loop.regions[0].blocks[0]
    carried = list(body.arguments)[1:]
    found: set[ir.Operation] = set()
    values = [condition]
    while values:
        value = values.pop()
        op = definition(value)
        if op is None:
            if value in carried:
                return None
            continue
        if op.block != body or op in found:
            continue
        if not op.name.startswith("arith.") and op.name not in _FREE + _CHEAP:
            return None
        if op.name == "llvm.load" and _root(op.operands[0]) in written:
            return None
        found.add(op)
        values += op.operands
    if sum(op.name not in _FREE for op in found) > _MAX_TEST:
        return None
    return [op for op in _operations(loop) if op in found]


def _version(
    ops: Ops, loop: ir.Operation, conditions: list[ir.Value], needed: list[list[ir.Operation]]
) -> None:
    """Replace a loop by a test and two versions, block by block where it is long."""
    inside = _operations(loop)
    wanted = {op for one in needed for op in one}
    test = [k for k, op in enumerate(inside) if op in wanted]
    which = [inside.index(definition(c)) for c in conditions if definition(c) in wanted]
    outside = [c for c in conditions if definition(c) not in wanted]
    selects = [
        k for k, op in enumerate(inside) if RARE in op.attributes and op.operands[0] in conditions
    ]  # fmt: skip
    low, high, step, *start = loop.operands
    with ir.InsertionPoint(loop), loop.location:
        if _is_short(loop):
            results = _block(ops, loop, (low, high, start), (test, which, outside, selects))
        else:
            width = ops.create("arith.muli", ops.i64, step, ops.constant(BLOCK, ops.i64))
            blocks = ops.loop(low, high, width, start)
            with ir.InsertionPoint(blocks.body):
                first, *carried = blocks.body.arguments
                last = ops.least(ops.create("arith.addi", ops.i64, first, width), high)
                inner = _block(ops, loop, (first, last, carried), (test, which, outside, selects))
                ir.Operation.create("scf.yield", operands=inner)
            results = list(blocks.operation.results)
    for old, new in zip(loop.results, results, strict=True):
        old.replace_all_uses_with(new)
    loop.erase()


def _is_short(loop: ir.Operation) -> bool:
    count = iterations(loop)
    return count is not None and count <= 2 * BLOCK


def _block(
    ops: Ops, loop: ir.Operation, bounds: tuple[ir.Value, ir.Value, Sequence[ir.Value]],
    parts: tuple[list[int], list[int], list[ir.Value], list[int]],
) -> list[ir.Value]:  # fmt: skip
    """Emit the test of a part of the loop and both versions; returns the loop's results."""
    low, high, start = bounds
    test, which, outside, selects = parts
    inside = _operations(loop)
    index = loop.regions[0].blocks[0].arguments[0]
    never = ops.constant(0, ops.i1)
    tests = ops.loop(low, high, loop.operands[2], [never])
    with ir.InsertionPoint(tests.body):
        copies: dict[ir.Value, ir.Value] = {index: tests.body.arguments[0]}
        for k in test:
            copy = inside[k].clone(ir.InsertionPoint.current)
            for number, value in enumerate(inside[k].operands):
                copy.operands[number] = copies.get(value, value)
            copies.update(zip(inside[k].results, copy.results, strict=True))
        found = tests.body.arguments[1]
        for value in [copies[inside[k].results[0]] for k in which] + outside:
            found = ops.create("arith.ori", ops.i1, found, value)
        ir.Operation.create("scf.yield", operands=[found])
    choice = ir.Operation.create(
        "scf.if", results=[r.type for r in loop.results], regions=2,
        operands=[tests.operation.results[0]],
    )  # fmt: skip
    for region, usual in zip(choice.regions, (False, True), strict=True):
        with ir.InsertionPoint(region.blocks.append()):
            copy = loop.clone(ir.InsertionPoint.current)
            for number, value in enumerate((low, high, loop.operands[2], *start)):
                copy.operands[number] = value
            ir.Operation.create("scf.yield", operands=list(copy.results))
        if usual:
            _leave_out(copy, selects)
    return list(choice.results)


def _leave_out(loop: ir.Operation, selects: list[int]) -> None:
    """Replace the selects by their usual values, and erase the operations that become unused."""
    inside = _operations(loop)
    for k in selects:
        inside[k].results[0].replace_all_uses_with(inside[k].operands[2])
    for op in reversed(inside):
        pure = op.name.startswith(("arith.", "math."))
        if pure and not any(True for result in op.results for _ in result.uses):
            op.erase()
