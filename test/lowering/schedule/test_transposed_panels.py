"""Panels of a transposed right operand: gradients by the weights of a convolution, in the memory of a block."""

import numpy as np
import pytest
from graphs import Graph, tensor
from native import built
from pools import needs_pool, on_threads, one_thread_around, same_bits  # noqa: F401
from profuse.dialect.ir.attrs import DYNAMIC
from profuse.dialect.ir.dtypes import F32, F64
from test_panels import nests, panels, random, windows


def weight_gradient(image, outputs, dtype=F32, after=None):
    """Of each image: the gradient of its result, times the transposed matrix of its 3 x 3 windows."""
    count, channels, rows, columns = image
    g = Graph(tensor(*image, dtype=dtype), tensor(count, outputs, rows * columns, dtype=dtype))
    x, gradient = g.inputs
    number = [] if isinstance(count, int) else [g.dim(x, axis=0)]
    x = g.pad(x, g.number(0, dtype.numpy), widths=(0, 0, 0, 0, 1, 1, 1, 1))
    x = g.transpose(g.windows(x, shape=(3, 3), axes=(2, 3)), perm=(0, 1, 4, 5, 2, 3))
    x = g.reshape(x, *number, shape=(DYNAMIC if number else count, 9 * channels, rows * columns))
    y = g.matmul(gradient, g.swapaxes(x, axis1=-1, axis2=-2))
    return g.returning(y if after is None else after(g, y))


def expected(x, gradient):
    x, gradient = x.astype(np.float64), gradient.astype(np.float64)
    parts = windows(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), (2, 3))
    return np.einsum("nop,ncpij->nocij", gradient, parts.reshape(*x.shape[:2], -1, 3, 3)).reshape(
        *gradient.shape[:2], -1
    )


SHAPES = {
    "one image": (1, 120, 20, 30),
    "batch": (5, 40, 12, 17),
    "last block is shorter": (1, 131, 16, 16),
    "one row": (4, 33, 1, 200),
}


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("name", SHAPES)
def test_gradients_by_weights_run_in_panels(name, dtype):
    image = SHAPES[name]
    kernel = built(weight_gradient(image, 7, dtype))
    args = random(image, (image[0], 7, image[2] * image[3]), dtype=dtype.numpy)
    result, *_ = kernel(*args)
    np.testing.assert_allclose(result, expected(*args), rtol=1e-3 if dtype is F32 else 1e-10, atol=1e-3)
    assert len(panels(kernel)) == 1 and kernel.artifact.library_calls == 1


def test_what_reads_the_gradient_runs_on_the_block():
    kernel = built(weight_gradient(SHAPES["batch"], 7, after=lambda g, y: g.tanh(y)))
    args = random(SHAPES["batch"], (5, 7, 12 * 17))
    np.testing.assert_allclose(kernel(*args)[0], np.tanh(expected(*args)), rtol=1e-3, atol=1e-3)
    (panel,) = panels(kernel)
    assert f"{panel}_nest1" in nests(kernel)


def test_sums_of_few_products_are_stored_as_a_whole():
    """Stores of the result take most of the time, and the matrix of windows is small."""
    image = (8, 64, 7, 7)
    kernel = built(weight_gradient(image, 64))
    assert not panels(kernel)
    args = random(image, (8, 64, 49))
    np.testing.assert_allclose(kernel(*args)[0], expected(*args), rtol=1e-3, atol=1e-3)


def test_memory_is_that_of_the_panels_of_all_chunks():
    """Without panels, the windows of 32 images would take 302 MB."""
    image = (32, 64, 32, 32)
    kernel = built(weight_gradient(image, 16))
    panel, padded = 22 * 9 * 1024 * 4, 32 * 64 * 34 * 34 * 4
    assert int(kernel.artifact.abi.workspace) == 16 * panel + padded


@needs_pool
@pytest.mark.parametrize("count", [1, 5, "n"])
def test_bits_do_not_depend_on_the_number_of_threads(count):
    kernel = built(weight_gradient((count, 120, 20, 30), 24))
    assert panels(kernel) and kernel.artifact.shared_steps
    number = 5 if count == "n" else count
    args = random((number, 120, 20, 30), (number, 24, 600))
    results = on_threads(kernel, *args)
    assert same_bits(results)
    np.testing.assert_allclose(results[0][0], expected(*args), rtol=1e-3, atol=1e-3)
