"""Groups that work on the same rows share a nest, and members that read the same share a walk."""

import re

import numpy as np
import pytest
from every_case import EVERY_CASE
from graphs import Graph, tensor
from native import built
from pools import needs_pool, on_threads, one_thread_around, same_bits  # noqa: F401
from profuse.executor.interpret.evaluate import Evaluator

SIZES = [(0, 5), (1, 1), (1, 17), (7, 1), (3, 15), (16, 16), (33, 48), (130, 257), (700, 1000)]
ROW, ALL = {"axes": (1,), "keepdims": True}, {"axes": (0,)}


def layer_norm_gradient(n, m):
    g = Graph(tensor(n, m), tensor(n, m), tensor(m))
    x, dy, w = g.inputs
    c = g.sub(x, g.mean(x, **ROW))
    s = g.div(g.number(1), g.sqrt(g.add(g.mean(g.mul(c, c), **ROW), g.number(0.1))))
    h = g.mul(c, s)
    d = g.mul(dy, w)
    inner = g.sub(g.sub(d, g.mean(d, **ROW)), g.mul(h, g.mean(g.mul(d, h), **ROW)))
    return g.returning(g.mul(inner, s), g.sum(g.mul(dy, h), **ALL), g.sum(dy, **ALL))


def two_softmaxes(n, m):
    """Row results that read two other groups."""
    g = Graph(tensor(n, m), tensor(n, m))
    x, y = g.inputs

    def softmax(v):
        e = g.exp(g.sub(v, g.max(v, **ROW)))
        return g.div(e, g.sum(e, **ROW))

    return g.returning(g.sub(softmax(x), softmax(y)))


def sums_both_ways(n, m):
    """Column sums come first, and share nothing with the rows but what they read."""
    g = Graph(tensor(n, m))
    (x,) = g.inputs
    columns, extremes = g.sum(x, **ALL), g.max(x, **ALL)
    return g.returning(columns, extremes, g.sub(x, g.sum(x, **ROW)))


def rows_of_columns(n, m):
    """The rows read the sums of all columns."""
    g = Graph(tensor(n, m))
    (x,) = g.inputs
    c = g.sub(x, g.sum(x, **ALL))
    return g.returning(g.sub(c, g.sum(c, **ROW)))


def product_between(n, m):
    """The second half of the rows waits for a product with results of the first."""
    g = Graph(tensor(n, m), tensor(m, m))
    x, w = g.inputs
    c = g.sub(x, g.mean(x, **ROW))
    p = g.matmul(c, w)
    return g.returning(g.sub(g.sub(p, g.mean(p, **ROW)), g.max(x, **ROW)))


def crossed(n, _):
    """The same array along and across: no loop of the one is a loop of the other."""
    g = Graph(tensor(n, n))
    (x,) = g.inputs
    t = g.transpose(x, perm=(1, 0))
    return g.returning(g.sub(g.sub(x, g.sum(x, **ROW)), g.sum(t, **ROW)), g.sum(t, **ALL))


def wide(n, m):
    """More columns than accumulators that stay in a cache."""
    g = Graph(tensor(n, 20_000))
    (x,) = g.inputs
    return g.returning(g.sub(x, g.sum(x, **ROW)), g.sum(x, **ALL))


# Nests with literal sizes.
CASES = {
    layer_norm_gradient: 1,
    two_softmaxes: 1,
    sums_both_ways: 1,
    rows_of_columns: 2,
    product_between: 2,
    crossed: None,
    wide: 2,
}


def nests(kernel):
    return len(re.findall(r"func\.func @kernel_nest\d+\(", kernel.stages["loops"]))


def arguments(program, sizes):
    rng = np.random.default_rng(1)
    shapes = [program.type_of(v).shape for v in program.body.args]
    known = dict(zip(("n", "m"), sizes, strict=True))
    dims = [[d if isinstance(d, int) else known[str(d)] for d in shape] for shape in shapes]
    return [rng.standard_normal(d).astype(np.float32) for d in dims]


def close(found, wanted, exact):
    """Within 4 times NumPy's own error, relative to the largest element or 1."""
    for one, numpy, true in zip(found, wanted, exact, strict=True):
        assert one.shape == np.shape(true)
        np.testing.assert_array_equal(np.isnan(one), np.isnan(true))
        finite = np.isfinite(true) & np.isfinite(one) & np.isfinite(numpy)
        scale = np.abs(true[finite]).max(initial=1)
        error = np.abs(one[finite] - true[finite]).max(initial=0) / scale
        assert error <= 4 * np.abs(numpy[finite] - true[finite]).max(initial=0) / scale + 1e-6


@pytest.mark.sampled(2)
@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_values(make, symbolic):
    kernel = built(make("n", "m")) if symbolic else None
    # With literal sizes each is a kernel of its own: the functions take turns at them.
    step = 1 if symbolic or EVERY_CASE else 2
    for sizes in SIZES[list(CASES).index(make) % step :: step]:
        if sizes[0] == 0 and make is sums_both_ways:
            continue  # no maximum of nothing
        if make is wide and sizes[0] > 200:
            continue  # 14 million elements, for rows that are as those of the size before
        program = make(*sizes)
        args = arguments(program, sizes)
        mine = kernel or built(program)
        for special in (None, -0.0, np.nan, np.inf, -np.inf):
            if special is not None and args[0].size:
                args[0].flat[args[0].size // 3] = special
            with np.errstate(all="ignore"):
                wanted = Evaluator(program)(args)
                exact = Evaluator(program)([a.astype(np.float64) for a in args])
            close(mine(*args), wanted, exact)


@pytest.mark.parametrize("make", [m for m in CASES if CASES[m]], ids=lambda make: make.__name__)
def test_nests(make):
    assert nests(built(make(33, 48))) == CASES[make]


def test_row_reductions_share_a_walk():
    """Loops inside the one over rows: two means, a variance, a mean, and the rest in one."""
    loops = built(layer_norm_gradient(33, 48)).stages["loops"]
    nest = loops[loops.index("func.func @kernel_nest0(") :]
    inside = [line for line in nest.splitlines() if re.match(r" {6}(%\S+ = )?scf\.for", line)]
    assert [line.count("%cst") for line in inside] == [2, 1, 1, 0]


@needs_pool
@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("make", [layer_norm_gradient, sums_both_ways])
def test_same_bits_on_any_number_of_threads(make, symbolic):
    kernel = built(make("n", "m") if symbolic else make(700, 1000))
    assert kernel.artifact.shared_steps == 1
    args = arguments(make(700, 1000), (700, 1000))
    assert same_bits(on_threads(kernel, *args))
