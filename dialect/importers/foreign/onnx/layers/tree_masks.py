"""Trees without steps from node to node: every node is asked, and each answer rules leaves out.

A tree of few leaves has a word with a bit for each leaf, from the leaf that is reached if all comparisons hold to the
one that is reached if none does. Where the comparison of a node does not hold, the leaves that are reached if it does
are ruled out; of those that are left, the leaf is the first. So all rows go through the same few operations of whole
words, which are SIMD code, while steps from node to node read memory wherever the last one leads. A tree of more leaves
is a sum of such trees: each is a part of it, with leaves of weight 0 in the place of all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .....dataclass import dataclass
from .....ir.dtypes import dtype_of
from ....numpy.tracing.operators import op
from ...array_values import captured, item_of, taken

_BITS = 31  # of a word that are leaves; the sign is none
# So many nodes are asked in the time of one step from node to node: of few rows, and of many, which fill registers.
_FEW_ROWS = 16
_ASKED_BY_FEW, _ASKED_BY_MANY = 4, 30
_ELSEWHERE = -1  # in the place of the number of a leaf: another part of the tree is reached


@dataclass(frozen=True)
class TreeNode:
    """A node that compares.

    Attributes:
        number: among all nodes of the forest.
        first, middle, last: its leaves are those from ``first`` on; from ``middle`` on they are those that are
            reached if the comparison does not hold, and ``last`` is behind them.
    """

    number: int
    first: int
    middle: int
    last: int


@dataclass(frozen=True)
class Part:
    """A tree of few leaves, which is a part of one, or all of it.

    Attributes:
        nodes: those that compare, in any order.
        leaves: their numbers in order.
    """

    nodes: tuple[TreeNode, ...]
    leaves: tuple[int, ...]


def ordered(root: int, yes: Sequence[int], no: Sequence[int]) -> Part:
    """A whole tree, however many leaves it has; leaves are their own children."""
    nodes: list[TreeNode] = []
    leaves: list[int] = []
    # What is to be done, the next thing last: a node to enter, or one of which this many children have been left.
    work: list[tuple[int, int, int, int]] = [(root, 0, 0, 0)]
    while work:
        number, done, first, middle = work.pop()
        if yes[number] == number:
            leaves.append(number)
        elif done == 0:
            work += [(number, 1, len(leaves), 0), (yes[number], 0, 0, 0)]
        elif done == 1:
            work += [(number, 2, first, len(leaves)), (no[number], 0, 0, 0)]
        else:
            nodes.append(TreeNode(number, first, middle, len(leaves)))
    return Part(tuple(nodes), tuple(leaves))


def nodes_in_a_step(rows: Any) -> int:
    """How many nodes are asked in the time of one step; a graph holds for few rows, or for many."""
    return _ASKED_BY_FEW if rows < _FEW_ROWS else _ASKED_BY_MANY


def is_cut(tree: Part) -> bool:
    """True for a whole tree of too many leaves for one word."""
    return len(tree.leaves) > _BITS


def parts_of(root: int, tree: Part, yes: Sequence[int], no: Sequence[int], most: int) -> list[Part] | None:
    """The parts of a whole tree; None if it has to be cut, and they have more nodes than ``most``."""
    if not is_cut(tree):
        return [tree]
    counts = dict.fromkeys(tree.leaves, 1) | {node.number: node.last - node.first for node in tree.nodes}
    parts: list[Part] = []
    asked = 0
    # Nodes, with the nodes on the way to them and whether their comparisons hold there.
    work: list[tuple[int, tuple[tuple[int, bool], ...]]] = [(root, ())]
    while work:
        number, way = work.pop()
        if counts[number] + len(way) > _BITS:
            if counts[number] == 1:
                return None
            work += [(no[number], (*way, (number, False))), (yes[number], (*way, (number, True)))]
            continue
        parts.append(_behind(way, ordered(number, yes, no)))
        asked += len(parts[-1].nodes)
        if asked > most:
            return None
    return parts


def _behind(way: Sequence[tuple[int, bool]], part: Part) -> Part:
    """A part with the nodes on the way to it, each with one leaf for all that is reached if its answer is the other."""
    before = sum(not holds for _, holds in way)
    nodes = [TreeNode(n.number, n.first + before, n.middle + before, n.last + before) for n in part.nodes]
    first, last = 0, len(part.leaves) + len(way)
    leaves = (*(_ELSEWHERE,) * before, *part.leaves, *(_ELSEWHERE,) * (len(way) - before))
    for number, holds in way:
        nodes.append(TreeNode(number, first, last - 1 if holds else first + 1, last))
        first, last = (first, last - 1) if holds else (first + 1, last)
    return Part(tuple(nodes), leaves)


@dataclass(frozen=True)
class Words:
    """Trees of few leaves, as arrays by tree and, along the second axis, by node; trees are filled up with nodes
    that rule nothing out.

    Attributes:
        nodes: numbers of nodes of the forest.
        kept: the word that a node leaves where its comparison does not hold.
        whole: by tree, the word of all leaves.
        leaves: by tree and bit, numbers of nodes of the forest.
    """

    nodes: np.ndarray
    kept: np.ndarray
    whole: np.ndarray
    leaves: np.ndarray

    @staticmethod
    def of(parts: Sequence[Part]) -> Words:
        most, width = max(len(part.leaves) for part in parts), max(len(part.nodes) for part in parts)
        words = Words(
            np.zeros((len(parts), width), np.int64),
            np.full((len(parts), width), -1, np.int32),
            np.array([(1 << len(part.leaves)) - 1 for part in parts], np.int32),
            np.full((len(parts), most), _ELSEWHERE, np.int64),
        )
        for tree, part in enumerate(parts):
            words.leaves[tree, : len(part.leaves)] = part.leaves
            for place, node in enumerate(part.nodes):
                words.nodes[tree, place] = node.number
                words.kept[tree, place] = ~((1 << node.middle) - (1 << node.first))
        return words

    def reached(self, x: Any, forest: Any) -> Any:
        """The bits of the leaves that the rows of ``x`` (N, F) reach, by tree and row."""
        columns = np.transpose(x)
        word: Any = np.broadcast_to(captured(self.whole[:, None]), (len(self.whole), x.shape[0]))
        for place in range(self.nodes.shape[1]):
            nodes = self.nodes[:, place]
            values = taken(columns, forest.features[nodes], axis=0)
            holds = forest.answers(values, nodes[:, None])
            word = word & np.where(holds, np.int32(-1), self.kept[:, place, None])
        lowest = word & -word
        # The exponent of a power of two is the number of its bit.
        bits = op("bitcast", captured(lowest.astype(np.float32)), dtype=dtype_of(np.int32))
        return (bits >> 23) - 127

    def weights(self, x: Any, forest: Any, table: np.ndarray) -> Any:
        """What the leaves give, as (trees, rows, targets); ``table`` is by node of the forest and target."""
        trees, most = self.leaves.shape
        places = self.reached(x, forest) + (np.arange(trees, dtype=np.int32) * most)[:, None]
        whole = np.concatenate([table, np.zeros((1, table.shape[1]), table.dtype)])  # the last row is that of elsewhere
        return item_of(whole[self.leaves].reshape(trees * most, -1), places)


__all__ = ["Part", "TreeNode", "Words", "is_cut", "nodes_in_a_step", "ordered", "parts_of"]
