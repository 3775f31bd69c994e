"""Minimum cuts against all cuts of small random graphs."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from profuse.dialect.analysis.min_cut import UNCUT, minimum_cut

NODES = 6  # 0 is the source, 5 the sink
EDGES = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1), st.integers(0, 9)), max_size=20)


def capacity(edges, later):
    """What the edges into the sink's side carry."""
    return sum(c for a, b, c in edges if a not in later and b in later)


@given(EDGES)
def test_no_cut_is_smaller_and_none_as_small_is_nearer_to_the_sink(edges):
    found = minimum_cut(edges, 0, NODES - 1)
    assert NODES - 1 in found and 0 not in found
    every = [{n for n, side in enumerate((0, *sides, 1)) if side} for sides in product((0, 1), repeat=NODES - 2)]
    least = min(capacity(edges, later) for later in every)
    assert capacity(edges, found) == least
    assert all(found <= later for later in every if capacity(edges, later) == least)


def test_uncut_edges_are_in_no_cut():
    edges = [(0, 1, UNCUT), (1, 2, 7), (1, 3, 2), (3, 2, UNCUT)]
    assert minimum_cut(edges, 0, 2) == {2, 3}
    with pytest.raises(ValueError, match="no cut may contain"):
        minimum_cut([(0, 1, UNCUT), (1, 2, UNCUT)], 0, 2)


def test_long_chains_need_no_recursion():
    edges = [(k, k + 1, 5 if k != 3000 else 4) for k in range(5000)]
    assert minimum_cut(edges, 0, 5000) == set(range(3001, 5001))
