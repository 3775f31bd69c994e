"""The one rule for when looks, traces, runs and renewals that have been in vain are tried again.

A look at a call costs tens of times as much as a short function in Python, a trace a thousand times. So
after `TRIES` in a row that were in vain the calls are Python's, but for one in ``first``, then one in
`_LONGER` times as many, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...dialect.dataclass import dataclass

if TYPE_CHECKING:
    from ..functions.variants import Variant

TRIES = 8  # in a row: graphs of which each serves fewer calls than this, and runs that raise
FEW_TRIES = 3  # of what costs more: runs op by op that raise, and code that is emitted for other objects
_LONGER = 4


@dataclass(eq=False)
class Patience:
    """Lets calls pass until one is to be tried again.

    Attributes:
        first: how many pass after the first try in vain.
        most: how many pass at most; equal to ``first``, tries do not get rare.
        calls: how many will pass now.
        before: how many were to pass after the last try.
    """

    first: int = 64
    most: int = 1 << 14
    calls: int = 0
    before: int = 0

    def passes(self) -> bool:
        """True if one more call passes; False = it is to be tried."""
        if self.calls <= 0:
            return False
        self.calls -= 1
        return True

    def lengthen(self) -> None:
        """Note a try in vain."""
        self.calls = self.before = min(max(self.first, self.before * _LONGER), self.most)

    def take(self, other: Patience) -> None:
        """Let the calls pass that were to pass elsewhere; there the next one is tried."""
        self.calls = self.before = other.calls
        other.calls = 0

    def end(self) -> None:
        """Note a try that was not in vain."""
        self.calls = self.before = 0


def serves(graph: Variant) -> bool:
    """True if a graph has served as many calls as pay for its trace."""
    return graph.executor.counters.current().calls >= TRIES


def are_in_vain(graphs: Sequence[Variant]) -> bool:
    """True if there are as many graphs as `TRIES`, and the latest have served few calls each."""
    return len(graphs) >= TRIES and not any(map(serves, graphs[-TRIES:]))
