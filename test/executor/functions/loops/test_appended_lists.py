"""Lists that grow by one element per round: one array of a kernel, and Python's list behind it."""

from __future__ import annotations

import copy
import sys

import numpy as np
import profuse as pf
import pytest
from native_loops import equal_results


def oscillate(n, h):
    positions, x, v = [], 1.0, 0.0
    for _ in range(n):
        v -= h * x
        x += h * v
        positions.append(x)
    return np.array(positions)


def decay(n, h):
    values, x = [0.5], 1.0
    for i in range(n):
        x = x * 0.9 + h * i
        values.append(x)
    return values


def of_kinds(x):
    doubled, squares, signs, turned = [], [], [], []
    for i in range(len(x)):
        doubled.append(x[i] * 2)
        squares.append(i * i)
        signs.append(bool(x[i] > 0.5))
        turned.append(complex(x[i], i))
    return doubled, squares, signs, turned


def states(x, n):
    kept = []
    for _ in range(n):
        x = x * 0.5 + 1
        kept.append(x)
    return np.array(kept), x


def states_as_list(x, n):
    kept = [x.copy()]
    for _ in range(n):
        x = np.roll(x, 1) * 0.5
        kept.append(x)
    return kept


def moving_mean(x):
    means = []
    for i in range(len(x) - 2):
        means.append(x[i : i + 3].mean())
    return np.mean(means), len(means), np.std(means)


def ends(x):
    squares = []
    for i in range(len(x)):
        squares.append(x[i] ** 2)
    return squares[-1] + squares[0], len(squares)


def descent(a, b, w, n):
    losses = []
    for _ in range(n):
        r = a @ w - b
        w = w - 0.01 * (a.T @ r)
        losses.append(float((r * r).mean()))
    return w, losses


def read_in_the_round(x):
    kept = [0.0]
    for v in x:
        kept.append(kept[-1] + v)
    return kept


def twice_in_a_round(x):
    kept = []
    for v in x:
        kept.append(v)
        kept.append(-v)
    return kept


def in_a_branch(x):
    kept = []
    for v in x:
        if v > 0.5:
            kept.append(v)
    return kept


def left_early(x):
    kept = []
    for v in x:
        if v > 0.9:
            break
        kept.append(v)
    return kept


def continued(x):
    kept = []
    for v in x:
        if v < 0.3:
            continue
        kept.append(v)
        if v > 0.95:
            kept.append(1.0 - v)
    return np.array(kept), len(kept), kept[-1]


def euler(n, h):
    times, values = [0.0], [1.0]
    for _ in range(n):
        values.append(values[-1] - h * values[-1])
        times.append(times[-1] + h)
    return np.array(times), np.array(values)


def fibonacci(n):
    found = [0, 1]
    for i in range(2, n):
        found.append(found[i - 1] + found[i - 2])
    return found, sum(found), found[5]


def records(x):
    kept = []
    for v in x:
        if not kept or v > kept[-1]:
            kept.append(v)
    return kept, max(kept)


def at_most_five(x):
    kept = []
    for v in x:
        if len(kept) < 5:
            kept.append(v * 2)
    return kept


def peaks(x):
    found = []
    for i in range(1, len(x) - 1):
        if x[i] > x[i - 1] and x[i] > x[i + 1]:
            found.append((i, x[i]))
    return found, len(found)


def path(n):
    steps = [(0.0, 1)]
    for _ in range(n):
        a, b = steps[-1]
        steps.append((a + 0.5 * b, b + 1))
    return steps


def iterates(x, n):
    kept = [x]
    for _ in range(n):
        kept.append(kept[-1] * 0.5 + 1)
    return np.array(kept)


def sieve(n):
    is_prime, primes = np.ones(n + 1, dtype=bool), []
    for i in range(2, n + 1):
        if is_prime[i]:
            primes.append(i)
            for j in range(i * i, n + 1, i):
                is_prime[j] = False
    return primes


def lengths_of_runs(x):
    lengths, length = [], 1
    for i in range(1, len(x)):
        if (x[i] > 0.5) == (x[i - 1] > 0.5):
            length += 1
        else:
            lengths.append(length)
            length = 1
    lengths.append(length)
    return lengths, len(lengths), lengths[-1], max(lengths), np.array(lengths)


def mean_and_range(x):
    kept = []
    for v in x:
        kept.append(float(v))
    return sum(kept) / len(kept), max(kept), min(kept)


RANDOM = np.random.default_rng(3)
NATIVE = [
    (oscillate, (40, 0.1)),
    (decay, (20, 0.1)),
    (of_kinds, (RANDOM.random(9),)),
    (states, (RANDOM.random(3), 21)),
    (states_as_list, (RANDOM.random(3), 21)),
    (moving_mean, (RANDOM.random(30),)),
    (ends, (RANDOM.random(11),)),
    (descent, (RANDOM.random((7, 3)), RANDOM.random(7), RANDOM.random(3), 20)),
    (read_in_the_round, (RANDOM.random(23),)),
    (twice_in_a_round, (RANDOM.random(23),)),
    (in_a_branch, (RANDOM.random(23),)),
    (left_early, (np.linspace(0.1, 1.0, 23),)),
    (continued, (RANDOM.random(40),)),
    (euler, (30, 0.1)),
    (fibonacci, (40,)),
    (records, (RANDOM.random(40),)),
    (at_most_five, (RANDOM.random(23),)),
    (peaks, (RANDOM.random(40),)),
    (path, (20,)),
    (iterates, (RANDOM.random(3), 20)),
    (sieve, (60,)),
    (lengths_of_runs, (RANDOM.random(40),)),
    pytest.param(
        mean_and_range,
        (RANDOM.random(30),),
        marks=pytest.mark.skipif(
            sys.version_info >= (3, 12), reason="`sum` of floats makes up for roundings since 3.12"
        ),
    ),
]
# NumPy computes with what is in these lists.
IN_PARTS = (continued, fibonacci, lengths_of_runs, mean_and_range, records)


@pytest.mark.parametrize(("function", "args"), NATIVE, ids=lambda x: getattr(x, "__name__", ""))
def test_lists_of_rounds_are_native(function, args):
    f = pf.jit(function, unsupported="python")
    for _ in range(5):
        equal_results(f(*copy.deepcopy(args)), function(*copy.deepcopy(args)))
        f.wait()
    state = f.state()
    assert state.tier == "optimized"
    assert state.emitted or function in IN_PARTS
    assert state.counters["traces"] == 1
    launches = state.counters["kernel_launches"]
    f(*copy.deepcopy(args))
    assert 0 < f.state().counters["kernel_launches"] - launches <= 4


# --- programs in which the list, or what it holds, is more than its rounds ------------------------


def one_array_many_times(n):
    x, kept = np.zeros(3), []
    for _ in range(n):
        x[0] += 1
        kept.append(x)
    return kept


def written_after_it_was_kept(x, n):
    kept = []
    for k in range(n):
        x = x + 1
        kept.append(x)
        x[0] = k
    return kept


def written_in_the_next_round(x, n):
    kept = []
    for _ in range(n):
        x[1] = 7.0
        x = x * 2
        kept.append(x)
    return kept


def written_behind_the_loop(x, n):
    kept = []
    for _ in range(n):
        x = x * 2
        kept.append(x)
    x += 100
    return kept, x


def a_view_is_written_behind_the_loop(x, n):
    kept = []
    for _ in range(n):
        x = x * 2
        kept.append(x)
    x[1:][0] = 5
    return np.array(kept)


def a_second_name(x):
    kept = []
    other = kept
    for v in x:
        kept.append(v)
    return other


def in_a_tuple(x):
    kept = []
    holder = (kept, 3)
    for v in x:
        kept.append(v)
    return holder


def sizes_that_change(x, n):
    kept = []
    for _ in range(n):
        x = np.append(x, 1.0)
        kept.append(x)
    return kept


def sizes_that_shrink_to_one(x, n):
    kept = []
    for k in range(n):
        kept.append(x[: max(n - k, 1)] * 2)
    return kept


def sizes_that_alternate(x, n):
    kept = []
    for k in range(n):
        kept.append(x[: 2 - k % 2] * 2)
    return kept


def kinds_that_change(n):
    kept, x = [], 1
    for _ in range(n):
        kept.append(x)
        x = x / 2
    return kept


def large_ints(n):
    kept, x = [], 1
    for _ in range(n):
        x = x * 3
        kept.append(x)
    return kept


def of_lists(n):
    rows = []
    for i in range(n):
        row = []
        for j in range(20):
            row.append(i * j + 0.5)
        rows.append(row)
    return rows


def two_loops(x):
    kept = []
    for v in x:
        kept.append(v)
    for v in x:
        kept.append(2 * v)
    return kept


def as_a_list(x):
    kept = []
    for v in x:
        kept.append(v + 1)
    kept.sort()
    return sum(kept), max(kept), kept[1:3], isinstance(kept, list), [2 * v for v in kept]


def closed_over(x):
    kept = []

    def put(v):
        kept.append(v)

    for v in x:
        put(v)
        kept.append(v)
    return kept


def into_an_argument(kept, x):
    for v in x:
        kept.append(v)
    return len(kept)


def raises(x):
    kept = []
    for i in range(len(x)):
        kept.append(1.0 / float(x[i]))
    return kept


# --- programs in which it matters what is in the list --------------------------------------------


def maybe_nothing(x):
    kept = []
    for i in range(len(x)):
        if x[i] > 2.0:
            kept.append(i)
    return kept, np.array(kept)


def read_too_early(x):
    kept = []
    for v in x:
        kept.append(v + kept[-1])
    return kept


def beyond_the_end(x):
    kept = [1.0, 2.0]
    for i in range(len(x)):
        kept.append(kept[i + 3])
    return kept


def not_there_yet(x):
    kept = [1.0, 2.0]
    for i in range(len(x)):
        kept.append(kept[min(2 * i + 1, 5)])
    return kept


def before_the_start(x):
    kept = [1.0, 2.0]
    for _ in x:
        kept.append(kept[-3])
    return kept


def of_two_kinds(n):
    kept = [1]
    for _ in range(n):
        kept.append(kept[-1] * 0.5)
    return kept, max(kept)


def written_through_the_list(x, n):
    kept = [x + 0]
    for _ in range(n):
        kept.append(kept[-1] * 2)
        kept[-1][0] = 7
    return kept


def the_first_one_is_written_meanwhile(x, n):
    kept = [x]
    for k in range(n):
        x[0] = k
        kept.append(kept[0] * 2)
    return kept


def one_of_its_own_is_written_meanwhile(x, n):
    y = x + 1
    kept = [y]
    for k in range(n):
        y[0] = k
        kept.append(kept[0] * 2)
    return kept


def replaced_in_the_list(n):
    kept = [1.0]
    for k in range(n):
        kept.append(kept[-1] + k)
        kept[-1] = 0.5
    return kept


def taken_from_the_list(n):
    kept = [1.0, 2.0]
    for k in range(n):
        kept.append(kept.pop() + k)
    return kept


def in_an_inner_loop(n):
    kept = []
    for i in range(n):
        for j in range(n):
            if i < j:
                kept.append(i * j)
    return kept


def given_to_a_function(n):
    def last(values):
        return values[-1]

    kept = [1.0]
    for k in range(n):
        kept.append(last(kept) + k)
    return kept


def more_behind_the_loop(x):
    kept = [0]
    for v in x:
        kept.append(float(v))
    kept.append(np.float32(0.5))
    kept.append(7)
    return kept, kept[-1], kept[-2], np.array(kept), len(kept)


def more_in_a_later_branch(x):
    kept = []
    for v in x:
        kept.append(v)
    if x[0] > 0.5:
        kept.append(1.0)
    return kept


def from_the_end(n):
    kept = [1.0, 2.0]
    for k in range(n):
        kept.append(float(k))
    return kept[-1], kept[-2]


def of_nan(x):
    kept = []
    for v in x:
        kept.append(float(v) if v > 0.3 else float("nan"))
    return max(kept), min(kept), sum(kept)


def of_zeros(n):
    kept = []
    for k in range(n):
        kept.append(-0.0 if k % 2 else 0.0)
    return max(kept), min(kept), sum(kept)


X = np.linspace(0.1, 1.0, 23)
OTHERS = [
    (one_array_many_times, (20,)),
    (written_after_it_was_kept, (X[:3], 20)),
    (written_in_the_next_round, (X[:3], 20)),
    (written_behind_the_loop, (X[:3], 20)),
    (a_view_is_written_behind_the_loop, (X[:3], 20)),
    (a_second_name, (X,)),
    (in_a_tuple, (X,)),
    (sizes_that_change, (X[:2], 20)),
    (sizes_that_shrink_to_one, (X, 20)),
    (sizes_that_alternate, (X, 20)),
    (kinds_that_change, (20,)),
    (large_ints, (60,)),
    (of_lists, (20,)),
    (two_loops, (X,)),
    (as_a_list, (X,)),
    (closed_over, (X,)),
    (into_an_argument, ([1.0], X)),
    (oscillate, (0, 0.5)),
    (states, (X[:3], 0)),
    (states, (X[:3], 1)),
    (decay, (1, 0.5)),
    (of_kinds, (X[:0],)),
    (of_kinds, (X[:1],)),
    (moving_mean, (X[:3],)),
    (maybe_nothing, (X,)),
    (of_two_kinds, (20,)),
    (written_through_the_list, (X[:3], 20)),
    (the_first_one_is_written_meanwhile, (X[:3], 20)),
    (one_of_its_own_is_written_meanwhile, (X[:3], 20)),
    (replaced_in_the_list, (20,)),
    (taken_from_the_list, (20,)),
    (in_an_inner_loop, (20,)),
    (given_to_a_function, (20,)),
    (from_the_end, (20,)),
    (from_the_end, (1,)),
    (more_behind_the_loop, (X,)),
    (more_in_a_later_branch, (X,)),
    (more_in_a_later_branch, (X[::-1],)),
    (of_nan, (X,)),
    (of_nan, (X[::-1],)),
    (of_zeros, (20,)),
    (records, (X[:1],)),
    (in_a_branch, (X[:0],)),
    (peaks, (X[:2],)),
    (fibonacci, (120,)),
    (left_early, (X[-1:],)),
    (iterates, (X[:3], 0)),
    (path, (0,)),
    (sieve, (1,)),
]


@pytest.mark.parametrize(("function", "args"), OTHERS, ids=lambda x: getattr(x, "__name__", ""))
def test_other_programs_are_pythons(function, args):
    f = pf.jit(function, unsupported="python")
    for _ in range(5):
        mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
        equal_results(f(*mine), function(*theirs))
        f.wait()
        for a, b in zip(mine, theirs, strict=True):
            equal_results(a, b)


def test_one_graph_for_all_numbers_of_rounds():
    f = pf.jit(decay)
    for n in (20, 30, 3, 50, 20, 1, 7):
        equal_results(f(n, 0.25), decay(n, 0.25))
    assert f.state().counters["traces"] == 1
    equal_results(f(0, 0.25), decay(0, 0.25))
    assert f.state().counters["traces"] == 2


def test_an_error_of_a_round_is_pythons():
    f = pf.jit(raises, unsupported="python")
    for _ in range(5):
        equal_results(f(X), raises(X))
        f.wait()
    with pytest.raises(ZeroDivisionError):
        f(np.array([*X[:22], 0.0]))


@pytest.mark.parametrize("function", [read_too_early, beyond_the_end, not_there_yet, before_the_start])
def test_an_element_that_is_not_there(function):
    f = pf.jit(function, unsupported="python")
    for _ in range(5):
        with pytest.raises(IndexError, match="list index out of range"):
            f(X)
        f.wait()


def test_a_step_of_a_range_that_is_not_positive():
    def steps(x):
        total = 0.0
        for i in range(len(x)):
            for j in range(10, 0, int(x[i])):
                total += j
        return total

    f = pf.jit(steps, unsupported="python")
    for x in ([-1.0, -3.0], [2.0, 1.0], [-2.0, 4.0]):
        x = np.array(x * 10)
        for _ in range(3):
            equal_results(f(x), steps(x))
            f.wait()
    with pytest.raises(ValueError, match="must not be zero"):
        f(np.array([1.0, 0.0] * 10))


def test_a_function_within_a_jitted_one():
    inner = pf.jit(decay)

    def outer(n, h):
        return np.array(inner(n, h)) * 2, len(inner(n, h))

    f = pf.jit(outer, unsupported="python")
    for n in (20, 20, 20, 25):
        equal_results(f(n, 0.5), (np.array(decay(n, 0.5)) * 2, n + 1))


def test_gradients_of_what_rounds_append():
    def loss(x):
        kept = []
        for i in range(x.shape[0]):
            kept.append(x[i] * x[i] * (i + 1))
        return np.sum(np.array(kept))

    x = RANDOM.random(20)
    np.testing.assert_allclose(pf.grad(loss)(x), 2 * x * np.arange(1, 21))
