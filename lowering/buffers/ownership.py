"""The owner of each tensor's memory in a loop: every round leaves its result where it found the array.

One-shot bufferisation takes a loop only if each tensor that a round yields lies in the memory of the
tensor that the round was given in its place. A round that computes a new tensor therefore either computes
it in that memory (`destinations`), or copies it there at its end, which this module adds:

    yield %new                                      %kept = materialize %new in %given
                                              ->    yield %kept
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from ...dialect.errors import LoweringError
from ...dialect.mlir.nesting import is_inside
from ...dialect.mlir.rewrite import terminator_of, walk
from ..linalg.element import emit

_DESTINATION = {"tensor.insert": 1, "tensor.insert_slice": 1}
MATERIALIZE = "bufferization.materialize_in_destination"


def root(value: ir.Value) -> ir.Value:
    """The value whose memory a tensor takes, as far as operations write in place."""
    while not isinstance(value, ir.BlockArgument):
        op = value.owner
        number = ir.OpResult(value).result_number
        if op.name in _DESTINATION:
            value = op.operands[_DESTINATION[op.name]]
        elif op.name == MATERIALIZE:
            value = op.operands[1]
        elif op.name == "scf.for":
            value = op.operands[3 + number]
        elif op.name == "scf.while":
            base = root(terminator_of(op.regions[0].blocks[0]).operands[1 + number])
            if not isinstance(base, ir.BlockArgument) or base.owner.owner != op:
                return value
            value = op.operands[base.arg_number]
        elif op.name == "scf.if":
            one, two = (root(terminator_of(r.blocks[0]).operands[number]) for r in op.regions)
            if one != two:
                return value
            value = one
        elif op.name.startswith("linalg."):
            into = op.operands[len(op.operands) - len(op.results) + number]
            if not isinstance(into, ir.BlockArgument) and into.owner.name == "tensor.empty":
                return value
            value = into
        else:
            return value
    return value


def source(value: ir.Value) -> ir.Value:
    """The array that a tensor is, or is a part of."""
    value = root(value)
    while not isinstance(value, ir.BlockArgument) and value.owner.name == "tensor.extract_slice":
        value = root(value.owner.operands[0])
    return value


def keep_in_place(func: ir.Operation) -> None:
    """Have each round of each loop of a function leave its tensors where it found them."""
    for op in reversed(list(walk(func))):  # inner ones first
        if op.name == "scf.if" and op.results:  # one without results may have one branch alone
            _join_branches(op)
    # Other operations are not asked for their names: some are erased meanwhile.
    for op in [op for op in walk(func) if op.name in ("scf.for", "scf.while")]:
        if op.name == "scf.for":
            block = op.regions[0].blocks[0]
            _keep(block, list(block.arguments)[1:])
        else:
            block = _with_places(op).regions[1].blocks[0]
            _keep(block, list(block.arguments)[: len(terminator_of(block).operands)])


def _join_branches(op: ir.Operation) -> None:
    """Have both branches leave each tensor in one place: what is there before, or a new one."""
    ends = [terminator_of(region.blocks[0]) for region in op.regions]
    for number, result in enumerate(op.results):
        type_ = result.type
        if not isinstance(type_, ir.RankedTensorType):
            continue
        values = [end.operands[number] for end in ends]
        bases = [root(v) for v in values]
        if bases[0] == bases[1]:
            continue
        before = [base for base in bases if base.type == type_ and not is_inside(base, op)]
        if len(before) == 2 or (not before and not type_.has_static_shape):
            continue
        if before:
            place = before[0]
        else:
            with ir.InsertionPoint(op), op.location:
                place = emit("tensor.empty", type_)
        for end, value, base in zip(ends, values, bases, strict=True):
            if base != place:
                with ir.InsertionPoint(end), end.location:
                    end.operands[number] = emit(MATERIALIZE, type_, value, place)


def _with_places(op: ir.Operation) -> ir.Operation:
    """A loop whose first block hands on each value that it carries in the place of that.

    Bufferisation takes that for granted. Simplification leaves out what the second block does not
    read, also arrays that it replaces, and changes the order.
    """
    first, second = (region.blocks[0] for region in op.regions)
    end = terminator_of(first)
    condition, *values = end.operands
    handed: list[ir.Value] = list(first.arguments)
    places = []
    for value in values:
        base = root(value)
        of_loop = isinstance(base, ir.BlockArgument) and base.owner == first
        if isinstance(value.type, ir.RankedTensorType):
            if not of_loop or handed[base.arg_number] not in (base, value):
                raise LoweringError("a loop hands on an array in the place of another one")
            handed[base.arg_number] = value
            places.append(base.arg_number)
        else:
            places.append(value.arg_number if of_loop else len(handed))
            handed += [] if of_loop else [value]
    if places == list(range(len(handed))):
        return op
    with op.location:
        with ir.InsertionPoint(end):
            ir.Operation.create("scf.condition", operands=[condition, *handed])
        end.erase()
        with ir.InsertionPoint(op):
            new_loop = ir.Operation.create(
                "scf.while", results=[v.type for v in handed], operands=list(op.operands), regions=2
            )
        before = list(second.arguments)
        after = [second.add_argument(v.type, op.location) for v in handed]
        for old, place in zip(before, places, strict=True):
            old.replace_all_uses_with(after[place])
        for number in reversed(range(len(before))):
            second.erase_argument(number)
        for block, region in zip((first, second), new_loop.regions, strict=True):
            block.append_to(region)
    for old, place in zip(op.results, places, strict=True):
        old.replace_all_uses_with(new_loop.results[place])
    op.erase()
    return new_loop


def _keep(block: ir.Block, targets: Sequence[ir.Value]) -> None:
    end = terminator_of(block)
    values = list(end.operands)
    moved = [
        k
        for k, (v, g) in enumerate(zip(values, targets, strict=True))
        if isinstance(v.type, ir.RankedTensorType) and root(v) != g
    ]
    # What another value lies in may be written meanwhile: as a copy it is not.
    for k in moved:
        origin = source(values[k])
        if origin in targets:
            plain = isinstance(values[k], ir.BlockArgument)
            point = ir.InsertionPoint.at_block_begin(block) if plain else ir.InsertionPoint(end)
            with point, end.location:
                values[k] = emit(
                    "bufferization.alloc_tensor",
                    values[k].type,
                    values[k],
                    operandSegmentSizes=ir.DenseI32ArrayAttr.get([0, 1, 0]),
                )
    for k in moved:
        with ir.InsertionPoint(end), end.location:
            end.operands[k] = emit(MATERIALIZE, values[k].type, values[k], targets[k])
