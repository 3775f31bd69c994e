"""A short way for reductions along one axis or all, as `elementwise` has one for its operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...dialect.importers.numpy.tracing.current import current
from ...dialect.ir.gradient_mode import MODE, OFF
from ...dialect.ir.op import op_named
from .array import Array, Version
from .elementwise import with_node
from .node import SPECIAL, TAPE, Edge
from .op_node import evaluated
from .plans import OpPlans, op_plans
from .saved import Versions


def reduction(name: str, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """The method of a reduction.

    Args:
        name: of the op, which takes ``axes`` and ``keepdims``, and has `of_floats`.
        otherwise: is called with whatever is not usual.
    """
    op: Any = op_named(name)
    reduce = op.of_floats
    table: dict[tuple[Any, bool], OpPlans] = {}

    def plans_of(axis: int | None, keepdims: bool) -> OpPlans:
        axes = None if axis is None else (axis,)
        plans = table[axis, keepdims] = op_plans(op, {"axes": axes, "keepdims": keepdims})
        return plans

    def method(self: Array, axis: Any = None, *args: Any, keepdims: Any = False, **how: Any) -> Any:
        x = self.data
        rank = x.ndim
        if (
            not rank
            or args
            or how
            or not (keepdims is False or keepdims is True)
            or not (axis is None or (type(axis) is int and -rank <= axis < rank))
            or current() is not None
        ):
            return otherwise(self, axis, *args, keepdims=keepdims, **how)
        plans = table.get((axis, keepdims)) or plans_of(axis, keepdims)
        node = self._node if self.base is None else self.node
        dtype = x.dtype
        if node is None or dtype.char not in "fd" or (OFF and not MODE.on) or (SPECIAL and TAPE.special):
            return evaluated(plans, (self,))
        y = reduce(x, plans.attrs["axes"], keepdims)
        edges: list[Edge] = [(node, self.index)]
        plan = plans.known.get((x.shape, dtype)) or plans.of((x,), edges)
        versions: Versions = []
        if plan.keeps:
            version = self._version
            if version is None:
                version = self._version = Version()
            versions.append((version, version.count))
        else:
            x = plan.blank[0]
        return with_node(plan, edges, (x,), y, y.shape, dtype, versions)

    method.__name__ = method.__qualname__ = name
    return method
