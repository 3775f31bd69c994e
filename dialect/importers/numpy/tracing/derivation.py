"""How numbers that tracing knows follow from a call's leaves: what trace guards are made of."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ....errors import ProfuseError, ShapeError
from ....ir.dtypes import I64
from ....ir.postorder import postorder
from ....ir.symbolic import Dimension, Integer, Sym, symbol
from ....ir.types import ScalarType, TensorType, Type
from ....ops import create
from ....ops.elementwise.binary import Add, Div, FloorDiv, Maximum, Minimum, Mul, Pow, Remainder
from ....ops.elementwise.families import Compare
from ....ops.queries import Dim, Size
from .trace_guards import Computed, Constant, Expr, constant, passed

if TYPE_CHECKING:
    from .recorder import Recorder

MAX_OPS = 64  # of one expression; see `Derivation.expr`
_DIVISIONS = (FloorDiv, Remainder)
_FROM_TYPES = (Dim, Size)
# Their results are not negative where no operand is.
_KEEP_SIGN = (Add, Mul, Div, Pow, Maximum, Minimum, *_DIVISIONS)


class Derivation:
    """Traces numbers of one recorder back to its leaves, however far away these are."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._types: dict[int, Type] = {}
        self._found: dict[int, tuple[Expr | None, int]] = {}  # value -> expression, ops in it
        self._signs: dict[int, bool] = {}  # see `never_negative`

    def expr(self, value: int) -> Expr | None:
        """How a known number follows from the leaves; None if that is not known.

        None, too, for an expression of more than `MAX_OPS` ops, those of a `Sym` aside: every call
        evaluates it, as a tree, which repeats whatever is used twice.
        """
        for number in postorder([value], self._operands):
            if number not in self._found:
                ops = 1 + sum(self._found[o][1] for o in self._operands(number))
                found = self._expr(number) if ops <= MAX_OPS else None
                self._found[number] = found, 1 if isinstance(found, (int, Sym, Constant)) else ops
        return self._found[value][0]

    def never_negative(self, value: int) -> bool:
        """Whether a number is no less than 0 in any call: a size, or computed from such."""
        signs = self._signs
        for number in postorder([value], lambda n: () if n in signs else self._operands(n)):
            if number not in signs:
                signs[number] = self._never_negative(number)
        return signs[value]

    def _never_negative(self, value: int) -> bool:
        rec = self._recorder
        instr = None if value in rec.leaf_of else rec.defs.get(value)
        if instr is None:
            return False
        if issubclass(instr.op, create.Constant):
            number = rec.known.get(value)
            return isinstance(number, (int, float)) and number >= 0
        if issubclass(instr.op, _FROM_TYPES):
            return True
        return issubclass(instr.op, _KEEP_SIGN) and all(self._signs[o] for o in instr.operands)

    def _operands(self, value: int) -> tuple[int, ...]:
        """The numbers that a number is computed from."""
        rec = self._recorder
        instr = None if value in rec.leaf_of else rec.defs.get(value)
        if instr is None or issubclass(instr.op, (create.Constant, *_FROM_TYPES)):
            return ()
        return instr.operands

    def _expr(self, value: int) -> Expr | None:
        rec = self._recorder
        if value not in rec.known:
            return None  # the array that held the number has been written to
        if value in rec.leaf_of:
            leaf = rec.leaf_of[value]
            return passed(leaf, type(rec.leaves[leaf]))
        instr = rec.defs[value]
        if issubclass(instr.op, _FROM_TYPES):
            size = getattr(self._symbolic_type(value), "value", None)
            return size if isinstance(size, (int, Sym)) else None
        found = [self._found[o][0] for o in self._operands(value)]
        args = tuple([a for a in found if a is not None])
        if len(args) < len(found):
            return None
        same = issubclass(instr.op, Compare) and args[0] == args[1]
        # A NaN is not equal to itself.
        exact = all(rec.dtype(o).kind in "bi" for o in instr.operands)
        if (same and exact) or all(isinstance(a, (int, Constant)) for a in args):
            return constant(rec.known[value])
        symbolic = getattr(instr.op, "symbolic", None)
        # In a normal form a division may cancel out, but Python raises if the divisor is 0.
        by_any = issubclass(instr.op, _DIVISIONS) and not isinstance(args[1], int)
        if symbolic and not by_any and all(isinstance(a, (int, Sym)) for a in args):
            with suppress(ShapeError):  # too long to be written down
                return symbolic(*args)
        return Computed(instr.op.name, args, tuple(sorted(instr.attrs.items())))

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
            if value in rec.draws.shapes:
                return TensorType(getattr(hint, "dtype", None), rec.draws.shapes[value])
            captured = value in rec.captures.inputs
            return hint if captured else TensorType(getattr(hint, "dtype", None))
        types = [self._types[o] for o in instr.operands]
        try:
            results = instr.op.infer(types, instr.op.full_attrs(instr.attrs))
        except (ProfuseError, TypeError, ValueError, OverflowError):
            return TensorType(getattr(hint, "dtype", None))
        return results[instr.results.index(value)]


__all__ = ["MAX_OPS", "Derivation"]
