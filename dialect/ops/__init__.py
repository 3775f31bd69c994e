"""The ops of the dialect; importing this package enters those of most programs into `dialect.ir.op.OPS`.

The others come with `seldom`, which `op_named` and contexts of MLIR load, and those of captured backward
runs with `backward`: programs that have none load neither.
"""

from . import create, gradient_ops, late, queries, size_lists, speculation
from .control_flow import control
from .elementwise import binary, compare, powers, select, unary
from .indexing import additions, index, inplace, scatter, slicing, windows
from .linalg import contract
from .manipulation import join, permute, shape, split
from .reductions import moments, reduce, scan

__all__ = [
    "additions",
    "binary",
    "compare",
    "contract",
    "control",
    "create",
    "gradient_ops",
    "index",
    "inplace",
    "join",
    "late",
    "moments",
    "permute",
    "powers",
    "queries",
    "reduce",
    "scan",
    "scatter",
    "select",
    "shape",
    "size_lists",
    "slicing",
    "speculation",
    "split",
    "unary",
    "windows",
]
