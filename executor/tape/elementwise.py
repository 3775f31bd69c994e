"""A short way for elementwise operations: runs on small arrays consist of little else than ways.

Nothing here has results of its own: whatever is not usual goes the way of all operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dialect.errors import InternalError, ProfuseError
from ...dialect.importers.gradients.reads import reads_of
from ...dialect.ir.dtypes import C128
from ...dialect.ir.gradients import times
from ...dialect.ir.op import Op
from ...dialect.ir.types import TensorType
from ...dialect.ops.elementwise.families import Binary, Elementwise, Unary
from .builder import Unsaved, absorbed
from .node import Edge

_PLAIN = (int, float)


class Plan:
    """What is known of an elementwise op for operands that require gradients or do not.

    Attributes:
        reads: which operands its derivatives read.
        reads_result: whether they read the result.
        partials: gives the derivatives.
        singular: whether a gradient of 0 stays 0 where they are infinite.
    """

    __slots__ = ("partials", "reads", "reads_result", "singular")

    def __init__(self, op: type[Op], operands: Sequence[Any], wanted: Sequence[bool]) -> None:
        reads, results = reads_of(op, {}, operands, wanted)
        self.reads, self.reads_result = tuple(sorted(reads)), bool(results)
        assert op.partials is not None
        self.partials, self.singular = op.partials, op.singular


class Plans:
    """The plans of one op, by which operands require gradients and which are numbers."""

    __slots__ = ("known", "numpy", "op")

    def __init__(self, op: type[Elementwise]) -> None:
        self.op, self.numpy = op, op.numpy
        self.known: dict[int, Plan] = {}

    def plan(self, key: int, operands: Sequence[Any]) -> Plan:
        """The plan of a key: 1 and 2 for operands that require gradients, 16 and 32 for numbers."""
        found = self.known.get(key)
        if found is None:
            wanted = [bool(key >> k & 1) for k in range(len(operands))]
            found = self.known[key] = Plan(self.op, operands, wanted)
        return found


_plans: dict[type[Op], Plans | None] = {}


def plans_of(op: type[Op]) -> Plans | None:
    """The plans of an op; None for one that does not have the short way."""
    try:
        return _plans[op]
    except KeyError:
        plain = issubclass(op, (Unary, Binary)) and _is_plain(op)
        made = _plans[op] = Plans(op) if plain else None  # type: ignore[arg-type]
        return made


def _is_plain(op: type[Op]) -> bool:
    if op.partials is None or op.attrs or op.aliases:
        return False
    try:  # an op whose float result may come of complex operands has other derivatives for these
        found = op.infer([TensorType(C128, ())] * len(op.operands), {})[0]
    except ProfuseError:
        return True
    return isinstance(found, TensorType) and found.dtype is C128


class _Nothing(Unsaved):
    """Stands for what a derivative by another operand reads; not even its shape is known."""

    def __init__(self) -> None:
        super().__init__(None, np.dtype(float))

    @property
    def dtype(self) -> Any:
        raise self._missing("dtype")

    @dtype.setter
    def dtype(self, dtype: Any) -> None:
        pass


_NOTHING = _Nothing()


def multiplied(
    plan: Plan, edges: Sequence[Edge], operands: Sequence[Any], results: Sequence[Any], g: Any
) -> list[Any] | None:
    """The gradients of the operands of an elementwise op on real floats.

    None where something is not usual: operands were broadcast or converted, or derivatives are
    asked of shapes.
    """
    y = results[0]
    try:
        parts = plan.partials(
            *[_NOTHING if x is None else x for x in operands], _NOTHING if y is None else y
        )
    except InternalError:
        return None
    found: list[Any] = []
    for part, edge in zip(parts, edges):  # noqa: B905 - as many of both
        if edge is None or part is None:
            found.append(None)
            continue
        kind = type(part)
        if kind in _PLAIN:
            product = g if part == 1 else -g if part == -1 else g * part
        elif kind is np.ndarray or isinstance(part, np.generic):
            product = absorbed(g, part) if plan.singular else g * part
        elif plan.singular:
            product = times(part, g, absorbed)
        else:
            product = times(part, g)
        shape, dtype = edge[0].metas[edge[1]]
        if type(product) is Unsaved or product.shape != shape or product.dtype != dtype:
            return None
        found.append(product)
    return found


__all__ = ["Plan", "Plans", "multiplied", "plans_of"]
