"""Words on the checks of speculated values beside a guard of types (R3.38)."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialect.ir.program import Instr
from ...dialect.ops.size_lists import SizeEq, ValueEq, ViewGuard


def failed_of(words: Sequence[str], answers: Sequence[bool]) -> tuple[str, ...]:
    """The words of those checks that have failed."""
    return tuple(word for word, holds in zip(words, answers, strict=True) if not holds)


def told_check(instr: Instr | None) -> str:
    """The words on the failure of a check; None = nothing is known of the check."""
    if instr is not None and instr.op is ValueEq:
        return f"a value is not {instr.attrs['value']!r}"
    if instr is not None and instr.op is SizeEq:
        sizes = tuple(instr.attrs["reference"])
        return f"sizes to sum to are not such as {sizes}" if sizes else "sizes to sum to are given"
    if instr is not None and instr.op is ViewGuard:
        return "sizes of a view do not follow from those of the array as they did"
    return "a truth value is another one"
