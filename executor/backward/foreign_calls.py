"""Calls out of a captured graph: hooks of users, and gradients that are not known as ops.

A hook that has been removed since the run began is not called, as in the eager run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..tape.custom_functions import CustomNode, custom_gradients
from ..tape.hook_calls import after_hook, after_posthook, after_prehook, call_accumulated
from ..tape.hooks import Hooks
from ..tape.node import Node
from ..tape.saved import Packed
from .snapshot import HookCounts, Key

Call = Callable[..., Any]


def calls_of(hooks: Hooks) -> tuple[Key, list[Call]]:
    """The part of a node's hooks in the key of a run (R4.8), and what calls them, in the order of the key.

    Both are made once, as leaves keep their hooks from run to run.
    """
    calls = hooks.calls
    if calls is None:
        changes = hooks.changes
        key = HookCounts(hooks).key
        callers = [_tensor_hook(hooks.outputs, number, hook) for number, (_, hook) in hooks.outputs.items()]
        callers += [_pre_hook(hooks.pre, number, hook) for number, hook in hooks.pre.items()]
        callers += [_accumulated_hook(hooks.accumulated, number, hook) for number, hook in hooks.accumulated.items()]
        callers += [_post_hook(hooks.post, number, hook) for number, hook in hooks.post.items()]
        calls = hooks.calls = key, callers
        if hooks.changes != changes:  # by another thread
            hooks.calls = None
    return calls


def _tensor_hook(table: dict, key: int, hook: Any) -> Call:
    """Calls a hook of an array with its gradient; the gradient after it."""
    return partial(after_hook, table, key, hook)


def _accumulated_hook(table: dict, key: int, hook: Any) -> Call:
    """Calls a post-accumulate hook with its leaf."""
    return partial(call_accumulated, table, key, hook)


def _pre_hook(table: dict, key: int, hook: Any) -> Call:
    """Calls a prehook with the gradients of the results of its node."""

    def call(*gs: Any) -> Sequence[Any]:
        return after_prehook(table, key, hook, gs)

    return call


def _post_hook(table: dict, key: int, hook: Any) -> Call:
    """Calls a posthook with what its node has computed, and from what."""

    def call(results: tuple, gs: tuple) -> Sequence[Any]:
        return after_posthook(table, key, hook, results, gs)

    return call


def unpack_hook(packed: Packed) -> Sequence[Any]:
    """Unpacks a saved array by the function of the user's that it was saved with."""
    return (packed.array(),)


class CustomCall:
    """The gradient of a function of the user's, given what it has saved, and gradients (R4.22)."""

    def __init__(self, node: CustomNode) -> None:
        assert node.saved is not None
        self.custom, self.tree, self.saved_tree = node.custom, node.tree, node.saved_tree
        self.result, self.metas = node.result, node.metas
        self.wanted = [edge is not None for edge in node.edges]
        groups = node.saved[:2]
        self.own = [None if type(x) in (int, float) or hasattr(x, "dtype") else (x,) for group in groups for x in group]
        self.leaves = len(groups[0])

    def __call__(self, *values: Any) -> Sequence[Any]:
        count = len(self.own) - sum(x is not None for x in self.own)
        lifted = iter(values[:count])
        operands = [next(lifted) if own is None else own[0] for own in self.own]
        gradients = custom_gradients(self, self.saved_tree, operands[self.leaves :], values[count:])
        return [g for g, wanted in zip(gradients, self.wanted, strict=True) if wanted]


class NodeCall:
    """A node that is called as it is."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.wanted = [edge is not None for edge in node.edges]

    def __call__(self, *gs: Any) -> Sequence[Any]:
        gradients = self.node.backward(list(gs))
        return [g for g, wanted in zip(gradients, self.wanted, strict=True) if wanted]
