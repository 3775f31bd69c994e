"""Arrays that NumPy makes of constants: traced values can be written to them, and index them."""

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.errors import TraceError

W = np.arange(12.0).reshape(3, 4)
F_ORDERED = np.asfortranarray(W)
ITEMS = [np.ones(3), np.zeros(3)]
X = np.arange(12.0).reshape(3, 4) + 1


def into_zeros(x):
    g = np.zeros_like(W)
    g += x
    g[0] = x[1]
    return g


def into_empty(x):
    g = np.empty_like(F_ORDERED)
    np.multiply(x, 2, out=g)
    return g


def into_full(x):
    g = np.full_like(W, int(W.sum()))
    g[1] -= x[0]
    row = g[2]
    row += x[1]
    return g


def into_a_copy(x):
    g = np.array(W)
    g[:, 0] = x[:, 0]
    f = np.array(F_ORDERED)
    f.T[0] += x[:, 0]
    return g, f


def into_items(x):
    made = [np.zeros_like(w) for w in ITEMS]
    for g in made:
        g += x[:, 0]
    return made


def at_indices(x):
    g = np.zeros_like(W).ravel()
    g[x[0].astype(int)] += 1
    np.add.at(g, [0, 0], x[0, :2])
    return g


def of_constants(x):
    line, steps, unit = np.linspace(0, 1, 4), np.arange(4.0), np.eye(3)
    line += x[0]
    steps *= x[1]
    unit[0, 0] += x[0, 0]
    unit[1] = x[0, :3]
    below = np.tri(3, 4)
    below -= x
    table = np.array([[1, 2], [3, 4]], float)
    table[0, 0] = x.sum()
    table[:, 1] += x[:2, 1]
    return line, steps, unit, below, table


def under_two_names(x):
    line = np.linspace(0, 1, 4)
    same, part = line, line[1:]
    same += x[0]
    part *= 2
    return line, same, part


def one_hot(x):
    labels = x[:, 0].astype(int) % 3
    return np.eye(3)[labels] + np.arange(5.0)[labels][:, None]


def beside_texts_and_indices(x):
    names, order, out = np.array(["a", "b"]), np.array([2, 0, 1]), np.zeros(3)
    out[order] = x[0, :3]
    line = np.linspace(0, 1, 3)
    line[order] += out
    return line, x[order], len(names)


def of_narrow_integers(x):
    v = np.arange(4, dtype="u1")
    v[1] = x[0, 0]
    v[2:] = x[0, 2:]
    return v


FUNCTIONS = [
    into_zeros,
    into_empty,
    into_full,
    into_a_copy,
    into_items,
    at_indices,
    of_constants,
    under_two_names,
    one_hot,
    beside_texts_and_indices,
    of_narrow_integers,
]


def needs_contents(f):
    """The same function, which also reads the contents of an array from outside."""

    def function(x):
        if not W.any() or F_ORDERED.sum() < 0 or ITEMS[0].sum() != 3:
            return x
        return f(x)

    return function


@pytest.mark.sampled(3)
@pytest.mark.parametrize("options", [{}, {"strategy": []}], ids=["compiled", "evaluated"])
@pytest.mark.parametrize("wrapped", [lambda f: f, needs_contents], ids=["plain", "contents"])
@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda f: f.__name__)
def test_values_are_written_and_indexed(fn, wrapped, options):
    fn = wrapped(fn)
    f = pf.jit(fn, background=False, **options)
    for k in range(4):
        found, expected = f(X + k), fn(X + k)
        assert type(found) is type(expected)
        pairs = zip(*map(_several, (found, expected)), strict=True)
        for a, b in pairs:
            assert getattr(a, "dtype", None) == getattr(b, "dtype", None)
            np.testing.assert_array_equal(a, b)
    counters = f.state().counters
    assert (counters["traces"], counters["python_calls"]) == (1, 0)


def _several(x):
    return x if isinstance(x, (list, tuple)) else [x]


def test_arrays_from_outside_are_read_anew_and_stay():
    held = np.ones((3, 4))

    def fn(x):
        g = np.array(held)
        g += x if held.any() else 0
        return g

    f = pf.jit(fn, background=False)
    for k in range(4):
        np.testing.assert_array_equal(f(X), fn(X))
        assert (held == k + 1).all()
        held += 1


def test_what_python_reads_stays_plain():
    def fn(x):
        w = np.arange(3.0)
        w[1] = x[0, 0]
        return x[0] + w.tolist()[1]

    with pytest.raises(TraceError):
        pf.jit(fn)(X)
    with pf.knobs.override(unsupported="python"):
        f = pf.jit(fn)
        for _ in range(2):
            np.testing.assert_array_equal(f(X), fn(X))
        assert f.state().tier == "python"
