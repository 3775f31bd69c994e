"""Types of values that no profile has seen, as far as the kernel of a loop needs them.

A run that is profiled takes one side of a branch, and a long loop is left after its first rounds.
What neither has reached is bare, and a loop with such values would run round by round from then on.
"""

from __future__ import annotations

from collections.abc import Collection

from mlir import ir

from ...errors import ProfuseError
from ...ir.types import TENSOR, TensorType
from ...mlir.facts import is_constant_op
from ...mlir.rewrite import blocks_in, body_of, op_class, ops_in, set_type, type_of, walk
from ...mlir.ties import tied_values
from ...mlir.typed_values import Types, constant_type
from ...ops.control_flow.control import If


def infer_unseen(func: ir.Operation, loops: Collection[ir.Operation]) -> None:
    """Infer the types of bare values in some loops, and in the branches that hold these.

    Not of those that `scf` ties to others, which know more of their layout than what is inferred.
    """
    bare: set[ir.Value] = set()
    for loop in loops:
        bare.update(v for op in walk(loop) for v in op.results)
        op = loop
        while op.name != "func.func":
            block, op = op.block, op.parent.operation
            if op_class(op) is If:
                bare.update(v for inner in ops_in(block) for v in inner.results)
    bare = {v for v in bare if type_of(v) == TENSOR}
    if bare:
        _infer(body_of(func), Types(), bare.difference(*tied_values(func)))


def _infer(block: ir.Block, types: Types, bare: set[ir.Value]) -> None:
    for op in ops_in(block):
        for inner in blocks_in(op):
            _infer(inner, types, bare)
        if is_constant_op(op):
            types[op.results[0]] = constant_type(op.results[0]) or type_of(op.results[0])
            continue
        if op_class(op) is None:
            continue
        try:
            result_types = types.infer(op)
        except ProfuseError:
            continue  # where it runs is where the user must see it
        for value, type_ in zip(op.results, result_types, strict=False):
            if not isinstance(type_, TensorType):
                types[value] = type_
            elif value in bare:
                set_type(value, type_)
