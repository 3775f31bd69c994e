"""Random programs with loops, branches and jumps do as graphs what they do in Python."""

import pytest
import source_programs


@pytest.mark.sampled(6)
@pytest.mark.parametrize("first", range(0, 60, 10))
def test_random_programs(first):
    found = [source_programs.compare(seed) for seed in range(first, first + 10)]
    graphs, refused, recorded = (sum(column) for column in zip(*found, strict=True))
    assert recorded > 10 and 2 * graphs > refused  # else it would be Python that passes this test


@pytest.mark.sampled(4)
@pytest.mark.parametrize("first", range(7000, 7016, 4))
def test_random_programs_in_all_tiers(first):
    found = [source_programs.compare_compiled(seed) for seed in range(first, first + 4)]
    assert sum(native for native, *_ in found) >= 2
