"""The choice of the kernels for a nest."""

from __future__ import annotations

from typing import Protocol

from ....dialect.dataclass import dataclass
from ...schedule.nests import Nest
from ..launch_plan import Condition, Launch
from .kernel import Kernel, KernelMemory, Temporary
from .pointwise import is_pointwise, pointwise
from .row_kernel import in_shared, is_rows, rows
from .serial import Serial
from .split_reduction import SplitReduction, is_split


class Family(Protocol):
    """A way to make the kernels of one nest."""

    def temporaries(self) -> list[Temporary]:
        """The arrays that need workspace; by default, none."""
        return []

    def kernels(self, memory: KernelMemory, name: str, fast: bool) -> list[tuple[Kernel, Launch]]:
        """Emit the kernels, in order of their launches."""


@dataclass(frozen=True)
class Pointwise(Family):
    """The kernel of a pointwise nest; see `pointwise`."""

    nest: Nest

    def kernels(self, memory: KernelMemory, name: str, fast: bool) -> list[tuple[Kernel, Launch]]:
        return [pointwise(memory, name, self.nest, fast)]


@dataclass(frozen=True)
class Rows(Family):
    """The kernel of a nest of rows; see `rows`. ``staged``: stages share data in shared memory."""

    nest: Nest
    staged: bool

    def kernels(self, memory: KernelMemory, name: str, fast: bool) -> list[tuple[Kernel, Launch]]:
        return [rows(memory, name, self.nest, fast, self.staged)]


@dataclass(frozen=True)
class Either:
    """Two families: ``small`` runs if the condition ``fits`` holds at launch, else ``large``."""

    fits: Condition
    small: Family
    large: Family

    def temporaries(self) -> list[Temporary]:
        return [*self.small.temporaries(), *self.large.temporaries()]


def family_of(nest: Nest, chip: str) -> Family | Either:
    """The first family that supports a nest, from the fastest to the most general one."""
    if is_pointwise(nest):
        return Pointwise(nest)
    if is_split(nest):
        return SplitReduction(nest)
    if is_rows(nest):
        staged, fits = in_shared(nest, chip)
        if fits is None:
            return Rows(nest, staged)
        return Either(fits, Rows(nest, True), Rows(nest, False))
    return Serial(nest)
