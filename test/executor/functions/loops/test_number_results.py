"""Loops that compute Python numbers: kernels return them in tensors, emitted code as numbers."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from native_loops import equal_results


def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def count_primes(n):
    total = 0
    for k in range(2, n):
        prime = True
        d = 2
        while d * d <= k:
            if k % d == 0:
                prime = False
                break
            d += 1
        if prime:
            total += 1
    return total


def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def best(x):
    place, most = -1, -1e300
    for k in range(x.shape[0]):
        if x[k] > most:
            place, most = k, x[k]
    return place, most


def newton(a):
    x, rounds = 1.0, 0
    while abs(x * x - a) > 1e-12 * a:
        x = (x + a / x) / 2
        rounds += 1
    return x, rounds


def same(found, expected):
    found = found if isinstance(found, tuple) else (found,)
    expected = expected if isinstance(expected, tuple) else (expected,)
    assert [type(x) for x in found] == [type(x) for x in expected]
    assert found == pytest.approx(expected, rel=1e-14, abs=0)


CALLS = [
    (collatz, [(27,), (97,), (1,), (6,)]),
    (count_primes, [(40,), (2,), (100,), (0,)]),
    (fibonacci, [(30,), (0,), (1,), (90,)]),
    (best, [(np.sin(np.arange(1.0, 40.0)),), (np.cos(np.arange(12.0)),), (np.ones(3),)]),
    (newton, [(2.0,), (9.0,), (1e6,), (1.0,)]),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("function", "calls"), CALLS, ids=lambda x: getattr(x, "__name__", ""))
def test_numbers_are_pythons_in_every_tier(function, calls):
    f = pf.jit(function)
    for _ in range(4):
        for args in calls:
            same(f(*args), function(*args))
    counters = f.state().counters
    assert counters["compile_failures"] == counters["python_calls"] == 0
    f(*calls[0])
    before = counters["evaluated_ops"], counters["kernel_launches"]
    assert f.state().emitted
    launches = f.state().counters["kernel_launches"]
    same(f(*calls[0]), function(*calls[0]))
    assert f.state().counters["kernel_launches"] == launches + 1
    assert before[1] > 0


@pytest.mark.parametrize("unsupported", ["raise", "python"])
def test_ints_of_more_than_64_bits_are_exact(unsupported):
    f = pf.jit(fibonacci, unsupported=unsupported)
    for n in (50, 50, 50, 92, 93, 100, 300, 50):
        same(f(n), fibonacci(n))
    assert f.state().counters["voided_launches"] >= 3


def test_numbers_behind_a_miss_of_a_guard():
    f = pf.jit(best)
    for n in (5, 5, 5, 9, 9, 9, 5, 9):
        x = np.random.default_rng(n).random(n)
        same(f(x), best(x))
    assert f.state().emitted
    assert len(f._emission.dispatcher._made.counts) == 2  # emitted code has the fallback's plan, too
    before = f.state().counters
    x = np.random.default_rng(9).random(9)
    same(f(x), best(x))
    after = f.state().counters
    assert after["guard_misses"] == before["guard_misses"] + 1
    assert after["kernel_launches"] == before["kernel_launches"] + 1
    # The outer graph takes one number out of a tensor.
    assert after["evaluated_ops"] == before["evaluated_ops"] + 1


def test_a_number_and_the_tensor_that_it_is_in():
    def both(x):
        most = 0
        for k in range(x.shape[0]):
            most = most + 2 * k
        return most, x * most

    f = pf.jit(both)
    x = np.arange(4.0)
    for _ in range(4):
        found, expected = f(x), both(x)
        assert type(found[0]) is int and found[0] == expected[0]
        np.testing.assert_array_equal(found[1], expected[1])


def test_into_and_arrays_of_the_tape_take_no_numbers():
    f = pf.jit(best)
    x = np.random.default_rng(0).random(6)
    for _ in range(4):
        f(x)
    a = pf.array(x, requires_grad=True)
    place, most = f(a)
    assert int(place) == int(np.argmax(x))
    assert float(most) == x.max()


def test_a_void_kernel_leaves_the_call_to_python():
    f = pf.jit(fibonacci, unsupported="python")
    for n in (50, 50, 50):
        same(f(n), fibonacci(n))
    before = f.state().counters
    same(f(200), fibonacci(200))
    after = f.state().counters
    assert after["python_calls"] == before["python_calls"] + 1
    assert after["evaluated_ops"] == before["evaluated_ops"]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32])
def test_ints_that_an_array_cannot_hold_raise(dtype):
    def squares(n, x):
        y = x * 0
        for k in range(n):
            y[k] = k * k
        return y

    f, x = pf.jit(squares), np.zeros(20, dtype)
    for n in (5, 5, 5, 11):
        np.testing.assert_array_equal(f(n, x), squares(n, x))
    large = np.zeros(50_000, dtype)
    for n in (3, 3, 3, 50_000, 17):  # the kernel is there before an int does not fit
        try:
            expected = squares(n, large)
        except OverflowError:
            with pytest.raises(OverflowError):
                f(n, large)
        else:
            np.testing.assert_array_equal(f(n, large), expected)


def test_powers_raise_as_python_does():
    def powers(x, e):
        total = 0.0
        for k in range(x.shape[0]):
            total += float(x[k]) ** e
        return total

    f, x = pf.jit(powers), np.array([1.5, 2.5, 3.0])
    for e in (2.5, 2.5, 2.5, -1.5):
        assert f(x, e) == pytest.approx(powers(x, e), rel=1e-14)
    for y, e, kind in ((x * 1e200, 2.5, OverflowError), (x * 0, -1.5, ZeroDivisionError)):
        with pytest.raises(kind):
            powers(y, e)
        with pytest.raises((kind, ArithmeticError)):
            f(y, e)


def longest(x):
    run = best = 0
    for v in x:
        if v > 0.5:
            run += 1
        else:
            run = 0
        best = max(best, run)
    return best, np.array([best])


def last_run(x):
    run = 1
    for v in x:
        if v > 0.5:
            run += 1
        else:
            run = 1
    return [run, 2], run, np.array([run, 3]), max(run, 4)


def total(x):
    found = 0.0
    for v in x:
        found += float(v)
    return np.array([found, found * 2]), found


@pytest.mark.parametrize("function", [longest, last_run, total])
def test_a_number_stays_one_where_an_array_holds_it_too(function):
    x = np.random.default_rng(0).random(40)
    f = pf.jit(function)
    for _ in range(4):
        equal_results(f(x), function(x))
        f.wait()
    assert f.state().tier == "optimized"
