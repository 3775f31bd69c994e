"""Loop versioning: loops whose bodies select rarely needed values (`math.expander.K.rarely`).

Block by block, the loop without the rare values runs, and notes whether an element would have
needed them. If so, the loop with them runs over the block again. After two such blocks it is the
only one to run, until a block needs no rare values. Both versions give an element the same bits.

A loop that reads what it writes cannot run twice, and one that reads at indices must not run where
they are outside of the array (`Scalar.kept_below`). There, a test precedes each block: a loop of
its own that computes the conditions from what the body reads. Selects stay as they are if their
conditions take many operations, or depend on what the loop itself writes or carries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir

from ...dialect.mlir.rewrite import blocks_in, ops_in, walk
from ..linalg.element import RARE
from ..schedule.graph import definition
from .loop_ops import EXTENT, IN_PLACE, SCALAR, Ops, base_of, iterations

Bounds = tuple[ir.Value, ir.Value, Sequence[ir.Value]]  # first, end, start of carried values

BLOCK = 2048  # elements after which a loop changes its version
_AGAIN = 2  # blocks in a row that needed rare values: the next one is taken to need them, too
_MAX_TEST = 24  # most operations of a test, besides addresses and constants
_LITTLE = 16  # operations of a loop that does little
_FREE = ("arith.constant", "llvm.getelementptr")
_CHEAP = ("llvm.load", "math.absf", "math.copysign", "math.fma", "math.sqrt")


def version_loops(ops: Ops, function: ir.Operation) -> None:
    """Make two versions of each innermost loop of a function that selects rare values."""
    if not any(RARE in op.attributes for op in walk(function)):
        return
    in_place = IN_PLACE in function.attributes
    for loop in _innermost(function.regions[0].blocks[0]):
        inside = _operations(loop)
        if not _reads_rows(loop) or any(RARE in o.attributes and not _is_guarded(o) for o in inside):
            _leave_guarded(loop)
            inside = _operations(loop)
        if not any(RARE in op.attributes for op in inside):
            continue
        stores = [op for op in walk(loop) if op.name == "llvm.store"]
        written = {base_of(op.operands[1]) for op in stores}
        read = {base_of(op.operands[0]) for op in walk(loop) if op.name == "llvm.load"}
        # What only some elements store, the second run might not overwrite.
        always = all(op in inside for op in stores)
        is_free = not any(_is_guarded(op) for op in inside)
        if is_free and always and not written & read and not (in_place and written):
            _repeat(ops, function, loop)
            continue
        tested: dict[ir.Value, list[ir.Operation]] = {}
        for op in inside:
            if RARE in op.attributes and op.operands[0] not in tested:
                test = _needed(op.operands[0], loop, set() if in_place else written)
                if test is not None:
                    tested[op.operands[0]] = test
        if tested:
            _version(ops, loop, list(tested), list(tested.values()))
    _leave_guarded(function)
    for op in walk(function):
        if RARE in op.attributes:
            del op.attributes[RARE]


def _leave_guarded(within: ir.Operation) -> None:
    """Give guarded selects the value that holds in any case."""
    for op in list(walk(within)):
        if _is_guarded(op):
            condition = definition(op.operands[0])
            op.results[0].replace_all_uses_with(op.operands[1])
            op.erase()
            if not any(True for _ in condition.results[0].uses):
                condition.erase()


def _is_guarded(op: ir.Operation) -> bool:
    """True for a select whose usual value needs a test before it is used."""
    return RARE in op.attributes and isinstance(op.attributes[RARE], ir.StringAttr)


def _innermost(block: ir.Block) -> list[ir.Operation]:
    loops: list[ir.Operation] = []
    for op in ops_in(block):
        inner = [o for b in blocks_in(op) for o in _innermost(b)]
        loops += inner or ([op] if op.name == "scf.for" else [])
    return loops


def _operations(loop: ir.Operation) -> list[ir.Operation]:
    return ops_in(loop.regions[0].blocks[0])


def _needed(condition: ir.Value, loop: ir.Operation, written: set[ir.Value]) -> list[ir.Operation] | None:
    """The operations of a loop's body that compute a condition, in order; None = too many."""
    body = loop.regions[0].blocks[0]
    carried = list(body.arguments)[1:]
    ops: set[ir.Operation] = set()
    values = [condition]
    while values:
        value = values.pop()
        op = definition(value)
        if op is None:
            if value in carried:
                return None
            continue
        if op.block != body or op in ops:
            continue
        if not op.name.startswith("arith.") and op.name not in _FREE + _CHEAP:
            return None
        if op.name == "llvm.load" and base_of(op.operands[0]) in written:
            return None
        ops.add(op)
        values += op.operands
    if sum(op.name not in _FREE for op in ops) > _MAX_TEST:
        return None
    return [op for op in _operations(loop) if op in ops]


def _version(ops: Ops, loop: ir.Operation, conditions: list[ir.Value], needed: list[list[ir.Operation]]) -> None:
    """Replace a loop by a test and two versions, block by block where it is long."""
    inside = _operations(loop)
    test_ops = {op for one in needed for op in one}
    test = [k for k, op in enumerate(inside) if op in test_ops]
    which = [inside.index(definition(c)) for c in conditions if definition(c) in test_ops]
    outside = [c for c in conditions if definition(c) not in test_ops]
    selects = [k for k, op in enumerate(inside) if RARE in op.attributes and op.operands[0] in conditions]
    parts = test, which, outside, selects
    _by_blocks(ops, loop, lambda bounds: _block(ops, loop, bounds, parts))


def _by_blocks(ops: Ops, loop: ir.Operation, block: Callable[[Bounds], Sequence[ir.Value]]) -> None:
    """Replace a loop by ``block`` of all its iterations, or of some after the others."""
    low, high, step, *start = loop.operands
    with ir.InsertionPoint(loop), loop.location:
        if _is_short(loop):
            results = block((low, high, start))
        else:
            width = ops.create("arith.muli", ops.i64, step, ops.constant(BLOCK, ops.i64))
            blocks = ops.loop(low, high, width, start)
            with ir.InsertionPoint(blocks.body):
                first, *carried = blocks.body.arguments
                last = ops.least(ops.create("arith.addi", ops.i64, first, width), high)
                inner = block((first, last, carried))
                ir.Operation.create("scf.yield", operands=inner)
            results = list(blocks.operation.results)
    for old, new in zip(loop.results, results, strict=True):
        old.replace_all_uses_with(new)
    loop.erase()


def _is_short(loop: ir.Operation) -> bool:
    count = iterations(loop)
    return count is not None and count <= 2 * BLOCK


def _repeat(ops: Ops, function: ir.Operation, loop: ir.Operation) -> None:
    """Replace a loop by two versions, of which the second repeats what the first did in vain."""
    with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]), loop.location:
        # The note outlives the loop: a row of an array is likely to be like the one before it.
        note = ops.alloca(1, ops.i64, 8)
        ops.store(ops.constant(0, ops.i64), note)

    def block(bounds: Bounds) -> Sequence[ir.Value]:
        noted = ops.load(note, ops.i64)
        is_usual = ops.less(noted, ops.constant(_AGAIN, ops.i64))
        *results, again = _noting(ops, loop, bounds, is_usual, True, bounds[2])
        *results, any_rare = _noting(ops, loop, bounds, again, False, results)
        more = ops.add(noted, ops.constant(1, ops.i64))
        ops.store(ops.select(any_rare, more, ops.constant(0, ops.i64)), note)
        return results

    _by_blocks(ops, loop, block)


def _noting(
    ops: Ops, loop: ir.Operation, bounds: Bounds, condition: ir.Value, usual: bool, otherwise: Sequence[ir.Value]
) -> list[ir.Value]:
    """Run a version of a loop if a condition holds.

    Returns its results, and whether some element needs rare values. If the version does not run,
    these are ``otherwise`` and ``usual``.
    """
    choice = ir.Operation.create(
        "scf.if", results=[*(r.type for r in loop.results), ops.i1], operands=[condition], regions=2
    )
    low, high, start = bounds
    with ir.InsertionPoint(choice.regions[0].blocks.append()):
        copy = loop.clone(ir.InsertionPoint.current)
        version = ops.loop(low, high, loop.operands[2], [*start, ops.constant(0, ops.i1)])
        if EXTENT in loop.attributes:
            version.operation.attributes[EXTENT] = loop.attributes[EXTENT]
        for old, new in zip(copy.regions[0].blocks[0].arguments, version.body.arguments[:-1], strict=True):
            old.replace_all_uses_with(new)
        *inside, end = _operations(copy)
        for op in inside:
            version.body.append(op)
        selects = [op for op in inside if RARE in op.attributes]
        with ir.InsertionPoint(version.body):
            any_rare = version.body.arguments[-1]
            for rare in dict.fromkeys(op.operands[0] for op in selects):
                any_rare = ops.create("arith.ori", ops.i1, any_rare, rare)
            ir.Operation.create("scf.yield", operands=[*end.operands, any_rare])
        copy.erase()
        if usual:
            _leave_out(version.operation, [k for k, op in enumerate(inside) if op in selects])
        ir.Operation.create("scf.yield", operands=list(version.operation.results))
    with ir.InsertionPoint(choice.regions[1].blocks.append()):
        ir.Operation.create("scf.yield", operands=[*otherwise, ops.constant(int(usual), ops.i1)])
    return list(choice.results)


def _block(
    ops: Ops, loop: ir.Operation, bounds: Bounds, parts: tuple[list[int], list[int], list[ir.Value], list[int]]
) -> list[ir.Value]:
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
        any_rare = tests.body.arguments[1]
        for value in [copies[inside[k].results[0]] for k in which] + outside:
            any_rare = ops.create("arith.ori", ops.i1, any_rare, value)
        ir.Operation.create("scf.yield", operands=[any_rare])
    choice = ir.Operation.create(
        "scf.if", results=[r.type for r in loop.results], regions=2, operands=[tests.operation.results[0]]
    )
    for region, usual in zip(choice.regions, (False, True), strict=True):
        with ir.InsertionPoint(region.blocks.append()):
            copy = loop.clone(ir.InsertionPoint.current)
            for number, value in enumerate((low, high, loop.operands[2], *start)):
                copy.operands[number] = value
            ir.Operation.create("scf.yield", operands=list(copy.results))
        if usual:
            _leave_out(copy, selects)
            if any(_is_guarded(inside[k]) for k in selects) and _is_better_without_vectors(copy):
                copy.attributes[SCALAR] = ir.UnitAttr.get()
    return list(choice.results)


def _is_better_without_vectors(loop: ir.Operation) -> bool:
    """True if a loop does little but read rows at indices of 64 bits.

    A CPU takes such indices out of their vectors one by one.
    """
    inside = _operations(loop)
    i64 = ir.IntegerType.get_signless(64)
    is_wide = any(op.name == "llvm.load" and op.results[0].type == i64 for op in inside)
    is_little = len(inside) <= _LITTLE and not any(op.name.startswith("math.") for op in inside)
    return is_wide and is_little


def _reads_rows(loop: ir.Operation) -> bool:
    """True if all that a loop reads are elements of rows, which caches hold.

    Where it waits for memory at indices, tests before the loop make it wait longer.
    """
    return all(_is_in_row(op.operands[0]) for op in walk(loop) if op.name == "llvm.load")


def _is_in_row(pointer: ir.Value) -> bool:
    """True if an address is that of an element of a row of an array."""
    op = definition(pointer)
    return op is not None and definition(op.operands[0]) is not None


def _leave_out(loop: ir.Operation, selects: list[int]) -> None:
    """Replace the selects by their usual values, and erase the operations that become unused."""
    inside = _operations(loop)
    for k in selects:
        inside[k].results[0].replace_all_uses_with(inside[k].operands[2])
    for op in reversed(inside):
        pure = op.name.startswith(("arith.", "math."))
        if pure and not any(True for result in op.results for _ in result.uses):
            op.erase()
