"""Put observers into a graph (R1.16, R1.17)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import ClassVar

from mlir import ir

from ..observers import erased, wants_profiled_inputs, wants_profiled_outputs
from ..ops.speculation import Profile, ProfileCounter
from ..rewrite import (
    body_of,
    create,
    defining_op,
    is_terminator,
    op_class,
    terminator_of,
    type_of,
    walk,
)  # fmt: skip
from ..types import TENSOR, TensorType
from .base import Pass, register_pass
from .values import main_functions, map_types


@register_pass
@dataclass(frozen=True)
class InsertProfile(Pass):
    """Forget refined types, observe every tensor worth it at each use, count finished runs.

    An observer goes before a tensor operand when its user is worth observing or its producer is,
    and before every tensor that a block returns; one per value and user.  Sites are numbered in
    order within a function.  Private functions are left alone.
    """

    name: ClassVar[str] = "insert-profile"

    def run(self, module: ir.Module) -> None:
        for func in main_functions(module):
            map_types(func, erased)
            sites = count()
            for op in list(walk(func)):
                self._observe(op, sites)
            create(ProfileCounter, [], {}, [], terminator_of(body_of(func)))

    def _observe(self, op: ir.Operation, sites: count) -> None:
        observed: dict[ir.Value, ir.Value] = {}
        for index, value in enumerate(list(op.operands)):
            if not isinstance(type_of(value), TensorType) or not _wanted(op, value):
                continue
            if value not in observed:
                attrs = {"site": next(sites)}
                observed[value] = create(Profile, [value], attrs, [TENSOR], op).results[0]
                self.count("observers")
            op.operands[index] = observed[value]


def _wanted(user: ir.Operation, value: ir.Value) -> bool:
    if is_terminator(user):
        return True
    cls, producer = op_class(user), defining_op(value)
    if cls is not None and wants_profiled_inputs(cls):
        return True
    return producer is not None and wants_profiled_outputs(op_class(producer))
