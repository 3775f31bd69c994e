"""Leaves of calls with tensors of the host, of which Python makes the results, or writes what is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..exchange.host_tensors import array_of, note_write, returned, tensor_type
from ..memory.offsets import Refused
from .effect_leaf import EffectWriter

if TYPE_CHECKING:
    from ..exchange.host_tensors import TensorClass
    from .leaf_spec import Noting


def on_arrays(noting: Noting, type_: TensorClass | None) -> Noting:
    """The call behind kernels that is given tensors where ``noting`` is given arrays of their memory.

    Args:
        noting: gives arrays, or writes to them.
        type_: of the tensors that are returned in place of arrays; None = arrays are returned.

    Raises Refused for a function that puts something into containers, which hold the tensors themselves.
    """
    writes = 0
    if isinstance(noting, EffectWriter):
        if noting.holders:
            raise Refused("the function assigns to a container among the arguments, which holds tensors")
        writes = len(noting.trace.writes)
    return replace(noting, function=_on_arrays(noting.function, type_, writes))


def _on_arrays(function: Callable[..., Any], type_: TensorClass | None, writes: int) -> Callable[..., Any]:
    def result_of(value: Any, tensors: dict[int, Any]) -> Any:
        if type_ is None or not isinstance(value, (np.ndarray, np.generic)):
            return value
        tensor = tensors.get(id(value))
        return returned(value, type_) if tensor is None else tensor

    def run(*objects: Any) -> Any:
        for tensor in objects[:writes]:
            note_write(tensor)
        arrays, tensors = list(objects), {}
        for k, tensor in enumerate(objects):
            kind = None if type(tensor) is np.ndarray else tensor_type(type(tensor))
            if kind is not None:  # the leaf's tests have seen to the gradients of tensors
                arrays[k] = array = array_of(tensor, kind, is_detached=True)
                tensors[id(array)] = tensor
        results = function(*arrays)
        if type(results) is tuple:
            return tuple([result_of(value, tensors) for value in results])
        return result_of(results, tensors)

    return run


__all__ = ["on_arrays"]
