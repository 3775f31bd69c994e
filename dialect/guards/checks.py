"""Run-time type guards: does a value fit the type a group was specialised for (R1.39, R1.40).

`check_types` is the definition of ``profuse.type_check`` and ``profuse.dynamic_guard``;
`generalize` makes the types of the second out of profiled ones.  Guards answer, they never raise.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count, repeat, zip_longest

import numpy as np

from ..errors import DTypeError
from ..ir.device import HOST, DeviceTensor
from ..ir.dtypes import dtype_of
from ..ir.gradient_mode import requires_grad, requires_grad_mismatch
from ..ir.symbolic import Dim, Sym, evaluate, symbol
from ..ir.types import ScalarType, TensorType, Type, contiguous_strides, type_of

_TENSORS = (np.ndarray, np.generic, DeviceTensor)


@dataclass(frozen=True, slots=True)
class UnreadableType(TensorType):
    """The type of an array that no guard with a known dtype and layout admits, whatever its shape.

    Attributes:
        is_foreign: its byte order is not native.
        misaligned: its elements do not start at multiples of so many bytes; 0 = they do.
    """

    is_foreign: bool = False
    misaligned: int = 0


def seen_type(value: object) -> Type:
    """`type_of`, with what a type alone does not tell of an array that kernels cannot read."""
    found = type_of(value)
    if not isinstance(found, TensorType) or not isinstance(value, _TENSORS):
        return found
    array = value if isinstance(value, DeviceTensor) else np.asarray(value)
    foreign, misaligned = not array.dtype.isnative, _misalignment(array)
    if not (foreign or misaligned):
        return found
    return UnreadableType(
        found.dtype, found.shape, found.strides, found.device, found.requires_grad, found.defined,
        foreign, misaligned,
    )  # fmt: skip


def check_types(types: Sequence[Type], values: Sequence[object]) -> bool:
    """True if every value fits its type; equal symbols must stand for equal sizes."""
    return explain_mismatch(types, values) is None


def explain_mismatch(types: Sequence[Type], values: Sequence[object]) -> str | None:
    """The first reason why `check_types` is false, in words; None when it is true."""
    if len(types) != len(values):
        return f"{len(values)} arguments, specialised for {len(types)}"
    symbols: dict[str, tuple[int, str]] = {}
    deferred: list[tuple[Sym, int, str]] = []
    for index, (type_, value) in enumerate(zip(types, values, strict=True)):
        if not isinstance(type_, TensorType):
            reason = _other_mismatch(type_, value)
        elif value is None:
            continue  # the undefined tensor fits every type
        else:
            reason = _tensor_mismatch(type_, value, symbols, deferred, index)
        if reason is not None:
            return f"argument {index}: {reason}"
    # Expressions over several symbols can be checked only when all symbols have been met.
    for dim, size, where in deferred:
        expected = _value_of(dim, symbols)
        if expected != size:
            return f"{where} is {size}, specialised for {dim} = {expected}"
    return None


def bind_symbols(types: Sequence[Type], values: Sequence[object]) -> dict[str, int]:
    """The value that each size symbol of ``types`` has for these values (which fit them)."""
    out: dict[str, int] = {}
    for type_, value in zip(types, values, strict=True):
        if isinstance(type_, TensorType) and isinstance(value, _TENSORS):
            for dim, size in zip(type_.shape or (), value.shape, strict=type_.shape is not None):
                name = symbol_name(dim)
                if name is not None:
                    out.setdefault(name, size)
    return out


def symbol_name(dim: Dim | None) -> str | None:
    """The name of a size that is just a symbol; None for literals and expressions."""
    if isinstance(dim, Sym):
        names = dim.symbols
        if len(names) == 1 and dim == symbol(next(iter(names))):
            return next(iter(names))
    return None


def _tensor_mismatch(
    expected: TensorType,
    value: object,
    symbols: dict[str, tuple[int, str]],
    deferred: list[tuple[Sym, int, str]],
    index: int,
) -> str | None:
    if not isinstance(value, _TENSORS):
        return f"{type(value).__name__} object, specialised for a tensor"
    if expected.defined is False:
        return "defined tensor, specialised for an undefined one"
    if expected.dtype is not None and value.dtype != expected.dtype.numpy:
        return f"dtype is {_dtype_text(value.dtype)}, specialised for {expected.dtype}"
    device = value.device if isinstance(value, DeviceTensor) else HOST
    if expected.device not in (None, device):
        return f"device is {device}, specialised for {expected.device}"
    reason = requires_grad_mismatch(expected.requires_grad, requires_grad(value))
    if reason is not None:
        return reason
    shape = expected.shape
    # Sizes are compared only when all of them are known (R1.39); strides need the same rank.
    if shape is not None and None not in shape:
        if len(shape) != value.ndim:
            return f"rank is {value.ndim}, specialised for {len(shape)}"
        for axis, (want, size) in enumerate(zip(shape, value.shape, strict=True)):
            if want == size:
                continue
            if isinstance(want, int):
                return f"size of dimension {axis} is {size}, specialised for {want}"
            reason = _symbol_mismatch(want, size, axis, index, symbols, deferred)
            if reason is not None:
                return reason
    if expected.strides is not None:
        array = value if isinstance(value, DeviceTensor) else np.asarray(value)
        return _layout_mismatch(expected.strides, array)
    return None


def _symbol_mismatch(
    want: Dim | None,
    size: int,
    axis: int,
    index: int,
    symbols: dict[str, tuple[int, str]],
    deferred: list[tuple[Sym, int, str]],
) -> str | None:
    name = symbol_name(want)
    where = f"argument {index}: size of dimension {axis}"
    if size == 0:
        # Lowerings take symbols for positive: NumPy raises for some reductions over nothing.
        return f"size of dimension {axis} is 0, specialised for {want} >= 1"
    if name is None:
        assert isinstance(want, Sym)
        deferred.append((want, size, where))
        return None
    bound, place = symbols.setdefault(name, (size, f"dimension {axis} of argument {index}"))
    if bound != size:
        return f"size of dimension {axis} is {size}, specialised for {name} = {bound} ({place})"
    return None


def _layout_mismatch(
    strides: tuple[int | None, ...] | str, array: np.ndarray | DeviceTensor
) -> str | None:
    itemsize = array.itemsize
    if not array.dtype.isnative:
        return "byte order is not native"
    if array.size == 0:
        return None  # no element, hence no address, depends on the strides
    if misaligned := _misalignment(array):
        return misaligned_text(misaligned)
    if isinstance(strides, str):
        fits = array.is_contiguous if isinstance(array, DeviceTensor) else array.flags.c_contiguous
        return None if fits else "not contiguous, specialised for contiguous"
    if len(strides) != array.ndim:
        return f"rank is {array.ndim}, specialised for strides of rank {len(strides)}"
    layout = zip(strides, array.shape, array.strides, strict=True)
    for axis, (want, size, step) in enumerate(layout):
        if size == 1:
            continue
        if step % itemsize:
            return f"stride of dimension {axis} is no multiple of the item size"
        if want is not None and step != want * itemsize:
            return f"stride of dimension {axis} is {step // itemsize}, specialised for {want}"
    return None


def _misalignment(array: np.ndarray | DeviceTensor) -> int:
    """How many bytes the elements should be aligned to, if there are any and they are not; else 0.

    NumPy's rule, and what kernels rely on: a complex element is aligned as its parts are.
    """
    wanted = array.dtype.alignment
    return wanted if array.size and (_address(array) or 0) % wanted else 0


def misaligned_text(nbytes: int) -> str:
    """What guards say of data that is not aligned to so many bytes."""
    return f"data is not aligned to {nbytes} bytes"


def _address(array: np.ndarray | DeviceTensor) -> int | None:
    if isinstance(array, DeviceTensor):
        return array.address
    return array.__array_interface__["data"][0]


def _other_mismatch(expected: Type, value: object) -> str | None:
    if isinstance(expected, ScalarType):
        found = type_of(value) if isinstance(value, (bool, int, float, complex)) else None
        if not isinstance(found, ScalarType) or found.dtype is not expected.dtype:
            return f"{type(value).__name__} object, specialised for a Python {expected.dtype}"
        return None
    return None if isinstance(value, (list, tuple)) else "not a list"


def _value_of(dim: Sym, symbols: dict[str, tuple[int, str]]) -> int | None:
    try:
        return evaluate(dim, {name: bound for name, (bound, _) in symbols.items()})
    except (KeyError, ZeroDivisionError):
        return None


def _dtype_text(dtype: np.dtype) -> str:
    try:
        name = str(dtype_of(dtype))
    except DTypeError:
        return str(dtype)
    return name if dtype.isnative else f"{name} in foreign byte order"


# --- generalisation (R1.40) --------------------------------------------------------------------


def generalize(
    types: Sequence[TensorType],
    literal: Container[int] = (),
    known: Sequence[TensorType | None] = (),
) -> tuple[TensorType, ...] | None:
    """The types of a dynamic guard for profiled ones; None if they cannot be generalised.

    Sizes 0 and 1 stay literal, those in ``literal``, and those that are literal in what is
    ``known`` of an operand whatever the sizes of others are; equal sizes share a symbol ``s0``,
    ``s1``, …; a C-contiguous operand stays so, else strides 0 and 1 stay literal and the others
    are passed at run time.
    """
    if len(devices_of(types)) > 1 or any(t.requires_grad for t in types):
        return None
    numbers = count()
    symbols: dict[Dim, Sym] = {}
    out = []
    for t, fixed in zip_longest(types, known):
        if t.dtype is None or t.shape is None or t.defined is False:
            return None
        sizes: list[Dim] = []
        same = fixed.shape if fixed is not None and fixed.rank == t.rank else None
        for dim, given in zip(t.shape, same or repeat(None), strict=False):
            if dim is None:
                return None
            if isinstance(dim, int) and (dim in (0, 1, given) or dim in literal):
                sizes.append(dim)
                continue
            if dim not in symbols:
                symbols[dim] = symbol(f"s{next(numbers)}")
            sizes.append(symbols[dim])
        out.append(replace(t, shape=tuple(sizes), strides=_stride_class(t), requires_grad=False))
    return tuple(out)


def devices_of(types: Iterable[Type]) -> set[str]:
    """The devices that an op or a group of these operands would run on.

    Numbers run anywhere, and so do tensors of rank 0 in the host's memory: a kernel of any device
    takes their value.
    """
    tensors = [t for t in types if isinstance(t, TensorType)]
    return {t.device for t in tensors if t.device and (t.device != HOST or t.rank != 0)}


def _stride_class(t: TensorType) -> tuple[int | None, ...] | str | None:
    if not isinstance(t.strides, tuple):
        return t.strides
    shape = t.shape or ()
    if 0 in shape or _strides_fit(t.strides, contiguous_strides(shape), shape):  # type: ignore[arg-type]
        return "contiguous"
    # A dimension of size 1 is only ever indexed with 0: its stride needs no run-time value.
    return tuple(
        0 if size == 1 else (step if step in (0, 1) else None)
        for step, size in zip(t.strides, shape, strict=True)
    )


def _strides_fit(strides: Sequence, wanted: Sequence, shape: Sequence) -> bool:
    return all(s == w for s, w, size in zip(strides, wanted, shape, strict=True) if size != 1)


__all__ = [
    "UnreadableType", "bind_symbols", "check_types", "devices_of", "explain_mismatch",
    "generalize", "misaligned_text", "seen_type", "symbol_name",
]  # fmt: skip
