"""Python's ints in kernels of loops: exact, and tested only where they must be."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from native_loops import native, same

pytestmark = pytest.mark.optimised

FAR = (2**62 + 1, -(2**63), -(2**61) - 1, 3_000_000_000, 4_000_000_000, -3_037_000_500)


def shifted(x, a):
    y, total = 0, 0.0
    for i in range(len(a)):
        y = x << 3
        total += a[i]
    return y, total


def cubed(x, a):
    y, total = 0, 0.0
    for i in range(len(a)):
        y = x**3
        total += a[i]
    return y, total


def squared(x, a):
    y, total = 0, 0.0
    for i in range(len(a)):
        y = x**2 + i
        total += a[i]
    return y, total


def absolute(x, a):
    y, total = 0, 0.0
    for i in range(len(a)):
        y = abs(x)
        total += a[i]
    return y, total


def on_a_line(x, a):
    y, total = 0, 0.0
    for i in range(len(a)):
        y = 3 * (x - 7) * -5 + 2**62
        total += a[i]
    return y, total


@pytest.mark.parametrize("function", [shifted, cubed, squared, absolute, on_a_line])
@pytest.mark.parametrize("x", FAR)
def test_ints_that_leave_64_bits(function, x):
    a = np.arange(30.0)
    jitted = native(function, 5, a)
    same(jitted, function, (x, a))


@pytest.mark.parametrize("x", [2**53, 2**53 + 1, -(2**53) - 1, 2**60 + 1])
def test_ints_are_compared_with_floats_as_they_are(x):
    def above(x, y, a):
        count = 0
        for i in range(len(a)):
            if x + int(a[i]) > y:
                count += 1
        return count

    a = np.zeros(30)
    jitted = native(above, 7, 5.5, a)
    same(jitted, above, (x, float(x), a))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("step", [1, 2, 4, 64, 2**40])
@pytest.mark.parametrize("first", [-(2**63), -65, -64, -1, 0, 1, 63, 2**62 + 3])
def test_divisions_by_powers_of_two(step, first):
    known = {  # the divisor is a literal
        1: lambda x: (x // 1, x % 1),
        2: lambda x: (x // 2, x % 2),
        4: lambda x: (x // 4, x % 4),
        64: lambda x: (x // 64, x % 64),
        2**40: lambda x: (x // 2**40, x % 2**40),
    }[step]

    def divided(x, a):
        q = r = 0
        for i in range(len(a)):
            q, r = known(x)
            x = x + int(a[i])
        return q, r, x

    jitted = native(divided, 5, np.arange(30))
    same(jitted, divided, (first, np.zeros(30, np.int64)))


def collatz(limit):
    best = most = 0
    for start in range(1, limit):
        n, steps = start, 0
        while n != 1:
            if n % 2 == 0:
                n //= 2
            else:
                n = 3 * n + 1
            steps += 1
        if steps > most:
            best, most = start, steps
    return best, most


def test_both_sides_of_a_little_branch_are_computed():
    jitted = native(collatz, 40)
    assert "arith.select" in jitted.ir("linalg")
    assert jitted.ir("linalg").count("scf.if") < 3  # one ends the run


def test_what_the_side_not_taken_would_forbid_is_allowed():
    def run(x, a):
        y = 0
        for i in range(len(a)):
            if a[i] > 0:
                y = x * 9 + 1
            else:
                y = x - 1
        return y

    a = np.zeros(30, np.int64)
    jitted = native(run, 5, a)
    before = jitted.state().counters["voided_launches"]
    assert jitted(2**62, a) == 2**62 - 1
    assert jitted.state().counters["voided_launches"] == before
    a[-1] = 1
    assert jitted(2**62, a) == 9 * 2**62 + 1
    assert jitted.state().counters["voided_launches"] == before + 1


def crossings(x, level):
    above, count, run, longest = False, 0, 0, 0
    for value in x:
        if not above and value > level:
            above = True
            count += 1
            run = 0
        elif above and value < -level:
            above = False
        if above:
            run += 1
            if run > longest:
                longest = run
    return count, longest


def bisect_all(table, wanted):
    out = np.empty(len(wanted), dtype=np.int64)
    for k in range(len(wanted)):
        low, high = 0, len(table)
        while low < high:
            middle = (low + high) // 2
            if table[middle] < wanted[k]:
                low = middle + 1
            else:
                high = middle
        out[k] = low
    return out


def insertion_sort(b):
    a = b.copy()
    for i in range(1, len(a)):
        key = a[i]
        j = i - 1
        while j >= 0 and a[j] > key:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = key
    return a


@pytest.mark.parametrize(
    "function, arguments",
    [
        (crossings, (np.sin(np.arange(90.0)), 0.5)),
        (bisect_all, (np.arange(50.0), np.linspace(-3, 60, 40))),
        (insertion_sort, (np.cos(np.arange(50.0)),)),
    ],
)
def test_kernels_without_tests(function, arguments):
    """Counters do not leave 64 bits, and conditions keep indices on their axes."""
    jitted = native(function, *arguments)
    assert "cf.assert" not in jitted.ir("linalg")


def test_an_index_that_conditions_do_not_keep_on_its_axis_is_tested():
    def shifted_by(a, n):
        j, total = 0, 0.0
        while j < n:
            total += a[j]
            j += 1
        return total

    a = np.arange(30.0)
    jitted = native(shifted_by, a, 30)
    same(jitted, shifted_by, (a, 31))
    same(jitted, shifted_by, (a, -2))


def test_indices_behind_conditions():
    """The other side of a condition is not on the axis."""

    def chosen(a, k):
        total = 0.0
        for i in range(len(k)):
            at = k[i].item()
            if at < len(a) and at >= 0:
                total += a[at]
            elif at > -3:
                total -= a[at % 4]
            if at < len(a):
                if at >= 0:
                    total += a[at]
                else:
                    total += 2.0 * a[at]
        return total

    a, k = np.arange(30.0), np.arange(30)
    jitted = native(chosen, a, k)
    for last in (29, 30, 400, -1, -30, -31, -(2**62)):
        k[-1] = last
        same(jitted, chosen, (a, k))


def test_what_grows_by_its_half_is_tested():
    def grown(n):
        x = 2
        for _ in range(n):
            x += x // 2
        return x

    jitted = native(grown, 30)
    for n in (104, 106, 107, 108, 109, 120):
        same(jitted, grown, (n,))


def between(x, low, high, n):
    inside = outside = 0
    for value in x:
        k = int((value - low) / (high - low) * n)
        if 0 <= k < n:
            inside += k
        if k < 0 or k >= n:
            outside += k
    return inside, outside


@pytest.mark.parametrize("n", [20, 1, 0, -1, -5])
def test_one_comparison_does_for_two(n):
    x = np.linspace(-3, 3, 61)
    jitted = native(between, x, -2.0, 2.0, 20)
    assert "ult" in jitted.ir("linalg")
    same(jitted, between, (x, -2.0, 2.0, n))


def test_ops_behind_a_loop_join_it_whatever_constants_they_read():
    def crc(data):
        crc = 0xFFFF
        for b in data:
            crc = (crc >> 1) ^ int(b)
        crc = ~crc & 0xFFFF
        return ((crc << 8) | ((crc >> 8) & 0xFF)) & 0xFFFF

    data = np.arange(40).astype(np.uint8)
    jitted = pf.jit(crc)
    for _ in range(3):
        assert jitted(data) == crc(data)
        jitted.wait()
    before = jitted.state().counters["evaluated_ops"]
    assert jitted(data) == crc(data)
    assert jitted.state().counters["evaluated_ops"] <= before + 1
