"""What dynamic guards assume of sizes, so that they fit each other (R1.40)."""

import pytest
from profuse.dialect.guards.assumed_sizes import assumption
from profuse.dialect.ir.size_algebra import parse_dim, substitute


@pytest.mark.parametrize(
    ("sizes", "observed", "assumed"),
    [
        # Even sizes, multiples of 4, and of what is left after common factors.
        (["(s0 + 1) // 2", "s0 // 2"], {"s0": 6}, ("s0", "2*k1")),
        (["s0 // 4"], {"s0": 8}, ("s0", "4*k1")),
        (["s0*s1", "4*s1*((s0*s1) // (4*s1))"], {"s0": 8, "s1": 3}, ("s0", "4*k2")),
        (["(3*s0) // 6", "s1"], {"s0": 2, "s1": 1}, ("s0", "2*k2")),
        (["max(s0 % 5, 1)", "s1"], {"s0": 10, "s1": 1}, ("s0", "5*k2")),
        # One is what the other is.
        (["s0", "s1 + 2"], {"s0": 7, "s1": 5}, ("s0", "s1 + 2")),
        (["2*s0", "s1"], {"s0": 3, "s1": 6}, ("s1", "2*s0")),
        # What both are multiplied by does not matter.
        (["756*s2", "1512*s1"], {"s1": 3, "s2": 6}, ("s2", "2*s1")),
        (["3*s0*s1", "9*s1*s2*s3"], {"s0": 12, "s1": 2, "s2": 2, "s3": 2}, ("s0", "3*s2*s3")),
        (["18*s0*s0 + 36*s0", "36*s0*s2 + 72*s2"], {"s0": 6, "s2": 3}, ("s0", "2*s2")),
        # A product that has to be a number is one where each symbol is.
        (["s1*s3*s3", "864"], {"s0": 4, "s1": 96, "s3": 3}, ("s1", "96")),
        (["864", "96*s2*s3"], {"s1": 0, "s2": 9, "s3": 1}, ("s2", "9")),
    ],
)
def test_what_was_so_is_assumed(sizes, observed, assumed):
    sizes = [parse_dim(text) for text in sizes]
    name, size = assumption(sizes, observed)
    assert (name, size) == (assumed[0], parse_dim(assumed[1]))
    made = [substitute(dim, {name: size}) for dim in sizes]
    assert len(set(made)) == 1 or "s1" in observed  # fits now, or is one step nearer to it


@pytest.mark.parametrize(
    ("sizes", "observed"),
    [
        (["(s0 + 1) // 2", "s0 // 2"], {"s0": 7}),  # an odd size, for which it does not fit
        (["s0", "s1"], {"s0": 3, "s1": 4}),
        (["s0", "2*s0"], {"s0": 3}),
        (["s0 + s1", "2*s0"], {"s0": 3, "s1": 3}),  # equal, but neither is a symbol
        (["s0 // s1", "s1"], {"s0": 4, "s1": 2}),
        (["6*s0*s1", "9*s1*s2*s3"], {"s0": 6, "s1": 2, "s2": 2, "s3": 2}),  # neither is a multiple of the other
        (["9*s0*s2 + s0", "18*s1*s2 + 3*s1"], {"s0": 21, "s1": 19, "s2": 1}),  # of different factors
        ([], {}),
        (["s0 - 3"], {"s0": 9}),
        (["(s0 + 1) // 2", "s0 // 2"], {}),  # of which nothing was observed
        (["s0", "s1"], {"s0": 3}),
        (["s0*s1", "12"], {"s0": 3, "s1": 5}),  # another number
        (["s0 // (s1 - 4)", "s0"], {"s0": 3, "s1": 4}),
    ],
)
def test_nothing_else_is_assumed(sizes, observed):
    before = dict(observed)
    assert assumption([parse_dim(text) for text in sizes], observed) is None
    assert observed == before
