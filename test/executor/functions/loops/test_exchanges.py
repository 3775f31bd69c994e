"""Arrays of the caller's that change places with others from round to round: `u, v = v, u`."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from native_loops import native, same

ROUNDS = (0, 1, 2, 3, 4, 20, 21, 22, -3)


@pytest.fixture(autouse=True)
def as_users_call_it():
    """What writes to arguments is no error."""
    with pf.knobs.override(unsupported="python"):
        yield


def diffusion(u, steps):
    v = np.empty_like(u)
    for _ in range(steps):
        for i in range(len(u)):
            left = u[i - 1] if i > 0 else 0.0
            v[i] = u[i] + 0.2 * (left - u[i])
        u, v = v, u
    return u


def both_given(a, b, n):
    for k in range(n):
        b[1:-1] = (a[:-2] + a[2:]) / 2 + k
        a, b = b, a
    return a


def by_a_third_name(a, b, n):
    for t in range(2, n + 2):
        for i in range(1, len(a) - 1):
            b[i] = 0.5 * (a[i - 1] + a[i + 1]) + t
        other = a
        a = b
        b = other


def leapfrog(u, new, steps):
    old = u.copy()
    for _ in range(steps):
        new[1:-1] = 2 * u[1:-1] - old[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
        old, u, new = u, new, old
    return u, old


def backwards(u, v, steps):
    total = 0.0
    for k in range(steps, 0, -1):
        v[k % 4] = u[0] + k
        v[1:] += u[:-1]
        total += v[1] * k
        u, v = v, u
    return v, total


def by_rows(u, v, table):
    for row in table:
        v[:] = u * row[0] + row[1]
        u, v = v, u
    return u.sum()


def arguments(function, steps):
    u, v = np.arange(7.0) ** 1.5, np.ones(7)
    if function is diffusion:
        return u, steps
    return (u, v, np.ones((max(steps, 0), 2)) if function is by_rows else steps)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("function", [diffusion, both_given, by_a_third_name, leapfrog, backwards, by_rows])
@pytest.mark.parametrize("steps", [20, 21])
def test_exchanges_are_native(function, steps):
    """For any number of rounds: the caller's arrays hold what Python leaves in them."""
    f = native(function, *arguments(function, steps))
    for more in ROUNDS:
        same(f, function, arguments(function, more))
    assert f.state().counters["voided_launches"] == 0


@pytest.mark.parametrize("function", [diffusion, both_given, leapfrog])
def test_a_result_is_the_argument_itself_where_python_returns_it(function):
    f = pf.jit(function)
    for steps in (20, 20, 20, 21, 21, 21, 22, 22, 0):
        mine, theirs = arguments(function, steps), arguments(function, steps)
        found, expected = f(*mine), function(*theirs)
        found, expected = ((x if isinstance(x, tuple) else (x,)) for x in (found, expected))
        for a, b in zip(found, expected, strict=True):
            assert [a is x for x in mine] == [b is x for x in theirs], steps
        f.wait()
    assert f.state().counters["kernel_launches"] >= 3


def test_arrays_in_attributes():
    class Field:
        def __init__(self):
            self.u, self.v = np.arange(9.0), np.zeros(9)

        def run(self, n):
            u, v = self.u, self.v
            for _ in range(n):
                v[1:-1] = (u[:-2] + u[2:]) / 2
                u, v = v, u
            self.u, self.v = u, v
            return u[3]

    mine, theirs, run = Field(), Field(), pf.jit(Field.run)
    first, second = mine.u, mine.v
    for call in range(9):
        n = 20 + call % 2
        assert run(mine, n) == theirs.run(n)
        np.testing.assert_array_equal(mine.u, theirs.u)
        np.testing.assert_array_equal(mine.v, theirs.v)
        assert {id(mine.u), id(mine.v)} == {id(first), id(second)}
        run.wait()
    assert run.state().tier == "optimized"


def test_arrays_that_are_only_read_need_no_number_of_rounds():
    def f(a, b, n):
        s = 0.0
        for _ in range(n):
            s += a[0] - 2 * b[1]
            a, b = b, a
        return s

    jitted = pf.jit(f)
    for n in (20, 21, 22, 23):
        assert jitted(np.arange(3.0), np.ones(3), n) == f(np.arange(3.0), np.ones(3), n)
    assert jitted.state().counters["traces"] == 1


def test_a_number_of_rounds_that_contents_decide_is_python():
    def f(u, v, n):
        for _ in range(int(n[0])):
            v[1:] = u[:-1] + 1
            u, v = v, u
        return u

    jitted = pf.jit(f)
    for n in (20, 21, 22):
        same(jitted, f, (np.arange(5.0), np.ones(5), np.array([n])))
    assert jitted.state().tier == "python"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("known", [False, True])
def test_a_loop_that_may_be_left_between_two_exchanges(known):
    def f(u, v, n, tol):
        for k in range(n):  # noqa: B007
            v[1:-1] = (u[:-2] + u[2:]) / 2
            moved = np.abs(v - u).max()
            u, v = v, u
            if moved < tol:
                break
        return u, k

    def g(u, v, n, last):
        for k in range(n):
            v[1:-1] = (u[:-2] + u[2:]) / 2 + k
            u, v = v, u
            if k == last:
                return v
        return u

    function = g if known else f
    jitted = pf.jit(function)
    x = np.random.default_rng(0).standard_normal(9)
    for n in (24, 24, 24, 23, 23, 3):
        for end in (1e-1, 3e-2, 0) if function is f else (18, 19, 60):
            same(jitted, function, (x, x.copy(), n, end))
            jitted.wait()


def test_an_exchange_that_contents_decide_is_python():
    def f(u, v, n):
        for k in range(n):
            v[1:] = u[:-1] + k
            if v[1] > 3:
                u, v = v, u
        return u

    jitted = pf.jit(f)
    for n in (20, 21, 22):
        same(jitted, f, (np.arange(5.0), np.ones(5), n))
    assert jitted.state().tier == "python"
