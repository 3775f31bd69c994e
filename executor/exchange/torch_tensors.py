"""What is known of torch beyond its C exchange: all names of torch in this room are here.

Nothing is imported: the module is there once a tensor of it is.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ...dialect.ir.dtypes import BF16

_ROOT = "torch"


def is_torchs(kind: type) -> bool:
    """True for tensors of torch, those of subclasses among them."""
    module = sys.modules.get(_ROOT)
    return module is not None and issubclass(kind, module.Tensor)


def is_plain(kind: type) -> bool:
    """True for the types of torch whose tensors compute what plain ones do."""
    module = sys.modules[_ROOT]
    return kind is module.Tensor or kind is module.nn.Parameter


def gradients() -> Callable[[], bool]:
    """The function that tells whether gradient mode is on in this thread."""
    return sys.modules[_ROOT].is_grad_enabled


def modes() -> tuple[tuple[Any, str, Any], ...]:
    """What says that no tangents are computed beside the tensors: an object, a name, and its value."""
    forward = sys.modules.get(f"{_ROOT}.autograd.forward_ad")
    return () if forward is None else ((forward, "_current_level", -1),)


def counts() -> tuple[Callable[[], int], ...]:
    """Functions that return 0 if no mode sees the operations on plain tensors."""
    count = getattr(sys.modules[_ROOT]._C, "_len_torch_dispatch_stack", None)
    return () if count is None else (count,)


def memory_of(tensor: Any) -> tuple:
    """What tells whether a tensor still shows the same memory in the same way.

    A tensor gets other memory, or another view of its own, by ``tensor.data = ...``, by ``set_`` and ``resize_``, and
    where its module is converted. What the memory holds is not asked.
    """
    return tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride(), tensor.is_conj(), tensor.is_neg()


def note_write(tensor: Any) -> None:
    """Tell torch that a tensor has been written to: what it keeps for gradients is outdated."""
    if not tensor.is_inference():
        sys.modules[_ROOT].autograd.graph.increment_version(tensor)


_nothing = contextlib.nullcontext()


def _unseen() -> contextlib.AbstractContextManager[None]:
    """A context in which modes of functions, where there are any, do not see what is asked of tensors."""
    core = sys.modules[_ROOT]._C
    return core.DisableTorchFunction() if core._len_torch_function_stack() else _nothing


def array_of(tensor: Any) -> np.ndarray | None:
    """An array of a tensor's memory, of which that is the base; None where the description alone tells of the memory.

    So it is of tensors that require gradients, have no elements, or have elements that overlap.
    """
    if tensor.requires_grad:
        return None
    try:
        with _unseen():
            array = tensor.numpy()
    except (TypeError, RuntimeError):
        return None
    if 0 in array.shape or 0 in array.strides:
        return None
    # Of a tensor without memory, as a transform's, NumPy makes an array of anything.
    return array if array.__array_interface__["data"][0] == tensor.data_ptr() else None


def part_of(tensor: Any, array: np.ndarray) -> Any:
    """The view of a tensor that shows what an array of its memory does; None = torch has no such view.

    It is the tensor itself where the array shows all of it. A write to a view counts as one to the
    tensor, as it does where torch makes the view. The dtypes are one.
    """
    itemsize, strides = array.itemsize, array.strides
    steps = tuple([step // itemsize for step in strides])
    if not array.size or (strides and (min(strides) < 0 or any(step % itemsize for step in strides))):
        return None
    with _unseen():
        there, rest = divmod(array.__array_interface__["data"][0] - tensor.data_ptr(), itemsize)
        if rest:
            return None
        if not there and steps == tensor.stride() and array.shape == tensor.shape:
            return tensor
        plain = tensor.detach() if tensor.requires_grad else tensor
        return plain.as_strided(array.shape, steps, tensor.storage_offset() + there)


def of_array(array: np.ndarray) -> Any:
    """A tensor of an array's memory; raises TypeError for a dtype that torch has not.

    torch lets go of the array in C: it may do so while an exception is set, with which no Python code runs.
    """
    torch = sys.modules[_ROOT]
    if array.dtype == BF16.numpy:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def resolved(tensor: Any) -> Any:
    """A tensor whose memory holds its elements: one with a lazy conjugation or sign is copied."""
    return tensor.resolve_conj().resolve_neg()


FALSE = ("requires_grad",)
LAZY = ("is_neg", "is_conj")

__all__ = [
    "FALSE",
    "LAZY",
    "array_of",
    "counts",
    "gradients",
    "is_plain",
    "is_torchs",
    "memory_of",
    "modes",
    "note_write",
    "of_array",
    "part_of",
    "resolved",
]
