"""What torch runs in the place of this package, counted, with reasons."""

from __future__ import annotations

from collections import Counter

_REASONS = 8


class TorchRuns:
    """What torch has run of one model.

    Attributes:
        counters: ``torch_calls`` (calls of the model, or of a graph of it, as a whole), ``torch_ops`` (between the
            parts of graphs), and what a door counts besides.
        reasons: why, with the number of times; those that come first.
    """

    def __init__(self) -> None:
        self.counters: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()

    def note(self, reason: str) -> None:
        """Count a reason."""
        if reason in self.reasons or len(self.reasons) < _REASONS:
            self.reasons[reason] += 1


__all__ = ["TorchRuns"]
