"""What functions of `pf.nn` mean where formulas do not tell: ties, masks, ignored elements, edges of images."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from profuse import nn

RNG = np.random.default_rng(12)


def gradients(fn, *args, wrt=0):
    """The gradient of the sum of a function's result, in three tiers and on the tape, which must agree."""
    grad = pf.grad(lambda *args: fn(*args).sum(), wrt=wrt, background=False)
    results = [grad(*args) for _ in range(3)]
    leaf = pf.array(args[wrt].copy(), requires_grad=True)
    fn(*[leaf if k == wrt else x for k, x in enumerate(args)]).sum().backward()
    for other in (*results[1:], np.asarray(leaf.grad)):
        np.testing.assert_allclose(other, results[0], rtol=1e-12, atol=1e-14)
    return results[0]


def test_the_first_of_the_largest_gets_the_gradient():
    x = np.array([[[1.0, 1.0, 0.0, 2.0], [1.0, 0.0, 2.0, 2.0]]])
    np.testing.assert_array_equal(gradients(lambda x: nn.max_pool2d(x, 2), x), [[[1, 0, 0, 1], [0, 0, 0, 0]]])
    np.testing.assert_array_equal(nn.max_pool2d(np.array([[[1.0, np.nan], [3.0, 2.0]]]), 2), [[[np.nan]]])


def test_pools_are_those_of_loops():
    x = RNG.standard_normal((2, 3, 7, 8))
    for kernel, stride, padding in ((2, 2, 0), (3, 2, 1), (3, 1, 1), (2, 5, 0)):
        wide = np.pad(x, ((0, 0), (0, 0), (padding,) * 2, (padding,) * 2), constant_values=np.nan)
        rows, columns = ((n + 2 * padding - kernel) // stride + 1 for n in x.shape[2:])
        for i in range(rows):
            for j in range(columns):
                part = wide[:, :, i * stride : i * stride + kernel, j * stride : j * stride + kernel]
                most = nn.max_pool2d(x, kernel, stride, padding)[:, :, i, j]
                np.testing.assert_array_equal(most, np.nanmax(part, (2, 3)))
                mean = nn.avg_pool2d(x, kernel, stride, padding, count_include_pad=False)[:, :, i, j]
                np.testing.assert_allclose(mean, np.nanmean(part, (2, 3)), rtol=1e-12)
                mean = nn.avg_pool2d(x, kernel, stride, padding)[:, :, i, j]
                np.testing.assert_allclose(mean, np.nansum(part, (2, 3)) / kernel**2, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_convolutions_are_those_of_loops(groups):
    x, w, b = RNG.standard_normal((2, 4, 7, 8)), RNG.standard_normal((8, 4 // groups, 3, 2)), RNG.standard_normal(8)
    y = nn.conv2d(x, w, b, stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=groups)
    wide = np.pad(x, ((0, 0), (0, 0), (1, 1), (0, 0)))
    assert y.shape == (2, 8, 4, 6)
    for out in range(8):
        first = out // (8 // groups) * (4 // groups)
        for i in range(4):
            for j in range(6):
                part = wide[:, first : first + 4 // groups, 2 * i : 2 * i + 3, j : j + 3 : 2]
                np.testing.assert_allclose(y[:, out, i, j], (part * w[out]).sum((1, 2, 3)) + b[out], rtol=1e-9)


def test_a_query_that_sees_no_key_has_zeros():
    q, k, v = RNG.standard_normal((3, 2)), RNG.standard_normal((4, 2)), RNG.standard_normal((4, 5))
    mask = np.array([[True, False, True, True], [False] * 4, [False, False, False, True]])
    for given in (mask, np.where(mask, 0.0, -np.inf)):
        result = nn.scaled_dot_product_attention(q, k, v, given)
        np.testing.assert_array_equal(result[1], np.zeros(5))
        np.testing.assert_allclose(result[2], v[3], rtol=1e-12)
        grad = gradients(lambda q, k, v: nn.scaled_dot_product_attention(q, k, v, given), q, k, v)  # noqa: B023
        assert np.isfinite(grad).all() and not grad[1].any() and grad[0].any()


def test_causal_queries_see_no_later_key():
    q, k, v = (RNG.standard_normal((4, 3)) for _ in range(3))
    before = nn.scaled_dot_product_attention(q, k, v, is_causal=True)
    k[2:], v[2:] = 0, 7
    np.testing.assert_array_equal(nn.scaled_dot_product_attention(q, k, v, is_causal=True)[:2], before[:2])


def test_rows_of_an_embedding_add_up_but_for_padding():
    w, i = RNG.standard_normal((4, 2)), np.array([[0, 2, 2], [3, 3, 3]])
    np.testing.assert_array_equal(nn.embedding(i, w), w[i])
    counts = np.array([1.0, 0, 2, 3])[:, None] * np.ones(2)
    np.testing.assert_array_equal(gradients(lambda w: nn.embedding(i, w), w), counts)
    counts[3] = 0
    for row in (3, -1):
        np.testing.assert_array_equal(nn.embedding(i, w, row), w[i])
        np.testing.assert_array_equal(gradients(lambda w: nn.embedding(i, w, row), w), counts)  # noqa: B023


def test_what_is_ignored_counts_nowhere():
    x, t = RNG.standard_normal((5, 4)), np.array([0, 9, 3, 9, 1])
    kept = t != 9
    np.testing.assert_allclose(nn.cross_entropy(x, t, ignore_index=9), nn.cross_entropy(x[kept], t[kept]), rtol=1e-12)
    grad = gradients(lambda x: nn.cross_entropy(x, t, ignore_index=9), x)
    assert not grad[~kept].any() and grad[kept].any()
    np.testing.assert_allclose(grad.sum(1), np.zeros(5), atol=1e-14)
    with pytest.warns(RuntimeWarning, match="invalid value"):
        assert np.isnan(nn.cross_entropy(x, np.full(5, -100)))
    assert nn.cross_entropy(x, np.full(5, -100), reduction="sum") == 0


def test_large_scores_lose_nothing():
    x = np.array([[1000.0, 0.0], [-1000.0, 1000.0]])
    np.testing.assert_allclose(nn.cross_entropy(x, np.array([1, 1]), reduction="none"), [1000.0, 0.0])
    np.testing.assert_allclose(nn.softmax(x, 1), [[1, 0], [0, 1]])


def test_one_graph_serves_batches_of_all_sizes():
    w, b, mean, var = RNG.standard_normal((6, 3, 3, 3)), np.zeros(6), np.zeros(6), np.ones(6)
    out, shift = RNG.standard_normal((4, 54)), np.zeros(4)

    def loss(w, b, x, t, out, shift):
        h = nn.relu(nn.batch_norm(nn.conv2d(x, w, b, padding="same"), mean, var))
        return nn.cross_entropy(nn.linear(nn.max_pool2d(h, 2).reshape(len(x), -1), out, shift), t)

    fn = pf.jit(loss, background=False)
    for n in (4, 5, 7, 4, 9, 3, 5):
        args = (w, b, RNG.standard_normal((n, 3, 6, 6)), RNG.integers(0, 4, n), out, shift)
        np.testing.assert_allclose(fn(*args), loss(*args), rtol=1e-9)
    assert fn.state().counters["traces"] == 1, fn.explain()


@pytest.mark.parametrize(("groups", "channels"), [(2, 4), (1, 3), (1, 9)])
def test_a_transposed_convolution_is_the_gradient_of_a_convolution(groups, channels):
    """Sizes of the result may be one row or column larger than windows reach."""
    x, w = RNG.standard_normal((2, channels, 9, 11)), RNG.standard_normal((6, channels // groups, 3, 2))
    own = {"stride": (3, 2), "padding": (1, 0), "dilation": (2, 3), "groups": groups}
    g = RNG.standard_normal(nn.conv2d(x, w, **own).shape)
    result = nn.conv_transpose2d(g, w, output_padding=(0, 1), **own)
    expected = pf.grad(lambda x: (nn.conv2d(x, w, **own) * g).sum())(x)
    assert result.shape == x.shape
    np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-12)


def test_sizes_of_images_stay_open_where_the_scale_is_an_integer():
    fn = pf.jit(lambda x: nn.interpolate(nn.adaptive_avg_pool2d(x, 1), scale_factor=3) + nn.pad(x, (1, 0))[..., :3, :3])
    for side in (4, 5, 7, 9):
        x = RNG.standard_normal((2, 3, side, side + 1))
        expected = x.mean((2, 3), keepdims=True) + np.pad(x, ((0, 0),) * 3 + ((1, 0),))[..., :3, :3]
        np.testing.assert_allclose(fn(x), expected, rtol=1e-12)
    assert fn.state().counters["traces"] == 1, fn.explain()


def test_one_hot_is_exact_and_of_integers():
    for dtype in (np.int64, np.uint8, np.int32):
        t = np.array([[0, 3], [2, 2]], dtype)
        expected = np.eye(5, dtype=np.int64)[t]
        jitted = pf.jit(lambda t: nn.one_hot(t, 5), background=False)
        for fn in (lambda t: nn.one_hot(t, 5), jitted, jitted, jitted):
            result = fn(t)
            assert result.dtype == np.int64
            np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(nn.one_hot(np.array([1, 0])), [[0, 1], [1, 0]])


def test_instance_norm_writes_the_means_over_images():
    x, mean, var = RNG.standard_normal((5, 3, 7)), RNG.standard_normal(3), np.ones(3)
    before = mean.copy()

    def norm(x, mean, var):
        return nn.instance_norm(x, mean, var, momentum=0.25)

    jitted = pf.jit(norm, background=False, unsupported="python")
    for fn in (norm, jitted, jitted, jitted):
        mean[...], var[...] = before, 1
        y = fn(x, mean, var)
        np.testing.assert_allclose(mean, 0.75 * before + 0.25 * x.mean((0, 2)), rtol=1e-12)
        np.testing.assert_allclose(var, 0.75 + 0.25 * x.var(2, ddof=1).mean(0), rtol=1e-12)
        np.testing.assert_allclose(y, (x - x.mean(2, keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + 1e-5))


def test_interpolation_is_between_the_centres_of_elements():
    x = np.array([[[0.0, 10.0, 30.0]]])
    for options, expected in (
        ({"size": 6}, [0, 0, 10, 10, 30, 30]),
        ({"size": 2}, [0, 10]),
        ({"size": 2, "mode": "nearest-exact"}, [0, 30]),
        ({"size": 6, "mode": "linear"}, [0, 2.5, 7.5, 15, 25, 30]),
        ({"size": 5, "mode": "linear", "align_corners": True}, [0, 5, 10, 20, 30]),
        # Rounded down to 4 elements, which are 2 / 3 of an element apart.
        ({"scale_factor": 1.5, "mode": "linear"}, np.interp([0, 1 / 2, 7 / 6, 11 / 6], range(3), x[0, 0])),
    ):
        np.testing.assert_allclose(nn.interpolate(x, **options), [[expected]], rtol=1e-12)


def test_pads_are_listed_from_the_last_axis_on():
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(nn.pad(x, (1, 0, 0, 1), value=9), [[9, 0, 1, 2], [9, 3, 4, 5], [9, 9, 9, 9]])
    np.testing.assert_array_equal(nn.pad(x, (2, 1), mode="reflect")[0], [2, 1, 0, 1, 2, 1])
    np.testing.assert_array_equal(nn.pad(x, (2, 1), mode="replicate")[0], [0, 0, 0, 1, 2, 2])
    np.testing.assert_array_equal(nn.pad(x, (2, 1), mode="circular")[0], [1, 2, 0, 1, 2, 0])
    np.testing.assert_array_equal(nn.pad(x, (-1, 1)), [[1, 2, 0], [4, 5, 0]])
    np.testing.assert_array_equal(nn.pad(x, (2, -1), mode="circular")[0], [0, 1, 0, 1])
