"""Writes of hooks to what a captured run has still to read, which the tape refuses as well.

A run asks, before it begins, whether what its nodes have saved was written to. Code of users that
is called within it may write, too: an optimizer in a post-accumulate hook writes to a parameter
that no node needs any more. A write to what a later node needs is an error, on the tape when that
node runs, and in a captured run when the call has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..tape.array import Version
from ..tape.node import WRITES, Node
from ..tape.saved import Versions, overwritten

Saved = Sequence[tuple[Node, Versions]]
"""Nodes in the order in which they run, with the counts of writes to what they have saved."""


class Watch:
    """What nodes of a run have saved, and what has been written to meanwhile."""

    def __init__(self, saved: Saved) -> None:
        self._saved = saved
        self._written: list[Version] = []
        self._needs: dict[int, tuple[int, int, Node]] = {}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Note writes to arrays, of all threads."""
        WRITES.watchers[id(self)] = self._written.append
        try:
            yield
        finally:
            del WRITES.watchers[id(self)]

    def wrapped(self, hook: Callable[..., Any], start: int) -> Callable[..., Any]:
        """A hook that raises GradientError if it has written to what is needed behind it.

        ``start``: the number of the first node that runs after it.
        """
        written = self._written

        def called(*args: Any) -> Any:
            found = hook(*args)
            if written:
                self._check(start)
            return found

        return called

    def _check(self, start: int) -> None:
        if not self._needs:
            self._needs = {
                id(version): (k, count, node)  # of the last node that needs it
                for k, (node, versions) in enumerate(self._saved) for version, count in versions
            }  # fmt: skip
        while self._written:
            version = self._written.pop()
            k, count, node = self._needs.get(id(version), (-1, 0, None))
            if node is not None and k >= start and version.count != count:
                raise overwritten(version, node.name.removesuffix("_backward"), node.loc)


def saved_of(node: Any) -> tuple[Node, Versions]:
    """A node, with the counts of writes to what it has saved; it is asked before it is released."""
    found = getattr(node, "versions", None)
    if found is None:
        saved = getattr(node, "saved", None)
        found = [] if saved is None else saved[2]
    return node, found


__all__ = ["Saved", "Watch", "saved_of"]
