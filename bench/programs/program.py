"""A program of this collection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Jit = Callable[[Callable], Callable]
Call = Callable[[], Any]


@dataclass(frozen=True)
class Program:
    """A program as a NumPy user has written it.

    Fields:
        name: of the program.
        prepare: takes what is put on its functions (`profuse.jit`, or nothing), a size and a
            generator of numbers; returns one call of the program without arguments, and all that
            calls may have written to: arrays, generators, objects with attributes.
        small: the size at which tests compare.
        real: the size at which time is measured.
        tolerance: relative, for results that sum in another order; for the programs in float32, or
            whose steps amplify.
    """

    name: str
    prepare: Callable[[Jit, int, np.random.Generator], tuple[Call, tuple]]
    small: int
    real: int
    tolerance: float = 1e-9


PROGRAMS: dict[str, Program] = {}


def program(small: int, real: int, tolerance: float = 1e-9, name: str | None = None) -> Callable[[Callable], Callable]:
    """Enter the function that prepares a program; its name is the program's."""

    def enter(prepare: Callable) -> Callable:
        made = Program(name or prepare.__name__, prepare, small, real, tolerance)
        assert made.name not in PROGRAMS, made.name
        PROGRAMS[made.name] = made
        return prepare

    return enter
