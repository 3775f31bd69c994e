"""What is known of ints in kernels of loops: which side of 64 bits no round comes near."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from native_loops import native, same

pytestmark = pytest.mark.optimised


def tripled(start, rounds, a):
    total = 0.0
    for _ in range(rounds):
        n = start if start > 0 else 1
        while n % 1024 != 5 and n < 2**62:
            n = 3 * n + 1
        total += a[n % 7] + n
    return total, n


def below_zero(start, rounds, a):
    total = 0.0
    for _ in range(rounds):
        n = -start if start > 0 else -1
        while n % 1024 != 5 and n > -(2**62):
            n = 3 * n - 1
        total += a[n % 7]
    return total, n


def both_sides(start, rounds, a):
    n = start
    for i in range(rounds):
        if a[i] > 0.5:
            n = 5 * n + 1
        else:
            n = -n
    return n


def halved_places(x, a):
    """The index is in range unless it has left 64 bits; rounds that may be SIMD code go on then."""
    y = np.zeros(len(a))
    for i in range(len(a)):
        y[i] = a[(x * (i + 1)) // 2**60]
    return y


def places_in_branches(x, a):
    y = np.zeros(len(a))
    for i in range(len(a)):
        if x > 0:
            k = x * (i + 1)
            if a[i] >= 0.0:
                y[i] = a[k // 2**60]
    return y


def backwards(n, a):
    total, k = 0.0, n
    while k > -n - 1:
        total += a[k]
        k -= 1
    return total


def voided(jitted):
    return jitted.state().counters["voided_launches"]


@pytest.mark.parametrize("function", [tripled, below_zero])
def test_products_that_grow_on_one_side(function):
    a = np.arange(7.0)
    jitted = native(function, 5 if function is tripled else 1019, 20, a)
    for start in (6, 1, 2, 3, 100, 2**61):
        same(jitted, function, (start, 20, a))


@pytest.mark.parametrize("start", [1, -1, 0, 2**61, -(2**61), 2**63 - 1, -(2**63)])
def test_both_ends_of_64_bits(start):
    for pattern in (1.0, 0.0, None):
        a = np.arange(60) % 2 * 1.0 if pattern is None else np.full(60, pattern)
        jitted = native(both_sides, 3, 20, a)
        same(jitted, both_sides, (start, 60, a))


@pytest.mark.parametrize("function", [halved_places, places_in_branches])
def test_what_has_left_64_bits_is_no_place(function):
    a = np.arange(1.0, 9.0)
    jitted = native(function, 2**59, a[:7].copy())
    for x in (2**60, 2**61 - 1, 2**62, 2**63 - 1, -(2**60), -(2**63)):
        same(jitted, function, (x, a[:7].copy()))


def test_counters_that_pass_zero():
    a = np.arange(40.0)
    jitted = native(backwards, 20, a)
    same(jitted, backwards, (39, a))
    same(jitted, backwards, (0, a))
    assert voided(jitted) == 0
    same(jitted, backwards, (40, a))  # raises IndexError


def test_ints_that_are_not_negative_are_tested_on_one_side():
    def longest(limit):
        most = 0
        for start in range(1, limit):
            n, steps = start, 0
            while n != 1:
                n = n // 2 if n % 2 == 0 else 3 * n + 1
                steps += 1
            most = max(most, steps)
        return most

    jitted = native(longest, 40)
    text = jitted.ir("linalg")
    inside = text[text.index("scf.while") :]
    assert "arith.cmpi ugt" not in inside, inside
    assert inside.count("arith.cmpi sgt, ") >= 2


def test_python_takes_over_where_they_leave_64_bits():
    def power(n, rounds):
        y = 1
        for _ in range(rounds):
            y = 3 * y + 1
            if n < 0:
                y -= n
        return y

    with pf.knobs.override(unroll_rounds=4):
        jitted = native(power, 5, 20)
        before = voided(jitted)
        assert jitted(5, 90) == power(5, 90)
        assert voided(jitted) == before + 1
