"""Results that are arguments, views of these or of other results, as contents or numbers of rounds decide."""

import dataclasses

import numpy as np
import profuse as pf
import pytest


@pytest.fixture(autouse=True)
def python():
    """The default, which the other tests turn off."""
    with pf.knobs.override(unsupported="python"):
        yield


def rounds(x, n):
    y = x
    for _ in range(n):
        y = y * 2
    return y


def some_rounds(x, n):
    y = x
    for i in range(n):
        if x[i % 3] > 1:
            y = y + 1
    return y


def until(x, n):
    y = x
    while y.max() < n:
        y = y + 1
    return y


def until_broken(x, n):
    y, k = x, 0
    while k < n:
        y = np.sqrt(y)
        k += 1
        if y[0] < 1.2:
            break
    return y


def loops_in_loops(x, n):
    y = x
    for i in range(n):
        for j in range(i):
            y = y + j
    return y


def exchanged(x, n):
    y, z = x, x * 2
    for _ in range(n):
        y, z = z, y
    return y, z


def part_of_what_a_loop_gives(x, n):
    y = x
    for _ in range(n):
        y = y * 2
    return y, y[1:]


def array_before(x, n):
    before, y = x * 1, x
    for _ in range(n):
        before = y
        y = y * 2
    return y, before


def best(x, n):
    found, where = x, 0
    for k in range(n):
        y = x * (k - 1.5)
        if y.sum() > found.sum():
            found, where = y, k
    return found, where


def branch(x, n):
    if x.max() < n:
        return x
    return x * 2


def part(x, n):
    return x[1:] if x.sum() > n else x[1:] * 3


def branches(x, n):
    y = x
    if x.sum() > n:
        y = x + 1 if x[0] > 1 else x[::-1]
    return {"y": y, "x": [x]}


def computed_array(x, n):
    y = x * 2
    z = y if y.sum() > n else y + 1
    return y, z


def choice_of_choices(x, n):
    y = x if x[0] > 2 else x[:]
    z = y if x.sum() > n else x
    return y, z


def row_at_a_number(x, n):
    rows = x.reshape(-1, 1)
    row, most = rows[0], 0.0
    for i in range(n):
        if rows[i % 3, 0] > most:
            most = rows[i % 3, 0]
            row = rows[i % 3]
    return row


def row_of_a_computed_array(x, n):
    rows = np.stack([x, x + 1, x - 2])
    row = rows[0]
    for k in range(n):
        if rows[k % 3].sum() > row.sum():
            row = rows[k % 3]
    return row, rows


def part_at_a_number(x, n):
    y = x[0:2]
    for k in range(n):
        start = k % 2
        y = x[start : start + 2]
    return y


def view_of_a_choice(x, n):
    y = x if x.sum() > n else x * 2
    return y.ravel()[::2]


def written_before(x, n):
    x[0] = n
    y = x
    for _ in range(n):
        y = y * 2
    return y


def written_behind(x, n):
    y = x * 1
    z = y
    for _ in range(n):
        z = z + x
    y[0] = 4
    return y, z


def found_in_rounds(x, n):
    for k in range(n):
        if x[k % 3] > 2:
            return x
    return x * 2


NATIVE = (rounds, some_rounds, until, until_broken, loops_in_loops, exchanged, part_of_what_a_loop_gives, array_before)
NATIVE += (best, row_at_a_number, row_of_a_computed_array, written_before, written_behind, found_in_rounds)
BRANCHES = (branch, part, branches, computed_array, choice_of_choices, view_of_a_choice, part_at_a_number)


def leaves(result):
    """The arrays and numbers of a result."""
    if isinstance(result, dict):
        return [leaf for value in result.values() for leaf in leaves(value)]
    if isinstance(result, (tuple, list)):
        return [leaf for value in result for leaf in leaves(value)]
    return [result]


def observed(function, x, *args):
    """All that can be seen of a call: what it gives and leaves, and which of these share memory, or are one object."""
    x = x.copy()
    arrays = [x, *leaves(function(x, *args))]
    seen = [(type(a), np.asarray(a).tolist(), getattr(a, "strides", None)) for a in arrays]
    pairs = [(a, b) for k, a in enumerate(arrays) for b in arrays[:k] if isinstance(a, np.ndarray)]
    return seen, [(a is b, np.shares_memory(a, b)) for a, b in pairs]


NUMBERS = (0, 1, 2, 3, 5, 0, 100, 1, 2, 0)
ARRAYS = (np.array([1.0, 2.0, 3.0]), np.array([3.0, 1.0, 0.5]))


def check(function, **options):
    """Compare a function with itself without `jit`, from the first call on."""
    f = pf.jit(function, **options)
    for n in NUMBERS:
        for x in ARRAYS:
            assert observed(f, x, n) == observed(function, x, n)
    return f.state()


@pytest.mark.parametrize("function", NATIVE, ids=lambda f: f.__name__)
def test_loops_give_what_they_began_with(function):
    counters = check(function, background=False).counters
    assert counters["python_calls"] <= 2 and counters["traces"] <= 2


@pytest.mark.parametrize("function", BRANCHES, ids=lambda f: f.__name__)
def test_branches_give_what_was_there(function):
    assert check(function, background=False).counters["compiles"] > 0


@pytest.mark.parametrize("function", [rounds, branch, row_at_a_number], ids=lambda f: f.__name__)
def test_calls_meanwhile(function):
    check(function)


@pytest.mark.parametrize("function", [rounds, until, some_rounds, best], ids=lambda f: f.__name__)
def test_emitted_code_gives_what_a_loop_began_with(function):
    assert check(function, background=False).emitted


def test_each_round_takes_a_view_of_the_one_before():
    def turned(x, n):
        y = x
        for _ in range(n):
            y = y[::-1]
        return y

    state = check(turned, background=False)
    assert state.counters["compiles"] == 0


def kept(x, n):
    y = z = x
    for _ in range(n):
        y = y + 1
        if y[0] > 3:
            z = y
    return y, z


def kept_in_two_loops(x, n):
    y = z = x
    for _ in range(n):
        y = y + 1
        if y[0] > 3:
            z = y
    for _ in range(n - 2):
        z = z * 2
    return z, y


def exchanged_sums(x, n):
    y, z = x, x * 3
    for k in range(n):
        if x[k % 3] > 1:
            y, z = z, y + z
    return y, z


def kept_until(x, n):
    y = z = w = x
    while y[0] < n:
        w = z
        y = y + 1
        if y[1] > 2:
            z = y
    return w, y, z


def kept_in_rounds_of_rounds(x, n):
    y = z = x
    for i in range(n):
        w = y
        for k in range(i):
            w = w + k
            if w[0] > 3:
                z = w
        y = w
    return y, z


TWINS = (kept, kept_in_two_loops, exchanged_sums, kept_until, kept_in_rounds_of_rounds)


@pytest.mark.parametrize("function", TWINS, ids=lambda f: f.__name__)
def test_arrays_of_rounds_that_may_be_one(function):
    assert check(function, background=False).counters["compiles"] > 0


def test_a_part_of_what_a_round_makes():
    def part_of_it(x, n):
        y, z = x, x[1:]
        for _ in range(n):
            y = y + 1
            z = y[1:]
        return y, z

    assert check(part_of_it, background=False).counters["compiles"] == 0


def test_arrays_of_one_branch():
    def branch_of_two(x, n):
        if x.sum() > n:
            y = x * 2
            z = y[1:]
        else:
            y, z = x, x[1:]
        return y, z

    check(branch_of_two, background=False)


def test_arrays_without_axes_stay_arrays():
    f = pf.jit(rounds, background=False)
    for n in (0, 1, 0, 3, 0, 0):
        for x in (np.array(2.0), np.float64(2.0), 2.0):
            result, expected = f(x, n), rounds(x, n)
            assert type(result) is type(expected) and result == expected
            assert (result is x) == (expected is x) or not isinstance(x, np.ndarray)


def test_other_layouts():
    def both_axes(x, n):
        y = x
        for _ in range(n):
            y = y + 1
        return y, y.T

    f = pf.jit(both_axes, background=False)
    for x in (np.ones((2, 3)), np.ones((3, 2)).T, np.ones((4, 6))[::2, ::2]):
        for n in (0, 1, 2, 0, 1):
            y, turned = f(x, n)
            expected, _ = both_axes(x, n)
            assert (y is x) == (n == 0) and np.shares_memory(turned, y)
            assert y.strides == expected.strides and turned.T.strides == y.strides


def test_an_array_from_outside():
    held = np.arange(3.0)

    def grown(x, n):
        y = held
        for _ in range(n):
            y = y + x
        return y

    f = pf.jit(grown, background=False)
    for n in (0, 1, 0, 3, 0):
        assert (f(np.ones(3), n) is held) == (n == 0)


@dataclasses.dataclass
class Model:
    x: np.ndarray
    best: np.ndarray | None = None

    def step(self, n):
        y = self.x
        for _ in range(n):
            y = y * 2
        self.best = y
        return y


def test_attributes():
    ours, theirs = Model(np.ones(3)), Model(np.ones(3))
    step = pf.jit(Model.step, background=False)
    for n in (0, 2, 0, 1, 0, 0):
        found, expected = step(ours, n), theirs.step(n)
        np.testing.assert_array_equal(found, expected)
        assert (found is ours.x, ours.best is found, ours.best is ours.x) == (
            expected is theirs.x,
            theirs.best is expected,
            theirs.best is theirs.x,
        )


def test_gradients_and_destinations_have_results_of_their_own():
    f = pf.jit(rounds, background=False)
    x = np.ones(3)
    for n in (0, 2, 0, 1):
        out = np.zeros(3)
        f.into(out, x, n)
        np.testing.assert_array_equal(out, rounds(x, n))
        assert (f(x, n) is x) == (n == 0)
        taped = pf.array(x, requires_grad=True)
        f(taped, n).sum().backward()
        np.testing.assert_array_equal(taped.grad, np.full(3, 2.0**n))
        np.testing.assert_array_equal(pf.grad(lambda x, n=n: rounds(x, n).sum())(x), np.full(3, 2.0**n))


def test_saved_functions_compute_the_same(tmp_path):
    f = pf.jit(rounds, background=False)
    x = np.ones(3)
    for n in (0, 2, 0, 3):
        f(x, n)
    f.save(tmp_path / "rounds.profuse")
    loaded = pf.load(tmp_path / "rounds.profuse")
    for n in (0, 1, 2, 0):
        np.testing.assert_array_equal(loaded(x, n), rounds(x, n))
