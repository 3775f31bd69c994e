"""Merging nodes into groups never makes a cycle (R1.48)."""

import random

import pytest
from profuse.dialect.analysis.node_groups import Groups, chain


def cyclic(groups, edges):
    links = {(groups.group(a), groups.group(b)) for a, b in edges}
    position = {g: k for k, g in enumerate(groups.order())}
    return len(position) != len(groups.members) or any(position[a] > position[b] for a, b in links if a != b)


def test_neighbours_merge_and_the_graph_shrinks():
    groups = Groups(3, chain([0, 1, 2]))
    assert groups.can_merge(0, 1)
    assert groups.merge(0, 1) == 0
    assert groups.members == {0: [0, 1], 2: [2]}
    assert (groups.succ[0], groups.pred[2]) == ({2}, {0})
    assert groups.group(1) == 0


def test_a_path_through_a_third_forbids_merging():
    groups = Groups(3, [(0, 1), (1, 2), (0, 2)])
    assert not groups.can_merge(0, 2)
    groups.merge(0, 1)
    assert groups.can_merge(0, 2)


def test_independent_nodes_merge_and_forbid_others():
    groups = Groups(4, [(0, 1), (2, 3)])
    groups.merge(0, 3)
    assert not groups.can_merge(1, 2)


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs_stay_acyclic(seed):
    rng = random.Random(seed)
    count = 24
    edges = {(a, b) for a in range(count) for b in range(a + 1, count) if rng.random() < 0.1}
    groups = Groups(count, edges)
    for _ in range(200):
        a, b = rng.sample(sorted(groups.members), 2) if len(groups.members) > 1 else (0, 0)
        if a == b or not groups.can_merge(a, b):
            continue
        groups.merge(a, b)
        assert not cyclic(groups, edges)
    assert sorted(n for nodes in groups.members.values() for n in nodes) == list(range(count))


@pytest.mark.parametrize("seed", range(10))
def test_what_is_refused_would_be_a_cycle(seed):
    rng = random.Random(seed)
    count = 12
    edges = {(a, b) for a in range(count) for b in range(a + 1, count) if rng.random() < 0.2}
    for a in range(count):
        for b in range(a + 1, count):
            groups = Groups(count, edges)
            if not groups.can_merge(a, b):
                groups.merge(a, b)
                assert len(groups.order()) < len(groups.members)
