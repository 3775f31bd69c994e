"""Lists that grow by one element per round: one array of a kernel, and Python's list behind it."""

from __future__ import annotations

import copy

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
]


@pytest.mark.parametrize(("function", "args"), NATIVE, ids=lambda x: getattr(x, "__name__", ""))
def test_lists_of_rounds_are_native(function, args):
    f = pf.jit(function, unsupported="python")
    for _ in range(5):
        equal_results(f(*copy.deepcopy(args)), function(*copy.deepcopy(args)))
        f.wait()
    state = f.state()
    assert state.tier == "optimized" and state.emitted
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


X = np.linspace(0.1, 1.0, 23)
OTHERS = [
    (one_array_many_times, (20,)), (written_after_it_was_kept, (X[:3], 20)),
    (written_in_the_next_round, (X[:3], 20)), (written_behind_the_loop, (X[:3], 20)),
    (a_view_is_written_behind_the_loop, (X[:3], 20)), (a_second_name, (X,)), (in_a_tuple, (X,)),
    (read_in_the_round, (X,)), (twice_in_a_round, (X,)), (in_a_branch, (X,)), (left_early, (X,)),
    (sizes_that_change, (X[:2], 20)), (sizes_that_shrink_to_one, (X, 20)),
    (sizes_that_alternate, (X, 20)),
    (kinds_that_change, (20,)), (large_ints, (60,)), (of_lists, (20,)), (two_loops, (X,)),
    (as_a_list, (X,)), (closed_over, (X,)), (into_an_argument, ([1.0], X)), (oscillate, (0, 0.5)),
    (states, (X[:3], 0)), (states, (X[:3], 1)), (decay, (1, 0.5)), (of_kinds, (X[:0],)),
    (of_kinds, (X[:1],)), (moving_mean, (X[:3],)),
]  # fmt: skip


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
