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

    __slots__ = ("_key", "_table")

    def __init__(self, table: Table, key: int) -> None:
        self._table, self._key = table, key

    def remove(self) -> None:
        """Have the hook not be called any more; a second time does nothing."""
        self._table.pop(self._key, None)

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
    """

    __slots__ = ("accumulated", "outputs", "post", "pre", "retained")

    def __init__(self) -> None:
        self.outputs: Table = {}
        self.retained: dict[int, Callable[[Any], None]] = {}
        self.pre: Table = {}
        self.accumulated: Table = {}
        self.post: Table = {}


def add(table: Table, hook: Any, index: int | None = None) -> Handle:
    """Enter a hook in a table of `Hooks`, of an output of that number; ArgumentError for what cannot be called."""
    if not callable(hook):
        raise ArgumentError(f"a hook must be a function, not {type(hook).__name__}")
    key, entry = count(), hook if index is None else (index, hook)
    table[key] = entry
    return Handle(table, key)
