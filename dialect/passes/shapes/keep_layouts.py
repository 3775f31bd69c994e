"""Give what groups return the layout in memory that NumPy gives it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mlir import ir

from ...ir.types import TensorType
from ...mlir.rewrite import body_of, create, defining_op, is_a, refresh_signature, set_type, terminator_of, type_of
from ...mlir.typed_values import main_functions
from ...ops.control_flow.control import If
from ...ops.manipulation.permute import Transpose
from ...ops.speculation import FusionGroup
from ..base import Pass, register_pass
from ..partition.alternatives import callee_of
from .orders import result_orders


@register_pass
@dataclass(frozen=True)
class KeepLayouts(Pass):
    """Store results of fusion groups with their axes in the order that NumPy gives them in memory.

    The result of ``x.T * 2`` lies in memory as ``x`` does ("K order"). A group that returns such a
    result to the caller, and to nothing else, returns it with the axes in that order, and a view
    behind it puts them back. Kernels, whose results are C-contiguous, then read and write memory
    in the same order. Orders are those that NumPy gives samples of two elements per axis; of a
    result of ops whose order is not known so, the axes stay as they are.
    """

    name: ClassVar[str] = "keep-layouts"

    def run(self, module: ir.Module) -> None:
        for func in main_functions(module):
            results: dict[ir.Value, tuple[ir.Operation, int]] = {}
            for value in terminator_of(body_of(func)).operands:
                result = _group_result(value)
                if result is not None:
                    results[result] = (result.owner.operation, list(result.owner.results).index(result))
            orders: dict[ir.Operation, list[tuple[int, ...] | None]] = {}
            for result, (group, index) in results.items():
                callee = callee_of(module, group)
                if callee not in orders:
                    orders[callee] = result_orders(callee)
                order = orders[callee][index]
                if order is not None and list(order) != sorted(order):
                    _reorder(callee, group, result, index, order)
                    self.count("results-reordered")


def _group_result(value: ir.Value) -> ir.Value | None:
    """The result of a group that a returned value is, if nothing else reads it."""
    while True:
        uses = list(value.uses)
        source = defining_op(value)
        if len(uses) != 1 or source is None:
            return None
        if is_a(source, FusionGroup):
            return value
        if not is_a(source, If):
            return None
        index = list(source.results).index(value)
        value = terminator_of(source.regions[0].blocks[0]).operands[index]


def _reorder(callee: ir.Operation, group: ir.Operation, result: ir.Value, index: int, order: Sequence[int]) -> None:
    """Return a result of a group with its axes in another order, and put them back behind it."""
    end = terminator_of(body_of(callee))
    inner = end.operands[index]
    attrs: dict[str, Any] = {"perm": tuple(order)}
    turned = create(Transpose, [inner], attrs, Transpose.infer([type_of(inner)], attrs), end)
    end.operands[index] = turned.results[0]
    refresh_signature(callee)
    type_ = type_of(result)
    (use,) = result.uses
    reader, operand = use.owner.operation, use.operand_number
    if isinstance(type_, TensorType) and type_.shape is not None:
        set_type(result, Transpose.infer([type_], attrs)[0])
    back = {"perm": tuple(map(list(order).index, range(len(order))))}
    block = group.operation.block
    after = list(block.operations)
    following = after[[o.operation for o in after].index(group) + 1].operation
    view = create(Transpose, [result], back, [type_], following, group.location)
    reader.operands[operand] = view.results[0]
