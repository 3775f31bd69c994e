"""The ops of the dialect; importing this package fills `dialect.base.OPS`."""

from . import (
    binary,
    compare,
    contract,
    control,
    create,
    effects,
    index,
    inplace,
    join,
    moments,
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
    "binary", "compare", "contract", "control", "create", "effects", "index", "inplace", "join",
    "moments", "queries", "reduce", "scan", "scatter", "select", "shape", "slicing", "special",
    "speculation", "split", "unary",
]  # fmt: skip
