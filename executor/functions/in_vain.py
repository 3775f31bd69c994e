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
from ...dialect.importers.tracing.pytree import TreeDef
from ...dialect.importers.tracing.static_objects import is_compared_by_value
from .variants import Variant

_IN_A_ROW = 8  # traces of which none serves as many calls
_REFUSED = 4  # so many of these is one that was refused, and would be again
_WAIT = 64  # calls until the next trace; then four times as many
_LONGER = 4


class _Patience:
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


class NewNumbers:
    """Whether calls of one structure are traced for new numbers."""

    def __init__(self) -> None:
        self._patience = _Patience()

    def check(self, known: Sequence[Variant]) -> None:
        """Raise TraceError if it does not pay to trace one more call beside the known graphs."""
        latest = known[-_IN_A_ROW:]
        in_vain = all(v.trace.guards and not _serves(v) for v in latest)
        if len(latest) < _IN_A_ROW or not in_vain or self._patience.is_over():
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
    """The latest traces of one function, by the objects that they were made for."""

    def __init__(self) -> None:
        self._latest: deque[tuple[list[Any], Variant | None]] = deque(maxlen=_IN_A_ROW)
        self._patience = _Patience()

    def check(self, tree: TreeDef) -> None:
        """Raise TraceError if it does not pay to trace a call of this structure."""
        held = _objects(tree)
        in_vain = bool(held) and self._are_in_vain({id(x) for x in held})
        if not in_vain or self._patience.is_over():
            return
        kinds = ", ".join(sorted({type(x).__name__ for x in held}))
        raise TraceError(
            f"the arguments are, or hold, other objects at each call ({kinds}): each call would "
            "have a graph of its own",
            hint="pass the arrays and numbers, or use the same objects again",
        )

    def _are_in_vain(self, held: set[int]) -> bool:
        """True if the latest traces were for other objects each, and serve hardly a call."""
        row = 0
        for found, made in reversed(self._latest):
            if not found or any(id(x) in held for x in found) or _serves(made):
                return False
            row += 1 if made is not None else _REFUSED
            if row >= _IN_A_ROW:
                return True
        return False

    def note(self, tree: TreeDef, made: Variant | None) -> None:
        """Note a trace, and its graph; None = it was refused."""
        self._latest.append((_objects(tree), made))


def _objects(tree: TreeDef) -> list[Any]:
    """The objects of a structure that equal nothing but themselves."""
    return [x for x in tree.statics() if type(x).__eq__ is object.__eq__ or _is_users(x)]


def _is_users(x: Any) -> bool:
    return not is_compared_by_value(type(x))


def _serves(made: Variant | None) -> bool:
    return made is not None and made.executor.counters.current().calls >= _IN_A_ROW


__all__ = ["NewNumbers", "NewObjects"]
