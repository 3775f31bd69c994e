"""The kernels that are measured: each one function of a NumPy-like module and of arrays.

Importing this package fills `kernel.KERNELS`; `models` adds whole models, for `bench/models.py`,
`gradients` losses with their gradients, for `bench/gradients.py`, and `elementary` single
functions, for `bench/elementary.py`.
"""

from __future__ import annotations

from . import elementary, elementwise, gradients, layouts, masked, models, products, reductions, training
from .kernel import DTYPES, KERNELS, SIZES, TINY, Case, Kernel, Size, case, leaves

# One of each kind, for benchmarks of something else than the kernels' speed.
SELECTION = (
    "gelu_bias",
    "softmax",
    "masked_softmax",
    "layernorm",
    "rmsnorm",
    "cross_entropy",
    "column_sum",
    "swiglu",
    "adam",
)


def selection(n: int) -> dict[str, tuple]:
    """By name, the function and float32 arguments of each of `SELECTION`, on n x n elements."""
    made = {name: case(name, "f32", Size("square", n, n)) for name in SELECTION}
    return {name: (c.kernel.fn, c.args()) for name, c in made.items()}
