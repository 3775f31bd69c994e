"""Hooks: functions that a backward run calls, and may change gradients (R4.26, R4.27).

In the order in which a node meets them: hooks of its outputs (tensor hooks), arrays that retain
their gradient, prehooks, the node itself with post-accumulate hooks, posthooks. It is torch's.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from ...dialect.errors import ArgumentError

count = itertools.count(1).__next__  # numbers hooks; a run calls those that are older than itself
Table = dict[int, Any]


class Handle:
    """The handle of a registered hook: `remove` takes it away, as leaving a ``with`` block does."""

    __slots__ = ("_hooks", "_key", "_table")

    def __init__(self, hooks: Hooks, table: Table, key: int) -> None:
        self._hooks, self._table, self._key = hooks, table, key

    def remove(self) -> None:
        """Have the hook not be called any more; a second time does nothing."""
        if self._table.pop(self._key, None) is not None:
            self._hooks.change()

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *_: Any) -> None:
        self.remove()


class Hooks:
    """The hooks of one node, in the order of registration.

    Attributes:
        outputs: pairs of an output's number and a function of its gradient.
        retained: per output, what is called with the gradient that its hooks have left.
        pre: functions of all gradients of the node.
        accumulated: functions of the leaf whose gradient has been added.
        post: functions of the gradients that the node has computed, and of those it was given.
        changes: another number after each change of what is called.
        calls: what captured runs call, which they make; None since a change.
    """

    __slots__ = ("accumulated", "calls", "changes", "outputs", "post", "pre", "retained")

    def __init__(self) -> None:
        self.outputs: Table = {}
        self.retained: dict[int, Callable[[Any], None]] = {}
        self.pre: Table = {}
        self.accumulated: Table = {}
        self.post: Table = {}
        self.changes = 0
        self.calls: Any = None

    def add(self, table: Table, hook: Any, index: int | None = None) -> Handle:
        """Enter a hook in one of the tables, of an output of that number; ArgumentError for what cannot be called."""
        if not callable(hook):
            raise ArgumentError(f"a hook must be a function, not {type(hook).__name__}")
        key, entry = count(), hook if index is None else (index, hook)
        table[key] = entry
        self.change()
        return Handle(self, table, key)

    def change(self) -> None:
        """Note that a table has been changed."""
        # In this order, for threads that make `calls` meanwhile.
        self.changes = count()
        self.calls = None
