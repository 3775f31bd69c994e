"""The table of ONNX's operators, with all of its handlers."""

from .layers import (  # noqa: F401 - each fills the table
    onnx_activations,
    onnx_categories,
    onnx_contrib,
    onnx_detection,
    onnx_ngrams,
    onnx_norms,
    onnx_quantised,
    onnx_recurrent,
    onnx_resize,
    onnx_signals,
    onnx_strings,
    onnx_support_vectors,
    onnx_training,
    onnx_trees,
    onnx_windows,
)
from .onnx_table import ONNX
from .tensors import (  # noqa: F401 - each fills the table
    onnx_casts,
    onnx_control,
    onnx_elementwise,
    onnx_indexing,
    onnx_products,
    onnx_reductions,
    onnx_sequences,
    onnx_shapes,
)

__all__ = ["ONNX"]
