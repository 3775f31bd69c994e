"""Steps in chunks: which ones, how large, and the same bits for any number of threads."""

import ctypes
import re

import numpy as np
import pytest
from graphs import Graph, tensor
from native import built
from pools import THREADS, needs_pool, on_threads, one_thread_around, same_bits  # noqa: F401
from profuse.dialect.ir.dtypes import I64
from profuse.lowering.cpu import kernel_threads
from profuse.lowering.cpu.pool_block import block
from profuse.lowering.thread_pool import LAUNCH

pytestmark = needs_pool


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
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_same_bits_on_any_number_of_threads(name, symbolic):
    make, expected, dims = CASES[name]
    kernel = built(make(*sizes(symbolic, *dims)))
    assert kernel.artifact.shared_steps
    x = np.random.default_rng(0).standard_normal(dims).astype(np.float32)
    found = on_threads(kernel, x)
    assert kernel_threads.started() >= max(THREADS) - 1
    assert same_bits(found)
    np.testing.assert_allclose(found[0][0], expected(x), rtol=2e-5, atol=2e-3)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((1000, 300), (300, 200)),
        ((64, 60, 50), (64, 50, 70)),
        ((4000, 600), (600,)),
        ((64, 256), (256, 256)),
        ((37, 500), (500, 2101)),
        ((300, 400), (400, 900)),
    ],
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


@pytest.mark.sampled(3)
@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("turned", ["neither", "left", "right", "both"])
def test_products_of_few_rows_are_divided_by_columns(turned, symbolic):
    """Rows of fewer than two chunks, as a small batch has; operands may be transposed."""
    rows, depth, columns = sizes(symbolic, 40, 300, 1700)
    shapes = [(rows, depth), (depth, columns)]
    flips = [turned in (side, "both") for side in ("left", "right")]
    g = Graph(*(tensor(*(s[::-1] if f else s)) for s, f in zip(shapes, flips, strict=True)))
    given = [g.transpose(v) if f else v for v, f in zip(g.inputs, flips, strict=True)]
    kernel = built(g.returning(g.maximum(g.matmul(*given), g.number(0))))
    assert kernel.artifact.shared_steps
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(s).astype(np.float32) for s in ((40, 300), (300, 1700)))
    args = [a.T.copy() if f else a for a, f in zip((x, y), flips, strict=True)]
    calls = []
    for count in THREADS:
        assert kernel_threads.use_threads(count)
        calls.append(kernel(*args))
    assert same_bits(calls)
    np.testing.assert_allclose(calls[0][0], np.maximum(x @ y, 0), rtol=1e-4, atol=1e-3)


def test_small_products_stay_whole():
    """A chunk would not make up for what packing an operand twice takes, or have other bits."""
    for left, right in [((47, 256), (256, 1023)), ((255, 20), (20, 100)), ((3, 256), (256, 256))]:
        g = Graph(tensor(*left), tensor(*right))
        assert not built(g.returning(g.matmul(*g.inputs))).artifact.shared_steps


def test_products_read_equal_numbers_from_memory():
    g = Graph(tensor("n", 600))
    ones = g.constant(value=np.full((600, 300), 0.5, np.float32))
    kernel = built(g.returning(g.matmul(g.inputs[0], ones)))
    assert kernel.artifact.shared_steps
    x = np.random.default_rng(0).standard_normal((1000, 600)).astype(np.float32)
    found = on_threads(kernel, x)
    assert same_bits(found)
    np.testing.assert_allclose(found[0][0][:, 7], x.sum(1) / 2, rtol=1e-4, atol=1e-3)


@pytest.mark.sampled(4)
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
    g = Graph(tensor(2000, 100), tensor(30_000, dtype=I64))
    x, i = g.inputs
    kernel = built(g.returning(g.take(x, i, axis=0)))
    assert kernel.artifact.shared_steps
    rows = np.random.default_rng(0).integers(0, 2000, 30_000)
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


def launches(kernel, *args):
    """The results of a call, and the (iterations, iterations of a chunk) of its launches."""
    found = []
    part_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)

    def launch(_pool, part, array, count, grain):
        found.append((count, grain))
        step = grain or 1  # 0: any number at a time
        for begin in reversed(range(0, count, step)):
            part_type(part)(array, begin, min(begin + step, count))

    words = [ctypes.c_void_p] * 3 + [ctypes.c_int64] * 2
    callback = ctypes.CFUNCTYPE(None, *words)(launch)
    block()[LAUNCH] = ctypes.cast(callback, ctypes.c_void_p).value
    try:
        return kernel(*args), found
    finally:
        block()[LAUNCH] = 0


def last_softmax(*dims):
    g = Graph(tensor(*dims))
    (x,) = g.inputs
    e = g.exp(g.sub(x, g.max(x, axes=(2,), keepdims=True)))
    return g.returning(g.div(e, g.sum(e, axes=(2,), keepdims=True)))


def with_transposed(*dims):
    g = Graph(tensor(*dims), tensor(dims[0], dims[2], dims[1]))
    x, y = g.inputs
    return g.returning(g.add(x, g.transpose(y, perm=(0, 2, 1))))


# Kernel of symbolic sizes -> sizes, and the iterations of the loop that they divide.
CHOSEN = {
    "softmax": (last_softmax, {(300, 3, 640): 300, (1, 900, 640): 900, (7, 90, 1000): 90, (5, 3, 40_000): 5}),
    "sums of rows": (of_one("sum", axes=(1,)), {(3000, 300): 3000, (1, 1_000_003): 1_000_003, (7, 200_001): 200_001}),
    "sums of columns": (
        of_one("sum", axes=(0,)),
        {(3000, 300): 3000, (5, 200_001): 200_001, (127, 7000): 127, (127, 8192): 8192},
    ),
    "maxima of rows": (of_one("max", axes=(1,)), {(3000, 300): 3000, (2, 500_001): 500_001}),
    "sums of all": (of_one("sum"), {(3000, 300): 3000, (1, 1_000_003): 1_000_003}),
    "running sums": (of_one("cumsum", axis=2), {(40, 3, 9000): 40, (1, 80, 9000): 80}),
    "transposed": (with_transposed, {(30, 170, 180): 30, (1, 901, 907): 901}),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CHOSEN)
def test_sizes_decide_which_loop_is_divided(name):
    """A kernel of symbolic sizes divides another loop where the leading axis is short."""
    make, shapes = CHOSEN[name]
    rank = len(next(iter(shapes)))
    kernel = built(make(*sizes(True, *range(rank))))
    rng = np.random.default_rng(0)
    for dims, iterations in shapes.items():
        program = make(*dims)
        kinds = [program.type_of(v).shape for v in program.body.args]
        args = [rng.standard_normal(shape).astype(np.float32) for shape in kinds]
        for special in (1.0, np.nan, -np.inf):
            args[0].flat[args[0].size // 2] = special
            found, launched = launches(kernel, *args)
            assert [count for count, _ in launched] == [iterations]
            assert launched[0][1] < iterations, "it is divided"
            assert same_bits([found, *on_threads(kernel, *args)])
            wanted = built(program)(*args)
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-3)
