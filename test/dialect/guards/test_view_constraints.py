"""Constraints of views: what they say, and which sizes they admit (R3.40, R3.41)."""

from __future__ import annotations

import math
import random
from itertools import product

import numpy as np
import pytest
from profuse.dialect.guards.view_constraints import inferred_sizes, view_constraint, view_fits, view_shape
from profuse.dialect.ir.symbolic import evaluate, symbol

TEXTS = [
    ((2, 6), (2, 2, 3), "s0, s1 -> s0, (s1 // 3), 3"),
    ((2, 6), (2, -1, 3), "s0, s1 -> s0, (s1 // 3), 3"),
    ((4, 6), (8, 3), "s0, s1 -> ((s0*s1) // 3), 3"),
    ((4, 1, 6), (24, 1), "s0, 1, s2 -> s0*s2, 1"),
    ((4, 6), (4, 6), "s0, s1 -> s0, s1"),
    ((), (1, 1), " -> 1, 1"),
    ((1, 1), (), "1, 1 -> "),
    ((0, 6), (0, 2, 3), "0, 6 -> 0, 2, 3"),
]


@pytest.mark.parametrize(("sizes", "view", "text"), TEXTS)
def test_r3_40_what_a_constraint_says(sizes, view, text):
    assert view_constraint(sizes, view) == text
    assert view_fits(text, sizes, view)


@pytest.mark.parametrize(
    ("sizes", "view", "fits"),
    [
        ((4, 6), (4, 2, 3), True),
        ((4, 6), (4, 3, 2), False),
        ((4, 6), (-1, 2, 3), True),
        ((4, 6), (-1, 3, 2), False),
        ((4, 9), (4, 3, 3), True),
        ((4, 6), (4, 2, 4), False),  # another number of elements
        ((4, 6), (-1, -1, 3), False),
        ((4, 6), (-2, 2, 3), False),
        ((4, 6), (-1, 5, 3), False),
        ((1, 6), (1, 2, 3), False),
        ((4, 3), (4, 1, 3), False),
        ((0, 6), (0, 2, 3), False),
        ((4, 6), (0, -1, 3), False),
        ((4, 6), (4, 6), False),
        ((6,), (2, 3), False),
    ],
)
def test_r3_41_which_sizes_fit(sizes, view, fits):
    assert view_fits("s0, s1 -> s0, (s1 // 3), 3", sizes, view) is fits


def test_r3_41_inferred_sizes_are_those_of_numpy():
    for sizes in product((0, 1, 2, 3, 4), repeat=2):
        for view in product((-1, 0, 1, 2, 3, 6), repeat=2):
            try:
                expected = np.empty(sizes).reshape(view).shape
            except ValueError:
                expected = None
            assert inferred_sizes(sizes, view) == expected, (sizes, view)


def factors(rng: random.Random, total: int, rank: int) -> tuple[int, ...]:
    out = []
    for _ in range(rank - 1):
        out.append(rng.choice([d for d in range(1, total + 1) if total % d == 0]))
        total //= out[-1]
    return (*out, total)


def test_r3_41_the_view_has_the_sizes_that_a_fitting_constraint_tells():
    rng, fitting = random.Random(7), 0
    totals = (12, 24, 36, 48)
    for _ in range(1500):
        total = rng.choice(totals)
        sizes, view = (factors(rng, total, rng.randrange(1, 4)) for _ in range(2))
        constraint = view_constraint(sizes, view)
        assert constraint is not None
        other = rng.choice(totals)
        other_sizes, other_view = factors(rng, other, len(sizes)), factors(rng, other, len(view))
        symbols = [symbol(f"a{axis}") for axis in range(len(sizes))]
        told = view_shape(constraint, symbols)
        values = {f"a{axis}": size for axis, size in enumerate(other_sizes)}
        if view_fits(constraint, other_sizes, other_view):
            fitting += 1
            assert tuple(evaluate(dim, values) for dim in told) == other_view
            assert math.prod(other_view) == other
    assert fitting > 50
