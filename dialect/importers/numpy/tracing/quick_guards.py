"""Guards of a trace as one Python function, for calls that Python dispatches.

Most guards compare expressions over sizes, some of which are long. Worked out by `TraceGuard.holds`, twenty of them
take longer than a small kernel; written as one expression of Python's, they take a few microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....dataclass import dataclass
from ....ir.symbolic import Dimension, Sym, dim_text
from ..python.users_code import generated_file
from .trace_guards import Computed, Expr, TraceGuard

_LONGEST = 500  # characters of a guard; longer ones stay with `TraceGuard.holds`
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


@dataclass(frozen=True)
class QuickGuards:
    """The guards of a trace.

    Attributes:
        sizes_fit: of a sequence of leaves, False where a guard that is in it may fail; None = it has none.
        others: the guards that are not in it.
    """

    sizes_fit: Callable[[Sequence[Any]], bool] | None
    others: tuple[TraceGuard, ...]

    @classmethod
    def of(cls, guards: Sequence[TraceGuard]) -> QuickGuards:
        """The guards, of which those over sizes alone are compiled."""
        written = [(guard, _written(guard)) for guard in guards]
        conditions = [condition for _, condition in written if condition is not None]
        sizes_fit = None
        if conditions:
            text = f"lambda leaves: {' and '.join(conditions)}"
            sizes_fit = eval(compile(text, generated_file("guards of a trace"), "eval"), {"max": max, "min": min})
        return cls(sizes_fit, tuple(guard for guard, condition in written if condition is None))

    def hold(self, leaves: Sequence[Any]) -> bool:
        """True if `TraceGuard.holds` is true of all guards."""
        try:
            if self.sizes_fit is not None and not self.sizes_fit(leaves):
                return False
        except ArithmeticError:  # a size divides another one, and is 0
            return False
        return all(guard.holds(leaves) for guard in self.others)


def _written(guard: TraceGuard) -> str | None:
    """A guard as a condition of Python's; None where it is not over sizes alone."""
    expr, expected = guard.expr, guard.expected
    text = None
    if isinstance(expr, Sym) and type(expected) is int:
        size = _size(expr)
        text = size and f"({size}) == {expected}"
    elif isinstance(expr, Computed) and expr.op in _COMPARISONS and not expr.attrs and type(expected) is bool:
        a, b = map(_size, expr.args)
        text = a and b and f"{'' if expected else 'not '}(({a}) {_COMPARISONS[expr.op]} ({b}))"
    return text if text and len(text) <= _LONGEST else None


def _size(expr: Expr) -> str | None:
    """An expression over sizes as Python's; None for any other: numbers that are passed may be of another type."""
    if type(expr) is int:
        return str(expr)
    if not isinstance(expr, Sym) or not all(isinstance(leaf, Dimension) for leaf in expr.symbols):
        return None
    return dim_text(expr, lambda leaf: f"leaves[{leaf.array}].shape[{leaf.axis}]")
