"""The base class of passes, and the table of all of them.

A pass is a frozen dataclass with a kebab-case ``name``; its fields are its options (so
``form-fusions{min-size=2}`` sets ``min_size``), its docstring is its help, and ``run`` rewrites a
module in place.  ``count`` keeps the statistics that `profuse-opt --stats` prints, by which the
pipeline runner also tells whether a pass has changed anything; ``note`` keeps the reasons why a
pass has not done something.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from ..errors import InternalError
from ..reasons import Reason

if TYPE_CHECKING:
    from mlir import ir

PASSES: dict[str, type[Pass]] = {}


@dataclass(frozen=True)
class Pass:
    """Base of every pass."""

    name: ClassVar[str] = ""
    # True if `run` counts every change: where nothing is counted, the module is as it was.
    counts_changes: ClassVar[bool] = False
    statistics: Counter = field(default_factory=Counter, init=False, repr=False, compare=False)
    reasons: list[Reason] = field(default_factory=list, init=False, repr=False, compare=False)

    def run(self, module: ir.Module) -> None:
        """Rewrite ``module`` in place. Runs with the module's context and a location entered.

        Raises ProfuseError on failure; the pipeline runner locates and reports it.
        """
        raise NotImplementedError

    def count(self, what: str, by: int = 1) -> None:
        """Add to a statistic, e.g. ``self.count("ops-removed")``."""
        self.statistics[what] += by

    @property
    def may_have_changed(self) -> bool:
        """False if the run is known to have left the module as it was."""
        return not self.counts_changes or any(self.statistics.values())

    def note(self, reason: Reason) -> None:
        """Keep the reason why something was not done; `explain()`, ``state().reasons`` tell it."""
        self.reasons.append(reason)


def register_pass(cls: type[Pass]) -> type[Pass]:
    """Class decorator: make the pass nameable in pipelines; a duplicate name is an error."""
    if cls.name in PASSES:
        raise InternalError(f"pass {cls.name} is declared twice")
    PASSES[cls.name] = cls
    return cls
