"""How fake tensors lie in memory: what is known of their strides for all sizes that a graph serves."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true

from ....errors import TraceError


def hint(size: Any) -> int:
    """The number that a size has in the call for which a graph is made; raises TraceError where contents decide."""
    if type(size) is int:
        return size
    if size.node.hint is None:
        raise TraceError("the shape of a result depends on contents")
    return int(size.node.hint)


def is_whole(x: torch.Tensor) -> bool:
    """True if the elements of a tensor are those of its memory, each once, for all sizes."""
    size = x.untyped_storage().nbytes()
    return (
        statically_known_true(x.numel() * x.element_size() == size)
        and statically_known_true(x.storage_offset() == 0)
        and _is_dense(x)
    )


def _is_dense(x: torch.Tensor) -> bool:
    """True if the elements lie one behind another in memory, in some order of the axes."""
    step: Any = 1
    for axis in _from_the_innermost(x):
        if hint(x.size(axis)) == 1:  # a size of its own among those that are symbols
            continue
        if not statically_known_true(x.stride(axis) == step):
            return False
        step = step * x.size(axis)
    return True


def _from_the_innermost(x: torch.Tensor) -> list[int]:
    return sorted(range(x.dim()), key=lambda axis: hint(x.stride(axis)))


def memory_order(x: Any) -> tuple[int, ...] | None:
    """The axes of a tensor from the outermost in memory to the innermost; None unless its elements are its memory."""
    if not isinstance(x, torch.Tensor) or x.layout != torch.strided or not is_whole(x):
        return None
    return tuple(reversed(_from_the_innermost(x)))
