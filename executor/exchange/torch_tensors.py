"""What is known of torch beyond its C exchange: all names of torch in this room are here.

Nothing is imported: the module is there once a tensor of it is.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from ...dialect.ir.dtypes import BF16
from ..memory.output_pool import data_pointer

_ROOT = "torch"
_MOST_QUICK = 32  # checks of torch's made for the same tensors
_Result = TypeVar("_Result")


def is_torchs(kind: type) -> bool:
    """True for tensors of torch, those of subclasses among them."""
    module = sys.modules.get(_ROOT)
    return module is not None and issubclass(kind, module.Tensor)


def is_plain(kind: type) -> bool:
    """True for the types of torch whose tensors compute what plain ones do."""
    module = sys.modules[_ROOT]
    return kind is module.Tensor or kind is module.nn.Parameter


def plain_type() -> type:
    """The type of plain tensors."""
    kind: type = sys.modules[_ROOT].Tensor
    return kind


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


class TensorMemories:
    """The memory of tensors, each compared with what it was.

    A tensor gets other memory, or another view of its own, by ``tensor.data = ...``, by ``set_`` and ``resize_``, and
    where its module is converted; its class may be another one. What the memory holds is not asked.

    Args:
        tensors: plain ones, of the CPU.
    """

    def __init__(self, tensors: Iterable[Any]) -> None:
        self._tensors = tuple({id(x): x for x in tensors}.values())
        self._memories = list(map(_memory_of, self._tensors))
        self._pointers = [memory[0] for memory in self._memories]
        self._quick: dict[bool, Callable[..., bool]] = {}  # of all tensors at once, but for where they are
        self._made = 0

    def are_same(self) -> bool:
        """True if each tensor still shows the same memory in the same way."""
        if not self._tensors:
            return True
        torch = sys.modules[_ROOT]
        is_inference = torch.is_inference_mode_enabled()  # of which torch's own check depends
        quick = self._quick.get(is_inference)
        if quick is not None and quick(*self._tensors):
            return list(map(torch.Tensor.data_ptr, self._tensors)) == self._pointers
        if list(map(_memory_of, self._tensors)) != self._memories:
            return False
        self._make_quick(is_inference)
        return True

    def _make_quick(self, is_inference: bool) -> None:
        """Have torch's check of all tensors, which compares all but their memory, be asked first.

        It compares more, as whether gradients are required: where that changes all the time, it is of no use.
        """
        self._made += 1
        check = None if self._made > _MOST_QUICK else alike(self._tensors)
        if check is None:
            self._quick.clear()
        else:
            self._quick[is_inference] = check


def alike(tensors: tuple[Any, ...]) -> Callable[..., bool] | None:
    """torch's check that as many tensors have the classes, dtypes, sizes, strides, flags of these; None = it has none.

    It holds for the inference mode of the present, and not if two of the tensors are the same.
    """
    guards = getattr(getattr(sys.modules[_ROOT]._C, "_dynamo", None), "guards", None)
    if guards is None:
        return None
    sizes, strides = ([[*part(x)] for x in tensors] for part in (lambda x: x.shape, lambda x: x.stride()))
    return guards.TensorGuards(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides).check


@functools.cache
def sees_autocast() -> bool:
    """True if torch's check of `alike` tensors, made where nothing is cast, does not hold where torch casts."""
    torch = sys.modules[_ROOT]
    tensor = torch.zeros(1)
    with torch.autocast("cpu", enabled=False):
        check = alike((tensor,))
        holds = check is not None and check(tensor)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return holds and check is not None and not check(tensor)


def _memory_of(tensor: Any) -> tuple:
    flags = tensor.is_conj(), tensor.is_neg()
    return tensor.data_ptr(), type(tensor), tensor.dtype, tensor.shape, tensor.stride(), *flags


def note_write(tensor: Any) -> None:
    """Tell torch that a tensor has been written to: what it keeps for gradients is outdated."""
    if not tensor.is_inference():
        sys.modules[_ROOT].autograd.graph.increment_version(tensor)


def _unseen(function: Callable[..., _Result], *args: Any) -> _Result:
    """The result of a function; modes of functions, where there are any, do not see what it asks of tensors."""
    core = sys.modules[_ROOT]._C
    if not core._len_torch_function_stack():
        return function(*args)
    with core.DisableTorchFunction():
        return function(*args)


def array_of(tensor: Any) -> np.ndarray | None:
    """An array of a tensor's memory, of which that is the base; None where the description alone tells of the memory.

    So it is of tensors that require gradients, have no elements, or have elements that overlap.
    """
    if tensor.requires_grad:
        return None
    try:
        array: np.ndarray = _unseen(sys.modules[_ROOT].Tensor.numpy, tensor)
    except (TypeError, RuntimeError):
        return None
    if 0 in array.shape or 0 in array.strides:
        return None
    # Of a tensor without memory, as a transform's, NumPy makes an array of anything.
    return array if data_pointer(array) == tensor.data_ptr() else None


def part_of(tensor: Any, array: np.ndarray) -> Any:
    """The view of a tensor that shows what an array of its memory does; None = torch has no such view.

    It is the tensor itself where the array shows all of it. A write to a view counts as one to the
    tensor, as it does where torch makes the view. The dtypes are one.
    """
    itemsize, shape, strides = array.itemsize, array.shape, array.strides
    if 0 in shape or (strides and min(strides) < 0) or any(map(itemsize.__rmod__, strides)):
        return None
    return _unseen(_part_of, tensor, array, shape, tuple([step // itemsize for step in strides]))


def _part_of(tensor: Any, array: np.ndarray, shape: tuple[int, ...], steps: tuple[int, ...]) -> Any:
    there, rest = divmod(data_pointer(array) - tensor.data_ptr(), array.itemsize)
    if rest:
        return None
    if not there and steps == tensor.stride() and shape == tensor.shape:
        return tensor
    plain = tensor.detach() if tensor.requires_grad else tensor
    return plain.as_strided(shape, steps, tensor.storage_offset() + there)


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
NEGATIVE = ("is_neg",)
CONJUGATE = ("is_conj",)  # of complex tensors alone: the parts of a conjugated one are real, and know of signs
