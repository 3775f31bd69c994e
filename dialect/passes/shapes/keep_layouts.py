"""Give what groups return the layout in memory that NumPy gives it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from mlir import ir

from ...ir.device import HOST
from ...ir.op import Fusion, Op
from ...ir.types import ScalarType, TensorType, Type
from ...mlir.rewrite import (
    attrs_of,
    body_of,
    create,
    defining_op,
    op_class,
    ops_in,
    refresh_signature,
    set_type,
    terminator_of,
    type_of,
    types_of,
)
from ...mlir.values import main_functions
from ...ops.control_flow.control import If
from ...ops.elementwise.families import Elementwise
from ...ops.manipulation.permute import Permutation, Transpose
from ...ops.manipulation.shape import ExpandDims, Squeeze
from ...ops.speculation import FusionGroup
from ..base import Pass, register_pass
from ..speculate.alternatives import callee_of

_SIZE = 2  # of the axes of sample arrays, but for those of size 1
# Evaluated on samples: what they do depends on no size.
_EVALUATED = (Elementwise, Permutation, ExpandDims, Squeeze)


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
            wanted: dict[ir.Value, tuple[ir.Operation, int]] = {}
            for value in terminator_of(body_of(func)).operands:
                found = _group_result(value)
                if found is not None:
                    wanted[found] = (found.owner.operation, list(found.owner.results).index(found))
            orders: dict[ir.Operation, list[tuple[int, ...] | None]] = {}
            for result, (group, index) in wanted.items():
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
        cls = op_class(source)
        if cls is FusionGroup:
            return value
        if cls is not If:
            return None
        index = list(source.results).index(value)
        value = terminator_of(source.regions[0].blocks[0]).operands[index]


def _reorder(
    callee: ir.Operation, group: ir.Operation, result: ir.Value, index: int, order: Sequence[int]
) -> None:
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


# --- orders ---------------------------------------------------------------------------------------


def result_orders(callee: ir.Operation) -> list[tuple[int, ...] | None]:
    """Per value that a fusion function returns, its axes from the outermost in memory to the
    innermost; None where that is not known."""
    block = body_of(callee)
    returned = list(terminator_of(block).operands)
    ops = ops_in(block)[:-1]
    samples = {v: _argument(type_of(v)) for v in block.arguments}
    turned = any(s is not None and _order(s) != tuple(range(s.ndim)) for s in samples.values()
                 if isinstance(s, np.ndarray))  # fmt: skip
    if not turned and not any(issubclass(op_class(op) or Op, Permutation) for op in ops):
        return [None] * len(returned)
    for op in ops:
        samples |= dict(zip(op.results, _results(op, samples), strict=True))
    found = [samples[v] for v in returned]
    return [None if not isinstance(s, np.ndarray) else _order(s) for s in found]


def _results(op: ir.Operation, samples: dict[ir.Value, Any]) -> Sequence[Any]:
    """Samples of what an op returns; None where nothing is known."""
    cls, types = op_class(op), types_of(op.results)
    given = [samples.get(v) for v in op.operands]
    if cls is None or any(x is None for x in given):
        return [None] * len(types)
    if issubclass(cls, _EVALUATED) or (cls.fusion is Fusion.REDUCTION and len(given) == 1):
        try:
            with np.errstate(all="ignore"):
                made = cls.evaluate(attrs_of(op), *given)
        except Exception:  # a sample may be too small for what it is asked
            return [None] * len(types)
        made = made if isinstance(made, tuple) else (made,)
        fits = len(made) == len(types) and all(map(_is_sample_of, made, types))
        return made if fits else [None] * len(types)
    plain = all(not isinstance(x, np.ndarray) or _order(x) == tuple(range(x.ndim)) for x in given)
    return [_sample(t, None) if plain or cls.fusion is Fusion.CONTRACTION else None for t in types]


def _argument(type_: Type) -> Any:
    if not isinstance(type_, TensorType) or isinstance(type_.strides, str):
        return _sample(type_, None)
    return None if type_.strides is None else _sample(type_, type_.strides)


def _sample(type_: Type, strides: Sequence[int | None] | None) -> Any:
    """A small array whose axes lie in memory as these strides say (None = C order), or a number."""
    if isinstance(type_, ScalarType):
        return type_.value if type_.value is not None else type(type_.dtype.numpy.type(0).item())(1)
    if not isinstance(type_, TensorType) or type_.dtype is None or type_.shape is None:
        return None
    if 0 in type_.shape or type_.device not in (None, HOST):
        return None
    sizes = [1 if d == 1 else _SIZE for d in type_.shape]
    # Strides that are not known are those of axes outside of others, in Fortran order if the
    # innermost axis is the first.
    steps = [np.inf if s is None else abs(s) for s in strides or [None] * len(sizes)]
    axes = range(len(sizes))
    order = sorted(reversed(axes) if steps[:1] == [1] else axes, key=lambda axis: -steps[axis])
    made = np.ones([1 if steps[k] == 0 else sizes[k] for k in order], type_.dtype.numpy)
    return np.broadcast_to(made.transpose([order.index(k) for k in range(len(order))]), sizes)


def _is_sample_of(sample: Any, type_: Type) -> bool:
    if not isinstance(type_, TensorType):
        return not isinstance(sample, np.ndarray)
    sizes = None if type_.shape is None else tuple(1 if d == 1 else _SIZE for d in type_.shape)
    return np.shape(sample) == sizes


def _order(sample: np.ndarray) -> tuple[int, ...]:
    """The axes of an array from the largest stride to the smallest."""
    return tuple(sorted(range(sample.ndim), key=lambda axis: -abs(sample.strides[axis])))


__all__ = ["KeepLayouts", "result_orders"]
