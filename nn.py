"""Functions for neural networks, which NumPy lacks, with the names and arguments of ``torch.nn.functional``.

They take and give NumPy arrays, in plain Python, in functions that are jitted or differentiated, and on the tape.
"""

from .dialect.importers.numpy.neural.activation_functions import elu, gelu, leaky_relu, log_softmax, relu, silu, softmax
from .dialect.importers.numpy.neural.attention import scaled_dot_product_attention
from .dialect.importers.numpy.neural.bounded_activations import (
    celu,
    glu,
    hardsigmoid,
    hardswish,
    hardtanh,
    logsigmoid,
    mish,
    selu,
    softplus,
)
from .dialect.importers.numpy.neural.dropout_masks import dropout
from .dialect.importers.numpy.neural.filters import conv1d, conv2d, unfold
from .dialect.importers.numpy.neural.losses import (
    binary_cross_entropy_with_logits,
    cross_entropy,
    mse_loss,
    nll_loss,
    smooth_l1_loss,
)
from .dialect.importers.numpy.neural.normalisations import batch_norm, group_norm, instance_norm, layer_norm, rms_norm
from .dialect.importers.numpy.neural.pooling import adaptive_avg_pool2d, avg_pool1d, avg_pool2d, max_pool1d, max_pool2d
from .dialect.importers.numpy.neural.projections import embedding, linear, one_hot
from .dialect.importers.numpy.neural.resampling import interpolate, pad
from .dialect.importers.numpy.neural.transposed_filters import conv_transpose1d, conv_transpose2d
from .dialect.importers.numpy.neural.vector_norms import cosine_similarity, normalize

__all__ = [
    "adaptive_avg_pool2d",
    "avg_pool1d",
    "avg_pool2d",
    "batch_norm",
    "binary_cross_entropy_with_logits",
    "celu",
    "conv1d",
    "conv2d",
    "conv_transpose1d",
    "conv_transpose2d",
    "cosine_similarity",
    "cross_entropy",
    "dropout",
    "elu",
    "embedding",
    "gelu",
    "glu",
    "group_norm",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "instance_norm",
    "interpolate",
    "layer_norm",
    "leaky_relu",
    "linear",
    "log_softmax",
    "logsigmoid",
    "max_pool1d",
    "max_pool2d",
    "mish",
    "mse_loss",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "relu",
    "rms_norm",
    "scaled_dot_product_attention",
    "selu",
    "silu",
    "smooth_l1_loss",
    "softmax",
    "softplus",
    "unfold",
]
