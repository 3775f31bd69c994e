"""Calls of every function of `pf.nn`, on operands away from kinks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from every_case import EVERY_CASE
from profuse import nn

RNG = np.random.default_rng(23)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def apart(*shape: int) -> np.ndarray:
    """Numbers of both signs, no two of which are near each other or 0."""
    count = int(np.prod(shape))
    values = (np.arange(count) + 0.7) * 0.05 * (-1.0) ** np.arange(count)
    return RNG.permutation(values).reshape(shape)


@dataclass(frozen=True)
class Layer:
    """One call.

    Attributes:
        name: of the function.
        args: arrays, of which floats have gradients.
        options: what is given by name.
        second: whether second derivatives are compared, too; of what is linear in pieces they are zero.
        kernels: how many its native code has.
        gradient_kernels: how many that of its gradient has.
        draws: it draws random numbers.
    """

    name: str
    args: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)
    second: bool = True
    kernels: int = 1
    gradient_kernels: int = 1
    draws: bool = False

    def __str__(self) -> str:
        options = {k: x.shape if isinstance(x, np.ndarray) else x for k, x in self.options.items()}
        return f"{self.name}{options or ''}".replace(" ", "")

    def __call__(self, *args: Any) -> Any:
        return getattr(nn, self.name)(*args, **self.options)

    @property
    def floats(self) -> tuple[int, ...]:
        """The arguments that have gradients."""
        return tuple(k for k, x in enumerate(self.args) if isinstance(x, np.ndarray) and x.dtype.kind == "f")


IMAGES = apart(2, 4, 6, 7)
MASK = RNG.random((4, 5)) < 0.6
MASK[2] = False
CLASSES = np.array([0, 3, -100, 2, 1])
PROBABILITIES = np.abs(normal(5, 4)) + 0.1
QKV = (normal(2, 4, 3), normal(2, 5, 3), normal(2, 5, 2))

LAYERS = [
    Layer("linear", (normal(2, 5, 3), normal(4, 3), normal(4))),
    Layer("conv1d", (normal(2, 4, 9), normal(6, 4, 3), normal(6)), {"stride": 2, "padding": 1}),
    Layer("conv1d", (normal(2, 4, 9), normal(4, 1, 3), normal(4)), {"groups": 4, "padding": "same"}),
    Layer("conv2d", (normal(2, 4, 6, 7), normal(6, 4, 3, 3), normal(6))),
    Layer("conv2d", (normal(2, 4, 6, 7), normal(6, 4, 3, 2)), {"padding": "same"}),
    Layer("conv2d", (normal(2, 4, 6, 7), normal(6, 2, 3, 3), normal(6)), {"groups": 2, "stride": 2, "padding": 2}),
    Layer("conv2d", (normal(2, 4, 6, 7), normal(6, 4, 2, 2)), {"dilation": 2}),
    Layer("conv2d", (normal(2, 4, 6, 7), normal(6, 4, 1, 1), normal(6))),
    Layer("conv2d", (normal(2, 4, 6, 7), normal(8, 1, 3, 3), normal(8)), {"groups": 4, "padding": 1}),
    Layer("max_pool2d", (IMAGES, 2), second=False),
    Layer("max_pool2d", (IMAGES, 3), {"stride": 2, "padding": 1, "ceil_mode": True}, second=False),
    Layer("avg_pool2d", (IMAGES, 2), second=False),
    Layer("avg_pool2d", (IMAGES, 3), {"stride": 2, "padding": 1, "count_include_pad": False}, second=False),
    Layer("batch_norm", (IMAGES, None, None, normal(4), normal(4)), {"training": True}),
    Layer("batch_norm", (IMAGES, normal(4), np.abs(normal(4)) + 0.5, normal(4), normal(4))),
    Layer("layer_norm", (normal(2, 3, 7), 7, normal(7), normal(7))),
    Layer("layer_norm", (normal(2, 3, 7), (3, 7))),
    Layer("group_norm", (IMAGES, 2, normal(4), normal(4))),
    Layer("softmax", (normal(2, 3, 4),), {"dim": 1}),
    Layer("log_softmax", (normal(2, 3, 4),), {"dim": -1}),
    Layer("relu", (apart(3, 4),), second=False),
    Layer("leaky_relu", (apart(3, 4),), {"negative_slope": 0.2}, second=False),
    Layer("elu", (apart(3, 4),), {"alpha": 0.5}),
    Layer("silu", (normal(3, 4),)),
    Layer("gelu", (normal(3, 4),)),
    Layer("gelu", (normal(3, 4),), {"approximate": "tanh"}),
    Layer("embedding", (np.array([[0, 2, 2], [4, 0, 1]]), normal(5, 3)), second=False),
    Layer("cross_entropy", (normal(5, 4), CLASSES)),
    Layer("cross_entropy", (normal(5, 4), CLASSES, np.array([1.0, 2.0, 0.5, 1.0])), {"label_smoothing": 0.1}),
    Layer("cross_entropy", (normal(2, 4, 3), RNG.integers(0, 4, (2, 3))), {"reduction": "sum"}),
    Layer("cross_entropy", (normal(5, 4), PROBABILITIES), {"reduction": "none"}),
    Layer("mse_loss", (normal(3, 4), normal(3, 4))),
    Layer("scaled_dot_product_attention", QKV),
    Layer("scaled_dot_product_attention", QKV, {"is_causal": True}),
    Layer("scaled_dot_product_attention", QKV, {"attn_mask": MASK, "scale": 0.7}),
    Layer("dropout", (normal(6, 7),), {"p": 0.4}, second=False, draws=True),
    Layer("scaled_dot_product_attention", QKV, {"dropout_p": 0.3}, draws=True),
]

SIGNED = apart(3, 4)
YES = np.array([[1.0, 0.0, 0.3, 1.0]] * 3)

# Each runs in native code, and in one of the other tests: these tell the same of all.
MORE = [
    Layer(
        "conv_transpose1d",
        (normal(2, 4, 5), normal(4, 3, 3), normal(6)),
        {"stride": 2, "groups": 2},
        gradient_kernels=2,
    ),
    Layer("conv_transpose2d", (normal(2, 4, 4, 5), normal(4, 6, 3, 3), normal(6)), {"padding": 1, "dilation": 2}),
    Layer(
        "conv_transpose2d",
        (normal(2, 3, 4, 5), normal(3, 9, 3, 2)),
        {"stride": 2, "padding": 1, "output_padding": (1, 0)},
        gradient_kernels=4,  # one for each of four convolutions of nine channels: more ops than a group holds
    ),
    Layer("unfold", (normal(2, 3, 5, 6), (3, 2)), {"dilation": 2, "padding": 1, "stride": 2}, second=False),
    Layer("max_pool1d", (apart(2, 3, 8), 3), {"stride": 2, "padding": 1}, second=False),
    Layer("avg_pool1d", (apart(2, 3, 8), 3), {"ceil_mode": True}, second=False),
    Layer("adaptive_avg_pool2d", (IMAGES, (4, 1)), second=False),
    Layer("instance_norm", (IMAGES, None, None, normal(4), normal(4))),
    Layer("rms_norm", (normal(2, 3, 7), 7, normal(7))),
    Layer("pad", (IMAGES, (1, -2, 0, 3)), {"value": 0.5}, second=False),
    Layer("pad", (IMAGES, (2, 1, 1, 3)), {"mode": "reflect"}, second=False),
    Layer("pad", (IMAGES, (2, 1)), {"mode": "replicate"}, second=False),
    Layer("interpolate", (IMAGES,), {"scale_factor": 2}, second=False),
    Layer("interpolate", (IMAGES,), {"size": (9, 3)}, second=False),
    Layer("interpolate", (IMAGES,), {"size": (9, 3), "mode": "bilinear", "align_corners": True}, second=False),
    Layer("softplus", (SIGNED,), {"beta": 2.0}),
    Layer("logsigmoid", (SIGNED,)),
    Layer("mish", (SIGNED,)),
    Layer("selu", (SIGNED,)),
    Layer("celu", (SIGNED,), {"alpha": 0.7}),
    Layer("hardtanh", (SIGNED,), {"min_val": -0.24, "max_val": 0.21}, second=False),
    Layer("hardsigmoid", (10 * SIGNED,), second=False),
    Layer("hardswish", (10 * SIGNED,)),
    Layer("glu", (normal(3, 4),)),
    Layer("normalize", (normal(3, 4),)),
    Layer("cosine_similarity", (normal(3, 4), normal(3, 4))),
    Layer("nll_loss", (normal(5, 4), CLASSES, np.array([1.0, 2.0, 0.5, 1.0])), second=False),
    Layer("binary_cross_entropy_with_logits", (normal(3, 4), YES), {"pos_weight": np.array([1.0, 2.0, 0.5, 1.0])}),
    Layer("smooth_l1_loss", (normal(3, 4), normal(3, 4)), {"beta": 0.7}),
]


def some_of(turn: int) -> list[Layer]:
    """`LAYERS`, and of `MORE` those that take this one of five turns."""
    return LAYERS + [layer for k, layer in enumerate(MORE) if EVERY_CASE or k % 5 == turn]
