"""The functions for the parts of a walk as one, which takes what they have found (R4.7, R4.11)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from ..tape.node import WRITES
from .watch import Saved, saved_of

Given = tuple[list[Any], list[Any], list[Any], list[Any], Saved]
"""Inputs of a captured run, with its leaves behind the arrays; values of sizes; hooks; numbers.

Last, if there are hooks, what its nodes have saved.
"""
Gather = Callable[[Sequence[Any], bool], "Given | None"]
Part = Callable[[list, list, list, list, list], "bool | None"]


class JoinedParts:
    """The common part of the functions for the parts of a run.

    Attributes:
        root: which output of its node the root is, and its dtype.
        inner, outer: functions for nodes, and for leaves.
        ops, subgraphs, leaves: the numbers of nodes by their classes.
        equal: pairs of arrays that are the same one.
        arrays: those that are passed.
        symbols: those whose values are passed.
        oldest: the number of the node that was made first.
        order: of a run with hooks, the numbers of nodes in the order in which they run.
    """

    __slots__ = (
        "arrays",
        "equal",
        "inner",
        "leaves",
        "oldest",
        "ops",
        "order",
        "outer",
        "root",
        "subgraphs",
        "symbols",
    )

    def __init__(
        self,
        root: tuple[int, Any],
        inner: tuple[Part, ...],
        outer: tuple[Part, ...],
        ops: list[int],
        subgraphs: list[int],
        leaves: list[int],
        equal: list[tuple[int, int]],
        arrays: Sequence[int],
        symbols: list[int],
        oldest: int,
        order: Sequence[int],
    ) -> None:
        self.root, self.inner, self.outer = root, inner, outer
        self.ops, self.subgraphs, self.leaves = ops, subgraphs, leaves
        self.equal, self.arrays, self.symbols, self.oldest = equal, arrays, symbols, oldest
        self.order = order


def joined(run: JoinedParts) -> Gather:
    """The function that gathers what a run is given, by the functions for its parts."""
    (index, dtype), inner, outer = run.root, run.inner, run.outer
    ops, subgraphs, equal, symbols = run.ops, run.subgraphs, run.equal, run.symbols
    count = len(ops) + len(subgraphs) + len(run.leaves)
    # Two more, so that these give tuples.
    pick_leaves, pick_arrays = itemgetter(*run.leaves, 0, 0), itemgetter(*run.arrays, 0, 0)
    pick_ops, pick_watched = itemgetter(*ops, 0, 0), itemgetter(*run.order, 0, 0)
    most = max(symbols, default=-1) + 1
    oldest, has_hooks = run.oldest, bool(run.order)

    def written(nodes: list[Any]) -> bool:
        """True if something that they have saved was written to."""
        saved = [nodes[k].saved[2] for k in ops] + [nodes[k].versions for k in subgraphs]
        return any(version.count != count for versions in saved for version, count in versions)

    def gather(roots: Sequence[Any], retain: bool) -> Given | None:
        try:
            [(node, i, g)] = roots
            if i != index or g.dtype != dtype:
                return None
            nodes: list[Any] = [None] * count
            nodes[0] = node
            values: list[Any] = [None] * most
            arrays, hooks, hooks_of_leaves, numbers = [g], [], [], []  # type: ignore[var-annotated]
            for part in inner:
                if part(nodes, values, arrays, hooks, numbers) is None:
                    return None
            for part in outer:
                if part(nodes, values, arrays, hooks_of_leaves, numbers) is None:
                    return None
            # Those that were different ones are inputs of their own, and may be the same now.
            for k, first in equal:
                if arrays[k] is not arrays[first]:
                    return None
        except (AttributeError, TypeError, ValueError):
            return None
        if nodes[oldest].seq <= WRITES.last and written(nodes):
            return None
        leaves = pick_leaves(nodes)[:-2]
        if len({*leaves}) != len(leaves):
            return None
        watched: Saved = ()
        if has_hooks:
            order = pick_watched(nodes)[:-2]
            if subgraphs:
                watched = [saved_of(node) for node in order]
            else:
                watched = zip(order, [node.saved[2] for node in order], strict=True)
        if not retain:
            for node in pick_ops(nodes)[:-2]:
                node.saved = None  # what its `release` does, without a call
            for k in subgraphs:
                nodes[k].release()
        inputs = list(pick_arrays(arrays)[:-2])
        inputs += [leaf.leaf() for leaf in leaves]
        # Leaves come first, as in the walk.
        return inputs, [values[s] for s in symbols], hooks_of_leaves + hooks, numbers, watched

    return gather
