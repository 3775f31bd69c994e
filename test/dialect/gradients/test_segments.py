"""Gradients of long loops: what they keep of the rounds, in segments, and what they do not keep."""

import gc
import re
import tracemalloc

import numpy as np
import profuse as pf
import pytest
from every_case import EVERY_CASE, pairs

RNG = np.random.default_rng(4)
STEP = 1e-6


@pytest.fixture(autouse=True)
def _in_the_foreground():
    # Memory of dead results is kept for new ones, which would hide what a call takes.
    with pf.knobs.override(cache=False, background=False, output_pool_bytes=0):
        yield


def counted(w, xs, h):
    return pf.fori_loop(0, xs.shape[0], lambda i, h: np.tanh(h @ w + xs[i]), h).sum()


def until(w, xs, h):
    """The number of rounds is known at run time only, and may be that of rows or less."""

    def goes_on(carried):
        i, h = carried
        return (i < xs.shape[0]) & (np.abs(h).mean() < 0.9)

    def body(carried):
        i, h = carried
        return i + 1, np.tanh(h @ w + xs[i])

    i, h = pf.while_loop(goes_on, body, (0, h))
    return (h * h).sum() * i


def results(w, xs, h):
    """Each round writes what it gives into an array, as scans do."""
    ys = np.zeros(xs.shape)

    def body(i, h):
        h = np.tanh(h @ w + xs[i])
        ys[i] = h
        return h

    pf.fori_loop(0, xs.shape[0], body, h)
    return (ys * ys).sum()


def read_again(w, xs, h):
    """Rounds read what earlier ones have written."""
    ys = np.ones(xs.shape[0])

    def body(i, h):
        ys[i] = ys[i - 1] * np.mean(h) + 0.5
        return np.sin(h @ w + xs[i]) * ys[i]

    return pf.fori_loop(1, xs.shape[0], body, h).sum() + (ys * ys).sum()


def nested(w, xs, h):
    """A loop in a loop, the inner one of as many rounds as its index is."""
    ys = np.zeros(xs.shape)

    def outer(i, h):
        def inner(j, h):
            ys[i, j % 2] = h[0]
            return np.tanh(h @ w + xs[i])

        return pf.fori_loop(0, i, inner, h)

    return (pf.fori_loop(0, xs.shape[0], outer, h) * ys[-1, 0]).sum()


def with_numbers(w, xs, h):
    """An integer and a number are carried beside the array, and every second round differs."""

    def body(i, carried):
        h, n, factor = carried
        h = pf.cond(n % 2 == 0, lambda: np.tanh(h @ w) + xs[i], lambda: np.sin(h) * factor)
        return h, n + 1, factor * 0.9

    return pf.fori_loop(0, xs.shape[0], body, (h, 0, 1.0))[0].sum()


FUNCTIONS = (counted, until, results, read_again, nested, with_numbers)
EVERY = (0, 1, 2)


def arguments(rounds, rows=2, width=3):
    shapes = ((width, width), (rounds, rows, width), (rows, width))
    return [RNG.standard_normal(shape) / 2 for shape in shapes]


def slope(f, args, directions):
    ahead, behind = (f(*(a + sign * STEP * d for a, d in zip(args, directions, strict=True))) for sign in (1, -1))
    return (ahead - behind) / (2 * STEP)


def total(grads, directions):
    return sum((g * d).sum() for g, d in zip(grads, directions, strict=True))


ROUNDS = [(9, 9, 10, 16), (23, 23, 1, 8)] if EVERY_CASE else [(9, 9, 10), (23, 1, 8)]


@pytest.mark.sampled(6, each=("numbers", "profiling"))
@pytest.mark.parametrize("f, numbers, profiling", pairs(FUNCTIONS, ROUNDS, [True, False]))
def test_gradients_are_those_of_whole_loops_at_any_number_of_rounds(f, numbers, profiling):
    """Joint and split, at numbers of rounds that are squares, one more, and few."""
    plain = pf.jit(f, profiled_runs=99)
    with pf.knobs.override(loop_bytes=0, profiling_mode=profiling):
        made = pf.grad(f, wrt=EVERY)
        for rounds in numbers:
            args = arguments(rounds)
            directions = [RNG.standard_normal(a.shape) for a in args]
            grads = made(*args)
            wanted = slope(plain, args, directions)
            np.testing.assert_allclose(total(grads, directions), wanted, rtol=1e-5, atol=1e-7)
            if rounds in (10, 8):
                for g, want in zip(pf.vjp(f, *args)[1](1.0), grads, strict=True):
                    np.testing.assert_allclose(g, want, rtol=1e-9, atol=1e-12)
    assert made.state().counters["compile_failures"] == 0


@pytest.mark.sampled(4)
@pytest.mark.parametrize("profiling", [True, False], ids=["profiling", "keyed"])
@pytest.mark.parametrize("f", [counted, until, results], ids=lambda f: f.__name__)
def test_the_tape_gives_the_gradients_of_segments(f, profiling):
    with pf.knobs.override(loop_bytes=0, profiling_mode=profiling):
        made = pf.jit(f)
        for rounds in (20, 20, 20, 9, 23):
            args = arguments(rounds)
            leaves = [pf.array(a, requires_grad=True) for a in args]
            made(*leaves).backward()
            # The spec-keyed executor would compile it, each time anew.
            with pf.knobs.override(profiling_mode=True):
                wanted = pf.grad(f, wrt=EVERY, profiled_runs=99)(*args)
            for leaf, want in zip(leaves, wanted, strict=True):
                np.testing.assert_allclose(leaf.grad, want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("f", [counted, until, results], ids=lambda f: f.__name__)
def test_gradients_of_gradients_through_segments(f):
    args = arguments(10, 1, 2)
    directions = [RNG.standard_normal(a.shape) for a in args]

    def along(*args):
        return total(pf.grad(f, wrt=EVERY)(*args), directions)

    with pf.knobs.override(loop_bytes=0):
        second = pf.grad(along, wrt=EVERY, profiled_runs=99)(*args)
        wanted = slope(pf.jit(along, profiled_runs=99), args, directions)
    np.testing.assert_allclose(total(second, directions), wanted, rtol=1e-5, atol=1e-6)


def peak(f, args, **knobs):
    """Bytes that a call of the gradient takes at most, beside its arguments.

    It is the least of several calls, each without objects that Python keeps for reuse: how many it
    has of those depends on what has run before. Loops stay in the plan: kernels of whole loops take
    memory that no call allocates.
    """
    found = []
    with pf.knobs.override(exact=True, **knobs):
        made = pf.grad(f, wrt=(0, 2))
        for _ in range(3):
            made(*args)
        for _ in range(3 if EVERY_CASE else 2):
            gc.collect()
            tracemalloc.start()
            made(*args)
            found.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    return min(found), made


@pytest.mark.sampled(2)
@pytest.mark.parametrize("f", [counted, until], ids=lambda f: f.__name__)
def test_segments_take_memory_of_two_roots(f):
    rounds = 400 if EVERY_CASE else 196
    args = arguments(rounds, 16, 32)
    args[0] /= 4
    rows = args[1].nbytes // rounds
    whole, _ = peak(f, args)
    parts, made = peak(f, args, loop_bytes=50 * rows)
    assert whole > rounds * rows
    assert parts < whole / 4
    assert made.state().counters["compile_failures"] == 0


def test_a_smaller_budget_makes_segments():
    """The limit is a share of `loop_bytes`, and a call beyond it is traced again."""
    args = arguments(100, 16, 32)
    rows = args[1].nbytes // 100
    found = []
    for budget in (1.0, 0.5, 0.25):
        taken, made = peak(counted, args, loop_bytes=60 * 2 * rows, activation_budget=budget)
        found.append(taken)
        assert ("each of 100 rounds begins with" in made.explain()) == (budget == 1.0)
    assert found[1] < found[0] / 2 and found[2] <= found[1]
    with pf.knobs.override(loop_bytes=10 * rows):
        made = pf.grad(counted, wrt=EVERY)
        for rounds, traces in ((9, 1), (10, 1), (11, 2), (40, 2), (5, 2)):
            made(*arguments(rounds, 16, 32))
            assert made.state().counters["traces"] == traces
    told = made.explain()
    assert re.search(r"keeps what each of 9 rounds begins with: \d+ bytes", told)
    assert re.search(r"what 3 of 11 rounds begin with, and computes the 4 rounds from there", told)


def test_results_that_rounds_write_are_not_kept():
    """Of an array that each round writes a part of, rounds times the array would be kept."""
    args = arguments(100, 4, 8)
    taken, made = peak(results, args)
    assert taken < 12 * args[1].nbytes
    kept = 100 * args[2].nbytes
    assert f"keeps what each of 100 rounds begins with: {kept} bytes" in made.explain()
