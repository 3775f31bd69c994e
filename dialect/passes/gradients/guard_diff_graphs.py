"""Guard differentiable subgraphs by what was profiled of their operands (R1.30 - R1.32)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...ir.types import ScalarType, TensorType, Type
from ...mlir.facts import is_constant
from ...mlir.rewrite import (
    attrs_of,
    body_of,
    defining_op,
    erase,
    op_class,
    ops_in,
    refresh_signature,
    set_type,
    short_name,
    symbol_of,
    terminator_of,
    type_of,
    walk,
)
from ...mlir.typed_values import constant_type, main_functions
from ...ops.speculation import DiffGraph, RgCheck
from ...reasons import Effect, Kind, Reason
from ..base import Pass, register_pass
from ..cleanup.remove_profiling import remove_observers
from ..partition.alternatives import callee_of, guarded, put_back, unspecialised
from .observed import is_enough, seen_at, seen_in


@register_pass
@dataclass(frozen=True)
class GuardDiffGraphs(Pass):
    """Run a differentiable subgraph only if its tensor operands are as they were profiled.

    An operand's type is that of its first observer in the subgraph that has seen something, of the
    observer that made it, or of the one that made the result of an earlier subgraph which it is.
    The guard compares dtypes, ranks and whether gradients are required, where not known counts as
    yes; its other side is a fallback graph. A subgraph of which an operand was never observed is
    dissolved.
    """

    name: ClassVar[str] = "guard-diff-graphs"
    counts_changes: ClassVar[bool] = True

    def run(self, module: ir.Module) -> None:
        for func in main_functions(module):
            returned: dict[ir.Value, TensorType] = {}
            for op in [op for op in walk(func) if op_class(op) is DiffGraph]:
                if attrs_of(op)["callee"] is not None and not _is_guarded(op):
                    self._guard(module, op, returned)

    def _guard(self, module: ir.Module, op: ir.Operation, returned: dict[ir.Value, TensorType]) -> None:
        """Guard one subgraph; ``returned`` has the observed types of what earlier ones return."""
        callee = callee_of(module, op)
        body = body_of(callee)
        types: list[Type] = []
        for value, arg in zip(op.operands, body.arguments, strict=True):
            operand_type = _wanted(value, arg, returned)
            if operand_type is None:
                self.note(Reason(Kind.UNOBSERVED, short_name(op), effect=Effect.DISSOLVED))
                self._dissolve(op, callee)
                return
            types.append(operand_type)
        checked = [k for k, v in enumerate(op.operands) if isinstance(types[k], TensorType) and not is_constant(v)]
        if not checked:  # nothing that it reads can require gradients
            self._dissolve(op, callee)
            return
        fallback = unspecialised(module, callee, "diff")
        remove_observers(fallback)
        for arg, type_ in zip(body.arguments, types, strict=True):
            set_type(arg, type_)
        refresh_signature(callee)
        result_types = [seen_at(v) for v in terminator_of(body).operands]
        results = guarded(op, RgCheck, checked, [types[k] for k in checked], symbol_of(fallback))
        returned.update((v, t) for v, t in zip(results, result_types, strict=True) if t is not None)
        self.count("guards")

    def _dissolve(self, op: ir.Operation, callee: ir.Operation) -> None:
        put_back(op, callee)
        erase(callee)
        self.count("dissolved")


def _wanted(value: ir.Value, arg: ir.Value, returned: dict[ir.Value, TensorType]) -> Type | None:
    """The type of one operand for which a subgraph is differentiated; None = too little was observed."""
    type_ = type_of(value)
    if isinstance(type_, ScalarType):
        return type_
    if is_constant(value):
        constant = constant_type(value)
        observation = constant if isinstance(constant, TensorType) else None
    else:
        block = ir.BlockArgument(arg).owner
        inside = seen_in((inner for op in ops_in(block) for inner in (op, *walk(op))), arg)
        observation = inside or seen_at(value) or returned.get(value)
    if observation is None or not is_enough(observation):
        return None
    assert observation.dtype is not None and observation.shape is not None
    flag = observation.dtype.kind in "fc" and observation.requires_grad is not False and not is_constant(value)
    return TensorType(observation.dtype, (None,) * len(observation.shape), requires_grad=flag)


def _is_guarded(op: ir.Operation) -> bool:
    sources = [op_class(s) for v in op.operands if (s := defining_op(v)) is not None]
    return RgCheck in sources
