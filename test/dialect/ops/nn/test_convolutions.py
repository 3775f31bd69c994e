"""Convolutions as kernels: values, gradients, threads, sizes that are symbols, and what is one kernel."""

import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import profuse as pf
import pytest
from profuse.dialect.importers.numpy.tracing.composites import composite

sys.path.insert(0, str(Path(__file__).parents[1]))
from nn_cases import conv2d_reference

PAIRS = ("stride", "padding", "dilation")
ATTRS = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "groups": 1}


def conv2d(x, weight, bias=None, **attrs):
    return composite("conv2d", x, weight, bias, **attrs)


def compiled(function, *args):
    jitted = pf.jit(function, background=False)
    for _ in range(3):
        result = jitted(*args)
    return jitted, result


def random_case(seed, most=6):
    """Operands in f64, and attributes: windows as large as parts of the image, groups, few images or many."""
    rng = np.random.default_rng(seed)
    groups = int(rng.choice([1, 1, 2, 3]))
    members, results = int(rng.integers(1, most)), int(rng.integers(1, most))
    if seed % 4 == 3:
        members = results = 1  # depthwise, if there are several groups
    window = rng.integers(1, 5, 2)
    stride, padding, dilation = rng.integers(1, 4, 2), rng.integers(0, 3, 2), rng.integers(1, 3, 2)
    sides = rng.integers(1, 24, 2) + (window - 1) * dilation
    x = rng.standard_normal((int(rng.integers(1, 5)), groups * members, *sides))
    weight = rng.standard_normal((groups * results, members, *window))
    pairs = ((name, tuple(map(int, pair))) for name, pair in zip(PAIRS, (stride, padding, dilation), strict=True))
    return x, weight, rng.standard_normal(groups * results), {**dict(pairs), "groups": groups}


def reference(x, weight, attrs):
    return conv2d_reference(attrs, x, weight)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(12))
def test_values(seed):
    x, weight, bias, attrs = random_case(seed)
    wanted = np.maximum(reference(x, weight, attrs) + bias[:, None, None], 0)
    for dtype, least in ((np.float64, 1e-12), (np.float32, 1e-4)):
        args = [a.astype(dtype) for a in (x, weight, bias)]
        jitted, result = compiled(lambda x, w, b: np.maximum(conv2d(x, w, b, **attrs), 0), *args)
        assert result.dtype == dtype
        np.testing.assert_allclose(result, wanted, rtol=least, atol=10 * least)
        assert jitted.state().counters["kernels_compiled"] == 1


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_16_bit_floats_are_summed_in_f32(dtype):
    x, weight, _, attrs = random_case(5)
    x, weight = x.astype(dtype), weight.astype(dtype)
    jitted, result = compiled(lambda x, w: conv2d(x, w, **attrs), x, weight)
    assert result.dtype == dtype
    wanted = reference(x.astype(np.float64), weight.astype(np.float64), attrs)
    np.testing.assert_allclose(result.astype(np.float64), wanted, rtol=1e-2, atol=1e-2)
    assert jitted.state().counters["kernels_compiled"] == 1


def test_an_empty_batch():
    x, weight, _, attrs = random_case(1)
    _, result = compiled(lambda x, w: conv2d(x, w, **attrs), x[:0], weight)
    assert result.shape == reference(x, weight, attrs)[:0].shape


def test_one_kernel_serves_any_number_of_images():
    rng = np.random.default_rng(0)
    weight, bias = rng.standard_normal((9, 5, 3, 3)), rng.standard_normal(9)
    attrs = ATTRS
    jitted = pf.jit(lambda x, w, b: np.maximum(conv2d(x, w, b, **attrs), 0), background=False)
    for count in (2, 3, 4, 5, 7, 1, 6):
        x = rng.standard_normal((count, 5, 20, 24))
        for _ in range(2):
            result = jitted(x, weight, bias)
        wanted = np.maximum(reference(x, weight, attrs) + bias[:, None, None], 0)
        np.testing.assert_allclose(result, wanted, rtol=1e-11, atol=1e-11)
    assert jitted.state().counters["kernels_compiled"] <= 4


# --- gradients -----------------------------------------------------------------------------------


def gradients(x, weight, bias, g, attrs):
    def loss(x, weight, bias):
        return (conv2d(x, weight, bias, **attrs) * g).sum()

    if bias is None:
        return pf.grad(lambda x, weight: loss(x, weight, None), wrt=(0, 1))(x, weight)
    return pf.grad(loss, wrt=(0, 1, 2))(x, weight, bias)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(16))
def test_gradients(seed):
    """A convolution is linear in its image and in its weight: the sum of products tells the gradient."""
    x, weight, bias, attrs = random_case(seed, most=10 if seed % 2 else 4)
    rng = np.random.default_rng(seed)
    g = rng.standard_normal(reference(x, weight, attrs).shape)
    jitted, (by_image, by_weight, by_bias) = compiled(lambda *args: gradients(*args, attrs), x, weight, bias, g)
    assert (by_image.shape, by_weight.shape) == (x.shape, weight.shape)
    np.testing.assert_allclose(by_bias, g.sum(axis=(0, 2, 3)), rtol=1e-11, atol=1e-11)
    for _ in range(3):
        dx, dw = rng.standard_normal(x.shape), rng.standard_normal(weight.shape)
        np.testing.assert_allclose((by_image * dx).sum(), (reference(dx, weight, attrs) * g).sum(), atol=1e-9)
        np.testing.assert_allclose((by_weight * dw).sum(), (reference(x, dw, attrs) * g).sum(), atol=1e-9)
    # Each element by itself, at the corners and in the middle.
    for place in {(0, 0, 0, 0), tuple(s - 1 for s in x.shape), tuple(s // 2 for s in x.shape)}:
        one = np.zeros_like(x)
        one[place] = 1
        np.testing.assert_allclose(by_image[place], (reference(one, weight, attrs) * g).sum(), atol=1e-10)
    assert jitted.state().counters["kernels_compiled"] >= 1


def test_second_gradients():
    x, weight, _, attrs = random_case(2)

    def first(weight):
        return (pf.grad(lambda x: (conv2d(x, weight, **attrs) ** 2).sum())(x) * x).sum()

    # The loss is a square in x, so this is twice the loss, and its gradient twice that of the loss.
    np.testing.assert_allclose(
        pf.grad(first)(weight), 2 * pf.grad(lambda w: (conv2d(x, w, **attrs) ** 2).sum())(weight), rtol=1e-9
    )


@pytest.mark.parametrize(("stride", "padding"), [(1, 1), (2, 1), (3, 0)])
def test_gradients_of_the_form_that_numpy_has(stride, padding):
    """Windows, a reshape and a product: the gradient of windows has a known order in memory."""
    rng = np.random.default_rng(4)
    x, weight = rng.standard_normal((2, 3, 13, 12)), rng.standard_normal((4, 3, 3, 3))
    attrs = {"stride": (stride,) * 2, "padding": (padding,) * 2, "dilation": (1, 1), "groups": 1}
    g = rng.standard_normal(reference(x, weight, attrs).shape)

    def form(x, weight):
        x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
        parts = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))[:, :, ::stride, ::stride]
        rows, columns = parts.shape[2:4]
        matrix = parts.transpose(0, 1, 4, 5, 2, 3).reshape(2, 27, rows * columns)
        return np.matmul(weight.reshape(4, 27), matrix).reshape(2, 4, rows, columns)

    def both(x, weight, g):
        return pf.grad(lambda x, w: (form(x, w) * g).sum(), wrt=(0, 1))(x, weight)

    jitted, found = compiled(both, x, weight, g)
    wanted = gradients(x, weight, np.zeros(4), g, attrs)[:2]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)
    assert jitted.state().counters["kernels_compiled"] >= 1


def test_grouped_kernels_serve_any_number_of_channels():
    """A dynamic guard holds that an image has as many channels as the groups of the weight have together."""
    rng = np.random.default_rng(6)
    attrs = {**ATTRS, "groups": 2}

    def call(x, weight, g):
        return (conv2d(x, weight, **attrs) * g).sum(axis=(2, 3)), gradients(x, weight, None, g, attrs)

    jitted = pf.jit(call, background=False)
    for channels in (4, 10, 14, 20, 22, 26):
        x, weight = rng.standard_normal((2, channels, 6, 7)), rng.standard_normal((3 * channels, channels // 2, 3, 3))
        g = rng.standard_normal(reference(x, weight, attrs).shape)
        for _ in range(2):
            sums, (by_image, by_weight) = jitted(x, weight, g)
        np.testing.assert_allclose(sums, (reference(x, weight, attrs) * g).sum(axis=(2, 3)), rtol=1e-10, atol=1e-10)
        dx, dw = rng.standard_normal(x.shape), rng.standard_normal(weight.shape)
        np.testing.assert_allclose((by_image * dx).sum(), (reference(dx, weight, attrs) * g).sum(), rtol=1e-9)
        np.testing.assert_allclose((by_weight * dw).sum(), (reference(x, dw, attrs) * g).sum(), rtol=1e-9)
    counters = jitted.state().counters
    assert counters["traces"] == 1 and counters["kernels_compiled"] <= 6, jitted.explain()
    with pytest.raises(pf.ShapeError, match="takes 12 channels and gives a multiple of 2, but there are 14"):
        jitted(x[:, :14], weight[:16, :6], g[:, :16])


def test_a_weight_whose_sizes_only_a_run_tells_has_a_gradient():
    """What is not known then is asked for, not tried: the gradient is that of the composition."""
    x, weight = np.random.default_rng(1).standard_normal((2, 9, 6, 7)), np.ones((4, 12, 3, 3))
    mask = np.arange(12) % 4 > 0

    def loss(x, weight, mask):
        return (conv2d(x, weight[:, mask], **ATTRS) ** 2).sum()

    grad = pf.grad(loss, background=False)
    for _ in range(3):
        found = grad(x, weight, mask)
    np.testing.assert_allclose(found, pf.grad(loss)(x, weight, mask), rtol=1e-12)
    np.testing.assert_allclose((found * x).sum(), 2 * loss(x, weight, mask), rtol=1e-10)  # of a square in x


def test_depthwise_convolutions_of_any_images_are_one_kernel():
    """Of the weight, kernels for all sizes know the window: they add up shifted images, in a gradient as well."""
    weight = np.linspace(-1, 1, 45).reshape(5, 1, 3, 3)

    def layer(x, w):
        return pf.nn.relu(pf.nn.conv2d(x, w, padding=1, groups=5))

    f = pf.jit(layer, strategy=[("DYNAMIC", 4)], background=False)
    grad = pf.grad(lambda w, x: (layer(x, w) ** 2).sum(), wrt=(0, 1), strategy=[("DYNAMIC", 4)], background=False)
    for n, rows, columns in ((2, 7, 6), (4, 9, 8), (2, 6, 11), (7, 12, 10)):
        x = np.cos(np.arange(n * 5 * rows * columns)).reshape(n, 5, rows, columns)
        made = reference(x, weight, {**ATTRS, "groups": 5})
        for _ in range(2):
            np.testing.assert_allclose(f(x, weight), np.maximum(made, 0), atol=1e-12)
            by_weight, by_image = grad(weight, x)
        step = 1e-6 * np.sin(np.arange(45)).reshape(weight.shape)
        moved = [(layer(x, weight + sign * step) ** 2).sum() for sign in (1, -1)]
        np.testing.assert_allclose((by_weight * step).sum(), (moved[0] - moved[1]) / 2, rtol=1e-6)
        step = 1e-6 * np.sin(np.arange(x.size)).reshape(x.shape)
        moved = [(layer(x + sign * step, weight) ** 2).sum() for sign in (1, -1)]
        np.testing.assert_allclose((by_image * step).sum(), (moved[0] - moved[1]) / 2, rtol=1e-6)
    for fn in (f, grad):
        counters = fn.state().counters
        assert [counters[k] for k in ("compiles", "kernels_compiled", "guard_misses")] == [1, 1, 0], fn.explain()
    assert '"profuse.conv2d"' in f.ir("graph") and "window = array<i64: 3, 3>" in f.ir("graph")
