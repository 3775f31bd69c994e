"""The ops of the dialect; importing this package fills `dialect.base.OPS`."""

from . import (
    binary,
    compare,
    control,
    index,
    join,
    moments,
    reduce,
    scan,
    select,
    shape,
    slicing,
    special,
    speculation,
    split,
    unary,
)

__all__ = [
    "binary", "compare", "control", "index", "join", "moments", "reduce", "scan", "select",
    "shape", "slicing", "special", "speculation", "split", "unary",
]  # fmt: skip
