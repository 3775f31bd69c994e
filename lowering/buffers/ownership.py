"""Whose memory a tensor is in a loop: what makes every round leave its result where it found it.

One-shot bufferisation takes a loop only if each value that a round yields lies in the memory of the
value that the round was given. What is made anew is copied there, unless it can be made there.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from ...dialect.mlir.rewrite import walk
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
            end = list(op.regions[0].blocks[0].operations)[-1].operation
            found = root(end.operands[1 + number])
            if not isinstance(found, ir.BlockArgument) or found.owner.owner != op:
                return value
            value = op.operands[found.arg_number]
        elif op.name == "scf.if":
            ends = [list(r.blocks[0].operations)[-1].operation for r in op.regions]
            one, two = (root(end.operands[number]) for end in ends)
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
    for op in list(walk(func)):
        if op.name == "scf.for":
            block = op.regions[0].blocks[0]
            _keep(block, list(block.arguments)[1:])
        elif op.name == "scf.while":
            block = op.regions[1].blocks[0]
            _keep(block, list(block.arguments))


def _keep(block: ir.Block, given: Sequence[ir.Value]) -> None:
    end = list(block.operations)[-1].operation
    values = list(end.operands)
    moved = [
        k for k, (v, g) in enumerate(zip(values, given, strict=True))
        if isinstance(v.type, ir.RankedTensorType) and root(v) != g
    ]  # fmt: skip
    # What another value lies in may be written meanwhile: as a copy it is not.
    for k in moved:
        found = source(values[k])
        if found in given:
            plain = isinstance(values[k], ir.BlockArgument)
            point = ir.InsertionPoint.at_block_begin(block) if plain else ir.InsertionPoint(end)
            with point, end.location:
                values[k] = emit(
                    "bufferization.alloc_tensor", values[k].type,
                    values[k],
                    operandSegmentSizes=ir.DenseI32ArrayAttr.get([0, 1, 0]),
                )  # fmt: skip
    for k in moved:
        with ir.InsertionPoint(end), end.location:
            end.operands[k] = emit(MATERIALIZE, values[k].type, values[k], given[k])
