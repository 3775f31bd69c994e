"""Size expressions mean what Python's integers do, wherever they are evaluated."""

import operator

import numpy as np
import pytest
from every_case import fewer
from hypothesis import given, settings
from hypothesis import strategies as st
from profuse.dialect.importers.numpy.tracing import trace_guards
from profuse.dialect.importers.numpy.tracing.trace_guards import NumberConstant
from profuse.dialect.ir.size_algebra import (
    bounds,
    fits_64_bits,
    inside_loop,
    parse_dim,
    substitute,
    sym_max,
    sym_min,
    without_remainders,
)
from profuse.dialect.ir.symbolic import LOOP, Dimension, Integer, Sym, evaluate, symbol
from profuse.dialect.ops.sizes import is_nonnegative, is_positive
from profuse.executor.memory.offsets import Refused, size_of

OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "max": sym_max,
    "min": sym_min,
}
A, B = symbol("a"), symbol("b")
LEAVES = st.integers(-5, 9) | st.sampled_from(["a", "b"])
TREES = st.recursive(LEAVES, lambda t: st.tuples(st.sampled_from(sorted(OPERATORS)), t, t), max_leaves=8)


def made(tree, values):
    """The tree on numbers, or on symbols."""
    if isinstance(tree, tuple):
        name, *parts = tree
        return OPERATORS[name](*(made(part, values) for part in parts))
    return values.get(tree, tree)


@given(TREES, st.integers(1, 9), st.integers(1, 9))
@settings(max_examples=fewer(400), deadline=None)
def test_every_reader_of_size_expressions_agrees_with_python(tree, a, b):
    values = {"a": a, "b": b}
    try:
        want, dim = made(tree, values), made(tree, {"a": A, "b": B})
    except ZeroDivisionError:
        return
    assert evaluate(dim, values) == want
    assert parse_dim(str(dim)) == dim
    assert evaluate(without_remainders(dim), values) == want
    assert evaluate(substitute(dim, {"a": symbol("c") + 1}), {"b": b, "c": a - 1}) == want
    low, high = bounds(dim)
    assert low <= want <= high
    assert not is_nonnegative(dim) or want >= 0
    assert not is_positive(dim) or want > 0
    places = {"a": symbol(Dimension(0, 0)), "b": symbol(Dimension(0, 1))}
    guard = substitute(dim, places)
    assert trace_guards.evaluate(guard, [np.empty((a, b))]) == want
    assert eval(trace_guards.text(guard), {}, {"a0": np.empty((a, b))}) == want
    try:
        size = size_of(dim, places)
    except Refused:
        return  # divided by a size: left to Python
    assert evaluate(size, {Dimension(0, 0): a, Dimension(0, 1): b}) == want
    text = str(substitute(size, {Dimension(0, 0): A, Dimension(0, 1): B}))
    assert eval(text, {}, values) == want


def test_negative_divisors_have_one_normal_form():
    assert A // -3 == -A // 3 and A % -3 == -(-A % 3)
    assert without_remainders(A // 4 * 4 + A % 4) == A
    assert without_remainders(A % 4) != A % 4


@pytest.mark.parametrize(
    ("dim", "low", "high"),
    [
        (A - 1, 0, np.inf),
        (-(-A // 2), 1, np.inf),
        (A // 2, 0, np.inf),
        (A % 4, 0, 3),
        (sym_max(A - 3, 0), 0, np.inf),
        (sym_min(A, 5), 1, 5),
        (A - B, -np.inf, np.inf),
        (symbol(Integer(0)) * 2, -np.inf, np.inf),
        (A * B - 1, 0, np.inf),
        (A % -3, -2, 0),
        (A - A // 3 * 3, 0, 2),
        (sym_min(A // 2 * 2, A) - A // 2 * 2, 0, 0),
        (A // 2 - A, -np.inf, -1),
        (A // 2 + A // 3 - A, -np.inf, -1),
        (A - 2 * (A // 3), 1, np.inf),
    ],
)
def test_bounds_of_sizes_of_which_none_is_zero(dim, low, high):
    assert bounds(dim) == (low, high)
    assert sym_max(A, 0) == A and sym_min(A - B, A) == A - B and sym_min(A // 2, A) == A // 2
    assert sym_max(A - 1, 0) != A - 1
    assert sym_max(symbol(Integer(0)), 0) != symbol(Integer(0))


def test_what_fits_64_bits():
    assert fits_64_bits(A * B) and fits_64_bits((A * A - A) // 2) and fits_64_bits(2**30 * A)
    assert not fits_64_bits(A * A * B) and not fits_64_bits(sym_min(A * A * B, A))
    assert isinstance(A * A * B, Sym)


def test_numbers_that_are_equal_are_not_the_same_in_guards():
    one, same = NumberConstant(1), NumberConstant(1)
    assert one == same and hash(one) == hash(same)
    assert len({one, NumberConstant(1.0), NumberConstant(True), NumberConstant(0.0), NumberConstant(-0.0)}) == 5
    assert NumberConstant(float("nan")) == NumberConstant(float("nan"))


@pytest.mark.parametrize(
    "text", ["9**9", "1/2", "a b", "a(b)", "(1, 2)", "max", "1//0", "max(1)", "", "(a)if(b)else(1)", "a.b"]
)
def test_other_text_than_of_sizes_is_refused(text):
    with pytest.raises(ValueError, match="not a size expression"):
        parse_dim(text)


def test_text_is_read_once():
    """Sizes are asked for at every launch of a check; their text is no different by then."""
    assert parse_dim("(s0 + 7) * s1") is parse_dim("(s0 + 7) * s1")
    for _ in range(2):
        with pytest.raises(ValueError, match="not a size expression"):
            parse_dim("s0 +")


_SMALL = st.integers(-3, 3)


@given(st.tuples(_SMALL, _SMALL, _SMALL, _SMALL), _SMALL, st.booleans())
@settings(max_examples=fewer(60), deadline=None)
def test_bounds_inside_of_loops_hold_in_all_rounds(factors, start, squared):
    """For i from 1 to s0 + start, and j from 1 to i (R1.5: what is known of sizes)."""
    i, j, s = (symbol(n) for n in (f"{LOOP}0", f"{LOOP}1", "s0"))
    a, b, c, d = factors
    dim = i * a + j * b + s * c + d + (i * i if squared else 0)
    if isinstance(dim, int):
        return
    with inside_loop(f"{LOOP}0", s + start), inside_loop(f"{LOOP}1", i):
        low, high = bounds(dim)
        chosen = sym_max(dim, 0)
    for size in range(1, 7):
        for one in range(1, size + start + 1):
            for two in range(1, one + 1):
                sizes = {f"{LOOP}0": one, f"{LOOP}1": two, "s0": size}
                found = evaluate(dim, sizes)
                assert low <= found <= high
                assert evaluate(chosen, sizes) == max(found, 0)
    assert bounds(i - s)[1] == float("inf")  # as it was, outside


def test_windows_are_as_long_in_all_rounds():
    i, s = symbol(f"{LOOP}0"), symbol("s0")
    with inside_loop(f"{LOOP}0", s - 4):
        assert sym_min(i + 4, s) - sym_min(i, s) == 4
        assert is_positive(s - i)
    assert sym_min(i + 4, s) != i + 4


def test_a_guarded_size_may_be_divided_by_one_that_is_positive():
    """What no guard has seen might be 0, and machine code would trap."""
    free, other = symbol("s1_0"), symbol("s2")
    sizes = {"s1_0": symbol(Dimension(0, 0)), "s2": symbol(Dimension(0, 1))}
    for divisor in (free, sym_max(other, 1), sym_max(other // sym_max(free - 1, 1), 128)):
        size = size_of(-(-other // divisor), sizes, guarded=True)
        for a, b in ((2, 1), (7, 900), (300, 300)):
            values = {"s1_0": a, "s2": b}
            expected = -(-b // evaluate(divisor, values))
            assert evaluate(size, {Dimension(0, 0): a, Dimension(0, 1): b}) == expected
        with pytest.raises(Refused, match="divided by another"):
            size_of(-(-other // divisor), sizes)
    for divisor in (other, free - 2, other // 3):
        with pytest.raises(Refused, match="divided by another"):
            size_of(free // divisor, sizes, guarded=True)


def test_bounds_of_operators_in_operators():
    """Each operator is looked at once, not twice for each level above it."""
    size = symbol("s0")
    for _ in range(13):
        size = sym_max(-(-size // symbol("s1")) + 1, 3)
    assert bounds(size) == (3, float("inf"))


def test_sizes_behind_relaxed_guards_are_neither_0_nor_1():
    assert bounds(symbol("s3_1") - 1) == (1, float("inf"))
    assert is_positive(symbol("s3_1") - 1) and not is_positive(symbol("s3") - 1)
    assert sym_max(symbol("s3_1"), 2) == symbol("s3_1")


@given(st.lists(st.integers(-3, 3), min_size=4, max_size=4), st.lists(st.integers(0, 5), min_size=3, max_size=3))
def test_bounds_hold_for_sizes_that_exceed_others(factors, steps):
    """``s1_0__2_s0_0`` is 2 more than ``s0_0_3``, or larger, and ``s2_0`` exceeds both that and ``s0_0_3``."""
    names = ("s0_0_3", "s1_0__2_s0_0", "s2_0__0_s1_0__1_s0_0")
    least = 3 + steps[0]
    middle = least + 2 + steps[1]
    values = dict(zip(names, (least, middle, max(middle, least + 1) + steps[2]), strict=True))
    dim = sum((symbol(name) * times for name, times in zip(names, factors, strict=False)), factors[-1])
    low, high = bounds(dim)
    assert low <= evaluate(dim, values) <= high


def test_sizes_that_exceed_others_decide_which_is_larger():
    """By their roots: what else is known of the other size makes another name of it."""
    first, second = symbol("s0_0_3"), symbol("s1_0__2_s0_0")
    assert sym_min(first + 2, second) == first + 2
    assert sym_max(first + 1, second) == second
    assert sym_min(first + 3, second) == parse_dim("min(s0_0_3 + 3, s1_0__2_s0_0)")
    assert bounds(second * symbol("n") - first * symbol("n")) == (2, float("inf"))
    assert bounds(first - second) == (-float("inf"), -2)
