"""Calls with other objects, or other numbers, each time: a graph for each would serve once.

An object is part of the structure of a call, a number that decides what is recorded holds for its
graph, and a trace takes much longer than Python takes for a call. So where new ones come again and
again, Python runs the calls, and only one in many is traced.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from ...dialect.errors import TraceError
from ...dialect.importers.numpy.tracing.pytree import TreeDef
from ...dialect.importers.numpy.tracing.static_objects import real
from .variants import Variant

_IN_A_ROW = 8  # traces of which none serves as many calls
_REFUSED = 4  # so many of these is one that was refused, and would be again
_WAIT = 64  # calls until the next trace; then four times as many
_LONGER = 4


class Patience:
    """Tells of the calls that might be traced which one is: one of 64, then one of 256, …"""

    def __init__(self) -> None:
        self._left = self._wait = _WAIT

    def is_over(self) -> bool:
        """Whether this call is traced."""
        self._left -= 1
        if self._left > 0:
            return False
        self._wait *= _LONGER
        self._left = self._wait
        return True

    @property
    def left(self) -> int:
        """How many calls are not."""
        return self._left - 1

    def skip(self) -> None:
        """Count these: nobody asks about them."""
        self._left = 1


class NewNumbers:
    """Whether calls of one structure are traced for new numbers."""

    def __init__(self) -> None:
        self.patience = Patience()

    def check(self, known: Sequence[Variant]) -> None:
        """Raise TraceError if it does not pay to trace one more call beside the known graphs."""
        latest = known[-_IN_A_ROW:]
        in_vain = all(v.trace.guards and not _serves(v) for v in latest)
        if len(latest) < _IN_A_ROW or not in_vain or self.patience.is_over():
            return
        guards = latest[-1].trace.guards
        before = {guard.text: guard.expected for guard in latest[-2].trace.guards}
        others = (g for g in guards if before.get(g.text, g.expected) != g.expected)
        guard = next(others, guards[-1])
        raise TraceError(
            f"{guard.text} is needed as a number and changes from call to call: each value would "
            "be a graph of its own",
            loc=guard.loc, hint="pass an array with all values, and compute with it at once",
        )  # fmt: skip


class NewObjects:
    """The latest traces of one function, by the objects, texts and the like they were made for."""

    def __init__(self) -> None:
        self._latest: deque[tuple[list[Any], Variant | None]] = deque(maxlen=_IN_A_ROW)
        self.patience = Patience()

    def check(self, tree: TreeDef) -> None:
        """Raise TraceError if it does not pay to trace a call of this structure."""
        held = tree.static_keys()
        places = self._in_vain(held)
        if not places or self.patience.is_over():
            return
        kinds = ", ".join(sorted({type(real(held[k])).__name__ for k in places}))
        raise TraceError(
            f"the arguments are, or hold, other objects at each call ({kinds}): each call would "
            "have a graph of its own",
            hint="pass the arrays and numbers, or use the same objects again",
        )

    def _in_vain(self, held: list[Any]) -> list[int]:
        """The places where each of the latest traces had another object; none serves many calls."""
        row, rows = 0, []
        for found, made in reversed(self._latest):
            if not found or _serves(made):
                return []
            rows.append(found)
            row += 1 if made is not None else _REFUSED
            if row >= _IN_A_ROW:
                break
        else:
            return []
        least = min(map(len, rows))
        return [k for k, x in enumerate(held[:least]) if _differ([x, *(r[k] for r in rows)])]

    def note(self, tree: TreeDef, made: Variant | None) -> None:
        """Note a trace, and its graph; None = it was refused."""
        self._latest.append((tree.static_keys(), made))


def _differ(found: list[Any]) -> bool:
    """Whether no two of these are equal; 1 and True are two things."""
    return len({(type(x), x) for x in found}) == len(found)


def _serves(made: Variant | None) -> bool:
    return made is not None and made.executor.counters.current().calls >= _IN_A_ROW


__all__ = ["NewNumbers", "NewObjects", "Patience"]
