"""Write what observers recorded into the types of values (R1.37)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...errors import ProfuseError
from ...ir.types import TENSOR, TensorType, Type, merge_types
from ...mlir.facts import is_constant_op
from ...mlir.rewrite import (
    attrs_of,
    blocks_in,
    body_of,
    defining_op,
    op_class,
    ops_in,
    refresh_signature,
    set_type,
    type_of,
    walk,
)
from ...mlir.ties import tied_values
from ...mlir.typed_values import Types, constant_type, main_functions, values_of
from ...ops.speculation import Profile, ProfileValue
from ..base import Pass, register_pass
from ..cleanup.remove_profiling import remove_counter, remove_observers
from .carried_layouts import put_in_order


@register_pass
@dataclass(frozen=True)
class Specialize(Pass):
    """Give values the types their observers recorded, infer the others, remove the observers.

    Several observers of one value, and a type it already has, are merged.  A value whose observer
    recorded nothing stays bare.  Values that `scf` ties together (what a block yields, the
    result, what a loop carries) get one type: what all of them that are known agree on.  Observers
    of values that are no tensors stay where ops are left to the fuser of device groups (``leave``),
    or constants depend on them.
    """

    name: ClassVar[str] = "specialize"
    leave: str = ""

    def run(self, module: ir.Module) -> None:
        for func in main_functions(module):
            recorded = _recorded(func)
            self.count("values-observed", sum(t != TENSOR for t in recorded.values()))
            remove_counter(func)
            classes = (Profile,) if self.leave else (Profile, ProfileValue)
            remove_observers(func, classes, speculated=False)
            for value, type_ in recorded.items():
                old = type_of(value)
                if type_ != TENSOR and isinstance(old, TensorType):
                    set_type(value, type_ if old == TENSOR else merge_types(old, type_))
            types = Types()
            unobserved = {v for v in values_of(func) if v not in recorded and type_of(v) == TENSOR}
            self._infer(body_of(func), types, unobserved)
            in_order = put_in_order(func)
            self.count("arrays-put-in-order", len(in_order))
            if in_order:  # what is a view of them lies otherwise
                self._infer(body_of(func), Types(), unobserved.difference(*in_order))
            for tied in tied_values(func):
                _unify(tied)
            refresh_signature(func)

    def _infer(self, block: ir.Block, types: Types, unobserved: set[ir.Value]) -> None:
        for op in ops_in(block):
            for inner in blocks_in(op):
                self._infer(inner, types, unobserved)
            if is_constant_op(op):
                value = op.results[0]
                types[value] = constant_type(value) or type_of(value)
                if value in unobserved:
                    set_type(value, types[value])
                continue
            if op_class(op) is None:
                continue
            try:
                inferred = types.infer(op)
            except ProfuseError:
                # Records of different iterations or branches can contradict each other.
                self.count("contradictions")
                continue
            for value, type_ in zip(op.results, inferred, strict=False):
                if value in unobserved and isinstance(type_, TensorType):
                    set_type(value, type_)
                elif not isinstance(type_, TensorType):
                    types[value] = type_


def _recorded(func: ir.Operation) -> dict[ir.Value, TensorType]:
    """The merged records of every observed value; the bare type if no observer was ever hit."""
    records: dict[ir.Value, TensorType] = {}
    for op in walk(func):
        if op_class(op) is not Profile:
            continue
        value = op.operands[0]
        while (inner := defining_op(value)) is not None and op_class(inner) is Profile:
            value = inner.operands[0]
        old, new = records.setdefault(value, TENSOR), attrs_of(op)["profiled_type"] or TENSOR
        if new.dtype is None:  # an undefined tensor, of which no type tells anything
            new = TENSOR
        if new != TENSOR:
            records[value] = new if old == TENSOR else merge_types(old, new)
    return records


def _unify(values: Sequence[ir.Value]) -> None:
    """Give all values the type that the known ones agree on."""
    merged: Type | None = None
    for value in values:
        type_ = type_of(value)
        if isinstance(type_, TensorType) and type_ != TENSOR:
            merged = type_ if merged is None else merge_types(merged, type_)  # type: ignore[arg-type]
    if merged is not None:
        for value in values:
            if type_of(value) != merged:
                set_type(value, merged)
