"""Evaluating some rows of large results: enough to compare, and what a check has time for.

Of elementwise ops, reductions along other axes, products and some views row ``i`` of the result is
made of rows ``i`` of operands, and of whole others. Where a function ends in such ops, they are
evaluated for the rows that are compared; all before them, as any other function, is evaluated
whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....dialect.ir.program import Instr, Program
from ....dialect.ir.types import TensorType
from ....dialect.ops.elementwise.families import Elementwise
from ....dialect.ops.linalg.contract import Matmul
from ....dialect.ops.manipulation.permute import Transpose
from ....dialect.ops.manipulation.shape import BroadcastTo, ExpandDims, Reshape, Squeeze
from ....dialect.ops.reductions.reduce import Reduction, reduced_axes

LARGE = 1 << 14
"""Elements of results, from which on rows are picked."""
_COMPARED = 1 << 12  # elements of the rows that are picked, or little more
_LEAST = 4  # rows

Literal = tuple[int, ...]


class Rows:
    """Which rows of a function's results are evaluated, and by which ops.

    Attributes:
        picked: their numbers.
        outputs: per output, whether it has these rows alone.
    """

    def __init__(self, function: Program, count: int, picked: np.ndarray) -> None:
        self.picked = picked
        self._function, self._count = function, count
        self._taken: dict[int, tuple[bool, ...]] = {}  # by result: operands that are taken by rows
        whole = {v for v in function.outputs if not self._leads(v)}
        for instr in reversed(function.body.instrs):
            taken = None if whole.intersection(instr.results) else self._by_rows(instr)
            if taken is None:
                whole.update(instr.operands)
            else:
                self._taken[instr.results[0]] = taken
                whole.update(v for v, rows in zip(instr.operands, taken, strict=True) if not rows)
        self.outputs = [v in self._taken for v in function.outputs]

    def adapt(self, instr: Instr, evaluate: Callable[..., Any]) -> Callable[..., Any]:
        """What evaluates an op for the rows, of what evaluates it for arrays."""
        taken = self._taken.get(instr.results[0]) if instr.results else None
        if taken is None:
            return evaluate
        cut = [
            rows and v not in self._taken for v, rows in zip(instr.operands, taken, strict=True)
        ]  # fmt: skip
        if issubclass(instr.op, (BroadcastTo, Reshape)):
            shape = (self.picked.size, *self._shape(instr.results[0])[1:])  # type: ignore[index]
            call = np.broadcast_to if issubclass(instr.op, BroadcastTo) else np.reshape

            def evaluate(x: Any, *_: Any) -> Any:
                return call(x, shape)

        def run(*args: Any) -> Any:
            return evaluate(*(a[self.picked] if c else a for a, c in zip(args, cut, strict=True)))

        return run

    def share(self, instr: Instr) -> float:
        """How much of an op is evaluated."""
        rows = bool(instr.results) and instr.results[0] in self._taken
        return self.picked.size / self._count if rows else 1.0

    def _by_rows(self, instr: Instr) -> tuple[bool, ...] | None:
        """Which operands are taken by rows to give rows of the result; None = they do not."""
        if len(instr.results) != 1 or not self._leads(instr.results[0]):
            return None
        op, attrs, first = instr.op, instr.op.full_attrs(instr.attrs), instr.operands[:1]
        rank = len(self._shape(instr.results[0]) or ())
        if issubclass(op, (Elementwise, BroadcastTo)):
            shapes = [self._shape(v) for v in instr.operands]
            return tuple(
                s is not None and len(s) == rank and s[0] == self._count for s in shapes
            )  # fmt: skip
        if not first or not self._leads(first[0]):
            return None
        given = len(self._shape(first[0]) or ())
        if issubclass(op, Matmul):
            other = len(self._shape(instr.operands[1]) or ())
            if given < 2 or (other > 2 and other != given):
                return None
            return True, other > 2 and self._leads(instr.operands[1])
        views = issubclass(op, (ExpandDims, Reshape, Squeeze))
        views |= issubclass(op, Transpose) and (attrs["perm"] or (1,))[0] == 0
        along = issubclass(op, Reduction) and 0 not in reduced_axes(attrs["axes"], given)
        if views or along:
            return (True, *(False for _ in instr.operands[1:]))
        return None

    def _leads(self, value: int) -> bool:
        return (self._shape(value) or (0,))[0] == self._count

    def _shape(self, value: int) -> Literal | None:
        return literal_shape(self._function, value)


def rows_of(function: Program) -> Rows | None:
    """Rows of large results, if the function's ops allow to evaluate some; None = they do not."""
    shapes = [literal_shape(function, v) or () for v in function.outputs]
    largest = max(shapes, key=lambda s: int(np.prod(s)), default=())
    elements = int(np.prod(largest))
    if elements <= LARGE or any(i.blocks or "callee" in i.op.attrs for i in function.body.instrs):
        return None
    count = largest[0]
    some = max(_LEAST, _COMPARED * count // elements)
    if 2 * some > count:
        return None
    # Both ends, where loops begin and leave off, and any others.
    end = some // 4
    inner = np.random.default_rng(count).integers(end, count - end, some - 2 * end)
    picked = np.unique(np.concatenate([np.arange(end), inner, np.arange(count - end, count)]))
    found = Rows(function, count, picked)
    return found if any(found.outputs) else None


def literal_shape(function: Program, value: int) -> Literal | None:
    """The shape of a tensor all sizes of which are literal."""
    type_ = function.type_of(value)
    if not isinstance(type_, TensorType) or type_.shape is None:
        return None
    return type_.shape if all(isinstance(n, int) for n in type_.shape) else None  # type: ignore[return-value]
