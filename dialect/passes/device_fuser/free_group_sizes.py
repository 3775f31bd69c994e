"""Groups behind relaxed guards that were written without relations between sizes (A6)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from mlir import ir

from ...guards.checks import ALL_FREE
from ...guards.free_sizes import FreeSizes, axis_name
from ...ir.symbolic import Sym
from ...ir.types import TensorType, Type
from ...mlir.facts import is_constant
from ...mlir.rewrite import (
    attrs_of,
    body_of,
    defining_op,
    is_a,
    set_attributes,
    symbol_of,
    type_of,
    unique_symbol,
    users,
    walk,
)
from ...mlir.typed_values import main_functions
from ...ops.control_flow.control import If
from ...ops.speculation import CudaGuard, FusionGroup, Guard
from ...reasons import Effect, Reason
from ..base import Pass, register_pass
from ..partition.alternatives import callee_of
from .group_sizes import free_group, is_profiled


@register_pass
@dataclass(frozen=True)
class FreeGroupSizes(Pass):
    """Free the sizes of a group behind a `cuda_guard` that asks nothing of how sizes fit each other.

    The guard gets the relations that the ops of the group need, and the group's function symbols for
    sizes. Of a group that reads arrays which nobody checks, and of one whose ops have no symbols for
    sizes, the guard asks for the sizes in its types.
    """

    name: ClassVar[str] = "free-group-sizes"
    counts_changes: ClassVar[bool] = True

    def run(self, module: ir.Module) -> None:
        for func in main_functions(module):
            for guard in [op for op in walk(func) if is_a(op, CudaGuard)]:
                if CudaGuard.free_sizes(attrs_of(guard)) == ALL_FREE:
                    self._free(module, guard)

    def _free(self, module: ir.Module, guard: ir.Operation) -> None:
        types = attrs_of(guard)["types"]
        if not all(map(is_profiled, types)):
            return
        literal = FreeSizes(
            fit=tuple(
                f"{axis_name(k, axis)} == {size}"
                for k, type_ in enumerate(types)
                for axis, size in enumerate(type_.shape)
                if isinstance(size, int) and size not in (0, 1)
            )
        )
        relations: list[FreeSizes] = []
        for call in _groups(guard):
            callee, checked = callee_of(module, call), _checked_operands(guard, call)
            if checked is None:
                relations.append(literal)
                continue
            if any(_has_symbols(type_of(body_of(callee).arguments[n])) for n in checked):
                continue  # `insert-device-guards` has freed them
            if sum(is_a(op, FusionGroup) and attrs_of(op)["callee"] == symbol_of(callee) for op in walk(module)) > 1:
                callee = _own_callee(module, call, callee)
            free = free_group(callee, checked, types)
            if isinstance(free, Reason):
                self.note(replace(free, effect=Effect.CONSTANT_SIZES))
                relations.append(literal)
            else:
                relations.append(free[0])
                types = free[1]
            self.count("groups-freed")
        equal = dict.fromkeys(quad for each in relations for quad in each.equal)
        fit = dict.fromkeys(text for each in relations for text in each.fit)
        if equal or fit:
            set_attributes(guard, {"types": types, "equal": tuple(equal), "fit": tuple(fit)})
            self.count("guards-related")


def _groups(guard: ir.Operation) -> list[ir.Operation]:
    """The groups that run where a guard holds, and read what it has checked, and no other guard has."""
    passed = guard.results[len(guard.results) - 1]
    branches = [op for op in users(passed) if is_a(op, If)]
    groups = [op for branch in branches for op in walk(branch.regions[0].blocks[0]) if is_a(op, FusionGroup)]
    checked = {*guard.operands, *guard.results}
    return [
        op
        for op in groups
        if not checked.isdisjoint(op.operands)
        and not any(is_a(defining_op(v), Guard) and v not in checked for v in op.operands)
    ]


def _checked_operands(guard: ir.Operation, call: ir.Operation) -> dict[int, int] | None:
    """Operand of a group -> operand of its guard; None if it reads tensors that nobody checks."""
    numbers = {v: k for values in (guard.operands, guard.results) for k, v in enumerate(values)}
    checked = {n: numbers[v] for n, v in enumerate(call.operands) if v in numbers}
    others = [v for n, v in enumerate(call.operands) if n not in checked and isinstance(type_of(v), TensorType)]
    return None if any(not is_constant(v) for v in others) else checked


def _own_callee(module: ir.Module, call: ir.Operation, callee: ir.Operation) -> ir.Operation:
    """A copy of a function for one of its calls."""
    copy = callee.clone(ip=ir.InsertionPoint(module.body)).operation
    name = unique_symbol(module, symbol_of(callee))
    copy.attributes["sym_name"] = ir.StringAttr.get(name)
    set_attributes(call, {"callee": name})
    return copy


def _has_symbols(type_: Type) -> bool:
    return isinstance(type_, TensorType) and any(isinstance(size, Sym) for size in type_.shape or ())
