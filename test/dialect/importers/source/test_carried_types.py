"""Loops whose variables change their types: Python's types, after any number of rounds."""

import numpy as np
import pytest
from test_source_loops import graphs, ops

ROUNDS = (3, 2, 1, 0, 4, 1)


def shifts(x):
    a, b = 0, 1
    for v in x:
        a, b = b, a + v
    return a, b


def passes_through_three(x):
    a, b, c = 0, 0, 0
    for v in x:
        a, b, c = b, c, v
    return a, b, c


def alternates(n, a, b):
    for _ in range(n):
        a, b = b, a
    return a, b


@pytest.mark.parametrize("dtype", [float, np.float32, np.int64])
def test_a_variable_that_gets_its_type_in_the_second_round(dtype):
    found = graphs(shifts, [(np.arange(n).astype(dtype),) for n in ROUNDS])
    assert "for" in ops(found[0])  # behind a first round of its own


def test_variables_that_get_their_types_one_after_the_other():
    graphs(passes_through_three, [(np.arange(n) * 1.5,) for n in ROUNDS])


@pytest.mark.parametrize("pair", [(1, 2.5), (1.5, np.float64(2)), (np.float32(1), 2.5)])
def test_variables_that_swap_their_types(pair):
    for n in ROUNDS:
        graphs(alternates, [(n, *pair)])
