"""Which kernels a nest becomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ...schedule.nests import Nest
from ..abi import Condition, Launch
from .kernel import Kernel, Memory, Temporary
from .pointwise import is_pointwise, pointwise
from .rows import in_shared, is_rows, rows
from .serial import Serial
from .split import Split, is_split


class Family(Protocol):
    """Kernels of one nest."""

    def temporaries(self) -> list[Temporary]:
        """What needs workspace; by default, nothing."""
        return []

    def kernels(self, memory: Memory, name: str, fast: bool) -> list[tuple[Kernel, Launch]]:
        """Emit the kernels, in order of their launches."""


@dataclass(frozen=True)
class Pointwise(Family):
    """See `pointwise`."""

    nest: Nest

    def kernels(self, memory: Memory, name: str, fast: bool) -> list[tuple[Kernel, Launch]]:
        return [pointwise(memory, name, self.nest, fast)]


@dataclass(frozen=True)
class Rows(Family):
    """See `rows`; ``staged``: what stages leave for one another is in shared memory."""

    nest: Nest
    staged: bool

    def kernels(self, memory: Memory, name: str, fast: bool) -> list[tuple[Kernel, Launch]]:
        return [rows(memory, name, self.nest, fast, self.staged)]


@dataclass(frozen=True)
class Either:
    """One family where a size is known to fit when kernels are launched, else another."""

    fits: Condition
    small: Family
    large: Family

    def temporaries(self) -> list[Temporary]:
        return [*self.small.temporaries(), *self.large.temporaries()]


def family_of(nest: Nest, chip: str) -> Family | Either:
    """The kernels for a nest, from what gains most to what always works."""
    if is_pointwise(nest):
        return Pointwise(nest)
    if is_split(nest):
        return Split(nest)
    if is_rows(nest):
        staged, fits = in_shared(nest, chip)
        if fits is None:
            return Rows(nest, staged)
        return Either(fits, Rows(nest, True), Rows(nest, False))
    return Serial(nest)
