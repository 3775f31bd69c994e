"""Trees of decisions as arrays, and what their leaves give for rows of features."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from .....dataclass import dataclass
from .....errors import TraceError
from ....numpy.tracing.traced_control import fori_loop
from ...array_values import captured, constant_or_created, item_of
from .tree_masks import Words, has_words, ordered, words_of

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "BRANCH_LEQ": np.less_equal,
    "BRANCH_LT": np.less,
    "BRANCH_GTE": np.greater_equal,
    "BRANCH_GT": np.greater,
    "BRANCH_EQ": np.equal,
    "BRANCH_NEQ": np.not_equal,
}
MEMBER = "BRANCH_MEMBER"
# Numbers for which comparisons with finite thresholds hold.
_HOLDING = {"BRANCH_LEQ": -np.inf, "BRANCH_LT": -np.inf, "BRANCH_GTE": np.inf, "BRANCH_GT": np.inf}
# Of the trees together, and of two groups of them.
_SUMS: dict[str, tuple[Callable, Callable]] = {
    "SUM": (np.sum, np.add),
    "AVERAGE": (np.sum, np.add),
    "MIN": (np.min, np.minimum),
    "MAX": (np.max, np.maximum),
}


@dataclass(frozen=True)
class Forest:
    """Trees as arrays over their nodes; leaves are their own children.

    Attributes:
        roots: the first node of each tree.
        features, thresholds, yes, no, tracks: by node; ``tracks``: NaN goes where the comparison holds.
        modes: the comparison of each node.
        members: (nodes, any number), for each node the numbers that it looks for, then NaN; None = no node does so.
    """

    roots: np.ndarray
    features: np.ndarray
    thresholds: np.ndarray
    yes: np.ndarray
    no: np.ndarray
    tracks: np.ndarray
    modes: tuple[str, ...]
    members: np.ndarray | None = None

    def with_features(self, x: Any) -> tuple[Forest, Any]:
        """A forest with the same leaves, and its features (N, F or 2 F).

        Where comparisons are of one kind, none of its nodes asks for NaN: behind each feature is one without NaN, for
        nodes at which the comparison is to hold for it.
        """
        kinds = {mode for mode in self.modes if mode != "LEAF"}
        holding = _HOLDING.get(next(iter(kinds))) if len(kinds) == 1 else None
        if not self.tracks.any() or holding is None or not np.isfinite(self.thresholds).all():
            return self, x
        held = np.where(np.isnan(x), x.dtype.type(holding), x)
        pairs = np.reshape(np.stack([x, held], axis=2), (x.shape[0], -1))
        forest = replace(self, features=self.features * 2 + self.tracks, tracks=np.zeros_like(self.tracks))
        return forest, pairs

    def answers(self, values: Any, at: Any) -> Any:
        """Whether the comparisons of nodes hold for values; ``at``: numbers of nodes, which broadcast."""
        kinds = sorted({mode for mode in self.modes if mode != "LEAF"})
        thresholds = item_of(self.thresholds, at)
        holds: Any = None
        for kind in kinds:
            if kind == MEMBER:
                here = np.any(values[..., None] == item_of(self.members, at), axis=-1)
            else:
                here = COMPARISONS[kind](values, thresholds)
            if holds is None:
                holds = here
            else:
                is_kind = np.array([mode == kind for mode in self.modes])
                holds = np.where(item_of(is_kind, at), here, holds)
        if self.tracks.any():
            holds = holds | (np.isnan(values) & item_of(self.tracks, at))
        return holds

    def _depth(self, roots: np.ndarray) -> int:
        depth, level = 0, roots
        while len(level := level[self.yes[level] != level]):
            depth, level = depth + 1, np.concatenate([self.yes[level], self.no[level]])
        return depth

    def _leaves(self, x: Any, roots: np.ndarray) -> Any:
        """The leaf of each row of ``x`` (N, F) in each tree, as (N, T) numbers of nodes, step by step."""
        rows = np.reshape(constant_or_created("arange", x.shape[0]), (-1, 1))
        children = np.stack([self.no, self.yes], 1).reshape(-1)

        def step(_: Any, at: Any) -> Any:
            holds = self.answers(item_of(x, (rows, item_of(self.features, at))), at)
            return item_of(children, at * 2 + holds)

        first = np.broadcast_to(captured(np.reshape(roots, (1, -1))), (x.shape[0], len(roots)))
        return fori_loop(0, self._depth(roots), step, first)

    def combined(self, table: np.ndarray, x: Any, how: str, operators: int = 1) -> Any:
        """What the leaves of all trees give for each row and target; ``table`` is by node and target.

        ``operators``: how many operators of the graph have trees.

        Raises TraceError for extremes of trees whose leaves have some of the targets: the others are no zeros.
        """
        if how not in _SUMS:
            raise TraceError(f"trees combined by {how!r} are not supported")
        if how in ("MIN", "MAX") and table.shape[1] > 1:
            raise TraceError(f"trees of several targets combined by {how!r} are not supported")
        forest, x = self.with_features(x)
        yes, no = self.yes.tolist(), self.no.tolist()
        small: dict[int, list[Any]] = {}  # by number of words
        large = []
        for root in self.roots.tolist():
            tree = None if self.members is not None else ordered(root, yes, no)
            if tree is None or not has_words(len(tree[1]), self._depth(np.array([root])), operators):
                large.append(root)
            else:
                small.setdefault(words_of(len(tree[1])), []).append(tree)
        of_trees, of_groups = _SUMS[how]
        groups = [of_trees(Words.of(trees).weights(x, forest, table), axis=0) for trees in small.values()]
        if large:
            groups.append(of_trees(item_of(table, forest._leaves(x, np.array(large, np.int64))), axis=1))
        total = functools.reduce(of_groups, groups)
        return total / table.dtype.type(len(self.roots)) if how == "AVERAGE" else total
