"""Types of values, without MLIR: what is known of a tensor, and its spelling in IR.

``None`` in any field means *not known*.  In IR a tensor of which the dtype is unknown is
``!profuse.tensor``; otherwise it is a builtin ``tensor<…>`` whose encoding dictionary carries what
a shape cannot say (symbolic sizes, strides, device, requires_grad).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal, Union

import numpy as np

from ..dataclass import dataclass
from ..errors import IRError
from .device import HOST, DeviceTensor
from .dtypes import BOOL, C128, F64, I64, DType, dtype_of, dtype_of_mlir
from .gradient_mode import requires_grad
from .size_algebra import parse_dim
from .symbolic import Dim, Sym

MaybeDim = Union[int, Sym, None]
Shape = tuple[MaybeDim, ...]


@dataclass(frozen=True, slots=True)
class TensorType:
    """The type of a tensor, as far as it is known.

    Attributes:
        dtype: element type.
        shape: sizes, each an int, a `Sym` or None; None as a whole = unknown rank.
        strides: element strides per dimension, each an int or None ("some stride"); the string
            ``"contiguous"`` = C-contiguous whatever the sizes are.
        device: ``"cpu"``, ``"cuda:0"``.
        requires_grad: tensor flag AND gradient mode.
        defined: False for the "undefined" tensor of autograd.
    """

    dtype: DType | None = None
    shape: Shape | None = None
    strides: tuple[int | None, ...] | str | None = None
    device: str | None = None
    requires_grad: bool | None = None
    defined: bool | None = None

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)

    @property
    def is_complete(self) -> bool:
        """Dtype, rank and every size (literal or symbolic) are known."""
        return self.dtype is not None and self.shape is not None and None not in self.shape

    @property
    def is_static(self) -> bool:
        """Dtype, rank and every size are known as literals."""
        return self.is_complete and all(isinstance(d, int) for d in self.shape or ())

    def erased(self) -> TensorType:
        """Nothing known."""
        return TensorType()

    def without_layout(self) -> TensorType:
        """Only dtype and shape."""
        return TensorType(self.dtype, self.shape)

    def __str__(self) -> str:
        return type_to_mlir(self)


@dataclass(frozen=True, slots=True)
class ScalarType:
    """A Python number (weakly typed under NumPy's promotion), ``i1 i64 f64 complex<f64>`` in IR.

    ``value`` is a known value: a Python number, or a `Sym` for sizes inside a dynamic group.
    """

    dtype: DType
    value: object | None = None

    def __str__(self) -> str:
        return self.dtype.mlir


@dataclass(frozen=True, slots=True)
class ListType:
    """A list of tensors."""

    element: TensorType = TensorType()

    def __str__(self) -> str:
        return "!profuse.list"


@dataclass(frozen=True, slots=True)
class ListedType:
    """A value that is neither tensor nor number: ``!profuse.ints``, ``!profuse.bools``, ``!profuse.str`` in IR.

    At run time it is a tuple of Python ints, or None where an argument was left out; a tuple of
    Python bools; a string.

    Attributes:
        kind: ``"ints"``, ``"bools"`` or ``"str"``.
        value: what is known of it: of ints a shape, each size of which is an int, a `Sym` or None;
            None as a whole = nothing, or that it may be None.
    """

    kind: Literal["ints", "bools", "str"]
    value: tuple | str | None = None

    @property
    def is_complete(self) -> bool:
        """The value, every item included, is known, be it in symbols."""
        return isinstance(self.value, str) or (self.value is not None and None not in self.value)

    def __str__(self) -> str:
        return f"!profuse.{self.kind}"


Type = Union[TensorType, ScalarType, ListType, ListedType]

TENSOR = TensorType()
UNDEFINED = TensorType(defined=False)  # what an observer has seen; values have no such type in IR
BOOL_SCALAR, INT_SCALAR, FLOAT_SCALAR, COMPLEX_SCALAR = (ScalarType(d) for d in (BOOL, I64, F64, C128))
INTS, BOOLS, STR = ListedType("ints"), ListedType("bools"), ListedType("str")
LISTED: dict[str, ListedType] = {str(t): t for t in (INTS, BOOLS, STR)}
_PYTHON_SCALARS: dict[type, ScalarType] = {
    bool: BOOL_SCALAR,
    int: INT_SCALAR,
    float: FLOAT_SCALAR,
    complex: COMPLEX_SCALAR,
}


def contiguous_strides(shape: Sequence[Dim]) -> tuple[Dim, ...]:
    """Element strides of a C-contiguous tensor of this shape (symbolic sizes allowed)."""
    out: list[Dim] = []
    step: Dim = 1
    for size in reversed(shape):
        out.append(step)
        step = size * step
    return tuple(reversed(out))


def type_of(value: object) -> Type:
    """The type of a run-time value: a tensor, a Python number, a list of arrays, or a `ListedType`.

    Strides that are no multiple of the item size are recorded as unknown (None). A tuple of ints
    alone is a list of ints, as None is; the empty one is one, too.
    """
    scalar = _PYTHON_SCALARS.get(type(value))
    if scalar is not None:
        return scalar
    listed = listed_type(value)
    if listed is not None:
        return listed
    if isinstance(value, (list, tuple)):
        return ListType()
    if isinstance(value, DeviceTensor):
        strides = "contiguous" if value.is_contiguous else _element_strides(value)
        flag = requires_grad(value)
        return TensorType(dtype_of(value.dtype), value.shape, strides, value.device, flag, True)
    # An array of the tape says the same of itself, and is not made a plain one.
    array: Any = value if isinstance(value, (np.ndarray, np.generic)) else np.asarray(value)
    strides = "contiguous" if array.flags.c_contiguous else _element_strides(array)
    return TensorType(dtype_of(array.dtype), array.shape, strides, HOST, requires_grad(value), True)


def listed_type(value: object) -> ListedType | None:
    """The type of a tuple of ints, of bools, a string or None; None for any other value."""
    if value is None:
        return INTS
    if type(value) is str:
        return STR
    if type(value) is not tuple:
        return None
    kinds = set(map(type, value))
    return INTS if kinds <= {int} else BOOLS if kinds == {bool} else None


def known_value(type_: Type) -> Any:
    """What is known of the value of a number, or of all items of a listed value; else None."""
    if isinstance(type_, ListedType):
        return type_.value if type_.is_complete else None
    return type_.value if isinstance(type_, ScalarType) else None


def erased_value(type_: Type) -> Type:
    """The type of a number or of a listed value without the value itself; others as they are."""
    return replace(type_, value=None) if isinstance(type_, (ScalarType, ListedType)) else type_


def _element_strides(array: np.ndarray | DeviceTensor) -> tuple[int | None, ...]:
    return in_elements(array.strides, array.itemsize)


def in_elements(strides: Sequence[int], itemsize: int) -> tuple[int | None, ...]:
    """Strides in elements for strides in bytes; None for one that is no multiple of an element."""
    return tuple(None if s % itemsize else s // itemsize for s in strides)


def merge_types(a: TensorType, b: TensorType) -> TensorType:
    """The facts in which two records of one observer agree (R1.19)."""

    def same(x, y):
        return x if x == y else None

    if a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
        shape: Shape | None = None
        strides = None
    else:
        shape = tuple(same(x, y) for x, y in zip(a.shape, b.shape, strict=True))
        strides = _merge_strides(a, b)
    return TensorType(
        same(a.dtype, b.dtype),
        shape,
        strides,
        same(a.device, b.device),
        same(a.requires_grad, b.requires_grad),
        same(a.defined, b.defined),
    )


def _merge_strides(a: TensorType, b: TensorType) -> tuple[int | None, ...] | str | None:
    """Per dimension; "contiguous" beside explicit strides counts as those that it stands for."""
    if a.strides == b.strides:
        return a.strides
    steps = _explicit_strides(a), _explicit_strides(b)
    if None in steps:
        return None
    return tuple(x if x == y else None for x, y in zip(*steps, strict=True))  # type: ignore[arg-type]


def _explicit_strides(type_: TensorType) -> tuple[int | None, ...] | None:
    """Strides per dimension, None where they depend on sizes that are not known."""
    if not isinstance(type_.strides, str):
        return type_.strides
    steps: list[int | None] = []
    step: Dim | None = 1
    for size in reversed(type_.shape or ()):
        steps.append(step if isinstance(step, int) else None)
        step = None if step is None or size is None else size * step
    return tuple(reversed(steps))


# --- text ------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def type_to_mlir(type_: Type) -> str:
    """IR spelling of a type (inverse of `type_from_mlir`)."""
    if not isinstance(type_, TensorType):
        return str(type_)
    if type_.dtype is None:
        return "!profuse.undefined" if type_ == UNDEFINED else "!profuse.tensor"
    if type_.shape is None:
        return f"tensor<*x{type_.dtype.mlir}>"
    sizes = "".join(f"{d}x" if isinstance(d, int) else "?x" for d in type_.shape)
    entries = []
    if type_.defined is not None:
        entries.append(f"defined = {str(type_.defined).lower()}")
    if type_.device is not None:
        entries.append(f'device = "{type_.device}"')
    if any(isinstance(d, Sym) for d in type_.shape):
        dims = ", ".join(f'"{"?" if d is None else d}"' for d in type_.shape)
        entries.append(f"dims = [{dims}]")
    if type_.requires_grad is not None:
        entries.append(f"requires_grad = {str(type_.requires_grad).lower()}")
    if isinstance(type_.strides, str):
        entries.append(f'strides = "{type_.strides}"')
    elif type_.strides is not None:
        strides = ", ".join(f'"{"?" if s is None else s}"' for s in type_.strides)
        entries.append(f"strides = [{strides}]")
    encoding = f", {{{', '.join(entries)}}}" if entries else ""
    return f"tensor<{sizes}{type_.dtype.mlir}{encoding}>"


_TENSOR_TEXT = re.compile(r"tensor<(?P<sizes>\*x|(?:[\d?]+x)*)(?P<dtype>[a-z]\w*(?:<f\d+>)?)(?:,\s*\{(?P<enc>.*)\})?>")


@lru_cache(maxsize=4096)
def type_from_mlir(text: str) -> Type:
    """Parse a type's IR spelling; raises IRError for types that are not profuse's."""
    if text == "!profuse.undefined":
        return UNDEFINED
    if text == "!profuse.tensor":
        return TENSOR
    if text == "!profuse.list":
        return ListType()
    if text in LISTED:
        return LISTED[text]
    for scalar in _PYTHON_SCALARS.values():
        if text == scalar.dtype.mlir:
            return scalar
    match = _TENSOR_TEXT.fullmatch(text)
    if not match:
        raise IRError(f"type {text!r} is not a profuse type")
    dtype = dtype_of_mlir(match["dtype"])
    if match["sizes"] == "*x":
        return TensorType(dtype)
    shape: Shape = tuple(None if s == "?" else int(s) for s in match["sizes"].split("x")[:-1])
    enc = match["enc"] or ""
    dims = _string_list(enc, "dims")
    if dims is not None:
        shape = tuple(None if d == "?" else parse_dim(d) for d in dims)
    plain = re.search(r'\bstrides = "(\w+)"', enc)
    strides: tuple[int | None, ...] | str | None = plain[1] if plain else None
    listed = _string_list(enc, "strides")
    if listed is not None:
        strides = tuple(None if s == "?" else int(s) for s in listed)
    device = re.search(r'\bdevice = "([^"]*)"', enc)
    grad = re.search(r"\brequires_grad = (true|false)", enc)
    defined = re.search(r"\bdefined = (true|false)", enc)
    return TensorType(
        dtype,
        shape,
        strides,
        device[1] if device else None,
        grad[1] == "true" if grad else None,
        defined[1] == "true" if defined else None,
    )


class _TypesRead(threading.local):
    """By types of MLIR, what this thread has read of them: they are unique, and never change."""

    def __init__(self) -> None:
        self.known: dict[Any, Type] = {}


_TYPES_READ = _TypesRead()


def type_from_object(mlir_type: Any) -> Type:
    """`type_from_mlir` for an object of MLIR's, the text of which takes long to make."""
    table = _TYPES_READ.known
    type_ = table.get(mlir_type)
    if type_ is None:
        if len(table) >= 4096:
            table.clear()
        type_ = table[mlir_type] = type_from_mlir(str(mlir_type))
    return type_


def _string_list(encoding: str, key: str) -> list[str] | None:
    match = re.search(rf"\b{key} = \[([^\]]*)\]", encoding)
    if not match:
        return None
    return re.findall(r'"([^"]*)"', match[1])


def with_shape(type_: TensorType, shape: Shape | None) -> TensorType:
    """``type_`` with other sizes and the layout forgotten."""
    return replace(type_, shape=shape, strides=None)
