"""Arrays of the caller's that change places with others in each round, as in ``u, v = v, u``.

What a name stands for then depends on the number of rounds, and so does the memory that is written.
A body of as many rounds as bring all arrays back to their names leaves each name its array.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ....ir.program import Block
from ..tracing.traced import TracedArray

_LONGEST = 4  # rounds that one body may have


def period_of(changed: Mapping[str, Any], before: Mapping[str, Any], block: Block) -> int:
    """The number of rounds that bring arrays back to their names; 1 where that does not matter.

    Args:
        changed: what names hold behind a round that held something else before it.
        before: what names held.
        block: what the round has recorded.
    """
    moves: dict[int, int] = {}
    is_callers = False
    for name, value in changed.items():
        old = before.get(name)
        if type(value) is TracedArray and type(old) is TracedArray:
            moves[old.value] = value.value
            is_callers |= old.storage is not None and old.storage.input is not None
    moves = {old: new for old, new in moves.items() if new in moves}
    if not is_callers or set(moves) != set(moves.values()):
        return 1
    if not any(instr.op.writes for instr in block.walk()):
        return 1
    period = math.lcm(*(_cycle(moves, value) for value in moves))
    return period if period <= _LONGEST else 1


def _cycle(moves: Mapping[int, int], value: int) -> int:
    """After how many rounds an array is back."""
    length, at = 1, moves[value]
    while at != value:
        length, at = length + 1, moves[at]
    return length
