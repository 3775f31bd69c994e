"""The ops of the dialect; importing this package fills `dialect.ir.op.OPS`.

Those of captured backward runs come with `backward`, which a run that captures none does not load.
"""

from . import create, gradients, host_call, queries, speculation
from .control_flow import control, effects, lists
from .elementwise import binary, compare, python_math, select, special, unary
from .indexing import additions, index, inplace, scatter, slicing, windows
from .linalg import contract, mm_tree
from .manipulation import join, permute, shape, split
from .reductions import moments, reduce, scan

__all__ = [
    "additions", "binary", "compare", "contract", "control", "create", "effects", "gradients",
    "host_call", "index", "inplace", "join", "lists", "mm_tree", "moments", "permute",
    "python_math", "queries", "reduce", "scan", "scatter", "select", "shape", "slicing",
    "special", "speculation", "split", "unary", "windows",
]  # fmt: skip
