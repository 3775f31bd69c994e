"""The ops of the dialect; importing this package fills `dialect.base.OPS`."""

from . import binary, compare, select, unary

__all__ = ["binary", "compare", "select", "unary"]
