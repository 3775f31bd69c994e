"""What torch runs in the place of this package, counted, with reasons."""

from __future__ import annotations

from collections import Counter

from ..settings.events import log

_REASONS = 8


class FewReasons(Counter[str]):
    """Why something has not been done here, in words, each with how often; those beyond the first few are one."""

    def note(self, reason: str) -> None:
        """Count a reason, of which the first line is kept."""
        reason = reason.partition("\n")[0]
        self[reason if reason in self or len(self) < _REASONS else "other reasons"] += 1


class TorchRuns:
    """What torch has run of one model.

    Attributes:
        counters: ``torch_calls`` (calls of the model, or of a graph of it, as a whole), ``torch_ops`` (between the
            parts of graphs), ``fixed_exports`` (those that hold for one combination of sizes, although sizes were to be
            symbols), and what a door counts besides.
        reasons: why.
    """

    def __init__(self) -> None:
        self.counters: Counter[str] = Counter()
        self.reasons = FewReasons()


class FixedExports(FewReasons):
    """Why exports hold for one combination of sizes, each with their number.

    Args:
        name: of what is exported.
        runs: counts them.
    """

    def __init__(self, name: str, runs: TorchRuns) -> None:
        super().__init__()
        self._name, self._runs = name, runs

    def note(self, reason: str) -> None:
        """Count such an export."""
        super().note(reason)
        self._runs.counters["fixed_exports"] += 1
        log("slower", self._name, f"an export holds for one combination of sizes: {reason}")

    def lines(self) -> list[str]:
        """Lines of text that say so."""
        return [f"  {count} exports hold for one combination of sizes: {reason}" for reason, count in self.items()]


def first_line(error: Exception) -> str:
    """The class of an error and the first line of what it says."""
    return f"{type(error).__name__}: {error}".splitlines()[0]
