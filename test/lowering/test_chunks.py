"""Steps in chunks: which ones, how large, and the same bits for any number of threads."""

import re

import numpy as np
import pytest
from graphs import Graph, tensor
from native import built
from profuse.dialect.ir.dtypes import I64
from profuse.lowering.cpu import pool
from profuse.lowering.target import host_target
from profuse.lowering.thread_pool import supports

THREADS = (1, 2, 3, 7)
pytestmark = pytest.mark.skipif(
    not supports(host_target().triple), reason="no pool of threads on this system"
)


@pytest.fixture(autouse=True)
def _one_thread_afterwards():
    yield
    pool.use_threads(1)


def on_threads(kernel, *args):
    """The results on each number of threads; every element is written on each of them."""
    found = []
    for count in THREADS:
        assert pool.use_threads(count)
        found.append(kernel(*args))
        assert pool.started() >= count - 1
    return found


def same_bits(results):
    first = [r.tobytes() for r in results[0]]
    return all([r.tobytes() for r in other] == first for other in results[1:])


def sizes(symbolic, *dims):
    return [f"s{k}" for k in range(len(dims))] if symbolic else dims


def softmax(n, m):
    g = Graph(tensor(n, m))
    (x,) = g.inputs
    e = g.exp(g.sub(x, g.max(x, axes=(1,), keepdims=True)))
    return g.returning(g.div(e, g.sum(e, axes=(1,), keepdims=True)))


def of_one(op, **attrs):
    def made(*dims):
        g = Graph(tensor(*dims))
        (x,) = g.inputs
        return g.returning(getattr(g, op)(x, **attrs))

    return made


def numpy_softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


CASES = {
    "pointwise": (of_one("tanh"), np.tanh, (700, 1300)),
    "flat": (of_one("exp"), np.exp, (1_000_003,)),
    "wide": (of_one("exp"), np.exp, (3, 400_001)),
    "rows": (of_one("sum", axes=(1,)), lambda x: x.sum(1), (1000, 1501)),
    "columns": (of_one("sum", axes=(0,)), lambda x: x.sum(0), (1501, 1000)),
    "all": (of_one("sum"), lambda x: x.sum(), (1501, 1000)),
    "all of a flat one": (of_one("sum"), lambda x: x.sum(), (1_500_001,)),
    "maximum": (of_one("max"), lambda x: x.max(), (1501, 1000)),
    "maxima of columns": (of_one("max", axes=(0,)), lambda x: x.max(0), (1501, 1000)),
    "middle": (of_one("sum", axes=(1,)), lambda x: x.sum(1), (40, 300, 140)),
    "running sums": (of_one("cumsum", axis=1), lambda x: x.cumsum(1), (500, 1000)),
    "softmax": (softmax, numpy_softmax, (600, 1000)),
    "softmax of long rows": (softmax, numpy_softmax, (20, 60_000)),
}  # fmt: skip


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_same_bits_on_any_number_of_threads(name, symbolic):
    make, expected, dims = CASES[name]
    kernel = built(make(*sizes(symbolic, *dims)))
    assert kernel.artifact.shared_steps
    x = np.random.default_rng(0).standard_normal(dims).astype(np.float32)
    found = on_threads(kernel, x)
    assert same_bits(found)
    np.testing.assert_allclose(found[0][0], expected(x), rtol=2e-5, atol=2e-3)


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize(
    ("left", "right"),
    [((1000, 300), (300, 200)), ((64, 60, 50), (64, 50, 70)), ((4000, 600), (600,))],
)
def test_products(left, right, symbolic):
    shared = len(left) - 1
    a = sizes(symbolic, *left)
    b = [*a[: len(right) - 2], a[shared], *(["p"] if symbolic else right[-1:])]
    b = b if len(right) > 1 else [a[shared]]
    g = Graph(tensor(*a), tensor(*b))
    kernel = built(g.returning(g.matmul(*g.inputs)))
    assert kernel.artifact.shared_steps
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(d).astype(np.float32) for d in (left, right))
    found = on_threads(kernel, x, y)
    assert same_bits(found)
    np.testing.assert_allclose(found[0][0], x @ y, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("least", [0, 1])
def test_symbolic_kernels_on_few_elements(name, least):
    """The same kernel takes one chunk where there is little to do, and none is left out."""
    make, expected, dims = CASES[name]
    kernel = built(make(*sizes(True, *dims)))
    count = len(dims)
    for few in {(least, *dims[1:]), (*dims[:-1], least), (least,) * count, (3,) * count}:
        if 0 in few and name.startswith(("max", "softmax")):
            continue  # no maximum of nothing
        x = np.random.default_rng(0).standard_normal(few).astype(np.float32)
        found = on_threads(kernel, x)
        assert same_bits(found)
        np.testing.assert_allclose(found[0][0], expected(x), rtol=2e-5, atol=2e-3)


def test_transposed_operands_in_tiles():
    g = Graph(tensor("n", "n"), tensor("n", "n"))
    x, y = g.inputs
    kernel = built(g.returning(g.add(x, g.transpose(y))))
    for size in (5, 31, 700):
        a, b = np.random.default_rng(0).standard_normal((2, size, size)).astype(np.float32)
        found = on_threads(kernel, a, b)
        assert same_bits(found)
        np.testing.assert_array_equal(found[0][0], a + b.T)


def test_integers_and_a_violation():
    """Indices out of range are noted by any chunk."""
    g = Graph(tensor(2000, 100), tensor(300_000, dtype=I64))
    x, i = g.inputs
    kernel = built(g.returning(g.take(x, i, axis=0)))
    rows = np.random.default_rng(0).integers(0, 2000, 300_000)
    x = np.arange(200_000, dtype=np.float32).reshape(2000, 100)
    found = on_threads(kernel, x, rows)
    assert same_bits(found)
    np.testing.assert_array_equal(found[0][0], x[rows])


def test_small_kernels_have_no_chunks():
    kernel = built(of_one("tanh")(100, 100))
    assert not kernel.artifact.shared_steps
    assert "profuse_pool" not in kernel.stages["loops"]


def test_the_size_of_chunks_depends_on_sizes_only():
    """A static kernel has it as a number, and a symbolic one computes the same."""
    loops = built(softmax(1000, 1000)).stages["loops"]
    (launch,) = re.findall(r"llvm.call @profuse_run_chunks\((.*?)\)", loops)
    assert len(launch.split(",")) == 4
    assert "sitofp" not in loops
    assert "sitofp" in built(softmax("n", "m")).stages["loops"]


def test_running_sums_along_the_only_loop_stay_on_one_thread():
    assert not built(of_one("cumsum", axis=0)(1_000_000)).artifact.shared_steps
