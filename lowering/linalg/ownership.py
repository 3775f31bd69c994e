"""Whose memory a tensor is in a loop: what makes every round leave its result where it found it.

One-shot bufferisation takes a loop only if each value that a round yields lies in the memory of the
value that the round was given. What is made anew is copied there, unless it can be made there.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from .element import emit

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


def keep_in_place(values: Sequence[ir.Value], given: Sequence[ir.Value]) -> list[ir.Value]:
    """What a round yields, in the memory of what it was given, in the same order."""
    return [
        emit(MATERIALIZE, v.type, v, g)
        if isinstance(v.type, ir.RankedTensorType) and root(v) != g else v
        for v, g in zip(values, given, strict=True)
    ]  # fmt: skip
