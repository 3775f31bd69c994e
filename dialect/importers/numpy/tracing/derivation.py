"""Derivations of numbers that tracing knows from a call's leaves: trace guards are made of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import ProfuseError, ShapeError
from ....ir.dtypes import I64
from ....ir.op import Op
from ....ir.postorder import postorder
from ....ir.size_algebra import fits_64_bits, substitute
from ....ir.symbolic import Dimension, Integer, Sym, symbol
from ....ir.types import ScalarType, TensorType, Type
from ....ops import create
from ....ops.elementwise.binary import Add, Div, FloorDiv, Maximum, Minimum, Mul, Remainder
from ....ops.elementwise.families import Compare
from ....ops.elementwise.powers import Pow
from ....ops.elementwise.select import Cast
from ....ops.queries import Dim, Item, Size, ToTensor
from .trace_guards import Computed, Expr, NumberConstant, constant, passed

if TYPE_CHECKING:
    from .recorder import Recorder

MAX_OPS = 64  # of one expression; see `Derivation.expr`
_DIVISIONS = (FloorDiv, Remainder)
_WIDE = np.dtype(np.int64)
_FROM_TYPES = (Dim, Size)
_SAME_NUMBER = (ToTensor, Cast, Item)  # of an integer, where the result has 64 bits
# Their results are not negative where no operand is.
_KEEP_SIGN = (Add, Mul, Div, Pow, Maximum, Minimum, *_DIVISIONS)


class Derivation:
    """Traces numbers of one recorder back to its leaves, however far away these are."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._types: dict[int, Type] = {}
        self._found: dict[int, tuple[Expr | None, int]] = {}  # value -> expression, ops in it
        self._integers: dict[int, Sym | int | None] = {}  # value -> see `_integer`
        self._signs: dict[int, bool] = {}  # see `never_negative`
        self._equal: dict[Dimension, Sym | int] = {}  # size -> what it is equal to, by the guards
        self._apart: dict[int, tuple[Any, Any]] = {}  # value -> two sizes that keep its type from being known
        for guard in recorder.numbers.guards:
            self.note(guard.expr, guard.expected)

    def note(self, expr: Expr, expected: Any) -> None:
        """Take over from a guard that two sizes are equal, or that one is a number.

        So results are known of ops whose operands have to fit each other, as of a layer and its bias.
        """
        first: Any = expr
        second = expected
        if isinstance(expr, Computed) and (expr.op, expected) in (("eq", True), ("ne", False)):
            first, second = expr.args
        if not all(type(size) is int or isinstance(size, Sym) for size in (first, second)):
            return
        first, second = (substitute(size, self._equal) for size in (first, second))
        pair: tuple[Any, Any] = (first, second) if _tells(first, second) else (second, first)
        told, by = pair
        if _tells(told, by):
            (leaf,) = told.symbols
            self._equal = {own: substitute(size, {leaf: by}) for own, size in self._equal.items()} | {leaf: by}
            for cache in (self._types, self._found, self._integers, self._signs, self._apart):
                cache.clear()

    def _size(self, leaf: int, axis: int) -> Sym | int:
        own = Dimension(leaf, axis)
        return self._equal.get(own, symbol(own))

    def expr(self, value: int) -> Expr | None:
        """The expression by which a known number follows from the leaves; None if that is not known.

        None, too, for an expression of more than `MAX_OPS` ops, those of a `Sym` aside: every call
        evaluates it, as a tree, which repeats whatever is used twice.
        """
        # Numbers of rounds follow from those of the round before: what is known of them is not looked at again.
        for number in postorder([value], lambda n: () if n in self._found else self._operands(n)):
            if number not in self._found:
                ops = 1 + sum(self._found[o][1] for o in self._operands(number))
                expr = self._expr(number) if ops <= MAX_OPS else None
                self._found[number] = expr, 1 if isinstance(expr, (int, Sym, NumberConstant)) else ops
                self._integers[number] = self._integer(number)
        return self._found[value][0]

    def baked(self, value: int) -> Expr | None:
        """The expression of a number as Python has it, which an array without axes may hold; None as `expr`."""
        expr, integer = self.expr(value), self._integers[value]
        return expr if integer is None else integer

    def undecided(self, value: int) -> tuple[Sym | int, Sym | int] | None:
        """Two sizes of arguments that keep a number from having an expression; None = there are none.

        Of ``x + y``, say, the sizes follow once it is known which axes are broadcast. One of the two is the size of
        an axis; the other one may be a literal, or an expression.
        """
        self.expr(value)
        apart = (self._apart[number] for number in postorder([value], self._sources) if number in self._apart)
        return next((pair for pair in apart if _tells(*pair) or _tells(*pair[::-1])), None)

    def counts_sizes(self, value: int) -> bool:
        """True for a sum or product of sizes, which is 0 if some sizes are, and else positive."""
        expr = self.expr(value)
        if not isinstance(expr, Sym) or any(times < 0 for _, times in expr.terms):
            return False
        return all(isinstance(leaf, Dimension) for leaf in expr.symbols)

    def _sources(self, value: int) -> tuple[int, ...]:
        instr = None if value in self._recorder.leaf_of else self._recorder.defs.get(value)
        return () if instr is None or instr.blocks else instr.operands

    def never_negative(self, value: int) -> bool:
        """True if a number is no less than 0 in any call: a size, or computed from such."""
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
        if issubclass(instr.op, _SAME_NUMBER):
            wide = all(rec.dtype(v) == _WIDE for v in (value, *instr.operands))
            return wide and self._signs[instr.operands[0]]
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
        exprs = [self._found[o][0] for o in self._operands(value)]
        args = tuple([a for a in exprs if a is not None])
        if len(args) < len(exprs):
            return None
        same = issubclass(instr.op, Compare) and args[0] == args[1]
        # A NaN is not equal to itself.
        exact = all(rec.dtype(o).kind in "bi" for o in instr.operands)
        if (same and exact) or all(isinstance(a, (int, NumberConstant)) for a in args):
            return constant(rec.known[value])
        if issubclass(instr.op, Item) and rec.dtype(value) == _WIDE:
            size = self._integers[instr.operands[0]]
            if size is not None:
                return size
        if all(isinstance(a, (int, Sym)) for a in args):
            size = _symbolic(instr.op, args)
            if size is not None:
                return size
        return Computed(instr.op.name, args, tuple(sorted(instr.attrs.items())))

    def _integer(self, value: int) -> Sym | int | None:
        """The integer that a number is, also one in an array without axes, if no step to it exceeds 64 bits; else None.

        As an expression such an array is `Computed`: which dtype others compute in is up to its own.
        """
        rec, (expr, _) = self._recorder, self._found[value]
        instr = None if value in rec.leaf_of else rec.defs.get(value)
        size: Sym | int | None = None
        if isinstance(expr, (int, Sym)):
            size = expr
        elif value in rec.known and instr is not None and rec.dtype(value) == _WIDE:
            operands = [self._integers[o] for o in self._operands(value)]
            if issubclass(instr.op, create.Constant):
                size = int(rec.known[value]) if np.ndim(rec.known[value]) == 0 else None
            elif operands and None not in operands:
                size = operands[0] if issubclass(instr.op, _SAME_NUMBER) else _symbolic(instr.op, operands)
        return size if size is not None and fits_64_bits(size) else None

    # --- types with symbols for sizes ----------------------------------------------------------

    def _symbolic_type(self, value: int) -> Type:
        """Type of a value in which sizes of the arguments are symbols, inferred on demand."""
        for number in postorder([value], self._untyped_operands):
            if number not in self._types:
                self._types[number] = self._infer(number)
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
            shape = tuple(self._size(leaf, axis) for axis in range(rank))
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
        except (ProfuseError, TypeError, ValueError, OverflowError) as error:
            sizes = getattr(error, "sizes", ())
            if len(sizes) == 2 and all(isinstance(size, (int, Sym)) for size in sizes):
                self._apart[value] = sizes  # type: ignore[assignment]
            return TensorType(getattr(hint, "dtype", None))
        return results[instr.results.index(value)]


def _symbolic(op: type[Op], operands: Sequence[Any]) -> Sym | int | None:
    """The result of an op on sizes, as a size; None where it is none."""
    symbolic = getattr(op, "symbolic", None)
    # In a normal form a division may cancel out, but Python raises if the divisor is 0.
    if symbolic is None or (issubclass(op, _DIVISIONS) and not isinstance(operands[1], int)):
        return None
    with suppress(ShapeError):  # too long to be written down
        return symbolic(*operands)
    return None


def _is_size(expr: Any) -> bool:
    """True for the size of an axis of an argument."""
    if not isinstance(expr, Sym) or len(expr.symbols) != 1:
        return False
    (leaf,) = expr.symbols
    return isinstance(leaf, Dimension) and expr == symbol(leaf)


def _tells(size: Any, other: Any) -> bool:
    """True if the size of an axis may be replaced by another size, of other axes, to which it is equal."""
    if not _is_size(size):
        return False
    if not isinstance(other, Sym):
        return type(other) is int
    return all(isinstance(leaf, Dimension) for leaf in other.symbols) and size.symbols.isdisjoint(other.symbols)
