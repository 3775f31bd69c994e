"""Rounds that compute element by element: all rounds of a block of elements before the next block.

A loop around one nest, each of whose elements depends on itself alone, as that of a Mandelbrot set,
would walk through its arrays in each round. With the rounds inside, a block stays in the
first-level cache for all of them, and blocks do not depend on each other: threads may share them.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import scf

from ...dialect.mlir.nesting import is_inside
from ...dialect.mlir.rewrite import blocks_in, ops_in, walk
from ..linalg.element import emit
from .sharing.linear import constant_of
from .temporaries import LOOP

BLOCK = 512
"""Elements that go through all rounds together: of six arrays of 8 bytes, 24 KiB."""
ENOUGH = 64
"""Elements among which a round finds work while one of them waits."""
_PURE = ("arith.", "math.", "complex.")


def rounds_within_blocks(func: ir.Operation) -> None:
    """Put loops over elements outside of the loops around them, where no element needs another."""
    for block in func.regions[0].blocks:
        _visit(block)


def _visit(block: ir.Block) -> None:
    for op in ops_in(block):
        nest = _nest_of(op) if op.name == "scf.for" else []
        if nest and _is_elementwise(op, nest):
            _exchange(op, nest)
        else:
            for inner in blocks_in(op):
                _visit(inner)


def _nest_of(loop: ir.Operation) -> list[ir.Operation]:
    """The loops that a loop consists of, each within the one before; [] = there is more to it."""
    nest: list[ir.Operation] = []
    block = loop.regions[0].blocks[0]
    while True:
        if list(block.owner.results):
            return []
        inner = [v.operation for v in block.operations if v.operation.name == "scf.for"]
        if not inner:
            return nest
        if len(inner) > 1 or not all(_is_at_rest(v.operation) for v in block.operations):
            return []
        nest += inner
        block = inner[0].regions[0].blocks[0]


def _is_at_rest(op: ir.Operation) -> bool:
    """True for what stands between loops: nothing that writes."""
    return op.name.startswith(_PURE) or op.name in ("memref.load", "scf.for", "scf.yield")


def _is_elementwise(loop: ir.Operation, nest: list[ir.Operation]) -> bool:
    """True if each element that a round writes is read and written by its own iterations alone."""
    indices = [op.regions[0].blocks[0].arguments[0] for op in nest]
    bounds = [v for op in nest for v in list(op.operands)[:3]]
    if any(is_inside(v, loop) for v in bounds):
        return False
    accesses = []
    for op in walk(loop):
        if op.name in ("memref.load", "memref.store"):
            first = int(op.name == "memref.store")
            accesses.append((op.operands[first], list(op.operands)[first + 1 :], bool(first)))
        elif not op.name.startswith(_PURE) and op.name not in ("scf.for", "scf.yield"):
            return False
    written = {memory for memory, _, writes in accesses if writes}
    return (
        bool(written)
        and all(map(_is_own, written))
        and all(at == indices if memory in written else _is_own(memory) for memory, at, _ in accesses)
    )


def _is_own(memory: ir.Value) -> bool:
    """True if nothing else names this memory, and rounds may find in it what they left."""
    if isinstance(memory, ir.BlockArgument):
        return memory.owner.owner.operation.name == "func.func"
    op = memory.owner.operation
    return op.name in ("memref.view", "memref.alloca") and LOOP not in op.attributes


def _exchange(loop: ir.Operation, nest: list[ir.Operation]) -> None:
    place, most = _divided(nest)
    outer, divided = nest[:place], nest[place]
    blocks = _blocks(divided, most)
    if not outer and not blocks:
        return
    for op in outer:
        new_loop = _loop_before(loop, *list(op.operands)[:3])
        loop.move_before(new_loop.body.operations[0])
        body = op.regions[0].blocks[0]
        body.arguments[0].replace_all_uses_with(new_loop.induction_variable)
        for view in list(body.operations)[:-1]:
            view.operation.move_before(op)
        op.erase()
    if blocks:
        low, high = list(divided.operands)[:2]
        with ir.InsertionPoint(loop), loop.location:
            step = emit("arith.constant", low.type, value=ir.IntegerAttr.get(low.type, most))
        new_loop = _loop_before(loop, low, high, step)
        first = new_loop.induction_variable
        loop.move_before(new_loop.body.operations[0])
        with ir.InsertionPoint(loop), loop.location:
            end = emit("arith.addi", low.type, first, step)
            end = emit("arith.minsi", low.type, end, high)
        divided.operands[0], divided.operands[1] = first, end


def _divided(nest: list[ir.Operation]) -> tuple[int, int]:
    """The place in a nest of the loop that blocks divide, and how many iterations a block has.

    Loops outside of it go around the rounds, those inside are short. A round waits for what the one
    before has stored: of a row of 8 elements it would do little else.
    """
    place, elements = len(nest) - 1, 1
    while place and (extent := _extent(nest[place])) and elements * extent < ENOUGH:
        elements *= extent
        place -= 1
    return place, BLOCK // elements


def _extent(loop: ir.Operation) -> int | None:
    """The number of iterations that a loop has; None where its bounds are not known, or its step is not 1."""
    low, high, step = (constant_of(v) for v in list(loop.operands)[:3])
    return None if low is None or high is None or step != 1 else high - low


def _blocks(loop: ir.Operation, most: int) -> bool:
    """True if a loop is, or may be, longer than a block; its step has to be 1 for that."""
    extent = _extent(loop)
    return constant_of(loop.operands[2]) == 1 and (extent is None or extent > most)


def _loop_before(loop: ir.Operation, low: ir.Value, high: ir.Value, step: ir.Value) -> scf.ForOp:
    with ir.InsertionPoint(loop), loop.location:
        new_loop = scf.ForOp(low, high, step)
        with ir.InsertionPoint(new_loop.body):
            ir.Operation.create("scf.yield")
    return new_loop
