"""Products whose right operands are computed a panel at a time: which ones, in how much memory, with which results."""

import re

import numpy as np
import pytest
from graphs import Graph, tensor
from native import built
from pools import needs_pool, on_threads, one_thread_around, same_bits  # noqa: F401
from profuse.dialect.ir.attrs import DYNAMIC
from profuse.dialect.ir.dtypes import F32, F64

windows = np.lib.stride_tricks.sliding_window_view


def convolution(image, weights, dtype=F32, padding=1, stride=1, after=None, more=()):
    """A correlation as a product of weights with a matrix of windows.

    Args:
        image: sizes (batch, channels, rows, columns).
        weights: sizes (outputs, channels, side, side).
        after: function of graph, result and further inputs, of which ``more`` are the sizes.
    """
    g = Graph(*(tensor(*shape, dtype=dtype) for shape in (image, weights, *more)))
    x, w, *rest = g.inputs
    count, channels, _, _ = g.shape(x)
    outputs, _, side, _ = weights
    if padding:
        widths = (0, 0, 0, 0, padding, padding, padding, padding)
        x = g.pad(x, g.number(0, dtype.numpy), widths=widths)
    x = g.windows(x, shape=(side, side), axes=(2, 3))
    if stride > 1:
        stops = g.shape(x)[2:4]
        x = g.slice(x, starts=(0, 0), stops=stops, steps=(stride, stride), axes=(2, 3))
    rows, columns = g.shape(x)[2:4]
    x = g.transpose(x, perm=(0, 1, 4, 5, 2, 3))
    inner = channels * side * side
    x = g.reshape(x, *_values(g, (count,)), shape=_static((count, inner, rows * columns)))
    y = g.matmul(g.reshape(w, shape=(outputs, inner)), x)
    y = g.reshape(y, *_values(g, (count,)), shape=_static((count, outputs, rows, columns)))
    return g.returning(*_tuple(y if after is None else after(g, y, *rest)))


def _static(sizes):
    return tuple(d if isinstance(d, int) else DYNAMIC for d in sizes)


def _values(g, sizes):
    return [g.dim(g.inputs[0], axis=0) for d in sizes if not isinstance(d, int)]


def _tuple(results):
    return results if isinstance(results, tuple) else (results,)


def expected(x, w, padding=1, stride=1):
    """The same in f64."""
    x, w = x.astype(np.float64), w.astype(np.float64)
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    parts = windows(x, w.shape[2:], (2, 3))[:, :, ::stride, ::stride]
    return np.einsum("nchwij,ocij->nohw", parts, w)


def random(*shapes, dtype=np.float32):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def panels(kernel):
    """The functions that run panels."""
    return set(re.findall(r"func.func @(\w+_panels\d+)\(", kernel.stages["loops"]))


def nests(kernel):
    """The nests of a kernel, those within panels among them."""
    return set(re.findall(r"func.func @(\w+_nest\d*)\(", kernel.stages["loops"]))


def check(kernel, args, wanted, rtol=2e-4):
    result, *_ = kernel(*args)
    assert result.dtype == args[0].dtype
    np.testing.assert_allclose(result, wanted, rtol=rtol, atol=rtol * max(np.abs(wanted).max(initial=0), 1))


SHAPES = {
    "square": ((1, 8, 40, 40), (16, 8, 3, 3)),
    "batch": ((5, 3, 20, 30), (7, 3, 3, 3)),
    "last block is shorter": ((1, 4, 41, 50), (8, 4, 3, 3)),
    "few columns in a row": ((2, 4, 100, 5), (6, 4, 3, 3)),
    "one column in a row": ((1, 4, 600, 1), (6, 4, 3, 3)),
    "a row is wider than a block": ((1, 2, 9, 300), (4, 2, 3, 3)),
    "window as large as the image": ((6, 3, 5, 5), (9, 3, 7, 7)),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("name", SHAPES)
def test_results(name, stride, dtype):
    image, weights = SHAPES[name]
    kernel = built(convolution(image, weights, dtype, stride=stride))
    args = random(image, weights, dtype=dtype.numpy)
    check(kernel, args, expected(*args, stride=stride), 2e-4 if dtype is F32 else 1e-11)
    assert kernel.artifact.library_calls == 1


def test_which_shapes_run_in_panels():
    for name, (image, weights) in SHAPES.items():
        assert bool(panels(built(convolution(image, weights)))) == (name != "window as large as the image"), name


@pytest.fixture(scope="module")
def of_any_batch():
    kernel = built(convolution(("n", 3, 20, 30), (7, 3, 3, 3)))
    assert panels(kernel)
    return kernel


def test_an_empty_batch(of_any_batch):
    args = random((0, 3, 20, 30), (7, 3, 3, 3))
    assert of_any_batch(*args)[0].shape == (0, 7, 20, 30)


def test_any_number_of_images(of_any_batch):
    for count in (1, 2, 9):
        args = random((count, 3, 20, 30), (7, 3, 3, 3))
        check(of_any_batch, args, expected(*args))


def of_any_sizes():
    """A correlation with 3 x 3 weights, of which no other size is known, a bias and a maximum."""
    g = Graph(tensor("n", "c", "h", "w"), tensor("o", "c", 3, 3), tensor("o"))
    x, w, b = g.inputs
    n, c, o = g.dim(x, axis=0), g.dim(x, axis=1), g.dim(w, axis=0)
    x = g.pad(x, g.number(0), widths=(0, 0, 0, 0, 1, 1, 1, 1))
    x = g.transpose(g.windows(x, shape=(3, 3), axes=(2, 3)), perm=(0, 1, 4, 5, 2, 3))
    rows, columns = g.dim(x, axis=4), g.dim(x, axis=5)
    inner = g.mul(c, g.constant(value=9))
    x = g.reshape(x, n, inner, g.mul(rows, columns), shape=(DYNAMIC,) * 3)
    y = g.matmul(g.reshape(w, o, inner, shape=(DYNAMIC,) * 2), x)
    y = g.reshape(y, n, o, rows, columns, shape=(DYNAMIC,) * 4)
    return g.returning(bias_and_maximum(g, y, b))


@pytest.mark.sampled(3)
@needs_pool
@pytest.mark.parametrize(
    "image", [(1, 4, 30, 40), (3, 2, 7, 300), (4, 3, 65, 1), (2, 3, 1, 70), (1, 1, 1, 1), (9, 16, 28, 28)]
)
def test_any_sizes(image):
    """Rows of a block are counted when the kernel runs."""
    kernel = built(of_any_sizes())
    (panel,) = panels(kernel)
    assert f"{panel}_nest1" in nests(kernel)
    for outputs in (5, 24):
        args = random(image, (outputs, image[1], 3, 3), (outputs,))
        wanted = np.maximum(expected(*args[:2]) + args[2][:, None, None], 0)
        results = on_threads(kernel, *args)
        np.testing.assert_allclose(results[0][0], wanted, rtol=2e-4, atol=2e-4)
        assert same_bits(results)


def test_memory_is_that_of_the_panels_of_all_chunks():
    """Without panels, there would be nine images for each one."""
    image, weights = (32, 8, 64, 64), (16, 8, 3, 3)
    kernel = built(convolution(image, weights))
    panel, padded = 72 * 128 * 4, 32 * 8 * 66 * 66 * 4
    assert int(kernel.artifact.abi.workspace) == 16 * panel + padded
    assert kernel.artifact.shared_steps == 2


@needs_pool
@pytest.mark.parametrize("count", [1, 5, "n"])
def test_same_bits_on_any_number_of_threads(count):
    image, weights = (count, 16, 50, 45), (24, 16, 3, 3)
    kernel = built(convolution(image, weights, after=bias_and_maximum, more=[(24,)]))
    assert panels(kernel) and kernel.artifact.shared_steps
    args = random((5 if count == "n" else count, *image[1:]), weights, (24,))
    results = on_threads(kernel, *args)
    assert same_bits(results)
    x, w, b = args
    wanted = np.maximum(expected(x, w) + b[:, None, None], 0)
    np.testing.assert_allclose(results[0][0], wanted, rtol=2e-4, atol=2e-4)


# --- what reads the result ---------------------------------------------------------------------


def bias_and_maximum(g, y, bias):
    y = g.add(y, g.expand_dims(bias, axes=(0, 2, 3)))
    return g.maximum(y, g.number(0.0))


def softmax_of_channels(g, y):
    e = g.exp(g.sub(y, g.max(y, axes=(1,), keepdims=True)))
    return g.div(e, g.sum(e, axes=(1,), keepdims=True))


def numpy_softmax_of_channels(y):
    e = np.exp(y - y.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


IMAGE, WEIGHTS = (2, 4, 40, 30), (6, 4, 3, 3)
AFTER = {
    "elementwise": (lambda g, y: g.tanh(y), np.tanh),
    "other columns of the row": (
        lambda g, y: g.add(g.tanh(y), g.flip(y, axes=(3,))),
        lambda y: np.tanh(y) + y[..., ::-1],
    ),
    "maxima along rows": (lambda g, y: g.max(y, axes=(3,)), lambda y: y.max(axis=3)),
    "in another layout": (
        lambda g, y: g.transpose(g.tanh(y), perm=(0, 2, 3, 1)),
        lambda y: np.tanh(y).transpose(0, 2, 3, 1),
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", AFTER)
def test_what_reads_a_result_runs_on_the_block(name):
    make, wanted = AFTER[name]
    kernel = built(convolution(IMAGE, WEIGHTS, after=make))
    args = random(IMAGE, WEIGHTS)
    check(kernel, args, wanted(expected(*args)))
    (panel,) = panels(kernel)
    assert f"{panel}_nest1" in nests(kernel)
    assert len(nests(kernel)) == 3  # the padded image, panels of it, and what reads the result


def _other_rows(y):
    return np.tanh(y) + y[:, :, ::-1]


REFUSED = {
    "sums of channels": (softmax_of_channels, numpy_softmax_of_channels),
    "other rows": (lambda g, y: g.add(g.tanh(y), g.flip(y, axes=(2,))), _other_rows),
    "other images": (lambda g, y: g.add(y, g.flip(y, axes=(0,))), lambda y: y + y[::-1]),
    "sums over all pixels": (lambda g, y: g.sum(y, axes=(0, 2, 3)), lambda y: y.sum(axis=(0, 2, 3))),
    "windows of the result": (
        lambda g, y: g.max(g.windows(y, shape=(2, 2), axes=(2, 3)), axes=(4, 5)),
        lambda y: windows(y, (2, 2), (2, 3)).max(axis=(4, 5)),
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", REFUSED)
def test_more_than_the_block_is_needed(name):
    make, wanted = REFUSED[name]
    kernel = built(convolution(IMAGE, WEIGHTS, after=make))
    args = random(IMAGE, WEIGHTS)
    check(kernel, args, wanted(expected(*args)), 1e-3)
    (panel,) = panels(kernel)
    assert f"{panel}_nest1" not in nests(kernel)


def test_what_reads_pixels_in_one_axis_runs_on_the_block():
    """Its loop over pixels goes through several rows of the image at once."""
    g = Graph(tensor(*IMAGE), tensor(6, 36), tensor(6, 1))
    x, w, b = g.inputs
    parts = g.windows(g.pad(x, g.number(0), widths=(0, 0, 0, 0, 1, 1, 1, 1)), shape=(3, 3), axes=(2, 3))
    right = g.reshape(g.transpose(parts, perm=(0, 1, 4, 5, 2, 3)), shape=(2, 36, 1200))
    kernel = built(g.returning(g.tanh(g.add(g.matmul(w, right), b))))
    x, w, b = random(IMAGE, (6, 36), (6, 1))
    wanted = np.tanh(expected(x, w.reshape(6, 4, 3, 3)).reshape(2, 6, 1200) + b)
    check(kernel, [x, w, b], wanted)
    (panel,) = panels(kernel)
    assert f"{panel}_nest1" in nests(kernel)


def test_a_result_that_is_returned_is_stored_as_well():
    kernel = built(convolution(IMAGE, WEIGHTS, after=lambda g, y: (g.tanh(y), y)))
    args = random(IMAGE, WEIGHTS)
    activated, plain = kernel(*args)
    np.testing.assert_allclose(plain, expected(*args), rtol=2e-4, atol=2e-4)
    np.testing.assert_allclose(activated, np.tanh(expected(*args)), rtol=2e-4, atol=2e-4)
    assert panels(kernel)


def test_an_array_that_is_added_may_depend_on_the_image_alone():
    kernel = built(convolution(IMAGE, (4, 4, 3, 3), after=lambda g, y: g.add(y, g.tanh(g.inputs[0]))))
    x, w = random(IMAGE, (4, 4, 3, 3))
    check(kernel, [x, w], expected(x, w) + np.tanh(x))
    (panel,) = panels(kernel)
    assert f"{panel}_nest1" in nests(kernel)


def test_what_needs_all_of_the_result_first_waits():
    def after(g, y):
        return g.mul(y, g.max(y, axes=(0, 2, 3), keepdims=True))

    kernel = built(convolution(IMAGE, WEIGHTS, after=after))
    args = random(IMAGE, WEIGHTS)
    wanted = expected(*args)
    check(kernel, args, wanted * wanted.max(axis=(0, 2, 3), keepdims=True))


def test_an_operand_that_others_read_is_stored_as_a_whole():
    g = Graph(tensor(8, 30, 40), tensor(6, 30))
    x, w = g.inputs
    right = g.tanh(x)
    kernel = built(g.returning(g.matmul(w, right), right))
    assert not panels(kernel)


def test_columns_that_are_no_pixels():
    """Any right operand that is computed runs in panels, and each column is a row of the block."""
    g = Graph(tensor(600, 30), tensor(24, 30))
    x, w = g.inputs
    product = g.matmul(w, g.tanh(g.transpose(x, perm=(1, 0))))
    kernel = built(g.returning(g.maximum(product, g.number(0.0))))
    x, w = random((600, 30), (24, 30))
    check(kernel, [x, w], np.maximum(w @ np.tanh(x).T, 0))


def test_a_padded_image_is_computed_once():
    """Windows that overlap read each of its elements several times."""
    kernel = built(convolution((1, 8, 40, 40), (16, 8, 3, 3)))
    loops = kernel.stages["loops"]
    assert "arith.select" in loops
    (panel,) = panels(kernel)
    body = loops[loops.index(f"func.func @{panel}_nest(") :].split("\n  }\n")[0]
    assert "arith.select" not in body
