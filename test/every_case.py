"""Which cases of a product of three run: all of them, or each pair of the first two in one way."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import product
from typing import Any

# All of them take many minutes; without it, cases that repeat what others test are left out.
EVERY_CASE = os.environ.get("EVERY_CASE") == "1"


def pairs(first: Sequence[Any], second: Sequence[Any], ways: Sequence[Any]) -> list[tuple]:
    """(one of the first, one of the second, a way): each pair in ways that take turns.

    So each of either meets each way, as long as the other has as many as there are ways.
    """
    if EVERY_CASE:
        return list(product(first, second, ways))
    return [
        (a, b, ways[(i + k) % len(ways)]) for i, a in enumerate(first) for k, b in enumerate(second)
    ]


def spread(cases: Sequence[tuple], step: int = 3) -> Sequence[tuple]:
    """All of the cases, or one in so many; of a product, each row has others than the one before.

    The length of a row and ``step`` have no common divisor.
    """
    return cases if EVERY_CASE else cases[::step]
