"""Put observers into a graph (R1.16, R1.17, R1.23)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import ClassVar

from mlir import ir

from ...ir.types import TENSOR, TensorType
from ...mlir.facts import is_constant
from ...mlir.rewrite import (
    attrs_of,
    body_of,
    create,
    defining_op,
    is_terminator,
    op_class,
    terminator_of,
    type_of,
    types_of,
    walk,
)
from ...mlir.typed_values import main_functions, map_types, values_of
from ...ops.speculation import Profile, ProfileCounter, ProfileValue
from ...profiling.observers import erased, kinds_of_operands, wants_profiled_inputs, wants_profiled_outputs
from ..base import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class InsertProfile(Pass):
    """Forget refined types, observe every tensor worth it at each use, count finished runs.

    An observer goes before a tensor operand when its user is worth observing or its producer is,
    and before every tensor that a block returns; one per value and user.  Non-tensors are
    observed right after their definition where an op asks for that, and with ``values`` also what is
    given to attributes (R3.5).  Sites are numbered in order within a function, tensors first.
    Private functions are left alone.
    """

    name: ClassVar[str] = "insert-profile"
    values: bool = False

    def run(self, module: ir.Module) -> None:
        for func in main_functions(module):
            map_types(func, erased)
            sites = count()
            for op in list(walk(func)):
                self._observe(op, sites)
            self._observe_values(func, sites)
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

    def _observe_values(self, func: ir.Operation, sites: count) -> None:
        uses = [(op, k, kind) for op in walk(func) for k, kind in _observed_operands(op, self.values)]
        watched: dict[ir.Value, set[str]] = {}
        for op, k, kind in uses:
            watched.setdefault(op.operands[k], set()).add(kind)
        order = [(value, kind) for value in values_of(func) for kind in sorted(watched.get(value, ()))]
        observed: dict[tuple[ir.Value, str], ir.Value] = {}
        # Backwards, since each goes right behind the definition, before those already there.
        for (value, kind), site in reversed([(key, next(sites)) for key in order]):
            attrs = {"site": site, "kind": kind}
            observer = create(ProfileValue, [value], attrs, [type_of(value)], *_after(value))
            observed[value, kind] = observer.results[0]
            self.count("observers")
        for op, k, kind in uses:
            op.operands[k] = observed[op.operands[k], kind]


def _observed_operands(op: ir.Operation, late: bool) -> list[tuple[int, str]]:
    cls = op_class(op)
    if cls is None or not (late or any(field.observed for field in cls.operands)):
        return []
    kinds = kinds_of_operands(cls, attrs_of(op), types_of(op.operands), late=late)
    return [(k, kind) for k, kind in kinds.items() if not kind or not is_constant(op.operands[k])]


def _after(value: ir.Value) -> tuple[ir.InsertionPoint, ir.Location | None]:
    """Right after the definition of a value, and the location of what defines it."""
    producer = defining_op(value)
    if producer is not None:
        return ir.InsertionPoint.after(producer), producer.location
    return ir.InsertionPoint.at_block_begin(ir.BlockArgument(value).owner), None


def _wanted(user: ir.Operation, value: ir.Value) -> bool:
    if is_terminator(user):
        return True
    cls, producer = op_class(user), defining_op(value)
    if cls is not None and wants_profiled_inputs(cls):
        return True
    return producer is not None and wants_profiled_outputs(op_class(producer))
