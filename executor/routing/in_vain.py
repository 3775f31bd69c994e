"""Calls with other objects, or other numbers, each time: a graph for each would serve once.

An object is part of the structure of a call, a number that decides what is recorded holds for its
graph, and a trace takes much longer than Python takes for a call. So where new ones come again and
again, Python runs the calls, and only one in many is traced.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...dialect.errors import TraceError
from ...dialect.trees.pytree import TreeDef
from ...dialect.trees.static_objects import real
from .patience import TRIES, Patience, are_in_vain, serves

if TYPE_CHECKING:
    from ..functions.variants import Variant

_REFUSED = 4  # so many graphs of the `TRIES` is a trace that was refused, and would be again


class NewNumbers:
    """The patience with which calls of one structure are traced for new numbers."""

    def __init__(self) -> None:
        self.patience = _patience()

    def check(self, known: Sequence[Variant]) -> None:
        """Raise TraceError if it does not pay to trace one more call beside the known graphs."""
        latest = known[-TRIES:]
        in_vain = are_in_vain(latest) and all(v.trace.guards for v in latest)
        if not in_vain or _is_tried(self.patience):
            return
        guards = latest[-1].trace.guards
        before = {guard.text: guard.expected for guard in latest[-2].trace.guards}
        others = (g for g in guards if before.get(g.text, g.expected) != g.expected)
        guard = next(others, guards[-1])
        raise TraceError(
            f"{guard.text} is needed as a number and changes from call to call: each value would be a graph of its own",
            loc=guard.loc,
            hint="pass an array with all values, and compute with it at once",
        )


class NewObjects:
    """The latest traces of one function, by the objects, texts and the like they were made for."""

    def __init__(self) -> None:
        self._latest: deque[tuple[list[Any], Variant | None]] = deque(maxlen=TRIES)
        self.patience = _patience()

    def check(self, tree: TreeDef) -> None:
        """Raise TraceError if it does not pay to trace a call of this structure."""
        keys = tree.static_keys()
        places = self._in_vain(keys)
        if not places or _is_tried(self.patience):
            return
        kinds = ", ".join(sorted({type(real(keys[k])).__name__ for k in places}))
        raise TraceError(
            f"the arguments are, or hold, other objects at each call ({kinds}): each call would "
            "have a graph of its own",
            hint="pass the arrays and numbers, or use the same objects again",
        )

    def _in_vain(self, keys: list[Any]) -> list[int]:
        """The places where each of the latest traces had another object; none serves many calls."""
        row, rows = 0, []
        for earlier, variant in reversed(self._latest):
            if not earlier or (variant is not None and serves(variant)):
                return []
            rows.append(earlier)
            row += 1 if variant is not None else _REFUSED
            if row >= TRIES:
                break
        else:
            return []
        least = min(map(len, rows))
        return [k for k, x in enumerate(keys[:least]) if _differ([x, *(r[k] for r in rows)])]

    def note(self, tree: TreeDef, variant: Variant | None) -> None:
        """Note a trace, and its graph; None = it was refused."""
        self._latest.append((tree.static_keys(), variant))


def _differ(objects: list[Any]) -> bool:
    """True if no two of these are equal; 1 and True are two things."""
    return len({(type(x), x) for x in objects}) == len(objects)


def _patience() -> Patience:
    patience = Patience()
    patience.lengthen()
    return patience


def _is_tried(patience: Patience) -> bool:
    """True if a call is traced, though the traces before it were in vain."""
    if patience.passes():
        return False
    patience.lengthen()
    return True


__all__ = ["NewNumbers", "NewObjects"]
