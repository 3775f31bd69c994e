"""Calls of hooks, on the tape and in captured runs: what they are given, and what they return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dialect.errors import GradientError
from .array import Array
from .hooks import Hooks, Table


def before(hooks: Hooks, gs: list[Any], limit: int) -> list[Any]:
    """The gradients of the outputs after the hooks of these; ``limit``: of hooks' numbers."""
    for key, (index, hook) in list(hooks.outputs.items()):
        if key < limit and gs[index] is not None:
            gs[index] = after_hook(hooks.outputs, key, hook, gs[index])
    for index, retain in hooks.retained.items():
        retain(gs[index])
    return gs


def prepare(hooks: Hooks, gs: list[Any], limit: int) -> list[Any]:
    """The gradients of the outputs after the prehooks of the node."""
    for key, hook in list(hooks.pre.items()):
        if key < limit:
            gs = list(after_prehook(hooks.pre, key, hook, gs))
    return gs


def finish(hooks: Hooks, results: Sequence[Any], gs: Sequence[Any], limit: int) -> Sequence[Any]:
    """The gradients of a node after its posthooks."""
    for key, hook in list(hooks.post.items()):
        if key < limit:
            results = after_posthook(hooks.post, key, hook, results, gs)
    return results


def after_adding(hooks: Hooks, leaf: Any, limit: int) -> None:
    """Call the post-accumulate hooks; raises GradientError for one that returns something."""
    for key, hook in list(hooks.accumulated.items()):
        if key < limit:
            call_accumulated(hooks.accumulated, key, hook, leaf)


def after_hook(table: Table, key: int, hook: Any, g: Any) -> Any:
    """A gradient after a hook of an output."""
    if key not in table:
        return g
    view = shown(g)
    new = hook(view)
    return g if new is None else replaced(hook, new, g, view)


def after_prehook(table: Table, key: int, hook: Any, gs: Sequence[Any]) -> Sequence[Any]:
    """The gradients of a node after a prehook."""
    if key not in table:
        return gs
    views = tuple(map(shown, gs))
    return all_replaced(hook, hook(views), gs, views)


def after_posthook(table: Table, key: int, hook: Any, results: Sequence[Any], gs: Sequence[Any]) -> Sequence[Any]:
    """The gradients that a node has computed of ``gs``, after a posthook."""
    if key not in table:
        return results
    views = tuple(map(shown, results))
    return all_replaced(hook, hook(views, tuple(map(shown, gs))), results, views)


def call_accumulated(table: Table, key: int, hook: Any, leaf: Any) -> None:
    """Call a post-accumulate hook, unless the leaf is None, as nobody has it any more.

    Raises GradientError if the hook returns something (R4.27).
    """
    if key in table and leaf is not None and hook(leaf) is not None:
        raise GradientError(
            f"the post-accumulate hook {_name(hook)} returns something, which has no use",
            hint="change x.grad in the hook, and return nothing",
        )


def shown(x: Any) -> Any:
    """An array as code of users is given it: in the same memory, and not to be written to.

    Gradients are shared: other nodes and leaves may have the same array, or get it later.
    """
    if type(x) is np.ndarray:
        view = x[...]
        view.setflags(False)  # type: ignore[call-arg]  # by name it takes twice as long
        return view
    if x is None or isinstance(x, (np.generic, int, float, complex)):
        return x
    return Array(shown(x.data), x.node, x.index) if type(x) is Array else x


def replaced(hook: Any, new: Any, old: Any, view: Any) -> Any:
    """The gradient after a hook: None means ``old``, which the hook was given as ``view``."""
    if new is None or new is view:
        return old
    if np.shape(new) != np.shape(old):
        raise GradientError(
            f"the hook {_name(hook)} returns a gradient of shape {np.shape(new)} for one of shape {np.shape(old)}",
            hint="return an array of the same shape, or None to leave the gradient as it is",
        )
    if type(new) is Array and type(view) is not Array:
        new = new.data  # gradients are plain arrays, but where they are differentiable themselves
    elif type(new) is not np.ndarray and not isinstance(new, (Array, np.generic)):
        new = np.asarray(new)[()]
    return new if new.dtype == old.dtype else new.astype(old.dtype)


def all_replaced(hook: Any, new: Any, old: Sequence[Any], views: Sequence[Any]) -> Sequence[Any]:
    """The gradients after a hook on several; one of them may be None, and stays so."""
    if new is None:
        return old
    new = (new,) if not isinstance(new, (tuple, list)) else new
    if len(new) != len(old):
        raise GradientError(
            f"the hook {_name(hook)} returns {len(new)} gradients for {len(old)}",
            hint="return one for each that the hook is given, or None to leave them as they are",
        )
    return [b if a is None or b is None else replaced(hook, a, b, c) for a, b, c in zip(new, old, views, strict=True)]


def _name(hook: Any) -> str:
    return getattr(hook, "__qualname__", type(hook).__name__)
