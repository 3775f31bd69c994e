"""Values of calls of TorchScript's functions: arrays of tensors, tensors of arrays, arguments as a graph takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ...dialect.errors import ArgumentError, GradientError
from ...dialect.importers.foreign.torch_values import code_of, numpy_dtype, shared_array, tensor_of
from ...dialect.importers.foreign.torchscript.script_graph import Parameter
from ..exchange.host_tensors import note_write, owner_of, returned, tensor_type
from ..exchange.torch_tensors import plain_type


def is_tensor(value: Any) -> bool:
    return hasattr(value, "data_ptr") and hasattr(value, "requires_grad")


def is_array(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic))


def has_axes(value: Any) -> bool:
    """True for tensors and arrays, traced ones included, and False for numbers."""
    return hasattr(value, "ndim")


def holds_any(value: Any, is_meant: Callable[[Any], bool]) -> bool:
    """True if a value, or one in its lists, tuples and dicts, is of a kind."""
    if isinstance(value, (list, tuple)):
        return any(holds_any(x, is_meant) for x in value)
    return any(holds_any(x, is_meant) for x in value.values()) if type(value) is dict else is_meant(value)


def _mapped(value: Any, function: Callable[[Any], Any]) -> Any:
    """A value with others in the place of what its lists, tuples and dicts hold."""
    if isinstance(value, (list, tuple)):
        return (list if isinstance(value, list) else tuple)(_mapped(x, function) for x in value)
    return {key: _mapped(x, function) for key, x in value.items()} if type(value) is dict else function(value)


def argument_of(value: Any, parameter: Parameter) -> Any:
    """The argument of a graph for that of a call; raises ArgumentError for numbers in a tensor's place."""
    kind = parameter.type.removeprefix("Optional[")
    if kind.startswith("float") and type(value) is int:
        return float(value)
    if kind.startswith("int") and type(value).__name__ == "dtype":
        return code_of(numpy_dtype(value))
    if type(value) is tuple and kind.startswith("List["):
        value = list(value)
    if kind.startswith("Tensor") and value is not None and not has_axes(value):
        raise ArgumentError(f"{parameter.name} is to be a tensor, and is of type {type(value).__name__}")
    return str(value) if type(value).__name__ == "device" else value


def with_arrays(value: Any, exchanged: dict[int, tuple[np.ndarray, Any]]) -> Any:
    """A value with arrays in the place of its tensors; ``exchanged`` gets these by the arrays' identity."""

    def shown(x: Any) -> Any:
        if not is_tensor(x):
            return x
        array = _array(x)
        exchanged[id(array)] = array, x
        return array

    return _mapped(value, shown)


def _array(tensor: Any) -> np.ndarray:
    """A tensor as an array of its memory; raises GradientError where its gradient would be lost."""
    if tensor.requires_grad:
        import torch

        if torch.is_grad_enabled() and not isinstance(tensor, torch.nn.Parameter):
            raise GradientError(
                "a tensor that requires gradients is an argument, and torch gets none from this function",
                hint="pass x.detach(), call it under torch.no_grad(), or use pf.grad and functional_call",
            )
    return shared_array(tensor)


def note_writes(values: Iterable[Any]) -> None:
    """Tell torch that the tensors among values are written to: what it keeps of them for gradients is outdated."""
    for value in values:
        _mapped(value, lambda x: note_write(x) if is_tensor(x) else None)


def with_tensors(value: Any, exchanged: dict[int, tuple[np.ndarray, Any]]) -> Any:
    """A value with tensors in the place of its arrays: those that `with_arrays` has shown, views of these, or new ones.

    A write to a view counts as one to the tensor, as it does where torch makes the view.
    """

    def made_of(x: Any) -> Any:
        if not is_array(x):
            return x
        entry = exchanged.get(id(x))
        if entry is not None:
            return entry[1]
        type_ = None if type(x) is not np.ndarray or owner_of(x) is None else tensor_type(plain_type())
        return tensor_of(x) if type_ is None else returned(x, type_)

    return _mapped(value, made_of)
