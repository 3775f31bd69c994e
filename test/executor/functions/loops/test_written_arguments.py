"""Arguments that loops write: where they lie, without copies; and as Python leaves them, always."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from native_loops import called, native


@pytest.fixture(autouse=True)
def _effects():
    """What writes to arguments is no error; no call is Python's for the time that it takes."""
    with pf.knobs.override(unsupported="python", demote="off"):
        yield


def decay(a, rate, n):
    for i in range(1, n):
        a[i] = a[i - 1] * rate + 1.0
    return a


def scatter(a, places):
    for k in range(places.shape[0]):
        a[places[k]] += 0.5 * k


def two(a, b, n):
    total = 0.0
    for i in range(n):
        a[i] = a[i] + b[n - 1 - i]
        b[i] = a[i] * 2.0
        total += b[i]
    return total


def before_and_after(a, n):
    old = a.copy()
    for i in range(1, n):
        a[i] = a[i - 1] + old[i]
    return old, a


def fill(a, x, n):
    a[:] = 0.0
    for i in range(n):
        a[i] += x[i] * 2.0


def matrix(m, n):
    for i in range(1, n):
        for j in range(n):
            m[i, j] = m[i - 1, j] * 0.5 + m[i, j]


def _refuse(*_, **__):
    raise AssertionError("an argument is copied")


def _without_copies(monkeypatch, function, *args):
    """A jitted function, of which a further call copies nothing; the arguments are as in Python."""
    jitted = native(function, *args)
    expected, _, kept = called(function, args)
    given = [np.array(a) if isinstance(a, np.ndarray) else a for a in args]
    with monkeypatch.context() as patch:
        patch.setattr(np, "copyto", _refuse)
        found = jitted(*given)
    for a, b in zip(given, kept, strict=True):
        np.testing.assert_array_equal(a, b)
    return jitted, given, found, expected


@pytest.mark.parametrize(
    "function, args",
    [
        (scatter, (np.zeros(9), np.array([3, 3, -1, 0, 8]))),
        (two, (np.arange(7.0), np.arange(7.0) ** 2, 7)),
        (fill, (np.ones(6), np.arange(6.0), 6)),
        (matrix, (np.arange(25.0).reshape(5, 5), 5)),
        (decay, (np.arange(4000.0), 0.5, 4000)),
    ],
)
def test_arguments_are_written_where_they_are(monkeypatch, function, args):
    _without_copies(monkeypatch, function, *args)


def test_a_loop_that_reads_the_array_before_another_one_writes_it():
    def f(a, b, n):
        for i in range(n):
            b[i] = a[i] * 3.0
        for i in range(n):
            a[i] = b[n - 1 - i]

    native(f, np.arange(6.0), np.ones(6), 6)


def test_an_argument_that_is_returned_is_that_argument(monkeypatch):
    jitted, given, found, _ = _without_copies(monkeypatch, decay, np.arange(10.0), 0.5, 10)
    assert found is given[0]
    assert jitted.state().counters["voided_launches"] == 0


def test_what_is_read_of_the_old_array_stays():
    jitted = native(before_and_after, np.arange(8.0), 8)
    a = np.arange(8.0)
    old, new = jitted(a, 8)
    assert new is a and not np.shares_memory(old, a)
    np.testing.assert_array_equal(old, np.arange(8.0))


@pytest.mark.parametrize("bad", [9, -10, 200])
def test_a_void_run_leaves_what_python_leaves(bad):
    places = np.array([3, 3, -1, 0, 8])
    jitted = native(scatter, np.zeros(9), places)
    a, b = np.zeros(9), np.zeros(9)
    places = np.array([1, 2, bad, 3, 4])
    with pytest.raises(IndexError):
        scatter(b, places)
    with pytest.raises(IndexError):
        jitted(a, places)
    assert jitted.state().counters["voided_launches"] == 1
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(a[:3], [0, 0, 0.5])


def test_a_void_run_gives_back_all_arrays():
    def f(a, b, places):
        for k in range(places.shape[0]):
            a[k] = a[k] + 1.0
            b[places[k]] = a[k]

    jitted = native(f, np.arange(5.0), np.arange(5.0), np.array([4, 3, 2, 1, 0]))
    for places in ([0, 1, 2, 3, 7], [-6, 0, 0, 0, 0], [1, 1, 1, 1, 1]):
        found = called(jitted, (np.arange(5.0), np.arange(5.0), np.array(places)))
        expected = called(f, (np.arange(5.0), np.arange(5.0), np.array(places)))
        assert type(found[1]) is type(expected[1])
        for x, y in zip(found[2], expected[2], strict=True):
            np.testing.assert_array_equal(x, y)
    assert jitted.state().counters["voided_launches"] == 2


def test_numbers_of_rounds_that_go_behind_an_axis():
    jitted = native(decay, np.arange(10.0), 0.5, 10)
    for n in (11, 10, 2, 1, 0, -3, 14):
        found, error, held = called(jitted, (np.arange(10.0), 0.5, n))
        _, wanted, kept = called(decay, (np.arange(10.0), 0.5, n))
        assert type(error) is type(wanted)
        np.testing.assert_array_equal(held[0], kept[0])
        assert found is None or found.shape == (10,)
    assert jitted.state().counters["voided_launches"] == 2


@pytest.mark.parametrize(
    "views",
    [
        lambda x: (x[:7], x[:7]),
        lambda x: (x[:7], x[1:8]),
        lambda x: (x[1:8], x[:7]),
        lambda x: (x[:7], x[7:14]),
        lambda x: (x[6::-1], x[7:14]),
        lambda x: (x[:14:2], x[1:14:2]),
        lambda x: (x[:7].astype(np.float32), x[7:14]),
        lambda x: (np.asfortranarray(x)[:7], x[7:14]),
    ],
)
def test_arrays_that_overlap_or_lie_otherwise(views):
    jitted = native(two, np.arange(7.0), np.arange(7.0) ** 2, 7)
    for _ in range(3):
        one, other = np.arange(16.0), np.arange(16.0)
        a, b = views(one), views(other)
        assert jitted(*a, 7) == two(*b, 7)
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)
        np.testing.assert_array_equal(one, other)
        jitted.wait()


def test_an_array_that_may_not_be_written():
    jitted = native(decay, np.arange(10.0), 0.5, 10)
    a = np.arange(10.0)
    a.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        jitted(a, 0.5, 10)
    np.testing.assert_array_equal(a, np.arange(10.0))


def test_a_donated_argument_beside_a_written_one():
    def f(a, b):
        for i in range(1, a.shape[0]):
            a[i] = a[i - 1] + b[i]
        return b * 2.0

    jitted = pf.jit(f, donate="b")
    for _ in range(5):
        a, b = np.zeros(8), np.arange(8.0)
        c, d = np.zeros(8), np.arange(8.0)
        np.testing.assert_array_equal(jitted(a, b), f(c, d))
        np.testing.assert_array_equal(a, c)
        jitted.wait()


class Counted:
    """An object whose attribute takes no more than three."""

    def __init__(self):
        object.__setattr__(self, "count", 0)

    def __setattr__(self, name, value):
        if value > 3:
            raise ValueError("enough")
        object.__setattr__(self, name, value)


def test_an_assignment_that_fails():
    def f(holder, a):
        holder.count = holder.count + 1
        for i in range(1, a.shape[0]):
            a[i] = a[i - 1] + 1.0

    jitted = pf.jit(f)
    one, other, a, b = Counted(), Counted(), np.zeros(8), np.zeros(8)
    for turn in range(6):
        for function, holder, array in ((jitted, one, a), (f, other, b)):
            array[0] += 1
            if turn < 3:
                function(holder, array)
            else:
                with pytest.raises(ValueError, match="enough"):
                    function(holder, array)
        np.testing.assert_array_equal(a, b)
        assert one.count == other.count
        jitted.wait()


def test_captured_arrays_are_written_where_they_are(monkeypatch):
    held = np.zeros(12)

    @pf.jit
    def f(x):
        for i in range(x.shape[0]):
            held[i] = held[i] + x[i]

    for _ in range(4):
        f(np.arange(12.0))
        f.wait()
    with monkeypatch.context() as patch:
        patch.setattr(np, "copyto", _refuse)
        f(np.arange(12.0))
    np.testing.assert_array_equal(held, 5 * np.arange(12.0))


def test_an_argument_is_also_a_captured_array():
    held = np.arange(8.0)

    def f(x):
        for i in range(1, x.shape[0]):
            x[i] = x[i - 1] + held[i]

    jitted = native(f, np.zeros(8))
    jitted(held)
    np.testing.assert_array_equal(held, np.cumsum(np.arange(8.0)))
