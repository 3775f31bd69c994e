"""Leaves of calls with tensors of the host, of which Python makes the results, or writes what is written."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..exchange.host_tensors import array_of, note_write, returned, tensor_type
from .effect_leaf import EffectWriter

if TYPE_CHECKING:
    from ..exchange.host_tensors import TensorClass
    from .leaf_spec import Noting

_VALUES = (np.ndarray, np.generic)


def on_arrays(noting: Noting, type_: TensorClass | None) -> Noting:
    """The call behind kernels that is given tensors where ``noting`` is given arrays of their memory.

    Args:
        noting: gives arrays, writes to them, or puts them into containers.
        type_: of the tensors that are returned, and put into containers among the arguments, in
            place of arrays; None = arrays are.
    """
    is_writer = isinstance(noting, EffectWriter)
    writes = len(noting.trace.writes) if isinstance(noting, EffectWriter) else 0
    function = noting.function

    def run(*objects: Any) -> Any:
        for tensor in objects[:writes]:
            note_write(tensor)
        arrays, tensors = list(objects), {}
        for k, tensor in enumerate(objects):
            kind = type(tensor)
            if kind is np.ndarray or (tensor_class := tensor_type(kind)) is None:
                continue
            # The leaf's tests have seen to the gradients of tensors.
            arrays[k] = array = array_of(tensor, tensor_class, is_detached=True)
            tensors[id(array)] = tensor

        def result_of(value: Any) -> Any:
            if type_ is None or not isinstance(value, _VALUES):
                return value
            tensor = tensors.get(id(value))
            return returned(value, type_) if tensor is None else tensor

        if is_writer:  # what may fail comes first: Python would write again
            for value in arrays[len(noting.arguments) : len(arrays) - writes]:
                tensors[id(value)] = result_of(value)
        results = function(*arrays, stored=result_of) if is_writer else function(*arrays)
        if type(results) is tuple:
            return tuple([result_of(value) for value in results])
        return result_of(results)

    return replace(noting, function=run)
