"""Writes of hooks to what a captured run has still to read, which the tape refuses as well.

A run asks, before it begins, whether what its nodes have saved was written to. Code of users that
is called within it may write, too: an optimizer in a post-accumulate hook writes to a parameter
that no node needs any more. A write to what a later node needs is an error, on the tape when that
node runs, and in a captured run when the call has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..tape.array import Version
from ..tape.node import WRITES, Node
from ..tape.saved import Versions, overwritten

Saved = Iterable[tuple[Node, Versions]]
"""Nodes in the order in which they run, with the counts of writes to what they have saved."""


class SavedWatch:
    """The values that nodes of a run have saved, and the writes to them meanwhile.

    Args:
        saved: of the nodes; it is gone through at most once.
        starts: for each hook of the run, how many of the nodes have run when it has been called.

    Attributes:
        written: what was written to and has not been looked at, by all threads.
    """

    __slots__ = ("_needs", "_saved", "_starts", "written")

    def __init__(self, saved: Saved, starts: Sequence[int]) -> None:
        self._saved, self._starts = saved, starts
        self.written: list[Version] = []
        self._needs: dict[int, tuple[int, int, Node]] = {}

    def __enter__(self) -> SavedWatch:
        WRITES.watchers[id(self)] = self.written.append
        return self

    def __exit__(self, *_: Any) -> None:
        del WRITES.watchers[id(self)]

    def wrapped(self, hook: Callable[..., Any], number: int) -> Callable[..., Any]:
        """A hook that looks at what was written to, for those who call it by themselves."""

        def called(*args: Any) -> Any:
            result = hook(*args)
            if self.written:
                self.check(number)
            return result

        return called

    def check(self, hook: int) -> None:
        """Raise GradientError if what was written to is needed behind the hook of this number."""
        if not self._needs:
            self._needs = {
                id(version): (k, count, node)  # of the last node that needs it
                for k, (node, versions) in enumerate(self._saved)
                for version, count in versions
            }
        start = self._starts[hook]
        while self.written:
            version = self.written.pop()
            k, count, node = self._needs.get(id(version), (-1, 0, None))
            if node is not None and k >= start and version.count != count:
                raise overwritten(version, node.name.removesuffix("_backward"), node.loc)


def saved_of(node: Any) -> tuple[Node, Versions]:
    """A node, with the counts of writes to what it has saved; it is asked before it is released."""
    versions = getattr(node, "versions", None)
    if versions is None:
        saved = getattr(node, "saved", None)
        versions = [] if saved is None else saved[2]
    return node, versions
