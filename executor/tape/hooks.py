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
                gs[index] = after_hook(self.outputs, key, hook, gs[index])
        for index, retain in self.retained.items():
            retain(gs[index])
        return gs

    def prepare(self, gs: list[Any], limit: int) -> list[Any]:
        """The gradients of the outputs after the prehooks of the node."""
        for key, hook in list(self.pre.items()):
            if key < limit:
                gs = list(after_prehook(self.pre, key, hook, gs))
        return gs

    def finish(self, found: Sequence[Any], gs: Sequence[Any], limit: int) -> Sequence[Any]:
        """What the node has computed after its posthooks."""
        for key, hook in list(self.post.items()):
            if key < limit:
                found = after_posthook(self.post, key, hook, found, gs)
        return found

    def after_adding(self, leaf: Any, limit: int) -> None:
        """Call the post-accumulate hooks; raises GradientError for one that returns something."""
        for key, hook in list(self.accumulated.items()):
            if key < limit:
                call_accumulated(self.accumulated, key, hook, leaf)


# --- calls, the same ones on the tape and in captured runs. A hook that has been removed is not called.


def after_hook(table: _Table, key: int, hook: Any, g: Any) -> Any:
    """A gradient after a hook of an output."""
    if key not in table:
        return g
    given = shown(g)
    return replaced(hook, hook(given), g, given)


def after_prehook(table: _Table, key: int, hook: Any, gs: Sequence[Any]) -> Sequence[Any]:
    """The gradients of a node after a prehook."""
    if key not in table:
        return gs
    given = tuple(map(shown, gs))
    return all_replaced(hook, hook(given), gs, given)


def after_posthook(
    table: _Table, key: int, hook: Any, found: Sequence[Any], gs: Sequence[Any]
) -> Sequence[Any]:
    """What a node has computed of ``gs``, after a posthook."""
    if key not in table:
        return found
    given = tuple(map(shown, found))
    return all_replaced(hook, hook(given, tuple(map(shown, gs))), found, given)


def call_accumulated(table: _Table, key: int, hook: Any, leaf: Any) -> None:
    """Call a post-accumulate hook; raises GradientError if it returns something (R4.27)."""
    if key in table and hook(leaf) is not None:
        raise GradientError(
            f"the post-accumulate hook {_name(hook)} returns something, which has no use",
            hint="change x.grad in the hook, and return nothing",
        )


def shown(x: Any) -> Any:
    """An array as code of users is given it: in the same memory, and not to be written to.

    Gradients are shared: other nodes and leaves may have the same array, or get it later.
    """
    if type(x) is np.ndarray:
        if not x.flags.writeable:
            return x
        view = x.view()
        view.flags.writeable = False
        return view
    if x is None or isinstance(x, (np.generic, int, float, complex)):
        return x
    from .array import Array  # which imports this module

    return Array(shown(x.data), x.node, x.index) if type(x) is Array else x


def add(table: _Table, entry: Any) -> Handle:
    """Enter a hook in a table of `Hooks`."""
    key = count()
    table[key] = entry
    return Handle(table, key)


def replaced(hook: Any, new: Any, old: Any, given: Any) -> Any:
    """What a hook makes of a gradient: None means ``old``, which it was given as ``given``."""
    if new is None or new is given:
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


def all_replaced(
    hook: Any, new: Any, old: Sequence[Any], given: Sequence[Any]
) -> Sequence[Any]:
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
        b if a is None or b is None else replaced(hook, a, b, c)
        for a, b, c in zip(new, old, given, strict=True)
    ]


def _name(hook: Any) -> str:
    return getattr(hook, "__qualname__", type(hook).__name__)


__all__ = [
    "Handle", "Hooks", "add", "after_hook", "after_posthook", "after_prehook", "call_accumulated",
    "count", "shown",
]  # fmt: skip
