"""Tensors of other libraries in host memory: as NumPy arrays of the same memory, and made of arrays.

A library takes part if its tensors' type has DLPack's C functions (`c_functions`). Nothing of a
library is imported: all is asked of the type of a tensor when it first appears.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ...dialect.dataclass import dataclass
from ...dialect.errors import ArgumentError, DTypeError, GradientError, ProfuseError
from ...dialect.ir.device import has_exchange
from ...dialect.ir.dtypes import BF16, dtype_of
from ..memory.offsets import Refused
from ..settings.dynamo import tell_dynamo
from . import torch_tensors
from .c_functions import Reader, api_of
from .dlpack import CPU, DLTensor, ForeignMemory, handed_over, lent, numpy_dtype, row_major

_describe_type = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)
_make_type = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
_decref = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(("Py_DecRef", ctypes.pythonapi))


@dataclass(frozen=True, eq=False)
class TensorClass(Reader):
    """A type of tensors that may lie in host memory.

    Attributes:
        kind, describe, false, negative, conjugate, modes, counts, gradients: see `Reader`.
        make: address of ``int (DLManagedTensorVersioned *, void **)``, which makes a tensor of memory.
        library: name of the library's module.
        adapter: the module of what is known of the library beyond its C functions; None = nothing is.
        refused: why calls with such tensors are Python's; "" = they are not.
    """

    kind: type
    describe: int
    make: int
    library: str
    false: tuple[str, ...] = ()
    negative: tuple[str, ...] = ()
    conjugate: tuple[str, ...] = ()
    modes: tuple[tuple[Any, str, Any], ...] = ()
    counts: tuple[Callable[[], int], ...] = ()
    gradients: Callable[[], bool] | None = None
    adapter: ModuleType | None = None
    refused: str = ""


_types: dict[type, TensorClass] = {}


def tensor_type(kind: type) -> TensorClass | None:
    """What is known of a type of tensors; None of all other types."""
    type_ = _types.get(kind)
    if type_ is None and has_exchange(kind):
        type_ = _read(kind)
        if type_ is not None:
            _types[kind] = type_
    return type_


def _read(kind: type) -> TensorClass | None:
    try:
        api = api_of(kind)
    except Refused:
        return None
    if not api.describe or not api.to_object:
        return None
    library = kind.__module__.partition(".")[0]
    if torch_tensors.is_torchs(kind):
        tell_dynamo()
        library, refused = "torch", ""
        if not torch_tensors.is_plain(kind):
            refused = f"a {kind.__name__} is passed, a subclass of torch's Tensor that may compute in its own way"
        return TensorClass(
            kind,
            api.describe,
            api.to_object,
            library,
            torch_tensors.FALSE,
            torch_tensors.NEGATIVE,
            torch_tensors.CONJUGATE,
            torch_tensors.modes(),
            torch_tensors.counts(),
            torch_tensors.gradients(),
            torch_tensors,
            refused,
        )
    false = tuple([name for name in torch_tensors.FALSE if hasattr(kind, name)])
    negative = tuple([name for name in (*torch_tensors.NEGATIVE, *torch_tensors.CONJUGATE) if hasattr(kind, name)])
    return TensorClass(kind, api.describe, api.to_object, library, false, negative)


def described(tensor: Any, type_: TensorClass) -> DLTensor:
    """The description of a tensor; raises ArgumentError for one that has no elements in memory."""
    seen, describe = DLTensor(), _describe_type(type_.describe)
    try:
        failed = describe(tensor, ctypes.addressof(seen))
        why = "its library does not describe it" if failed else ""
    except Exception as error:  # whatever the library raises
        why = str(error).partition("\n")[0]
    if why:
        raise ArgumentError(
            f"a tensor has no elements in memory that kernels could read: {why}",
            hint="pass a dense tensor of the CPU: x.to_dense(), x.cpu()",
        )
    return seen


def is_watched(type_: TensorClass) -> bool:
    """True within a mode of the library that has to see all that is computed of its tensors."""
    return any(map(operator.call, type_.counts))


def check_modes(type_: TensorClass) -> None:
    """Raise ArgumentError where `is_watched`."""
    if is_watched(type_):
        raise ArgumentError(
            f"tensors of {type_.library} are used within a mode that sees each of its operations, and would see none",
            hint="leave the mode (TorchDispatchMode, make_fx, a counter of operations) around the call",
        )


def is_lazy(tensor: Any, type_: TensorClass) -> bool:
    """True if memory does not hold the elements themselves, but what is conjugate or opposite to them."""
    return any(getattr(tensor, name)() for name in (*type_.negative, *type_.conjugate))


def is_copied(tensor: Any) -> bool:
    """True if `array_of` copies a tensor."""
    type_ = tensor_type(type(tensor))
    return type_ is not None and is_lazy(tensor, type_)


def check_gradients(tensor: Any, type_: TensorClass) -> None:
    """Raise GradientError for a tensor that requires gradients, or has a tangent, which a call would lose."""
    if any(getattr(tensor, name) for name in type_.false) and (type_.gradients is None or type_.gradients()):
        raise GradientError(
            f"a tensor of {type_.library} that requires gradients is used, and would lose them",
            hint="pass x.detach(), or call under torch.no_grad(); pf.torch.compile keeps gradients",
        )
    for holder, name, value in type_.modes:
        if getattr(holder, name) != value:
            raise GradientError(
                f"tensors of {type_.library} are used within forward-mode differentiation, and would lose tangents",
                hint="leave the level of torch.autograd.forward_ad around the call",
            )


def array_of(tensor: Any, type_: TensorClass, *, is_detached: bool = False) -> np.ndarray | None:
    """An array of a tensor's memory, which it keeps alive; None for one in the memory of a device.

    An array of a lazily conjugated or negated tensor is a copy of its own, and read-only, as are
    arrays whose elements overlap. ``is_detached``: gradients that the tensor requires do not matter.

    Raises ArgumentError for a tensor without elements in memory, DTypeError for a dtype that NumPy
    has not, and GradientError for one that would lose gradients.
    """
    if type_.adapter is not None and not is_watched(type_):
        array = type_.adapter.array_of(tensor)
        if array is not None:
            if not is_detached:
                check_gradients(tensor, type_)
            return array.view()  # for other tensors may have the memory: it is not donated
    seen = described(tensor, type_)
    if seen.device.type != CPU:
        return None
    check_modes(type_)
    if not is_detached:
        check_gradients(tensor, type_)
    is_copy = is_lazy(tensor, type_)
    if is_copy:
        tensor = torch_tensors.resolved(tensor)
        seen = described(tensor, type_)
    try:
        dtype = dtype_of(numpy_dtype(seen.dtype)).numpy
    except (ValueError, TypeError, ProfuseError):
        raise DTypeError(
            f"a tensor has elements of {getattr(tensor, 'dtype', 'a dtype')}, which arrays have not",
            hint="convert it: x.float()",
        ) from None
    shape = tuple(seen.shape[: seen.ndim])
    steps = tuple(seen.strides[: seen.ndim]) if seen.strides else row_major(shape)
    if 0 in shape:
        return np.empty(shape, dtype)
    if not seen.data:
        raise ArgumentError("a tensor has no memory", hint="pass one with elements: x.clone()")
    itemsize = dtype.itemsize
    overlaps = any(step == 0 and size > 1 for step, size in zip(steps, shape, strict=True))
    memory = ForeignMemory(
        tensor,
        dtype,
        data=(seen.data + seen.byte_offset, is_copy or overlaps),
        shape=shape,
        strides=tuple(step * itemsize for step in steps),
        typestr=f"<u{itemsize}" if dtype == BF16.numpy else dtype.str,
    )
    return np.asarray(memory).view(dtype)  # a view, for other tensors may have the memory: it is not donated


def tensor_of(value: np.ndarray | np.generic, type_: TensorClass) -> Any:
    """A tensor of an array's memory, which it keeps alive.

    What no tensor can hold is copied: a foreign byte order, negative strides, read-only memory.
    Raises DTypeError for a dtype that the library has not.
    """
    array = np.asarray(value)
    flags = array.flags
    is_lendable = flags.writeable and array.dtype.isnative and flags.aligned
    if not is_lendable or not (flags.c_contiguous or _are_steps(array.strides, array.itemsize)):
        try:
            dtype = dtype_of(array.dtype).numpy
        except DTypeError:
            dtype = array.dtype
        array = np.array(array, dtype.newbyteorder("="), order="C")
    if type_.adapter is not None:
        try:
            return type_.adapter.of_array(array)
        except TypeError as error:
            why = str(error).partition("\n")[0]
            raise DTypeError(f"torch makes no tensor of a result of {array.dtype}: {why}") from None
    slot = ctypes.c_void_p()
    try:
        capsule, place = lent(array)
    except (KeyError, BufferError):
        raise DTypeError(f"a result has elements of {array.dtype}, which tensors have not") from None
    try:
        failed = _make_type(type_.make)(place, ctypes.byref(slot))
    except Exception as error:  # whatever the library raises
        why = str(error).partition("\n")[0]
        raise DTypeError(f"{type_.library} makes no tensor of a result of {array.dtype}: {why}") from None
    if failed or slot.value is None:
        raise DTypeError(f"{type_.library} makes no tensor of a result of {array.dtype}")
    handed_over(capsule)
    tensor = ctypes.cast(slot, ctypes.py_object).value
    _decref(slot)
    return tensor


def _are_steps(strides: Sequence[int], itemsize: int) -> bool:
    """True if strides lead forward, from element to element."""
    return not any(step < 0 or step % itemsize for step in strides)


def note_write(tensor: Any) -> None:
    """Tell the library of a tensor that it has been written to."""
    type_ = tensor_type(type(tensor))
    if type_ is not None and type_.adapter is not None:
        type_.adapter.note_write(tensor)


def owner_of(array: np.ndarray) -> tuple[Any, np.dtype] | None:
    """The tensor of whose memory `array_of` has made an array, and the dtype of its elements."""
    memory = array.base
    while type(memory) is np.ndarray:
        array, memory = memory, memory.base
    if type(memory) is ForeignMemory:
        return memory.owner, memory.dtype
    type_ = None if memory is None else tensor_type(type(memory))
    return None if type_ is None or type_.adapter is None else (memory, array.dtype)


def returned(value: np.ndarray | np.generic, type_: TensorClass) -> Any:
    """What stands for an array in the results of a call: a tensor of its memory.

    Of an array of a tensor's memory it is that tensor, or a view of it if the library has such. What
    no tensor can hold, as text, is returned as it is.
    """
    if isinstance(value, np.ndarray):
        owner = owner_of(value)
        if owner is not None and owner[1] == value.dtype:
            tensor = _shown(owner[0], value)
            if tensor is not None:
                return tensor
    return value if value.dtype.kind not in "biufcV" or value.dtype.names else tensor_of(value, type_)


def _shown(owner: Any, array: np.ndarray) -> Any:
    """The tensor that shows what an array of the memory of another one does; None = there is none."""
    type_ = tensor_type(type(owner))
    assert type_ is not None
    if type_.adapter is not None:
        return type_.adapter.part_of(owner, array)
    seen = described(owner, type_)
    if array.__array_interface__["data"][0] != (seen.data or 0) + seen.byte_offset:
        return None
    shape = tuple(seen.shape[: seen.ndim])
    steps = tuple(seen.strides[: seen.ndim]) if seen.strides else row_major(shape)
    is_whole = shape == array.shape and tuple(step * array.itemsize for step in steps) == array.strides
    return owner if is_whole else None
