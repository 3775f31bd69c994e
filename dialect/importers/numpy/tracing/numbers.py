"""Numbers that Python needs of a trace: baked into the graph, which is guarded for them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import Loc
from ....ir.program import Instr
from ....ir.symbolic import Dimension, symbol
from ....ir.types import ScalarType, TensorType, Type
from ....ops import create
from ....ops.queries import Dim, Size
from ....trees.leaves import NUMBERS
from .current import contents_error, user_loc
from .trace_guards import Computed, Expr, NumberConstant, TraceGuard, evaluate, numbers_of, passed

if TYPE_CHECKING:
    from .recorder import Recorder


class Numbers:
    """The numbers that one trace has baked.

    Args:
        rec: the trace.

    Attributes:
        guards: what they are of the arguments.
        variables: by which what is recorded now is to be differentiated.
        fixable: so many leaves become constants, in a new trace, if they decide sizes.
        size_leaves: these, and the lines that need them.
    """

    def __init__(self, rec: Recorder) -> None:
        self._rec = rec
        self.guards: list[TraceGuard] = []
        self.variables: set[int] = set()
        self.fixable = 0
        self.size_leaves: dict[int, Loc | None] = {}

    def note(self, result: int, instr: Instr, hints: tuple[Type, ...]) -> None:
        """Record the number a result has, if it follows from sizes and number leaves alone."""
        value: Any = None
        hint = self._rec.hints[result]
        if isinstance(hint, TensorType) and hint.shape != ():
            return
        if issubclass(instr.op, create.Constant):
            value = instr.attrs["value"]
        elif issubclass(instr.op, (Dim, Size)):
            shape = self._rec.shape(instr.operands[0])
            if issubclass(instr.op, Dim):
                value = shape[instr.attrs["axis"]]
            elif None not in shape:
                value = math.prod(shape)
        elif instr.operands and all(o in self._rec.known for o in instr.operands):
            try:
                with np.errstate(all="ignore"):
                    value = instr.op.evaluate(
                        instr.op.full_attrs(instr.attrs), *(self._rec.known[o] for o in instr.operands)
                    )
            except (ArithmeticError, ValueError):
                return
        if value is None or not isinstance(value, (int, float, complex, np.generic, np.ndarray)):
            return
        self._rec.known[result] = value
        if isinstance(hint, ScalarType):
            self._rec.hints[result] = ScalarType(hint.dtype, value)

    def varies(self, value: int) -> bool:
        """True if a number is computed from one by which the trace will be differentiated."""
        waiting = [value] if self.variables else []
        while waiting:
            v = waiting.pop()
            if v in self.variables:
                return True
            if self._rec.dtype(v).kind in "fc":  # an int, or a size, has no derivative
                waiting += getattr(self._rec.defs.get(v), "operands", ())
        return False

    def bake(self, value: int, loc: Loc | None = None) -> Any:
        """The number that ``value`` has for the example arguments, guarded.

        ``loc``: the line that needs the number, if that is not the user's current one.

        Raises TraceError if it is known only at run time.
        """
        if value not in self._rec.known:
            raise contents_error(
                "a Python number is needed here, but this one depends on array contents and is known only at run time",
                "use pf.cond, pf.while_loop, pf.fori_loop or np.where",
            )
        number = self._rec.known[value]
        if isinstance(number, (np.generic, np.ndarray)):
            number = number.item()
        expr = self._rec.derivation.baked(value)
        while expr is None and self._decide(value, loc):
            expr = self._rec.derivation.baked(value)
        if expr is None:
            self.pin()
        else:
            self.guard(expr, number, loc)
        return number

    def _decide(self, value: int, loc: Loc | None) -> bool:
        """Guard how two sizes fit that keep a number from having an expression; False where that is of no help.

        That asks less of calls than `pin` does.
        """
        sizes = self._rec.derivation.undecided(value)
        if sizes is None:
            return False
        numbers = [evaluate(size, self._rec.leaves) for size in sizes]
        named = [k for k, size in enumerate(sizes) if not isinstance(size, int)]
        if numbers[0] == numbers[1]:
            is_relation = len(named) == 2
            expr: Expr = Computed("eq", sizes) if is_relation else sizes[named[0]]
            expected: Any = True if is_relation else numbers[0]
        elif ones := [k for k in named if numbers[k] == 1]:
            expr, expected = sizes[ones[0]], 1
        else:
            return False
        self.guard(expr, expected, loc)
        return self._rec.derivation.undecided(value) != sizes

    def note_size(self, value: int) -> None:
        """Note the arguments that a number follows from, which decides the size of an array."""
        if not self.fixable or value not in self._rec.known:
            return
        expr = self._rec.derivation.expr(value)
        new = set() if expr is None else numbers_of(expr) - self.size_leaves.keys()
        ints = [k for k in new if k < self.fixable and type(self._rec.leaves[k]) is int]
        if ints:
            self.size_leaves |= dict.fromkeys(ints, user_loc())

    def pin(self) -> None:
        """Guard all sizes and numbers, as any may have decided: the graph holds for these alone."""
        for leaf, example in enumerate(self._rec.leaves):
            if isinstance(example, (np.ndarray, np.generic)):
                for axis, size in enumerate(example.shape):
                    self.guard(symbol(Dimension(leaf, axis)), size)
            elif type(example) in NUMBERS:
                self.guard(passed(leaf, type(example)), example)

    def guard(self, expr: Expr, expected: Any, loc: Loc | None = None) -> None:
        """Have the graph hold for one value of an expression; ``loc``: the line that needs it."""
        if not isinstance(expr, (int, NumberConstant)) and not any(g.expr == expr for g in self.guards):
            self.guards.append(TraceGuard(expr, expected, loc or user_loc()))
            self._rec.derivation.note(expr, expected)
