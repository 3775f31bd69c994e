"""Random programs with loops, branches and jumps do as graphs what they do in Python."""

import pytest
import source_programs


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_random_programs(first):
    found = [source_programs.compare(seed) for seed in range(first, first + 10)]
    graphs, refused, recorded = (sum(column) for column in zip(*found, strict=True))
    assert recorded > 10 and graphs > refused  # else it would be Python that passes this test
