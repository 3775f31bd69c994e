"""Elements that a round reads of an array as it was before a write: read earlier, or kept in a copy.

Bufferisation would make the write elsewhere, and then the round would not leave the array where it
found it, for which it refuses the loop.
"""

from __future__ import annotations

from mlir import ir

from ...dialect.mlir.rewrite import walk
from ..linalg.element import emit
from ..linalg.loop_builder import ASSERT
from .ownership import root, source
from .positions import enclosing, order_in

# Operation -> the operand that it writes to.
_WRITES = {"tensor.insert": 1, "tensor.insert_slice": 1}
_ARITHMETIC = ("arith.", "llvm.intr.", "llvm.extractvalue")
_LOOPS = {"scf.for": 3, "scf.while": 0}  # the first operand that they carry


def keep_old_values(func: ir.Operation) -> None:
    """Make every read of an array that a loop carries see it as it was, after writes, too."""
    for op in list(walk(func)):
        if op.name in _WRITES:
            _settle(op, op.operands[_WRITES[op.name]])
        elif op.name in _LOOPS:
            for value in list(op.operands)[_LOOPS[op.name] :]:
                if isinstance(value.type, ir.RankedTensorType):
                    _settle(op, value)


def _settle(write: ir.Operation, value: ir.Value) -> None:
    """Deal with what reads a value behind a write to its memory."""
    base = root(value)
    if not isinstance(base, ir.BlockArgument) or base.owner.owner.name not in _LOOPS:
        return
    order = order_in(write.block)
    here = order[write]
    late: list[ir.Operation] = []
    for use in value.uses:
        user = use.owner.operation
        outer = enclosing(user, order)
        if user == write or outer is None or order[outer] < here:
            continue
        late.append(user)
    late = [user for user in late if not _read_before(user, write, order)]
    if not late:
        return
    with ir.InsertionPoint(write), write.location:
        copy = emit(
            "bufferization.alloc_tensor", value.type, value, operandSegmentSizes=ir.DenseI32ArrayAttr.get([0, 1, 0])
        )
    for user in late:
        for number, operand in enumerate(user.operands):
            if operand == value:
                user.operands[number] = copy


def _read_before(user: ir.Operation, write: ir.Operation, order: dict[ir.Operation, int]) -> bool:
    """Move the reading of an element before a write; False if it has to stay where it is.

    What shows that there is such an element goes with it.
    """
    if user.name != "tensor.extract" or user not in order:
        return False
    moved: list[ir.Operation] = [user]
    indices = list(user.operands)[1:]
    if not _add_makers(indices, write, order, moved):
        return False
    for op in [op for op in order if op.name == ASSERT]:
        if order[write] < order[op] < order[user] and _speaks_of(op, indices):
            moved.append(op)
            if not _add_makers(list(op.operands), write, order, moved):
                return False
    for op in sorted(moved, key=order.__getitem__):
        op.move_before(write)
    return True


def _add_makers(
    values: list[ir.Value], write: ir.Operation, order: dict[ir.Operation, int], moved: list[ir.Operation]
) -> bool:
    """Add what computes values behind a write; False where that is more than arithmetic.

    Elements of other arrays, which the block is given, are read as well.
    """
    waiting = list(values)
    written = {source(r) for r in write.results if isinstance(r.type, ir.RankedTensorType)}
    while waiting:
        value = waiting.pop()
        if isinstance(value, ir.BlockArgument):
            continue
        op = value.owner.operation
        if op not in order or order[op] < order[write] or op in moved:
            continue
        if op.name == "tensor.extract":
            array = op.operands[0]
            is_given = isinstance(array, ir.BlockArgument) or array.owner.operation not in order
            if not is_given or source(array) in written:
                return False
        elif not _is_arithmetic(op):
            return False
        moved.append(op)
        waiting += [v for o in [op, *walk(op)] for v in o.operands if not isinstance(v.type, ir.RankedTensorType)]
    return True


def _is_arithmetic(op: ir.Operation) -> bool:
    """True if an operation computes numbers alone, in branches, too, which may end a run."""
    if op.name == "scf.if":
        return all(inner.name in ("scf.yield", ASSERT) or _is_arithmetic(inner) for inner in walk(op) if inner != op)
    return op.name.startswith(_ARITHMETIC)


def _speaks_of(test: ir.Operation, indices: list[ir.Value]) -> bool:
    """True if a test is about one of these indices, or what they are computed of."""
    return not _computed_of(list(test.operands)).isdisjoint(_computed_of(indices))


def _computed_of(values: list[ir.Value]) -> set[ir.Value]:
    """The values that others are computed of by arithmetic, constants left aside."""
    sources, waiting = set[ir.Value](), list(values)
    while waiting:
        value = waiting.pop()
        if value in sources:
            continue
        if isinstance(value, ir.BlockArgument):
            sources.add(value)
            continue
        producer = value.owner.operation
        if producer.name != "arith.constant":
            sources.add(value)
            if producer.name == "tensor.extract":
                waiting += list(producer.operands)[1:]
            elif _is_arithmetic(producer):
                waiting += list(producer.operands)
    return sources
