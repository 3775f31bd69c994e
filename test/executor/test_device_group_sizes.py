"""Groups behind relaxed guards: one kernel for all sizes of a rank, and never a wrong value (R3.42, A6)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import profuse as pf
import pytest
from every_case import EVERY_CASE
from internals import emitted_hits
from whole_groups import GroupedPlan, grouped_plan

Shape = tuple[int, ...]


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def poisoned(rng: random.Random, shape: Shape) -> np.ndarray:
    """An array of small numbers with NaN all around it in memory, and between its elements if it has gaps."""
    axes = rng.sample(range(len(shape)), len(shape)) if rng.random() < 0.4 else list(range(len(shape)))
    steps = [rng.choice((1, 1, 1, 1, 2, -1)) if rng.random() < 0.3 else 1 for _ in shape]
    room = [4 + shape[a] * abs(steps[a]) if steps[a] != 1 else shape[a] for a in axes]
    whole = np.full(np.prod(room, dtype=int) + 64, np.nan, np.float32)
    inner = whole[32 : len(whole) - 32].reshape(room)
    cuts = [slice(2, -2) if steps[a] != 1 else slice(None) for a in axes]
    strided = inner[tuple(cuts)][tuple(slice(None, None, steps[a]) for a in axes)]
    array = np.transpose(strided, np.argsort(axes))
    assert array.shape == tuple(shape)
    array[...] = np.random.default_rng(rng.randrange(99)).integers(1, 5, shape)
    if shape and rng.random() < 0.15:  # the first elements along an axis, again and again
        axis = rng.randrange(len(shape))
        return np.broadcast_to(array.take([0], axis) if shape[axis] else array, shape)
    return array


def outcome(fn: Callable[..., Any], args: Sequence[np.ndarray]) -> Any:
    """What a function returns, or the exception that it raises."""
    try:
        return fn(*args)
    except (ValueError, IndexError, ZeroDivisionError) as error:
        return error


def agrees(found: Any, expected: Any) -> bool:
    """True for equal values, and for errors of NumPy's class."""
    if isinstance(expected, Exception) or isinstance(found, Exception):
        numpys = next((c for c in (ValueError, IndexError, ZeroDivisionError) if isinstance(expected, c)), None)
        return numpys is not None and isinstance(found, numpys)
    found, expected = np.asarray(found), np.asarray(expected)
    return found.shape == expected.shape and bool(np.allclose(found, expected, rtol=1e-4, atol=1e-4))


def relations(plan: GroupedPlan) -> list[tuple[Any, Any]]:
    guards = [i for i in plan.result.module.main.body.walk() if i.op.name == "cuda_guard"]
    return [(i.attrs.get("equal", ()), i.attrs.get("fit", ())) for i in guards]


# --- A6 ------------------------------------------------------------------------------------------


def test_a6_six_shapes_of_a_rank_are_one_compile_without_a_miss():
    plan = grouped_plan(lambda x, y: np.tanh(x + y) * x, numbers(8, 8), numbers(8, 8))
    for shape in ((8, 8), (4, 6), (16, 32), (7, 7), (5, 9), (3, 2)):
        x = numbers(*shape)
        np.testing.assert_allclose(plan(x, x), np.tanh(x + x) * x, rtol=1e-5)
    counters = plan.counters
    assert (counters.kernels_compiled, counters.guard_hits, counters.guard_misses) == (1, 6, 0)


def test_a6_a_square_profile_does_not_tie_its_axes_and_misfits_raise_numpys_error():
    plan = grouped_plan(lambda x, y: x + y, numbers(8, 8), numbers(8, 8))
    assert relations(plan) == [(((0, 0, 1, 0), (0, 1, 1, 1)), ())]
    assert plan(numbers(4, 6), numbers(4, 6)).shape == (4, 6)
    assert plan.counters.guard_hits == 1
    with pytest.raises(ValueError, match=r"shapes \(4,8\) \(5,8\)"):
        plan(numbers(4, 8), numbers(5, 8))
    (guard,) = plan.plan.guards
    (why,) = guard.mismatches(guard.last_miss, ["x", "y"])
    assert why.text == "y: size of dimension 0 is 5, must equal dimension 0 of x, which is 4"


@pytest.fixture
def fused():
    """The fuser of device groups takes the ops of host arrays."""
    pf.set_device_fusion(True, host=True)
    yield
    pf.set_device_fusion(None)


def test_a6_functions_compile_once_for_all_sizes_of_a_rank(fused):
    """From calls on: one compile and no miss; emitted code has the same guard."""

    @pf.jit(background=False)
    def f(x, y):
        return np.tanh(x + y) * x

    for shape in ((8, 8), (4, 6), (16, 32), (7, 7), (5, 9), (3, 2)):
        for _ in range(3):
            x = numbers(*shape)
            np.testing.assert_allclose(f(x, x), np.tanh(x + x) * x, rtol=1e-5)
    counters = f.state().counters
    assert [counters[k] for k in ("compiles", "kernels_compiled", "guard_hits", "guard_misses")] == [1, 1, 17, 0]
    assert emitted_hits(f) == 16
    with pytest.raises(ValueError, match=r"shapes \(4,8\) \(5,8\)"):
        f(numbers(4, 8), numbers(5, 8))
    assert f.state().counters["guard_misses"] == 1
    assert "y: size of dimension 0 is 5, must equal dimension 0 of x, which is 4" in f.explain()


def test_a6_memory_between_groups_is_that_of_the_run():
    """What is between two kernels has the sizes of the call, not those in the types of a relaxed guard."""

    def f(x):
        sorted_ = np.sort(x, axis=0)
        y = np.tanh(sorted_) + sorted_
        return (np.sort(y * 2, axis=1) - y) * y

    plan = grouped_plan(f, numbers(64, 32))
    assert len(plan.result.kernels) == 2
    for shape in ((64, 32), (300, 20), (100, 100)):
        np.testing.assert_allclose(plan(numbers(*shape)), f(numbers(*shape)), rtol=1e-5, atol=1e-5)
    assert plan.counters.guard_hits == 6


def test_a_group_takes_what_another_makes_in_c_order():
    """NumPy lays the first result out as its operand is; a kernel does not, and the second guard expects that."""

    def f(x):
        y = np.tanh(x.T) * 2
        return (y * np.sort(y, axis=None)[0] + 1).sum(axis=1)

    plan = grouped_plan(f, numbers(4, 6))
    for shape in ((4, 6), (7, 3)):
        np.testing.assert_allclose(plan(numbers(*shape)), f(numbers(*shape)), rtol=1e-5)
    assert (plan.counters.guard_hits, plan.counters.guard_misses) == (4, 0)


# function, shapes when profiled, relations, shapes that hit, shapes that miss
FITS = [
    (
        lambda x, y, c: x @ y + c,
        [(4, 8), (8, 3), (3,)],
        (((0, 1, 1, 0), (1, 1, 2, 0)), ()),
        [(5, 9), (9, 7), (7,)],
        [(5, 9), (8, 7), (7,)],
    ),
    (lambda x, y: (x * y).sum(axis=1), [(4, 8), (1, 8)], (((0, 1, 1, 1),), ()), [(6, 9), (1, 9)], [(6, 9), (6, 9)]),
    (lambda x: x[::2] + x[1::2], [(8, 4)], ((), ("(s0_0 % 2) == 0",)), [(12, 5)], [(7, 5)]),
    (
        lambda x, y: x[:, : x.shape[1] // 2] * y,
        [(4, 8), (4, 4)],
        (((0, 0, 1, 0),), ("s1_1 == (s0_1 // 2)",)),
        [(3, 7), (3, 3)],
        [(3, 7), (3, 4)],
    ),
    (lambda x, y: x.reshape(-1) * y, [(4, 6), (24,)], ((), ("s1_0 == s0_0*s0_1",)), [(5, 6), (30,)], [(5, 6), (24,)]),
    (
        lambda x, y, z: np.concatenate([x, y]) * z,
        [(4, 6), (3, 6), (7, 6)],
        (((0, 1, 1, 1), (0, 1, 2, 1)), ("s2_0 == s0_0 + s1_0",)),
        [(5, 7), (9, 7), (14, 7)],
        [(5, 7), (9, 7), (9, 7)],
    ),
    (lambda x: x[2:].max(axis=0) * 2, [(8, 6)], ((), ("max(s0_0, 3) == s0_0",)), [(3, 5)], [(2, 5)]),
    (
        lambda x, y: (x * y)[4:].min(axis=0) + x[:, 2::3].max(),
        [(8, 6), (8, 6)],
        (((0, 0, 1, 0), (0, 1, 1, 1)), ("max(s0_0, 5) == s0_0", "max(s0_1, 3) == s0_1")),
        [(5, 3), (5, 3)],
        [(5, 2), (5, 2)],
    ),
    # A table that is long enough, from its front, its end and its middle; a number of columns.
    (
        lambda x, p: x + p[: x.shape[0]],
        [(4, 6), (9, 6)],
        (((0, 1, 1, 1),), ("max(s1_0, s0_0) == s1_0",)),
        [(5, 3), (5, 3)],
        [(5, 3), (4, 3)],
    ),
    (
        lambda x, p: x + p[-x.shape[0] :],
        [(4, 6), (9, 6)],
        (((0, 1, 1, 1),), ("max(s1_0, s0_0) == s1_0",)),
        [(2, 3), (7, 3)],
        [(5, 3), (4, 3)],
    ),
    (
        lambda x, p: x * p[2 : x.shape[0] + 2, 1 : x.shape[1] + 1],
        [(4, 6), (6, 8)],
        ((), ("max(s1_0, s0_0 + 2) == s1_0", "max(s1_1, s0_1 + 1) == s1_1")),
        [(5, 3), (9, 4)],
        [(5, 3), (6, 4)],
    ),
    (
        lambda x, y: x[:, :4] * y + x[:, 4:8],
        [(3, 8), (4,)],
        ((), ("s1_0 == 4", "max(s0_1, 8) == s0_1")),
        [(5, 11), (4,)],
        [(5, 7), (4,)],
    ),
    # No kernel has powers of sizes: those alone stay as they were.
    (
        lambda x, y, z: (x @ y) * x.shape[1] ** -0.5 + z,
        [(4, 8), (8, 3), (3,)],
        (((1, 1, 2, 0),), ("s0_1 == 8", "s1_0 == 8")),
        [(5, 8), (8, 7), (7,)],
        [(4, 9), (9, 3), (3,)],
    ),
    # What a reshape divides is the last axis, as the others were as large.
    (
        lambda x, y: x.reshape(y.shape) * y,
        [(4, 6), (4, 2, 3)],
        (((0, 0, 1, 0),), ("s1_1 == s0_1*s0_2",)),
        [(5, 8), (5, 4, 2)],
        [(5, 8), (10, 2, 2)],
    ),
    (lambda x: x * np.arange(8, dtype=np.float32), [(4, 8)], ((), ("s0_1 == 8",)), [(6, 8)], [(6, 9)]),
    (lambda x: x.reshape(2, 2, 3) * 2, [(2, 6)], ((), ("s0_0 == 2", "s0_1 == 6")), [(2, 6)], [(4, 3)]),
    (lambda x: x.reshape(-1, 3).sum(axis=1), [(2, 6)], ((), ("(s0_1 % 3) == 0",)), [(4, 9)], [(3, 4)]),
    (
        lambda x, y: x.reshape(-1) * y.reshape(-1),
        [(4, 6), (4, 6)],
        (((0, 0, 1, 0), (0, 1, 1, 1)), ()),
        [(5, 7), (5, 7)],
        [(4, 6), (6, 4)],
    ),
    (
        lambda x, y: x[::2] * y[::2],
        [(7, 5), (7, 5)],
        (((0, 0, 1, 0), (0, 1, 1, 1)), ()),
        [(8, 3), (8, 3)],
        [(7, 5), (8, 5)],
    ),
    (
        lambda x, y: x.reshape(-1) * y.reshape(-1),
        [(4, 6), (8, 3)],
        ((), ("s0_0 == 4", "s0_1 == 6", "s1_0 == 8", "s1_1 == 3")),
        [(4, 6), (8, 3)],
        [(4, 6), (6, 4)],
    ),
]


def test_a6_a_table_that_is_long_enough_is_compiled_for_once(fused):
    """The guard compares in emitted code as well; a shorter table has NumPy's error."""

    @pf.jit(background=False)
    def f(x, table):
        return np.tanh(x + table[: x.shape[1]])

    table = numbers(16, 3)
    for shape in ((2, 5, 3), (4, 6, 3), (2, 7, 3), (3, 16, 3), (5, 2, 3)):
        for _ in range(3):
            x = numbers(*shape)
            np.testing.assert_allclose(f(x, table), np.tanh(x + table[: shape[1]]), rtol=1e-5)
    counters = f.state().counters
    assert [counters[k] for k in ("compiles", "guard_hits", "guard_misses")] == [1, 14, 0]
    assert emitted_hits(f) == 13
    with pytest.raises(ValueError, match=r"shapes \(2,17,3\) \(16,3\)"):
        f(numbers(2, 17, 3), table)
    assert "dimension 0 of table is 16, must be at least dimension 1 of x = 17" in f.explain()


def test_a6_gradients_are_compiled_once_for_all_sizes(fused):
    """The backward half has groups of its own, of which emitted code checks what those before have made."""

    def loss(x, w, bias):
        h = np.sort(np.tanh(x @ w), axis=0)
        h = h.reshape(h.shape[0], 2, -1).swapaxes(0, 1)
        return ((h * bias[: h.shape[1]]) ** 2).sum()

    g, bias = pf.grad(loss, wrt=(0, 1), background=False), numbers(16, 1)
    for rows, columns, inner in ((5, 8, 3), (4, 6, 2), (7, 4, 4), (9, 10, 5)):
        for _ in range(3):
            x, w = numbers(rows, inner), numbers(inner, columns)
            order = np.argsort(np.tanh(x @ w), axis=0)
            h = np.take_along_axis(np.tanh(x @ w), order, 0)
            by_h = np.zeros_like(h)
            np.put_along_axis(by_h, order, 2 * h * bias[:rows] ** 2, 0)
            by_h *= 1 - np.tanh(x @ w) ** 2
            for ours, theirs in zip(g(x, w, bias), (by_h @ w.T, x.T @ by_h), strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    counters = g.state().counters
    assert (counters["compiles"], counters["guard_misses"]) == (1, 0)
    assert counters["kernel_launches"] > 11
    assert emitted_hits(g) == 10


@pytest.mark.parametrize(("fn", "profiled", "wanted", "hits", "misses"), FITS)
def test_a6_what_sizes_have_to_fit_follows_from_the_ops(fn, profiled, wanted, hits, misses):
    plan = grouped_plan(fn, *[numbers(*shape) for shape in profiled])
    assert relations(plan) == [wanted]
    assert not plan.result.failures
    for shapes, hit in ((profiled, 1), (hits, 1), (misses, 0)):
        args, before = [numbers(*shape) for shape in shapes], plan.counters.guard_hits
        assert agrees(outcome(plan, args), outcome(fn, args)), shapes
        assert plan.counters.guard_hits - before == hit, shapes


# --- never a wrong value -------------------------------------------------------------------------

# Functions of arrays of these ranks.
FUNCTIONS: list[tuple[Callable[..., Any], Shape]] = [
    (lambda x, y: np.maximum(x, y) + x * y, (2, 2)),
    (lambda x, y: x + y, (2, 1)),
    (lambda x, y: (x - y) * 2, (3, 2)),
    (lambda x, y: x @ y, (2, 2)),
    (lambda x, y: (x @ y).sum(axis=0, keepdims=True) * y, (2, 2)),
    (lambda x, y: x @ y, (3, 3)),
    (lambda x: (x - x.mean(axis=-1, keepdims=True)) * 2, (2,)),
    (lambda x: x.max(axis=0) + x.sum(axis=0), (2,)),
    (lambda x, y: np.concatenate([x, y], axis=0) * 2, (2, 2)),
    (lambda x, y: np.concatenate([x, y], axis=1) + y[:, :1], (2, 2)),
    (lambda x, y: np.stack([x, y]).sum(axis=0), (2, 2)),
    (lambda x: x[::2] + x[1::2], (1,)),
    (lambda x: x[1:] - x[:-1], (2,)),
    (lambda x: x[:, 3:] * 2, (2,)),
    (lambda x: x[3:].max(axis=0) * 2, (2,)),
    (lambda x: x[:, 1:4].min(axis=1) + x[2::2].max(), (2,)),
    (lambda x: x[::-1, 2:].argmax(axis=1) * 2, (2,)),
    (lambda x, y: (x * y)[2:].max(axis=0) - x[1:].min(axis=0), (2, 2)),
    (lambda x: x[2] + x[-1], (2,)),
    (lambda x, y: x[: y.shape[0]] * y, (1, 1)),
    (lambda x, y: x[-y.shape[0] :] * y, (2, 1)),
    (lambda x, y: x[1 : y.shape[0] + 1, : y.shape[1]] + y, (2, 2)),
    (lambda x, y: np.concatenate([x, y], axis=1)[:, -x.shape[1] :] * x, (2, 2)),
    (lambda x: x[:, :3] * np.arange(3, dtype=np.float32), (2,)),
    (lambda x, y: x[:, : x.shape[1] // 2] * y, (2, 2)),
    (lambda x: x[::-1, ::2] + 1, (2,)),
    (lambda x, y: x.T * y, (2, 2)),
    (lambda x: np.swapaxes(x, 0, 2) * 3, (3,)),
    (lambda x: x.reshape(-1) * 2, (3,)),
    (lambda x, y: x.reshape(-1) + y, (2, 1)),
    (lambda x: x.reshape(-1, 2).sum(axis=1), (2,)),
    (lambda x: x.reshape(x.shape[0], -1) * 2, (3,)),
    (lambda x, y: x.reshape(y.shape) + y, (2, 2)),
    (lambda x, y: x.reshape(-1) * y.reshape(-1), (2, 2)),
    (lambda x, y: np.broadcast_to(x, y.shape) * y, (1, 2)),
    (lambda x: np.repeat(x, 2, axis=0) * 2, (2,)),
    (lambda x: np.pad(x, 1) * 2, (2,)),
    (lambda x: x * x.shape[0] + x.size, (2,)),
    (lambda x, y: np.where(x > 2, x, y), (2, 2)),
    (lambda x, y: np.expand_dims(x, 1) * y, (1, 2)),
    (lambda x: np.cumsum(x, axis=0) + x, (2,)),
    (lambda x, y: np.outer(x, y) + y, (1, 1)),
    (lambda x, y: np.dot(x, y.T) * 2, (2, 2)),
]
PAIRS, RUNS = (3 * len(FUNCTIONS), 20) if EVERY_CASE else (len(FUNCTIONS), 8)


def shapes_of(rng: random.Random, ranks: Shape, sizes: Sequence[int]) -> list[Shape]:
    return [tuple(rng.choice(sizes) for _ in range(rank)) for rank in ranks]


def fitting_shapes(rng: random.Random, fn: Callable[..., Any], ranks: Shape, sizes: Sequence[int]) -> list[Shape]:
    """Shapes for which NumPy raises nothing."""
    for _ in range(500):
        pool = rng.sample(sizes, min(len(sizes), rng.choice((1, 2, 3))))
        shapes = shapes_of(rng, ranks, pool)
        if not isinstance(outcome(fn, [np.ones(s, np.float32) for s in shapes]), Exception):
            return shapes
    raise AssertionError("no shapes fit each other")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a6_no_shapes_give_a_wrong_value():
    """Profiled with some shapes and layouts, run with others: what NumPy says, of the arguments' elements alone."""
    seen: Counter = Counter()
    for number in range(PAIRS):
        rng = random.Random(number)
        fn, ranks = FUNCTIONS[number % len(FUNCTIONS)]
        sizes = (2, 3, 4, 5, 6, 8) if number % 5 else (0, 1, 2, 3)
        profiled = fitting_shapes(rng, fn, ranks, sizes)
        plan = grouped_plan(fn, *[poisoned(rng, shape) for shape in profiled])
        assert not plan.result.failures, (number, plan.result.failures)
        for _ in range(RUNS):
            kind = rng.random()
            fits = kind < 0.6
            pool = (2, 3, 4, 5, 6, 7, 9) if rng.random() < 0.8 else (0, 1, 2, 3)
            shapes = fitting_shapes(rng, fn, ranks, pool) if fits else shapes_of(rng, ranks, pool)
            args = [poisoned(rng, shape) if rng.random() < 0.5 else numbers_like(rng, shape) for shape in shapes]
            before = plan.counters.guard_hits
            found, expected = outcome(plan, args), outcome(fn, args)
            assert agrees(found, expected), (number, profiled, shapes, [a.strides for a in args], found, expected)
            seen[plan.counters.guard_hits > before, isinstance(expected, Exception)] += 1
    assert seen[True, False] > 0.25 * PAIRS * RUNS, seen  # served by kernels
    assert seen[False, True] > 0.03 * PAIRS * RUNS, seen  # misfits
    assert seen[False, False] > 0.03 * PAIRS * RUNS, seen  # misses


def numbers_like(rng: random.Random, shape: Shape) -> np.ndarray:
    """A C-contiguous array with NaN before and behind it."""
    count = int(np.prod(shape, dtype=int))
    whole = np.full(count + 64, np.nan, np.float32)
    array = whole[32 : 32 + count].reshape(shape)
    array[...] = np.random.default_rng(rng.randrange(99)).integers(1, 5, shape)
    return array
