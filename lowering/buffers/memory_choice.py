"""The memory that tensors get, decided before bufferisation: of results, and of parts of arrays.

Bufferisation writes where the destination of an operation lies. So an operation whose result
replaces a part of an array gets that part for its destination, unless it reads the array elsewhere;
and what a function returns is made in the memory of the output from the start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir import ir

from ...dialect.mlir.rewrite import ops_in, walk
from ..linalg.element import emit
from .ownership import MATERIALIZE, root, source
from .positions import is_part, same_part


def own_destinations(func: ir.Operation) -> None:
    """Give each operation that makes a tensor an empty one of its own."""
    for op in list(walk(func)):
        if not op.name.startswith("linalg.") or op.name in ("linalg.index", "linalg.yield"):
            continue
        for number in range(len(op.operands) - len(op.results), len(op.operands)):
            empty = _made_empty(op.operands[number])
            if empty is not None and op.results:
                with ir.InsertionPoint(op), op.location:
                    op.operands[number] = empty.clone().results[0]
    for op in list(walk(func)):
        if op.name == "tensor.empty" and not list(op.results[0].uses):
            op.erase()


def write_directly(func: ir.Operation) -> None:
    """Make what replaces a part of an array, or all of it, in its place."""
    for op in list(walk(func)):
        if op.name in ("tensor.insert_slice", MATERIALIZE) and len(op.results):
            _direct(op)


def _direct(insert: ir.Operation) -> None:
    value, target = insert.operands[0], insert.operands[1]
    if isinstance(value, ir.BlockArgument):
        return
    producer = value.owner.operation
    if not producer.name.startswith("linalg."):
        return
    place = len(producer.operands) - len(producer.results) + ir.OpResult(value).result_number
    if producer.block != insert.block or _made_empty(producer.operands[place]) is None:
        return
    whole = insert.name == MATERIALIZE
    if len(producer.results) != 1 or len(list(value.uses)) != 1:
        # Others read it, too: there it has to stay, and nothing may read the array it replaces.
        if not whole or not _may_write(producer, insert, whole) or _is_read_after(producer, insert):
            return
        producer.operands[place] = target
        insert.results[0].replace_all_uses_with(value)
        insert.erase()
        return
    if not _may_write(producer, insert, whole) or not _may_move(producer, insert):
        return
    producer.move_before(insert)
    if whole:
        producer.operands[place] = target
        insert.results[0].replace_all_uses_with(value)
        insert.erase()
        return
    with ir.InsertionPoint(producer), insert.location:
        part = same_part(target, insert)
    producer.operands[place] = part


def _may_write(producer: ir.Operation, insert: ir.Operation, whole: bool) -> bool:
    """True if an operation reads nothing of the array but each element that it replaces."""
    target = insert.operands[1]
    mine = root(target)
    inside = {v for op in walk(producer) if op != producer for v in op.operands}
    for value in inside:
        if isinstance(value.type, ir.RankedTensorType) and source(value) == mine:
            return False
    count = len(producer.operands) - len(producer.results)
    if producer.name != "linalg.generic":
        return all(source(v) != mine for v in list(producer.operands)[:count])
    maps = [ir.AffineMapAttr(m) for m in ir.ArrayAttr(producer.attributes["indexing_maps"])]
    for value, map_ in zip(list(producer.operands)[:count], maps, strict=False):
        if not isinstance(value.type, ir.RankedTensorType) or source(value) != mine:
            continue
        same = value == target if whole else is_part(value, insert)
        if not same or map_ != maps[-1]:
            return False
    return True


def _is_read_after(producer: ir.Operation, insert: ir.Operation) -> bool:
    """True if anything behind an operation reads the array that ``insert`` replaces by its result.

    True, too, where that is not an array that the block has been given.
    """
    mine, behind = insert.operands[1], False
    if root(mine) != mine:
        return True
    for op in ops_in(producer.block):
        if behind and any(
            isinstance(v.type, ir.RankedTensorType) and source(v) == mine
            for inner in [op, *walk(op)]
            for v in inner.operands
            if op != insert and v != insert.results[0]
        ):
            return True
        behind = behind or op == producer
    return False


def _may_move(first: ir.Operation, insert: ir.Operation) -> bool:
    """True if nothing between two operations writes what the first one reads."""
    read = {source(v) for op in [first, *walk(first)] for v in op.operands if isinstance(v.type, ir.RankedTensorType)}
    between = False
    for op in ops_in(insert.block):
        if op == insert:
            return True
        if between and any(
            isinstance(r.type, ir.RankedTensorType) and root(r) in read and root(r) != r for r in op.results
        ):
            return False
        between = between or op == first
    return True


def _made_empty(value: ir.Value) -> Any:
    """The ``tensor.empty`` that makes a value; None = another operation does."""
    if isinstance(value, ir.BlockArgument) or value.owner.name != "tensor.empty":
        return None
    return value.owner.operation


def make_in_outputs(results: Sequence[ir.Value], outputs: Sequence[ir.Value | None]) -> None:
    """Make each result in the tensor of its output, where its own memory can be that.

    An input that loops change is copied there first; that is the only copy of it.
    """
    taken: set[ir.Value] = set()
    for result, output in zip(results, outputs, strict=True):
        if output is None:
            continue
        base = root(result)
        if base in taken:
            continue
        producer = None if isinstance(base, ir.BlockArgument) else base.owner.operation
        if producer is not None and producer.name.startswith("linalg."):
            number = len(producer.operands) - len(producer.results) + ir.OpResult(base).result_number
            empty = _made_empty(producer.operands[number])
            if empty is not None and empty.results[0].type == output.type:
                producer.operands[number] = output
                taken.add(base)
            continue
        user = _first_owner(result, base)
        if user is not None:
            op, number = user
            with ir.InsertionPoint(op), op.location:
                op.operands[number] = emit(MATERIALIZE, output.type, base, output)
            taken.add(base)


def _first_owner(result: ir.Value, base: ir.Value) -> tuple[ir.Operation, int] | None:
    """The operation of the function's own block that takes ``base`` over, and the operand."""
    value, owner = result, None
    while value != base:
        if isinstance(value, ir.BlockArgument):
            return None
        op, number = value.owner.operation, ir.OpResult(value).result_number
        places = {
            "scf.for": 3 + number,
            "scf.while": number,
            "tensor.insert": 1,
            "tensor.insert_slice": 1,
            MATERIALIZE: 1,
        }
        place = places.get(op.name, len(op.operands) - len(op.results) + number)
        if op.name == "scf.if" or place >= len(op.operands):
            return None
        owner = (op, place)
        value = op.operands[place]
    return owner
