"""The decisions of a trace on loops and branches; kept while the trace starts anew."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from ....dataclass import dataclass
from ....errors import Loc, TraceError

Key = tuple[Any, ...]
_RESTARTS = 40  # of one trace; then its loops are Python's
_RECORDED = 12_000  # ops of all starts of one trace, as the call waits for them


@dataclass(eq=False)
class Decision:
    """A statement that is not recorded as it is.

    Attributes:
        loc: its line.
        why: a sentence.
        error: the refusal of the whole trace; None = Python's own statement runs.
    """

    loc: Loc
    why: str
    error: TraceError | None = None


@dataclass(eq=False)
class Decisions:
    """Decisions of one call that is traced, by statement.

    Attributes:
        by_key: statements that are left to Python.
        inside: statements that were met while the key was recorded.
        carried: names that a loop was found to carry.
        forced: loops that are recorded although their condition is Python's.
        wider: for a loop, the floats with which variables begin that are ints in Python.
        ints_matter: branches of which one has an int, and the other a float, are Python's.
        floats_matter: so are those of which one has a float of Python's, the other one of NumPy's.
        exits: statements that are recorded may raise exceptions (`exits`).
    """

    by_key: dict[Key, Decision] = field(default_factory=dict)
    inside: dict[Key, set[Key]] = field(default_factory=dict)
    carried: dict[Key, tuple[str, ...]] = field(default_factory=dict)
    forced: set[Key] = field(default_factory=set)
    wider: dict[Key, dict[str, Any]] = field(default_factory=dict)
    ints_matter: bool = False
    floats_matter: bool = False
    exits: bool = False
    restarts: int = 0
    recorded: int = 0

    def leave(self, key: Key, decision: Decision, recorded: int) -> bool:
        """Leave a statement to Python from now on; False if the trace may not start anew.

        ``recorded``: so many ops this start has recorded.
        """
        for inner in self.inside.get(key, ()):
            self.by_key.pop(inner, None)  # its reasons may have been those of this one
        self.by_key[key] = decision
        return self.restart(recorded)

    def restart(self, recorded: int) -> bool:
        """Count a trace that begins anew; False if it may not."""
        self.restarts += 1
        self.recorded += recorded
        return self.restarts <= _RESTARTS and self.recorded <= _RECORDED
