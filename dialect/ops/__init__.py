"""The ops of the dialect; importing this package fills `dialect.ir.op.OPS`.

Those of captured backward runs come with `backward`, and those of neural networks with `nn`: programs
that have none load neither. `op_named` and contexts of MLIR load `nn`.
"""

from . import create, gradient_ops, host_call, inferred_sizes, late, queries, size_items, size_lists, speculation
from .control_flow import control, effect_ops, lists
from .elementwise import binary, compare, powers, python_math, select, special, unary
from .indexing import additions, index, inplace, scatter, slicing, windows
from .linalg import contract, mm_tree
from .manipulation import join, permute, repetition, shape, split
from .reductions import moments, reduce, scan

__all__ = [
    "additions",
    "binary",
    "compare",
    "contract",
    "control",
    "create",
    "effect_ops",
    "gradient_ops",
    "host_call",
    "index",
    "inferred_sizes",
    "inplace",
    "join",
    "late",
    "lists",
    "mm_tree",
    "moments",
    "permute",
    "powers",
    "python_math",
    "queries",
    "reduce",
    "repetition",
    "scan",
    "scatter",
    "select",
    "shape",
    "size_items",
    "size_lists",
    "slicing",
    "special",
    "speculation",
    "split",
    "unary",
    "windows",
]
