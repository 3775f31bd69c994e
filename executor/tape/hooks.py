"""Hooks: functions that a backward run calls, and may change gradients (R4.26, R4.27).

In the order in which a node meets them: hooks of its outputs (tensor hooks), arrays that retain
their gradient, prehooks, the node itself with post-accumulate hooks, posthooks. It is torch's.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...dialect.errors import GradientError

count = itertools.count(1).__next__  # numbers hooks; a run calls those that are older than itself
_Table = dict[int, Any]


class Handle:
    """What registering a hook returns: `remove` takes it away, as leaving a ``with`` block does."""

    __slots__ = ("_key", "_table")

    def __init__(self, table: _Table, key: int) -> None:
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
        self.outputs: _Table = {}
        self.retained: dict[int, Callable[[Any], None]] = {}
        self.pre: _Table = {}
        self.accumulated: _Table = {}
        self.post: _Table = {}

    def before(self, gs: list[Any], limit: int) -> list[Any]:
        """The gradients of the outputs after the hooks of these; ``limit``: of hooks' numbers."""
        for key, (index, hook) in list(self.outputs.items()):
            if key < limit and gs[index] is not None:
                gs[index] = replaced(hook, hook(gs[index]), gs[index])
        for index, retain in self.retained.items():
            retain(gs[index])
        return gs

    def prepare(self, gs: list[Any], limit: int) -> list[Any]:
        """The gradients of the outputs after the prehooks of the node."""
        for key, hook in list(self.pre.items()):
            if key < limit:
                gs = all_replaced(hook, hook(tuple(gs)), gs)
        return gs

    def finish(self, found: Sequence[Any], gs: Sequence[Any], limit: int) -> Sequence[Any]:
        """What the node has computed after its posthooks."""
        for key, hook in list(self.post.items()):
            if key < limit:
                found = all_replaced(hook, hook(tuple(found), tuple(gs)), list(found))
        return found

    def after_adding(self, leaf: Any, limit: int) -> None:
        """Call the post-accumulate hooks; raises GradientError for one that returns something."""
        for key, hook in list(self.accumulated.items()):
            if key < limit:
                check_nothing(hook, hook(leaf))


def add(table: _Table, entry: Any) -> Handle:
    """Enter a hook in a table of `Hooks`."""
    key = count()
    table[key] = entry
    return Handle(table, key)


def check_nothing(hook: Any, returned: Any) -> None:
    """Raise GradientError if a post-accumulate hook has returned something (R4.27)."""
    if returned is not None:
        raise GradientError(
            f"the post-accumulate hook {_name(hook)} returns something, which has no use",
            hint="change x.grad in the hook, and return nothing",
        )


def replaced(hook: Any, new: Any, old: Any) -> Any:
    """What a hook makes of a gradient: None means the one that it was given."""
    if new is None or new is old:
        return old
    if np.shape(new) != np.shape(old):
        raise GradientError(
            f"the hook {_name(hook)} returns a gradient of shape {np.shape(new)} for one of "
            f"shape {np.shape(old)}",
            hint="return an array of the same shape, or None to leave the gradient as it is",
        )
    # Arrays of the tape stay what they are where gradients are differentiable themselves.
    dtype = getattr(old, "dtype", None)
    if hasattr(new, "dtype") and hasattr(new, "astype"):
        return new if new.dtype == dtype else new.astype(dtype)
    return np.asarray(new, dtype)


def all_replaced(hook: Any, new: Any, old: list[Any]) -> list[Any]:
    """What a hook makes of several gradients; one of them may be None, and stays so."""
    if new is None:
        return old
    new = (new,) if not isinstance(new, (tuple, list)) else new
    if len(new) != len(old):
        raise GradientError(
            f"the hook {_name(hook)} returns {len(new)} gradients for {len(old)}",
            hint="return one for each that the hook is given, or None to leave them as they are",
        )
    return [
        b if a is None or b is None else replaced(hook, a, b) for a, b in zip(new, old, strict=True)
    ]


def _name(hook: Any) -> str:
    return getattr(hook, "__qualname__", type(hook).__name__)


__all__ = ["Handle", "Hooks", "add", "all_replaced", "check_nothing", "count", "replaced"]
