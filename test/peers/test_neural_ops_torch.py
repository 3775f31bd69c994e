"""Ops of neural networks against those of ATen that they are named for. Needs PyTorch."""

import numpy as np
import pytest
from profuse.dialect.importers.numpy.tracing.composites import composite

torch = pytest.importorskip("torch")
aten = torch.ops.aten
RNG = np.random.default_rng(31)
TOLERANCE = {np.float32: 2e-5, np.float64: 1e-11, np.float16: 4e-3}
DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda d: d.__name__)


def arrays(dtype, *shapes):
    return [RNG.standard_normal(shape).astype(dtype) for shape in shapes]


def as_torch(x):
    return torch.from_numpy(x) if isinstance(x, np.ndarray) else x


def agree(found, wanted, dtype):
    """Compare results, one or several; what ATen leaves undefined is not compared."""
    found = found if isinstance(found, tuple) else (found,)
    wanted = wanted if isinstance(wanted, (tuple, list)) else (wanted,)
    for a, b in zip(found, wanted, strict=False):
        if b is None:
            assert a is None
            continue
        b = b.numpy()
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        atol = TOLERANCE[dtype] * max(1.0, float(np.abs(b).max(initial=0)))
        np.testing.assert_allclose(np.float64(a), np.float64(b), rtol=TOLERANCE[dtype], atol=atol)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16], ids=lambda d: d.__name__)
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_activations(dtype, approximate):
    (x,) = arrays(dtype, (40, 7))
    t = as_torch(x)
    agree(composite("gelu", x, approximate=approximate), aten.gelu(t, approximate=approximate), dtype)
    agree(composite("silu", x), aten.silu(t), dtype)
    for axis in (0, -1):
        y, z = aten._softmax(t, axis, False), aten._log_softmax(t, axis, False)
        agree(composite("softmax", x, axis=axis), y, dtype)
        agree(composite("log_softmax", x, axis=axis), z, dtype)
        (g,) = arrays(dtype, x.shape)
        wanted = aten._softmax_backward_data(as_torch(g), y, axis, y.dtype)
        agree(composite("softmax_backward", g, y.numpy(), axis=axis), wanted, dtype)
        wanted = aten._log_softmax_backward_data(as_torch(g), z, axis, z.dtype)
        agree(composite("log_softmax_backward", g, z.numpy(), axis=axis), wanted, dtype)


@DTYPES
@pytest.mark.parametrize("shape", [(5,), (4, 5)], ids=str)
@pytest.mark.parametrize("affine", [True, False])
def test_layer_norm(dtype, shape, affine):
    x, g, w, b = arrays(dtype, (3, 4, 5), (3, 4, 5), shape, shape)
    w, b = (w, b) if affine else (None, None)
    wanted = aten.native_layer_norm(as_torch(x), list(shape), as_torch(w), as_torch(b), 1e-3)
    found = composite("native_layer_norm", x, w, b, shape=shape, eps=1e-3)
    agree(found, wanted, dtype)
    mask = (True, affine, affine)
    wanted = aten.native_layer_norm_backward(
        as_torch(g), as_torch(x), list(shape), *wanted[1:], as_torch(w), as_torch(b), list(mask)
    )
    operands = g, x, found[1], found[2], w, b
    agree(composite("native_layer_norm_backward", *operands, shape=shape, mask=mask), wanted, dtype)


@DTYPES
@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_norm(dtype, groups):
    x, w, b = arrays(dtype, (3, 6, 4, 5), (6,), (6,))
    wanted = aten.native_group_norm(*map(as_torch, (x, w, b)), 3, 6, 20, groups, 1e-5)
    agree(composite("native_group_norm", x, w, b, groups=groups), wanted, dtype)


@DTYPES
@pytest.mark.parametrize("shape", [(7, 6), (3, 6, 4, 5)], ids=str)
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(dtype, shape, training):
    x, g, w, b, mean, var = arrays(dtype, shape, shape, *[(6,)] * 4)
    var = abs(var) + dtype(0.5)
    running = [as_torch(v.copy()) for v in (mean, var)]
    wanted = aten.native_batch_norm(*map(as_torch, (x, w, b)), *running, training, 0.3, 1e-4)
    attrs = {"training": training, "momentum": 0.3, "eps": 1e-4}
    found = composite("native_batch_norm", x, w, b, mean, var, **attrs)
    agree(found, (*wanted, *running), dtype)
    agree(composite("batch_norm", x, w, b, mean, var, **attrs), wanted[0], dtype)
    agree(composite("batch_norm_index", x, w, b, mean, var, **attrs)[:3], wanted, dtype)
    operands = g, x, w, mean, var, found[1], found[2]
    wanted = aten.native_batch_norm_backward(*map(as_torch, operands), training, 1e-4, [True] * 3)
    agree(composite("native_batch_norm_backward", *operands, training=training, eps=1e-4), wanted, dtype)


@DTYPES
def test_products(dtype):
    x, w, b = arrays(dtype, (2, 3, 4), (5, 4), (5,))
    agree(composite("linear", x, w, b), torch.nn.functional.linear(*map(as_torch, (x, w, b))), dtype)
    for groups, stride, padding, dilation in [(1, 1, 0, 1), (2, 2, 1, 1), (4, (1, 2), (2, 0), (2, 1)), (2, 3, 2, 2)]:
        x, w, b = arrays(dtype, (2, 4, 9, 8), (8, 4 // groups, 3, 2), (8,))
        wanted = torch.nn.functional.conv2d(*map(as_torch, (x, w, b)), stride, padding, dilation, groups)
        pairs = {"stride": stride, "padding": padding, "dilation": dilation}
        pairs = {k: v if isinstance(v, tuple) else (v, v) for k, v in pairs.items()}
        agree(composite("conv2d", x, w, b, groups=groups, **pairs), wanted, dtype)


@DTYPES
def test_dropout_backward(dtype):
    (g,) = arrays(dtype, (6, 7))
    mask = RNG.random(g.shape) < 0.6
    wanted = aten.native_dropout_backward(as_torch(g), as_torch(mask), 1.25)
    agree(composite("native_dropout_backward", g, mask, scale=1.25), wanted, dtype)


def test_one_value_per_channel_is_refused_as_by_torch():
    x = np.ones((1, 3), np.float32)
    with pytest.raises(ValueError, match="Expected more than 1 value per channel when training"):
        torch.nn.functional.batch_norm(as_torch(x), None, None, training=True)
    with pytest.raises(ValueError, match="Expected more than 1 value per channel when training"):
        composite("batch_norm", x, training=True)
