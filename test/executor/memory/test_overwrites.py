"""Arrays of loops that are overwritten: no copies from round to round, and nobody else's array."""

import numpy as np
import profuse as pf
import pytest
from every_case import EVERY_CASE
from profuse.dialect.ir.attrs import DYNAMIC
from profuse.dialect.ops.indexing.additions import IndexAdd
from profuse.dialect.ops.indexing.scatter import PickScatter, SliceScatter
from profuse.dialect.passes.speculate import fusion_types
from profuse.executor.interpret import evaluate
from profuse.executor.plans import python_source

RNG = np.random.default_rng(7)
pytestmark = pytest.mark.usefixtures("loops_in_plans")
PUT, ADD = pf.op("pick_scatter"), pf.op("index_add")


@pytest.fixture(autouse=True)
def _no_cache():
    with pf.knobs.override(cache=False):
        yield


@pytest.fixture
def copied(monkeypatch):
    """The sizes of the arrays that are copied to replace a part of them, or to have an own one."""
    sizes = []

    def counting(function):
        def run(*args):
            array = next(a for a in args if isinstance(a, np.ndarray))
            sizes.append(array.size)
            return function(*args)

        return run

    # Of arrays of any size, kernels leave these ops to be evaluated.
    monkeypatch.setattr(fusion_types, "_SMALL", 0)
    for op in (PickScatter, SliceScatter, IndexAdd):
        monkeypatch.setattr(op, "evaluate", counting(op.evaluate))
    for module in (evaluate, python_source):
        monkeypatch.setattr(module, "own_copy", counting(module.own_copy))
    return sizes


def put(c, v, i):
    return PUT(c, v, i, axis=0, index=DYNAMIC)


def carried(rounds):
    return lambda x, xs: pf.fori_loop(0, rounds, lambda i, c: np.tanh(c * x + xs[0]), x).sum()


def over_rows(rounds):
    return lambda x, xs: pf.fori_loop(0, rounds, lambda i, c: np.tanh(c * xs[i] + x), x).sum()


def over_rows_twice(rounds):
    def step(xs):
        return lambda i, c: np.tanh(c * xs[i] + xs[i + 1] * np.take(xs, i, axis=0))

    return lambda x, xs: pf.fori_loop(0, rounds, step(xs), x).sum()


def over_slices(rounds):
    def step(xs):
        return lambda i, c: np.sin(c * xs[i : i + 2].sum(0))

    return lambda x, xs: pf.fori_loop(0, rounds, step(xs), x).sum()


LOOPS = (carried, over_rows, over_rows_twice, over_slices)
TIERS = {"kernels": [("static", 2)], "symbols": [("dynamic", 2)], "op by op": []}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("make", LOOPS, ids=lambda f: f.__name__)
def test_elements_copied_do_not_grow_with_the_square_of_the_rounds(make, tier, copied):
    few, many = 25, 100 if EVERY_CASE else 60  # so many that no pass writes the rounds out
    found = {}
    for rounds in (few, many):
        x, xs = RNG.standard_normal(6), RNG.standard_normal((rounds + 2, 6))
        f = pf.grad(make(rounds), wrt=(0, 1), background=False, strategy=TIERS[tier])
        for _ in range(4):
            del copied[:]
            f(x, xs)
        found[rounds] = sum(copied)
        if tier == "op by op":
            continue
        assert f.state().counters["kernel_launches"] > rounds
        for op in ("pick_scatter", "slice_scatter", "index_add"):
            assert f"profuse.{op}" not in _functions(f)
    assert found[many] <= 1.05 * many / few * found[few]


def _functions(f):
    """The IR of the functions that kernels are made of."""
    text = f.ir("optimized")
    return text[text.find("func.func private") :] if "func.func private" in text else ""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("make", LOOPS, ids=lambda f: f.__name__)
def test_gradients_of_loops_over_rows(make):
    """The same as those of the loop written out."""
    x, xs = RNG.standard_normal(6), RNG.standard_normal((7, 6))
    before = x.copy(), xs.copy()
    f = pf.grad(make(5), wrt=(0, 1), background=False)
    step = 1e-6
    for _ in range(4):
        found = f(x, xs)
        np.testing.assert_array_equal(x, before[0])
        np.testing.assert_array_equal(xs, before[1])
        for k, g in enumerate(found):
            for at in np.ndindex(g.shape):
                ahead, behind = ([a.copy() for a in (x, xs)] for _ in range(2))
                ahead[k][at] += step
                behind[k][at] -= step
                slope = (make(5)(*ahead) - make(5)(*behind)) / (2 * step)
                np.testing.assert_allclose(g[at], slope, rtol=1e-5, atol=1e-8)


# --- who else has the array ----------------------------------------------------------------------


def argument(x):
    """The array of the caller is the first one that the loop carries."""
    return pf.fori_loop(0, 4, lambda i, c: put(c, c[i] * 2, i), x)


def argument_too(x):
    return pf.fori_loop(0, 4, lambda i, c: put(c, c[i] * 2, i), x), x + 1


def made(x):
    """An array of the function, which is read after the loop."""
    start = np.zeros_like(x)
    return pf.fori_loop(0, 4, lambda i, c: put(c, x[i], i), start), start


def two_of_one(x):
    """Two carried values begin as one array."""
    start = np.zeros_like(x)

    def step(i, pair):
        return put(pair[0], x[i], i), put(pair[1], -x[i], i)

    return pf.fori_loop(0, 4, step, (start, start))


def equal_starts(x):
    """Two equal arrays, of which a pass may make one."""

    def step(i, pair):
        return put(pair[0], x[i], i), put(pair[1], -x[i], i)

    return pf.fori_loop(0, 4, step, (np.zeros_like(x), np.zeros_like(x)))


def old_and_new(x):
    """The array before the last round is carried as well."""
    return pf.fori_loop(0, 4, lambda i, p: (put(p[0], p[0][i] + 1, i), p[0]), (x, x))


def swapped(x):
    return pf.fori_loop(0, 3, lambda i, p: (put(p[1], p[0][i], i), p[0]), (x, x * 2))


def swapped_and_written(x):
    def step(i, p):
        return put(p[1], p[0][i], i), put(p[0], p[1][i] + 1, i)

    return pf.fori_loop(0, 3, step, (x, x * 2))


def read_afterwards(x):
    """The old array is read after a part of the new one has been replaced."""

    def step(i, p):
        new = put(p[0], p[0][i] * 3, i)
        return new, p[1] + p[0] * 2

    return pf.fori_loop(0, 4, step, (x, np.zeros_like(x)))


def row_afterwards(x):
    """A view of the old array is."""

    def step(i, p):
        row = p[0][0]
        new = put(p[0], row + 1.0, 0)
        return new, p[1] + row

    return pf.fori_loop(0, 4, step, (x, np.zeros_like(x[0])))


def row_carried(x):
    def step(i, p):
        row = p[0][1]
        return put(p[0], row * 2, i), row

    return pf.fori_loop(0, 4, step, (x, x[0]))


def made_of_itself(x):
    """What replaces a row is a view of the array."""
    return pf.fori_loop(1, 4, lambda i, c: put(c, c[i - 1], i), x)


def twice_in_a_round(x):
    return pf.fori_loop(0, 3, lambda i, c: put(put(c, c[i] + 1, i), c[i + 1] * 2, i + 1), x)


def first_again(x):
    """Both new arrays come from one old one."""

    def step(i, p):
        return put(p[0], x[i], i), put(p[0], -x[i], i)

    return pf.fori_loop(0, 4, step, (x * 2, x * 2))


def from_outside(x):
    """An inner loop begins with the same array in each round of the outer one."""
    start = np.zeros_like(x)

    def outer(j, total):
        inner = pf.fori_loop(0, 2, lambda i, c: put(c, c[i] + x[j], i), start)
        return total + inner

    return pf.fori_loop(0, 3, outer, np.zeros_like(x))


def in_a_branch(x):
    def step(i, c):
        return pf.cond(i % 2 == 0, lambda: put(c, c[i] + 1, i), lambda: c * 2)

    return pf.fori_loop(0, 4, step, x)


def additions(x):
    places = np.array([0, 2, 2])
    return pf.fori_loop(0, 3, lambda i, c: ADD(c, x[:3] * 1.5, places, axes=(0,)), x)


def no_rounds(x):
    return pf.fori_loop(0, 0, lambda i, c: put(c, c[i] + 1, i), x), x * 1


CASES = (
    argument,
    argument_too,
    made,
    two_of_one,
    equal_starts,
    old_and_new,
    swapped,
    swapped_and_written,
    read_afterwards,
    row_afterwards,
    row_carried,
    made_of_itself,
    twice_in_a_round,
    first_again,
    from_outside,
    in_a_branch,
    additions,
    no_rounds,
)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_no_array_changes_that_something_else_reads(f, tier):
    """What the function computes outside of a trace, where every op gives a new array."""
    x = RNG.standard_normal((5, 3))
    expected, before = f(x.copy()), x.copy()
    jitted = pf.jit(f, background=False, strategy=TIERS[tier])
    results = [jitted(x) for _ in range(4)]
    np.testing.assert_array_equal(x, before)
    for found in results:
        pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
        for a, b in pairs:
            np.testing.assert_allclose(a, b, rtol=1e-14)
            assert not np.may_share_memory(a, x)
