"""How numbers that tracing knows follow from a call's leaves: what trace guards are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...errors import ProfuseError
from ...ir.dtypes import I64
from ...ir.postorder import postorder
from ...ir.program import Instr
from ...ir.symbolic import Dimension, Integer, symbol
from ...ir.types import ScalarType, TensorType, Type
from .trace_guards import ConstExpr, Expr, LeafExpr, OpExpr, expr_of_dim

if TYPE_CHECKING:
    from .recorder import Recorder

MAX_OPS = 64  # of one expression; see `Derivation.expr`
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_FROM_TYPES = ("dim", "size")


class Derivation:
    """Traces numbers of one recorder back to its leaves, however far away these are."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._types: dict[int, Type] = {}

    def expr(self, value: int) -> Expr | None:
        """How a known number follows from the leaves; None if that cannot be told.

        Nor is it told of more than `MAX_OPS` ops: a guard is checked at every call, and as a tree,
        which repeats whatever is used twice.
        """
        found: dict[int, Expr | None] = {}
        ops: dict[int, int] = {}
        for number in postorder([value], self._operands):
            ops[number] = 1 + sum(ops[o] for o in self._operands(number))
            found[number] = self._expr(number, found) if ops[number] <= MAX_OPS else None
            if isinstance(found[number], ConstExpr):
                ops[number] = 1
        return found[value]

    def _operands(self, value: int) -> tuple[int, ...]:
        """The numbers that a number is computed from."""
        rec = self._recorder
        instr = None if value in rec.leaf_of else rec.defs.get(value)
        if instr is None or instr.op.name == "constant" or instr.op.name in _FROM_TYPES:
            return ()
        return instr.operands

    def _expr(self, value: int, known: Mapping[int, Expr | None]) -> Expr | None:
        rec = self._recorder
        if value in rec.leaf_of:
            return LeafExpr(rec.leaf_of[value])
        instr = rec.defs.get(value)
        if instr is None:
            return None
        if instr.op.name == "constant":
            return ConstExpr(rec.known[value])
        if instr.op.name in _FROM_TYPES:
            return self._size_expr(instr)
        args = [known[o] for o in instr.operands]
        if any(a is None for a in args):
            return None
        exprs = tuple(a for a in args if a is not None)
        same = instr.op.name in _COMPARISONS and exprs[0] == exprs[1]
        # A NaN is not equal to itself.
        exact = all(rec.dtype(o).kind in "bi" for o in instr.operands)
        if (same and exact) or all(isinstance(a, ConstExpr) for a in exprs):
            return ConstExpr(rec.known[value])
        return OpExpr(instr.op.name, exprs, tuple(sorted(instr.attrs.items())))

    def _size_expr(self, instr: Instr) -> Expr | None:
        type_ = self._symbolic_type(instr.operands[0])
        if not isinstance(type_, TensorType) or type_.shape is None:
            return None
        dims = type_.shape if instr.op.name == "size" else (type_.shape[instr.attrs["axis"]],)
        total: Any = 1
        for dim in dims:
            if dim is None:
                return None
            total = dim * total
        return expr_of_dim(total)

    # --- types with symbols for sizes ----------------------------------------------------------

    def _symbolic_type(self, value: int) -> Type:
        """Type of a value in which sizes of the arguments are symbols, inferred on demand."""
        for needed in postorder([value], self._untyped_operands):
            if needed not in self._types:
                self._types[needed] = self._infer(needed)
        return self._types[value]

    def _untyped_operands(self, value: int) -> tuple[int, ...]:
        rec = self._recorder
        instr = rec.defs.get(value)
        if value in self._types or value in rec.leaf_of or instr is None or instr.blocks:
            return ()
        return instr.operands

    def _infer(self, value: int) -> Type:
        """Type of a value whose operands have theirs."""
        rec = self._recorder
        hint = rec.hints[value]
        leaf = rec.leaf_of.get(value)
        if leaf is not None:
            if isinstance(hint, ScalarType):
                return ScalarType(hint.dtype, symbol(Integer(leaf)) if hint.dtype is I64 else None)
            rank = len(rec.shape(value))
            shape = tuple(symbol(Dimension(leaf, axis)) for axis in range(rank))
            return TensorType(hint.dtype, shape)  # type: ignore[union-attr]
        instr = rec.defs.get(value)
        if instr is None or instr.blocks:
            captured = value in rec.capture_inputs
            return hint if captured else TensorType(getattr(hint, "dtype", None))
        types = [self._types[o] for o in instr.operands]
        try:
            results = instr.op.infer(types, instr.op.full_attrs(instr.attrs))
        except (ProfuseError, TypeError, ValueError, OverflowError):
            return TensorType(getattr(hint, "dtype", None))
        return results[instr.results.index(value)]


__all__ = ["MAX_OPS", "Derivation"]
