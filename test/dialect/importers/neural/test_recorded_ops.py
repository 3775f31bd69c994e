"""Under the knob ``neural_ops`` graphs hold the ops themselves, which compute what the compositions do."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import profuse as pf
import pytest
from neural_cases import LAYERS
from profuse import nn

OPS = {
    "linear": "linear",
    "conv2d": "conv2d",
    "batch_norm": "native_batch_norm",
    "layer_norm": "native_layer_norm",
    "group_norm": "native_group_norm",
    "softmax": "softmax",
    "log_softmax": "log_softmax",
    "silu": "silu",
    "gelu": "gelu",
    "dropout": "native_dropout",
}
RECORDED = [layer for layer in LAYERS if layer.name in OPS]
UNEVEN = "a kernel of an even size with padding='same' is padded more behind than before"


def seeded(fn, *args):
    pf.manual_seed(4)
    return fn(*args)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("layer", RECORDED, ids=str)
def test_graphs_hold_the_op(layer):
    is_uneven = layer.name == "conv2d" and layer.options.get("padding") == "same" and layer.args[1].shape[3] == 2
    expected = seeded(layer, *layer.args)
    weights = np.cos(np.arange(expected.size)).reshape(expected.shape)

    def loss(*args):
        return (layer(*args) * weights).sum()

    gradients = seeded(pf.grad(loss, wrt=layer.floats), *layer.args)
    with pf.knobs.override(neural_ops=True):
        fn, grad = pf.jit(layer.__call__, background=False), pf.grad(loss, wrt=layer.floats, background=False)
        for _ in range(4):
            np.testing.assert_allclose(seeded(fn, *layer.args), expected, rtol=1e-9, atol=1e-11)
            for own, other in zip(seeded(grad, *layer.args), gradients, strict=True):
                np.testing.assert_allclose(own, other, rtol=1e-7, atol=1e-9)
        assert (f"profuse.{OPS[layer.name]}" in str(fn.ir())) is not is_uneven, UNEVEN


def test_statistics_are_written_there_as_well():
    x, arrays = np.random.default_rng(2).standard_normal((4, 3, 5)), []
    for on in (False, True):
        mean, var = np.zeros(3), np.ones(3)
        with pf.knobs.override(neural_ops=on, unsupported="python"):
            fn = pf.jit(lambda x, m, v: nn.batch_norm(x, m, v, training=True), background=False)
            for _ in range(4):
                fn(x, mean, var)
        arrays.append((mean, var))
    np.testing.assert_allclose(arrays[0], arrays[1], rtol=1e-12)
    assert arrays[0][0].any()


PRODUCTS = {
    "linear": lambda: (nn.linear, (whole(3, 40), whole(5, 40), whole(5))),
    "linear without axes": lambda: (nn.linear, (whole(3, 40), whole(40), whole())),
    "conv2d": lambda: (nn.conv2d, (whole(2, 3, 5, 6), whole(4, 3, 3, 3), whole(4))),
    "attention": lambda: (
        lambda q, k, v: nn.scaled_dot_product_attention(q, k, v, scale=0.0),  # means of the values
        (whole(4, 8), whole(16, 8), whole(16, 8)),
    ),
}


def whole(*shape):
    """Whole numbers, sums of products of which are exact in f32, and not in 16 bits."""
    return np.asarray(np.random.default_rng(8).integers(-15, 16, shape))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("on", [False, True], ids=["composition", "op"])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=lambda d: d.__name__)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_16_bit_floats_are_rounded_once_in_every_tier(name, dtype, on):
    """Sums are exact in f32, so the bits are known: also those of gradients, which have the dtype of their operands."""
    fn, args = PRODUCTS[name]()
    expected = fn(*(x.astype(np.float64) for x in args)).astype(np.float32).astype(dtype)
    args = tuple(x.astype(dtype) for x in args)
    weights = whole(*expected.shape).astype(dtype)

    def loss(*args):
        return (fn(*args).astype(np.float32) * weights.astype(np.float32)).sum()

    with pf.knobs.override(neural_ops=on):
        jitted = pf.jit(fn, background=False)
        for call in (fn, jitted, jitted, jitted):
            result = call(*args)
            assert result.dtype == dtype
            np.testing.assert_array_equal(result, expected)
        assert jitted.state().counters["python_calls"] <= 1
        wrt = tuple(range(len(args)))
        grad = pf.grad(loss, wrt=wrt, background=False)
        leaves = [pf.array(x.copy(), requires_grad=True) for x in args]
        loss(*leaves).backward()
        taped = [np.asarray(leaf.grad) for leaf in leaves]
        exact = pf.grad(loss, wrt=wrt)(*(x.astype(np.float64) for x in args))
        for gradients in (taped, grad(*args), grad(*args), grad(*args)):
            for own, first, other in zip(gradients, taped, exact, strict=True):
                assert own.dtype == dtype
                np.testing.assert_array_equal(own, first)
                if name != "attention":
                    np.testing.assert_array_equal(own, other.astype(np.float32).astype(dtype))
