"""The table of ATen's operators, with all of its handlers."""

from .aten_table import ATEN
from .layers import (  # noqa: F401 - each fills the table
    activation_operators,
    loss_operators,
    norm_operators,
    pool_operators,
    recurrent_operators,
    sampling_operators,
    sequence_losses,
    transformer_operators,
    window_operators,
)
from .tensors import (  # noqa: F401 - each fills the table
    bin_operators,
    binary_operators,
    creation_operators,
    factor_operators,
    frame_operators,
    index_operators,
    join_operators,
    linalg_operators,
    memory_operators,
    product_operators,
    reduction_operators,
    reflector_operators,
    run_operators,
    special_operators,
    unary_operators,
    view_operators,
)

__all__ = ["ATEN"]
