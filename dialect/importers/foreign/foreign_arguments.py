"""Arguments of foreign graphs, compared with what the source asks of them; nothing is converted."""

from __future__ import annotations

from typing import Any

from ...errors import DTypeError, ShapeError
from .foreign_graph import ForeignType


def check_array(name: str, x: Any, type_: ForeignType) -> None:
    """Raise DTypeError or ShapeError for an array, traced or not, that is not of a type."""
    dtype, shape = type_.dtype, type_.shape
    if dtype is not None and x.dtype != dtype:
        raise DTypeError(
            f"{name} has dtype {x.dtype}, and the model takes {dtype}", hint=f"convert it: {name}.astype('{dtype}')"
        )
    if shape is None:
        return
    if x.ndim != len(shape):
        raise ShapeError(f"{name} has {x.ndim} axes, and the model takes {len(shape)}: {_shown(shape)}")
    for axis, wanted in enumerate(shape):
        if wanted is not None and x.shape[axis] != wanted:
            raise ShapeError(f"{name} has shape {_shown(x.shape)}, and the model takes {_shown(shape)}")


def _shown(shape: tuple[int | None, ...]) -> str:
    return f"({', '.join('?' if n is None else str(int(n)) for n in shape)})"
