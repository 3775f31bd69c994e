"""The ops of the dialect; importing this package fills `dialect.base.OPS`."""

from . import (
    binary,
    compare,
    control,
    reduce,
    select,
    shape,
    slicing,
    special,
    speculation,
    unary,
)

__all__ = [
    "binary", "compare", "control", "reduce", "select", "shape", "slicing", "special",
    "speculation", "unary",
]  # fmt: skip
