"""`pf.nn` against ``torch.nn.functional``: the same calls, values and gradients; skipped without torch."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import profuse as pf
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
TORCH = torch.nn.functional
RNG = np.random.default_rng(5)
pytestmark = pytest.mark.filterwarnings("ignore:Using padding=")  # torch tells of a copy that it makes
GRADIENTS = 1e-9  # relative, of f64


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def whole(high: int, *shape: int) -> np.ndarray:
    return RNG.integers(0, high, shape)


@dataclass(frozen=True)
class Call:
    """One call: arrays, of which floats get gradients, and what is given by name."""

    name: str
    args: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        shapes = "-".join(str(x.shape) if isinstance(x, np.ndarray) else str(x) for x in self.args)
        options = {k: x.shape if isinstance(x, np.ndarray) else x for k, x in self.options.items()}
        return f"{self.name}{shapes}{options or ''}".replace(" ", "")


def conv(*shapes: tuple[int, ...], **options: Any) -> Call:
    return Call("conv1d" if len(shapes[1]) == 3 else "conv2d", tuple(normal(*s) for s in shapes), options)


def turned(*shapes: tuple[int, ...], **options: Any) -> Call:
    name = "conv_transpose1d" if len(shapes[1]) == 3 else "conv_transpose2d"
    return Call(name, tuple(normal(*s) for s in shapes), options)


IMAGES = normal(2, 4, 7, 9)
EDGES = np.array([-3.0, 3.0, 0.0, 1.0, -1.0, 6.0, -6.0, 30.0, -30.0, 800.0, -800.0])
TIES = RNG.integers(0, 3, (2, 3, 8, 8)).astype(float)  # many windows have several largest elements
SCORES = normal(6, 5)
CLASSES = np.array([0, 4, 2, -100, 1, 2])
WEIGHTS = np.abs(normal(5)) + 0.1
MASK = RNG.random((4, 6)) < 0.6
MASK[1] = False  # a query that sees no key
ADDED = np.where(MASK, normal(4, 6), -np.inf)
PROBABILITIES = np.exp(SCORES) / np.exp(SCORES).sum(1, keepdims=True)

CALLS = [
    Call("linear", (normal(2, 5, 3), normal(4, 3), normal(4))),
    Call("linear", (normal(3), normal(4, 3))),
    Call("linear", (normal(2, 3), normal(3))),
    Call("linear", (normal(0, 3), normal(4, 3), normal(4))),
    Call("linear", (normal(2, 0), normal(4, 0), normal(4))),
    conv((2, 4, 7, 9), (6, 4, 3, 3), (6,)),
    conv((2, 4, 7, 9), (6, 4, 3, 2), padding="same"),
    conv((2, 4, 7, 9), (6, 4, 4, 3), padding="same", dilation=2),
    conv((2, 4, 7, 9), (6, 4, 3, 3), padding="valid"),
    conv((2, 4, 7, 9), (6, 4, 3, 3), (6,), stride=(2, 3), padding=(1, 2)),
    conv((2, 4, 9, 9), (6, 4, 2, 3), (6,), stride=4, dilation=(3, 2)),  # the stride exceeds the kernel
    conv((2, 4, 7, 9), (6, 2, 3, 3), (6,), groups=2, padding=1),
    conv((2, 4, 7, 9), (4, 1, 3, 3), (4,), groups=4, padding=1),
    conv((2, 4, 7, 9), (8, 1, 3, 3), groups=4, stride=2, dilation=2, padding=2),
    conv((2, 3, 9, 9), (3, 1, 8, 8), groups=3),
    conv((2, 4, 7, 9), (6, 4, 1, 1), (6,)),
    conv((2, 4, 7, 9), (6, 4, 1, 1), (6,), stride=2, padding=1),
    conv((0, 4, 7, 9), (6, 4, 3, 3), (6,)),
    conv((4, 7, 9), (6, 4, 3, 3), (6,)),
    conv((2, 1, 7, 7), (3, 1, 7, 7)),
    conv((2, 4, 9), (6, 4, 3), (6,)),
    conv((2, 4, 9), (6, 2, 3), (6,), stride=2, padding=2, dilation=2, groups=2),
    conv((2, 4, 9), (4, 1, 3), (4,), groups=4, padding="same"),
    conv((4, 9), (6, 4, 4), padding="same"),
    Call("max_pool2d", (IMAGES, 2)),
    Call("max_pool2d", (TIES, 2)),
    Call("max_pool2d", (TIES, 3), {"stride": 1, "padding": 1}),
    Call("max_pool2d", (IMAGES, 3), {"stride": 2, "padding": 1, "ceil_mode": True}),
    Call("max_pool2d", (IMAGES, (2, 3)), {"stride": (4, 5)}),
    Call("max_pool2d", (IMAGES, 2), {"dilation": 2, "stride": 1}),
    Call("max_pool2d", (IMAGES, (3, 2)), {"dilation": (2, 3), "padding": (1, 1), "ceil_mode": True}),
    Call("max_pool2d", (IMAGES[0], 2)),
    Call("max_pool2d", (np.where(IMAGES > 1.5, np.nan, IMAGES), 3), {"stride": 2}),
    Call("avg_pool2d", (IMAGES, 2)),
    Call("avg_pool2d", (IMAGES, 3), {"stride": 2, "padding": 1}),
    Call("avg_pool2d", (IMAGES, 3), {"stride": 2, "padding": 1, "count_include_pad": False}),
    Call("avg_pool2d", (IMAGES, 3), {"stride": 2, "padding": 1, "ceil_mode": True}),
    Call("avg_pool2d", (IMAGES, 4), {"stride": 3, "ceil_mode": True, "count_include_pad": False}),
    Call("avg_pool2d", (IMAGES, (3, 2)), {"stride": (1, 4), "divisor_override": 5}),
    Call("avg_pool2d", (IMAGES[0], (7, 9))),
    Call("batch_norm", (IMAGES, normal(4), np.abs(normal(4)), normal(4), normal(4))),
    Call("batch_norm", (IMAGES, None, None, normal(4), normal(4)), {"training": True}),
    Call("batch_norm", (normal(6, 3), None, None), {"training": True, "eps": 0.1}),
    Call("batch_norm", (normal(2, 3, 5), normal(3), np.abs(normal(3))), {"eps": 1e-3}),
    Call("batch_norm", (normal(0, 3, 5), normal(3), np.abs(normal(3)))),
    Call("layer_norm", (IMAGES, (7, 9), normal(7, 9), normal(7, 9))),
    Call("layer_norm", (IMAGES, (9,), normal(9)), {"eps": 0.01}),
    Call("layer_norm", (normal(5, 1), (1,))),
    Call("layer_norm", (normal(0, 4), (4,), normal(4))),
    Call("group_norm", (IMAGES, 2, normal(4), normal(4))),
    Call("group_norm", (IMAGES, 4)),
    Call("group_norm", (normal(5, 6), 3, normal(6)), {"eps": 0.1}),
    Call("softmax", (IMAGES,), {"dim": 1}),
    Call("softmax", (normal(4),), {"dim": -1}),
    Call("softmax", (100 * IMAGES,), {"dim": -1}),
    Call("log_softmax", (1000 * IMAGES,), {"dim": 2}),
    Call("softmax", (normal(3, 0),), {"dim": 1}),
    Call("softmax", (np.array([[0.0, -np.inf], [-np.inf, -np.inf]]),), {"dim": 1}),
    *(Call(name, (4 * IMAGES,)) for name in ("relu", "gelu", "silu", "leaky_relu", "elu")),
    Call("relu", (np.array([0.0, -0.0, 1.0]),)),
    Call("elu", (np.array([0.0, -1.0, 800.0, -800.0]),), {"alpha": 0.5}),
    Call("leaky_relu", (np.array([0.0, -1.0, 1.0]),), {"negative_slope": 0.3}),
    Call("gelu", (4 * IMAGES,), {"approximate": "tanh"}),
    Call("silu", (np.array([-800.0, 0.0, 800.0]),)),
    Call("embedding", (whole(5, 3, 4), normal(5, 2))),
    Call("embedding", (whole(5, 3, 4), normal(5, 2)), {"padding_idx": 2}),
    Call("embedding", (whole(5, 7), normal(5, 2)), {"padding_idx": -1}),
    Call("embedding", (whole(5, 0), normal(5, 2))),
    *(
        Call("cross_entropy", (SCORES, CLASSES), {"reduction": how, "label_smoothing": smoothing, **more})
        for how in ("mean", "sum", "none")
        for smoothing in (0.0, 0.2)
        for more in ({}, {"weight": WEIGHTS})
    ),
    Call("cross_entropy", (SCORES, np.abs(CLASSES) % 5), {"ignore_index": 2, "weight": WEIGHTS}),
    Call("cross_entropy", (SCORES, np.full(6, -100))),
    Call("cross_entropy", (SCORES, np.full(6, -100)), {"reduction": "sum"}),
    Call("cross_entropy", (SCORES[0], np.array(3))),
    Call("cross_entropy", (normal(2, 5, 3, 4), whole(5, 2, 3, 4)), {"weight": WEIGHTS, "label_smoothing": 0.1}),
    Call("cross_entropy", (normal(2, 5, 3), whole(5, 2, 3)), {"reduction": "none"}),
    *(
        Call("cross_entropy", (SCORES, PROBABILITIES), {"reduction": how, "label_smoothing": smoothing, **more})
        for how in ("mean", "sum", "none")
        for smoothing in (0.0, 0.2)
        for more in ({}, {"weight": WEIGHTS})
    ),
    Call("cross_entropy", (normal(2, 5, 3), np.abs(normal(2, 5, 3)))),
    Call("cross_entropy", (SCORES[0], PROBABILITIES[0])),
    Call("cross_entropy", (normal(0, 5), whole(5, 0))),
    Call("cross_entropy", (normal(0, 5), whole(5, 0)), {"reduction": "sum"}),
    *(Call("mse_loss", (SCORES, PROBABILITIES), {"reduction": how}) for how in ("mean", "sum", "none")),
    Call("mse_loss", (normal(0, 3), normal(0, 3))),
    Call("scaled_dot_product_attention", (normal(2, 3, 4, 5), normal(2, 3, 6, 5), normal(2, 3, 6, 7))),
    Call("scaled_dot_product_attention", (normal(4, 5), normal(6, 5), normal(6, 7)), {"scale": 0.3}),
    Call("scaled_dot_product_attention", (normal(2, 4, 5), normal(2, 6, 5), normal(2, 6, 7)), {"is_causal": True}),
    Call("scaled_dot_product_attention", (normal(2, 6, 5), normal(2, 3, 5), normal(2, 3, 7)), {"is_causal": True}),
    Call("scaled_dot_product_attention", (normal(2, 4, 5), normal(2, 6, 5), normal(2, 6, 7)), {"attn_mask": MASK}),
    Call("scaled_dot_product_attention", (normal(2, 4, 5), normal(2, 6, 5), normal(2, 6, 7)), {"attn_mask": ADDED}),
    Call(
        "scaled_dot_product_attention",
        (normal(2, 4, 4, 5), normal(2, 2, 6, 5), normal(2, 2, 6, 7)),
        {"enable_gqa": True},
    ),
    turned((2, 4, 5, 6), (4, 3, 3, 2), stride=(3, 1), groups=2, output_padding=(2, 0)),
    turned((2, 4, 5, 6), (4, 1, 4, 4), (4,), stride=2, padding=1, groups=4),
    *(
        turned((2, 4, 5, 6), (4, channels, *kernel), (channels,), **options)
        for channels in (6, 9)  # a sum of products, and convolutions
        for kernel, options in (
            ((3, 3), {}),
            ((3, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
            ((2, 2), {"stride": 2}),
            ((3, 2), {"stride": (2, 3), "dilation": 2, "padding": (1, 0), "output_padding": (1, 2)}),
            ((3, 3), {"stride": 4, "dilation": 2, "padding": 3}),
            ((1, 1), {"stride": 3}),
            ((3, 3), {"padding": 3}),
            ((3, 3), {"dilation": 3, "output_padding": 2}),
        )
    ),
    turned((4, 5, 6), (4, 6, 3, 3)),
    turned((2, 4, 7), (4, 6, 3), (6,), stride=2, padding=1, output_padding=1),
    turned((4, 7), (4, 3, 3), groups=2),
    Call("unfold", (IMAGES, 3)),
    Call("unfold", (IMAGES, (3, 2)), {"dilation": 2, "padding": 1, "stride": 2}),
    Call("unfold", (IMAGES[0], 1)),
    Call("max_pool1d", (TIES[0], 3), {"stride": 2, "padding": 1}),
    Call("max_pool1d", (IMAGES[0, 0], 2), {"dilation": 2, "ceil_mode": True, "stride": 3}),
    Call("avg_pool1d", (IMAGES[0], 3), {"stride": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False}),
    *(Call("adaptive_avg_pool2d", (IMAGES, size)) for size in (1, 2, (7, 4), (None, 5), 9, (14, 3))),
    Call("adaptive_avg_pool2d", (IMAGES[0], (2, 3))),
    Call("pad", (IMAGES, (1, 2))),
    Call("pad", (IMAGES, (-1, 2, 1, -2, 0, 0, 1, -1)), {"value": 2.5}),
    *(
        Call("pad", (IMAGES, amounts), {"mode": mode})
        for mode in ("reflect", "replicate", "circular")
        for amounts in ((2, 1, 1, 3), (2, -1, -2, 3))
    ),
    Call("pad", (IMAGES[0], (2, 1)), {"mode": "reflect"}),
    *(
        Call("interpolate", (IMAGES,), {"mode": mode, **more, **how})
        for mode, how in (
            ("nearest", {}),
            ("nearest-exact", {}),
            ("bilinear", {"align_corners": True}),
            ("bilinear", {"align_corners": False}),
        )
        for more in (
            {"size": (8, 3)},
            {"scale_factor": 2},
            {"scale_factor": (1.7, 0.6)},
            {"scale_factor": (1.7, 0.6), "recompute_scale_factor": True},
        )
    ),
    Call("interpolate", (normal(1, 1, 3, 2),), {"scale_factor": 1.3, "mode": "nearest-exact"}),
    Call("interpolate", (normal(1, 1, 3, 2),), {"scale_factor": 1.3, "mode": "bilinear"}),
    Call("interpolate", (IMAGES,), {"size": 1, "mode": "bilinear", "align_corners": True}),
    Call("interpolate", (IMAGES[0],), {"size": 11, "mode": "linear"}),
    Call("instance_norm", (IMAGES, None, None, normal(4), normal(4))),
    Call("rms_norm", (IMAGES, (9,), normal(9))),
    Call("rms_norm", (IMAGES, (7, 9)), {"eps": 1e-3}),
    *(
        Call(name, (x,))
        for name in ("softplus", "logsigmoid", "mish", "selu", "celu", "hardtanh", "hardsigmoid", "hardswish")
        for x in (4 * IMAGES, EDGES)
    ),
    Call("softplus", (IMAGES,), {"beta": 2.0, "threshold": 1.0}),
    Call("celu", (IMAGES,), {"alpha": 0.5}),
    Call("hardtanh", (IMAGES,), {"min_val": -2.0, "max_val": 0.5}),
    Call("glu", (normal(3, 6),)),
    Call("glu", (IMAGES,), {"dim": 1}),
    Call("normalize", (IMAGES,)),
    Call("normalize", (np.zeros((2, 3)),)),
    *(Call("normalize", (IMAGES,), {"p": p, "dim": (0, 1)}) for p in (1, 3.0)),
    Call("normalize", (IMAGES,), {"p": np.inf, "dim": -1}),
    Call("cosine_similarity", (IMAGES, normal(2, 4, 7, 9))),
    Call("cosine_similarity", (normal(3, 4, 5), normal(5)), {"dim": -1}),
    Call("cosine_similarity", (np.zeros((2, 3)), normal(2, 3))),
    *(Call("smooth_l1_loss", (SCORES, PROBABILITIES), {"reduction": how}) for how in ("mean", "sum", "none")),
    Call("smooth_l1_loss", (SCORES, PROBABILITIES), {"beta": 0.4}),
    Call("smooth_l1_loss", (SCORES, PROBABILITIES), {"beta": 0}),
    Call("smooth_l1_loss", (SCORES, SCORES + 1)),
    *(
        Call("binary_cross_entropy_with_logits", (SCORES, PROBABILITIES), {"reduction": how, **more})
        for how in ("mean", "none")
        for more in ({}, {"weight": WEIGHTS, "pos_weight": 2 * WEIGHTS})
    ),
    *(
        Call("nll_loss", (SCORES, CLASSES), {"reduction": how, **more})
        for how in ("mean", "sum", "none")
        for more in ({}, {"weight": WEIGHTS})
    ),
    Call("nll_loss", (SCORES[0], np.array(3))),
    Call("nll_loss", (normal(2, 5, 3), whole(5, 2, 3)), {"ignore_index": 1}),
]
# There torch's derivative is 1 / 6 in f32.
LOOSE = {"hardsigmoid": 1e-7, "hardswish": 1e-7}


def theirs(call: Call, dtype: Any) -> tuple[Any, list[Any]]:
    """Torch's result, and its gradients with the weights of `weighted`."""
    args = [torch.from_numpy(x.copy()) if isinstance(x, np.ndarray) else x for x in call.args]
    args = [x.to(dtype) if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in args]
    leaves = [x for x in args if isinstance(x, torch.Tensor) and x.is_floating_point()]
    for leaf in leaves:
        leaf.requires_grad_()
    options = {k: torch.from_numpy(x) if isinstance(x, np.ndarray) else x for k, x in call.options.items()}
    options = {
        k: x.to(dtype) if isinstance(x, torch.Tensor) and x.is_floating_point() else x for k, x in options.items()
    }
    if call.name == "batch_norm" and not call.options.get("training"):
        for running in args[1:3]:
            running.requires_grad_(False)
        leaves = [x for x in leaves if x.requires_grad]
    result = getattr(TORCH, call.name)(*args, **options)
    grads = torch.autograd.grad((result * torch.from_numpy(weighted(result.shape)).to(dtype)).sum(), leaves)
    return result.detach(), [g.float().numpy() if dtype is torch.bfloat16 else g.numpy() for g in grads]


def weighted(shape: Any) -> np.ndarray:
    return np.cos(np.arange(np.prod(shape, dtype=int))).reshape(tuple(shape))


def places(call: Call) -> tuple[int, ...]:
    """The arguments that get gradients."""
    floats = tuple(k for k, x in enumerate(call.args) if isinstance(x, np.ndarray) and x.dtype.kind == "f")
    if call.name == "batch_norm" and not call.options.get("training"):
        return tuple(k for k in floats if k not in (1, 2))
    return floats


def ours(call: Call) -> Callable[..., Any]:
    function = getattr(pf.nn, call.name)
    return lambda *args: function(*args, **call.options)


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_values_and_gradients_are_torchs(call: Call):
    result, grads = theirs(call, torch.float64)
    function, wrt, weights = ours(call), places(call), weighted(result.shape)

    def loss(*args: Any) -> Any:
        return (function(*args) * weights).sum()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy tells of 0 / 0, torch does not
        plain = function(*call.args)
        assert plain.shape == tuple(result.shape) and plain.dtype == np.float64
        np.testing.assert_allclose(plain, result.numpy(), rtol=GRADIENTS, atol=1e-12)
        jitted = pf.jit(function, background=False)
        for _ in range(3):
            np.testing.assert_allclose(jitted(*call.args), result.numpy(), rtol=GRADIENTS, atol=1e-12)
        assert jitted.state().counters["python_calls"] <= 1
        own = pf.grad(loss, wrt=wrt, background=False)(*call.args)
        leaves = [pf.array(x.copy(), requires_grad=True) if k in wrt else x for k, x in enumerate(call.args)]
        loss(*leaves).backward()
    for k, gradient, other in zip(wrt, own, grads, strict=True):
        rtol = LOOSE.get(call.name, GRADIENTS)
        np.testing.assert_allclose(gradient, other, rtol=rtol, atol=1e-11)
        taped = leaves[k].grad
        np.testing.assert_allclose(
            np.zeros_like(call.args[k]) if taped is None else np.asarray(taped), other, rtol=rtol, atol=1e-11
        )
