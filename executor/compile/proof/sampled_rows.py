"""Evaluates only some rows of large results, to save time in checks.

In elementwise ops, reductions along other axes, products and some views, row ``i`` of the result
depends on row ``i`` of some operands and on the whole of others. If a function ends in such ops,
they are evaluated only for the compared rows. All ops before them are evaluated for all rows.
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
"""Rows are picked if the largest result has more elements than this."""
_COMPARED = 1 << 12  # the picked rows have about this many elements
_LEAST = 4  # least number of picked rows

Literal = tuple[int, ...]


class CheckedRows:
    """The rows of a function's results that are evaluated, and the ops that are restricted to them.

    Attributes:
        picked: row numbers, in increasing order.
        outputs: per output, True if only the picked rows of it are evaluated.
    """

    def __init__(self, function: Program, count: int, picked: np.ndarray) -> None:
        self.picked = picked
        self._function, self._count = function, count
        self._taken: dict[int, tuple[bool, ...]] = {}  # by result: operands that are taken by rows
        whole = {v for v in function.outputs if not self._leads(v)}
        for instr in reversed(function.body.instrs):
            row_wise = None if whole.intersection(instr.results) else self._by_rows(instr)
            if row_wise is None:
                whole.update(instr.operands)
            else:
                self._taken[instr.results[0]] = row_wise
                whole.update(v for v, rows in zip(instr.operands, row_wise, strict=True) if not rows)
        self.outputs = [v in self._taken for v in function.outputs]

    def adapt(self, instr: Instr, evaluate: Callable[..., Any]) -> Callable[..., Any]:
        """Turn the evaluation of an op on whole arrays into one on the picked rows."""
        row_wise = self._taken.get(instr.results[0]) if instr.results else None
        if row_wise is None:
            return evaluate
        cut = [rows and v not in self._taken for v, rows in zip(instr.operands, row_wise, strict=True)]
        if issubclass(instr.op, (BroadcastTo, Reshape)):
            shape = (self.picked.size, *self._shape(instr.results[0])[1:])  # type: ignore[index]
            call = np.broadcast_to if issubclass(instr.op, BroadcastTo) else np.reshape

            def evaluate(x: Any, *_: Any) -> Any:
                return call(x, shape)

        def run(*args: Any) -> Any:
            return evaluate(*(a[self.picked] if c else a for a, c in zip(args, cut, strict=True)))

        return run

    def share(self, instr: Instr) -> float:
        """The fraction of an op's elements that is evaluated."""
        rows = bool(instr.results) and instr.results[0] in self._taken
        return self.picked.size / self._count if rows else 1.0

    def _by_rows(self, instr: Instr) -> tuple[bool, ...] | None:
        """Per operand, True if rows of the result need only the same rows of the operand.

        None = the op cannot be evaluated by rows.
        """
        if len(instr.results) != 1 or not self._leads(instr.results[0]):
            return None
        op, attrs, first = instr.op, instr.op.full_attrs(instr.attrs), instr.operands[:1]
        rank = len(self._shape(instr.results[0]) or ())
        if issubclass(op, (Elementwise, BroadcastTo)):
            shapes = [self._shape(v) for v in instr.operands]
            return tuple(s is not None and len(s) == rank and s[0] == self._count for s in shapes)
        if not first or not self._leads(first[0]):
            return None
        first_rank = len(self._shape(first[0]) or ())
        if issubclass(op, Matmul):
            other = len(self._shape(instr.operands[1]) or ())
            if first_rank < 2 or (other > 2 and other != first_rank):
                return None
            return True, other > 2 and self._leads(instr.operands[1])
        views = issubclass(op, (ExpandDims, Reshape, Squeeze))
        views |= issubclass(op, Transpose) and (attrs["perm"] or (1,))[0] == 0
        along = issubclass(op, Reduction) and 0 not in reduced_axes(attrs["axes"], first_rank)
        if views or along:
            return (True, *(False for _ in instr.operands[1:]))
        return None

    def _leads(self, value: int) -> bool:
        return (self._shape(value) or (0,))[0] == self._count

    def _shape(self, value: int) -> Literal | None:
        return literal_shape(self._function, value)


def rows_of(function: Program) -> CheckedRows | None:
    """The rows to evaluate; None = results are small, or the ops cannot be evaluated by rows."""
    shapes = [literal_shape(function, v) or () for v in function.outputs]
    largest = max(shapes, key=lambda s: int(np.prod(s)), default=())
    elements = int(np.prod(largest))
    if elements <= LARGE or any(i.blocks or "callee" in i.op.attrs for i in function.body.instrs):
        return None
    count = largest[0]
    some = max(_LEAST, _COMPARED * count // elements)
    if 2 * some > count:
        return None
    # The rows at both ends, where loops begin and end, and random rows between them.
    end = some // 4
    inner = np.random.default_rng(count).integers(end, count - end, some - 2 * end)
    picked = np.unique(np.concatenate([np.arange(end), inner, np.arange(count - end, count)]))
    rows = CheckedRows(function, count, picked)
    return rows if any(rows.outputs) else None


def literal_shape(function: Program, value: int) -> Literal | None:
    """The shape of a tensor if all its sizes are literal; None otherwise."""
    type_ = function.type_of(value)
    if not isinstance(type_, TensorType) or type_.shape is None:
        return None
    return type_.shape if all(isinstance(n, int) for n in type_.shape) else None  # type: ignore[return-value]
