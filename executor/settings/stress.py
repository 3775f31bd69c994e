"""Stress mode: guards that fail on purpose, so that fallbacks run without needing new shapes.

``PROFUSE_STRESS=guards`` affects the guards of all plans built from then on: of ``k`` times that a
guard would have passed, it fails about once. ``guards:k=3,seed=7`` says how often, and selects
which times. Results must not change, because both sides of a guard compute the same. Plans built
with stress mode off contain no code for it.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from ...dialect.dataclass import dataclass


@dataclass(frozen=True)
class Stress:
    """The way in which stress mode fails guards; `parse_stress` reads the text of this object.

    Attributes:
        every: of this many times that a guard would pass, it fails about once; 0 = off, 1 = always.
        seed: seed of the random numbers that select which times.
    """

    every: int = 0
    seed: int = 0

    def __bool__(self) -> bool:
        return self.every > 0

    def __str__(self) -> str:
        return f"guards:k={self.every},seed={self.seed}" if self else ""


def parse_stress(text: str) -> Stress:
    """Parse ``"guards:k=3,seed=7"`` (both optional, default 5 and 0); ``""`` = off.

    Raises ValueError for other text; the knob turns that into KnobError.
    """
    if not text:
        return Stress()
    mode, colon, options = text.partition(":")
    if mode != "guards":
        raise ValueError(f"there is no stress mode {mode!r}, expected guards[:k=5,seed=0]")
    numbers = {"k": 5, "seed": 0}
    for item in options.split(",") if colon else ():
        name, _, value = item.partition("=")
        if name not in numbers:
            raise ValueError(f"guards has no option {name!r}, expected k or seed")
        least = int(name == "k")
        if not value.isdecimal() or len(value) > 9 or int(value) < least:
            raise ValueError(f"{name}={value[:80]}: expected a number from {least} to 999999999")
        numbers[name] = int(value)
    return Stress(numbers["k"], numbers["seed"])


def guard_failures(stress: Stress, name: str) -> Callable[[], bool] | None:
    """A function that says whether guard ``name`` shall fail this time; None = stress mode is off.

    The sequence depends on the seed and the name alone.
    """
    if not stress:
        return None
    every, draw = stress.every, random.Random(f"{stress.seed}/{name}").random

    def fails() -> bool:
        return draw() * every < 1.0

    return fails
