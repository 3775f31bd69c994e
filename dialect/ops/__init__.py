"""The ops of the dialect; importing this package fills `dialect.ir.op.OPS`."""

from . import (
    binary,
    compare,
    contract,
    control,
    create,
    device_guards,
    effects,
    gradients,
    index,
    inplace,
    join,
    lists,
    mm_tree,
    moments,
    permute,
    queries,
    reduce,
    scan,
    scatter,
    select,
    shape,
    slicing,
    special,
    speculation,
    split,
    unary,
)

__all__ = [
    "binary", "compare", "contract", "control", "create", "device_guards", "effects",
    "gradients", "index", "inplace", "join", "lists", "mm_tree", "moments", "permute",
    "queries", "reduce", "scan", "scatter", "select", "shape", "slicing", "special",
    "speculation", "split", "unary",
]  # fmt: skip
