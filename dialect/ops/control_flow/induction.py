"""The index of a counted loop as an expression over a symbol of the loop's own.

A symbol of a loop stands for an integer from 1 to the loop's *span*, as size symbols stand for 1 or
more. So bounds of slices and places of elements are size expressions, of which it is known whether
they are equal and in range.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dataclass import dataclass
from ...ir.dtypes import I64
from ...ir.symbolic import UP_TO, Dim, Sym, symbol
from ...ir.types import ScalarType, Type


@dataclass(frozen=True)
class Induction:
    """The index of one loop.

    Attributes:
        type: of the index; its value is an expression, if the bound at which it starts counting is
            known, and the step is a literal.
        symbol: name of the symbol in that expression; "" = there is none.
        base: index - symbol.
        span: the largest value of the symbol; None = it is known at run time only.
    """

    type: ScalarType
    symbol: str = ""
    base: Dim = 0
    span: Dim | None = None


def induction(bounds: Sequence[Type], name: str) -> Induction:
    """The expression for the index of a loop with operands of these types: lower, upper, step.

    ``name``: of the loop's symbol, to which its largest value is added if that is a literal.
    """
    lower, upper, step = (t.value if isinstance(t, ScalarType) else None for t in bounds)
    if not isinstance(step, int) or not step:
        return Induction(ScalarType(I64))
    # A loop that counts down stays above its upper bound.
    start, end = (lower, upper) if step > 0 else (upper, lower)
    if not isinstance(start, (int, Sym)):
        return Induction(ScalarType(I64))
    base = start - 1 if step > 0 else start
    span = end - start if isinstance(end, (int, Sym)) else None
    if span is not None and step > 1:
        span = (span - 1) // step * step + 1  # the last round may be some steps before the end
    if isinstance(span, int):
        name = f"{name}{UP_TO}{max(span, 1)}"
    return Induction(ScalarType(I64, base + symbol(name)), name, base, span)
