"""Gradients through branches, counted loops and while loops, in both modes."""

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.errors import TraceError

STEP = 1e-6
X, W = np.array([0.3, -0.5, 0.8]), np.array([0.2, 0.4, -1.0])


@pytest.fixture(autouse=True)
def _no_cache():
    with pf.knobs.override(cache=False):
        yield


def branch(x, w):
    return pf.cond(x.sum() > 0, lambda: np.sin(x) * w, lambda: x * x).sum()


def counted(x, w):
    return pf.fori_loop(0, 4, lambda i, c: np.tanh(c * w + x) * (i + 1.0), x).sum()


def no_rounds(x, w):
    return (pf.fori_loop(3, 3, lambda i, c: c * w, x) * x).sum()


def of_sizes(x, w):
    return pf.fori_loop(0, x.shape[0], lambda i, c: c + np.sin(x[i] * c) * w, w).sum()


def until(x, w):
    return pf.while_loop(lambda c: (c * c).sum() < 5.0, lambda c: c * 1.5 + w, x).sum()


def nested(x, w):
    def inner(i, c):
        return pf.fori_loop(0, 3, lambda j, d: np.sin(d * w) + x * j, c)

    return pf.fori_loop(0, 2, inner, x).sum()


def branch_in_loop(x, w):
    def body(i, carried):
        a, b = carried
        return pf.cond(i % 2 == 0, lambda: np.sin(a) + b, lambda: a * w), b * a

    a, b = pf.fori_loop(0, 5, body, (x, w))
    return (a * b).sum()


def loop_in_branch(x, w):
    taken = lambda: pf.fori_loop(0, 3, lambda i, c: np.cos(c) * w, x)  # noqa: E731
    return pf.cond((x > 0).any(), taken, lambda: w).sum()


def integers_along(x, w):
    def body(i, carried):
        c, n = carried
        return c * w + n, n + 1

    return pf.fori_loop(0, 3, body, (x, 2))[0].sum()


def stacked_rounds(x, w):
    """Writes at indices that are known at run time only, to an array from outside of the loop."""
    rounds = np.zeros((4, 3))

    def step(i, c):
        rounds[i] = np.tanh(c * w + x)
        rounds[i, 1] *= x[2]
        row = rounds[i]
        row += w
        return rounds[i] * (i + 1.0)

    last = pf.fori_loop(0, 4, step, x)
    return (rounds * np.arange(12.0).reshape(4, 3)).sum() + last.sum()


def returned_twice(x, w):
    a, b = pf.cond(x.sum() > 0, lambda: (x * w,) * 2, lambda: (w, x))
    return (a * a * b).sum()


FUNCTIONS = (
    branch,
    counted,
    no_rounds,
    of_sizes,
    until,
    nested,
    branch_in_loop,
    loop_in_branch,
    integers_along,
    stacked_rounds,
    returned_twice,
)


def slope(f, args, directions):
    ahead, behind = (f(*(a + sign * STEP * d for a, d in zip(args, directions, strict=True))) for sign in (1, -1))
    return (ahead - behind) / (2 * STEP)


@pytest.mark.sampled(8, each=())
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_both_modes_agree_with_central_differences(f, sign):
    args = (sign * X, W)
    directions = [np.array([1.0, -0.5, 0.2]), np.array([0.3, 0.4, -1.0])]
    found = pf.grad(f, wrt=(0, 1), background=False)
    wanted = slope(f, args, directions)
    for _ in range(3):
        total = sum((g * d).sum() for g, d in zip(found(*args), directions, strict=True))
        np.testing.assert_allclose(total, wanted, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(pf.jvp(f, args, directions)[1], wanted, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("f", [counted, branch, branch_in_loop], ids=lambda f: f.__name__)
def test_twice(f):
    direction = np.array([1.0, -0.5, 0.2])

    def along(x, w):
        return (pf.grad(f)(x, w) * direction).sum()

    found = (pf.grad(along)(X, W) * direction).sum()
    np.testing.assert_allclose(found, slope(lambda x: along(x, W), (X,), (direction,)), rtol=1e-5)


def test_numbers_are_carried():
    def f(x, k):
        return pf.fori_loop(0, 3, lambda i, c: (c[0] * c[1], c[1] + 0.5), (x, k))[0].sum()

    gx, gk = pf.grad(f, wrt=(0, 1))(X, 0.7)
    np.testing.assert_allclose(gx, np.full(3, 0.7 * 1.2 * 1.7))
    np.testing.assert_allclose(gk, slope(lambda k: f(X, k), (0.7,), (1.0,)))


def test_the_number_of_rounds_is_that_of_the_call():
    f = pf.grad(of_sizes, background=False, strategy=[("dynamic", 2)])
    for n in (3, 5, 2, 5):
        x, w = np.linspace(0.1, 0.9, n), np.linspace(-1, 1, n)
        d = np.cos(np.arange(n))
        wanted = slope(lambda x, w=w: of_sizes(x, w), (x,), (d,))
        np.testing.assert_allclose((f(x, w) * d).sum(), wanted, rtol=1e-7)


def test_a_pullback_through_a_loop():
    _, pull = pf.vjp(lambda x: pf.fori_loop(0, 4, lambda i, c: np.tanh(c * W + x), x), X)
    total = pf.grad(lambda x: (pf.fori_loop(0, 4, lambda i, c: np.tanh(c * W + x), x) * W).sum())
    np.testing.assert_allclose(pull(W)[0], total(X))


def test_carried_arrays_whose_sizes_change_are_refused_where_they_stand():
    def f(x):
        grown = pf.while_loop(lambda c: c.size < 9, lambda c: np.concatenate([c, c]), x)
        return grown.sum()

    with pytest.raises(TraceError, match=r"test_flow.py:\d+: a loop that carries arrays whose"):
        pf.grad(f)(X)


# --- writes to own arrays, second derivatives -----------------------------------------------------


def gradient_of(f, x):
    """By central differences, element by element."""
    return np.array([slope(f, (x,), (d,)) for d in np.eye(x.size)])


def by_index(x, k):
    y = x * 2
    y[k] = y[k - 1] * 3
    y[k:] += x[0]
    return (y * y).sum()


def rows(x, k):
    m = np.zeros((4, 4)) + x

    def body(i, m):
        m[i] = m[i - 1] * x
        m[i, 1:] *= x[i]
        m[:, i] += x[k]
        return m

    return np.sin(pf.fori_loop(1, 4, body, m)).sum()


def until(x, k):
    def body(carried):
        n, y = carried
        y[n] = y[n] * y[n - 1]
        return n + 1, y

    return (pf.while_loop(lambda c: c[0] < 3, body, (k - k + 1, x * x))[1] * x).sum()


@pytest.mark.sampled(6, each=("strategy",))
@pytest.mark.parametrize("strategy", ["static", "dynamic"])
@pytest.mark.parametrize("f", [by_index, rows, until], ids=lambda f: f.__name__)
def test_writes_at_indices_that_are_known_at_run_time(f, strategy):
    x = np.array([0.3, -0.5, 0.8, 1.1])
    direction = np.array([1, -0.5, 0.2, 0.3])
    made = pf.grad(f, background=False, strategy=[(strategy, 2)])

    def plain(x, k):
        return pf.jit(f, profiled_runs=99)(x, k)

    for k in (1, 2, 1, 3):
        wanted = gradient_of(lambda x, k=k: plain(x, k), x)
        np.testing.assert_allclose(made(x, k), wanted, rtol=1e-6, atol=1e-8)
    tangent = pf.jvp(f, (x, 2), (direction, None))[1]
    np.testing.assert_allclose(tangent, (made(x, 2) * direction).sum(), rtol=1e-9)

    def along(x):
        return (pf.grad(f)(x, 2) * direction).sum()

    np.testing.assert_allclose(pf.grad(along)(x), gradient_of(along, x), rtol=1e-5, atol=1e-7)


def test_twice_through_a_loop_of_unknown_length():
    x = np.array([0.3, 0.5])

    def f(x):
        grown = pf.while_loop(lambda c: (c * c).sum() < 5.0, lambda c: c * 1.5 + x * c, x)
        return (grown * x).sum()

    def along(x):
        return pf.grad(f)(x).sum()

    np.testing.assert_allclose(pf.grad(along)(x), gradient_of(along, x), rtol=1e-5)
