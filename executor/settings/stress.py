"""Stress mode: guards that fail on purpose, so that fallbacks run without needing new shapes.

``PROFUSE_STRESS=guards`` makes every guard of the plans built from then on fail about once in
``k`` times that it would have passed; ``guards:k=3,seed=7`` says how often, and which. Values must
not change, as both sides of a guard compute the same. Plans built with stress off have no trace
of it.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from ...dialect.dataclass import dataclass


@dataclass(frozen=True)
class Stress:
    """What stress mode does; its text is what `parse_stress` reads.

    Attributes:
        every: a guard fails about once in so many times; 0 = off, 1 = always.
        seed: which times.
    """

    every: int = 0
    seed: int = 0

    def __bool__(self) -> bool:
        return self.every > 0

    def __str__(self) -> str:
        return f"guards:k={self.every},seed={self.seed}" if self else ""


def parse_stress(text: str) -> Stress:
    """``"guards:k=3,seed=7"`` (both optional, default 5 and 0), or ``""`` for off.

    Raises ValueError, which the knob turns into KnobError.
    """
    if not text:
        return Stress()
    mode, colon, options = text.partition(":")
    if mode != "guards":
        raise ValueError(f"there is no stress mode {mode!r}, expected guards[:k=5,seed=0]")
    found = {"k": 5, "seed": 0}
    for item in options.split(",") if colon else ():
        name, _, value = item.partition("=")
        if name not in found:
            raise ValueError(f"guards has no option {name!r}, expected k or seed")
        least = int(name == "k")
        if not value.isdecimal() or len(value) > 9 or int(value) < least:
            raise ValueError(f"{name}={value[:80]}: expected a number from {least} to 999999999")
        found[name] = int(value)
    return Stress(found["k"], found["seed"])


def guard_failures(stress: Stress, name: str) -> Callable[[], bool] | None:
    """A function that says whether this pass of guard ``name`` shall fail; None: stress is off.

    The sequence depends on the seed and the name alone.
    """
    if not stress:
        return None
    every, draw = stress.every, random.Random(f"{stress.seed}/{name}").random

    def fails() -> bool:
        return draw() * every < 1.0

    return fails
