"""Small trees without steps from node to node: every node is asked, and each answer rules leaves out.

A tree of few leaves has a word, or some, with a bit for each leaf, from the leaf that is reached if all comparisons
hold to the one that is reached if none does. Where the comparison of a node does not hold, the leaves that are reached
if it does are ruled out; of those that are left, the leaf is the first. So all rows go through the same few operations
of whole words, which are SIMD code, while steps from node to node read memory wherever the last one leads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .....dataclass import dataclass
from .....ir.dtypes import dtype_of
from ....numpy.tracing.operators import op
from ...array_values import captured, item_of, taken

_WORD = 63  # leaves that fit into a word of 64 bits; the sign would be one more
_HALF = 31  # those of a word of 32 bits
_MOST_WORDS = 2  # of a tree; trees of each number of words are code of their own
_ASKED = 20  # nodes of a tree are asked in the time of one step from node to node
_MOST_NODES = 256  # of which a graph has code, for the trees of each operator: compiling takes seconds for as many


def has_words(leaves: int, depth: int, operators: int) -> bool:
    """True for trees of which to ask all nodes is quicker than to go from one to the next.

    Args:
        leaves, depth: of the tree.
        operators: how many operators of the graph have trees. All trees of an operator share the code of their nodes.
    """
    is_quick = leaves <= _HALF or leaves <= min(_MOST_WORDS * _WORD, _ASKED * depth)
    return is_quick and leaves * operators <= _MOST_NODES


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


def ordered(root: int, yes: Sequence[int], no: Sequence[int]) -> tuple[list[TreeNode], list[int]]:
    """The nodes of a tree that compare, and the numbers of its leaves in order; leaves are their own children."""
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
    return nodes, leaves


def words_of(leaves: int) -> int:
    """How many words a tree of this many leaves has."""
    return -(-max(leaves, 1) // _WORD)


@dataclass(frozen=True)
class Words:
    """Trees with the same number of words, as arrays by word, the first ones of all trees coming first, and along the
    second axis by node; words are filled up with nodes that rule nothing out.

    Attributes:
        nodes: numbers of nodes of the forest.
        kept: what a node leaves of a word where its comparison does not hold.
        whole: words of all leaves.
        leaves: by tree and leaf, numbers of nodes of the forest.
    """

    nodes: np.ndarray
    kept: np.ndarray
    whole: np.ndarray
    leaves: np.ndarray

    @staticmethod
    def of(trees: Sequence[tuple[list[TreeNode], list[int]]]) -> Words:
        most = max(len(leaves) for _, leaves in trees)
        dtype = np.int32 if most <= _HALF else np.int64
        firsts = [first for first in range(0, most, _WORD) for _ in trees]
        asked = [
            [(node.number, out) for node in nodes if (out := _part((1 << node.middle) - (1 << node.first), first))]
            for first, (nodes, _) in zip(firsts, [*trees] * words_of(most), strict=True)
        ]
        width = max(map(len, asked))
        words = Words(
            np.zeros((len(asked), width), np.int64),
            np.full((len(asked), width), -1, dtype),
            np.array([_part((1 << most) - 1, first) for first in firsts], dtype),
            np.zeros((len(trees), most), np.int64),
        )
        for tree, (_, leaves) in enumerate(trees):
            words.leaves[tree, : len(leaves)] = leaves
        for word, nodes in enumerate(asked):
            for place, (number, out) in enumerate(nodes):
                words.nodes[word, place], words.kept[word, place] = number, ~out
        return words

    def reached(self, x: Any, forest: Any) -> Any:
        """The places of the leaves that the rows of ``x`` (N, F) reach, by tree and row, as int32 or int64."""
        columns = np.transpose(x)
        words: Any = np.broadcast_to(captured(self.whole[:, None]), (len(self.whole), x.shape[0]))
        for place in range(self.nodes.shape[1]):
            nodes = self.nodes[:, place]
            values = taken(columns, forest.features[nodes], axis=0)
            holds = forest.answers(values, nodes[:, None])
            words = words & np.where(holds, self.kept.dtype.type(-1), self.kept[:, place, None])
        trees = len(self.leaves)
        parts = [words[first : first + trees] for first in range(0, len(self.whole), trees)]
        lowest = [_lowest(word) + k * _WORD for k, word in enumerate(parts)]
        reached = lowest.pop()
        while lowest:
            reached = np.where(parts[len(lowest) - 1] != 0, lowest.pop(), reached)
        return reached

    def weights(self, x: Any, forest: Any, table: np.ndarray) -> Any:
        """What the leaves give, as (trees, rows, targets); ``table`` is by node of the forest and target."""
        trees, most = self.leaves.shape
        places = self.reached(x, forest) + (np.arange(trees, dtype=self.kept.dtype) * most)[:, None]
        return item_of(table[self.leaves].reshape(trees * most, -1), places)


def _lowest(word: Any) -> Any:
    """The number of the lowest bit of a word; any number where there is none."""
    lowest = word & -word
    # The exponent of a power of two is the number of its bit.
    wide, shift, bias = (np.float32, 23, 127) if word.dtype == np.int32 else (np.float64, 52, 1023)
    bits = op("bitcast", captured(lowest.astype(wide)), dtype=dtype_of(word.dtype))
    return (bits >> shift) - bias


def _part(bits: int, first: int) -> int:
    """The word that begins with a bit of a longer one."""
    return (bits >> first) & ((1 << _WORD) - 1)
