"""Shape arithmetic shared by the structural ops: axes, sizes given as operands, equal sizes.

Everything here works on literal sizes, symbolic sizes (`Sym`) and unknown ones (None) alike.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import AxisError, DTypeError, LoweringError, ShapeError
from ..ir.attrs import DYNAMIC
from ..ir.dtypes import I64, DType, dtype_of
from ..ir.size_algebra import bounds, sym_max, sym_min
from ..ir.symbolic import Dim, Sym
from ..ir.types import TENSOR, MaybeDim, ScalarType, Shape, TensorType, Type

if TYPE_CHECKING:
    from ...lowering.linalg.tensor_builder import Builder, Scalar, TensorValue


def tensor_type(type_: Type) -> TensorType:
    """``type_`` seen as a tensor: a Python number is a 0-d one, anything else is unknown."""
    if isinstance(type_, TensorType):
        return type_
    return TensorType(type_.dtype, ()) if isinstance(type_, ScalarType) else TENSOR


def normalize_axis(axis: int, rank: int) -> int:
    """``axis`` counted from the front; raises AxisError."""
    if not -rank <= axis < rank:
        raise AxisError(f"axis {axis} is out of bounds for array of dimension {rank}")
    return axis + rank if axis < 0 else axis


def normalize_axes(axes: Sequence[int] | None, rank: int, repeated: str = "repeated axis") -> tuple[int, ...]:
    """Axes counted from the front, in the given order; None = all.

    Raises AxisError, or ShapeError with the text ``repeated``.
    """
    if axes is None:
        return tuple(range(rank))
    positions = tuple(normalize_axis(a, rank) for a in axes)
    if len(set(positions)) != len(positions):
        raise ShapeError(repeated)
    return positions


def check_axes(axes: Sequence[int] | None, type_: Type, extra: int = 0) -> Iterator[str]:
    """Complaints about an ``axes`` attribute, as far as the operand's rank is known.

    ``extra``: how many more axes the axes may name than the operand has.
    """
    if axes is None:
        return
    rank = tensor_type(type_).rank
    if rank is None:
        if len(set(axes)) != len(axes):
            yield f"axes {list(axes)} name an axis twice"
        return
    try:
        normalize_axes(axes, rank + extra)
    except ShapeError as error:
        yield f"axes {list(axes)}: {error.what}"


def check_axis(axis: int | None, type_: Type, extra: int = 0) -> Iterator[str]:
    """Complaints about an ``axis`` attribute as by `check_axes`; None = the attribute is absent."""
    return check_axes(None if axis is None else (axis,), type_, extra)


def product(sizes: Iterable[MaybeDim]) -> MaybeDim:
    """Number of elements; 0 as soon as one size is 0, else None when one is unknown."""
    total: MaybeDim = 1
    for size in sizes:
        if isinstance(size, int) and size == 0:
            return 0
        total = None if total is None or size is None else total * size
    return total


def known_sizes(values: Sequence[int], operands: Sequence[Type]) -> tuple[MaybeDim, ...]:
    """``values`` with each DYNAMIC replaced by what is known of the next operand."""
    rest = iter(operands)
    return tuple(_known(next(rest, TENSOR)) if v == DYNAMIC else v for v in values)


def _known(type_: Type) -> MaybeDim:
    value = type_.value if isinstance(type_, ScalarType) else None
    return value if isinstance(value, (int, Sym)) else None


def runtime_sizes(values: Sequence[int], operands: Sequence[Any]) -> tuple[int, ...]:
    """``values`` with each DYNAMIC replaced by the next run-time operand."""
    if not operands:
        return tuple(values)
    rest = iter(operands)
    return tuple(operator.index(next(rest)) if v == DYNAMIC else v for v in values)


def check_sizes(values: Sequence[int] | None, count: int) -> Iterator[str]:
    """Complaint unless ``count`` operands stand for the DYNAMIC entries of ``values``."""
    dynamic = sum(v == DYNAMIC for v in values or ())
    if dynamic != count:
        yield f"{dynamic} sizes are dynamic, but {count} operands give them"


def check_shape(shape: Sequence[int], count: int) -> Iterator[str]:
    """Complaints about a ``shape`` attribute to which ``count`` operands give sizes."""
    yield from check_sizes(shape, count)
    if any(d < 0 and d != DYNAMIC for d in shape):
        yield f"shape {list(shape)} has a negative size"


def nonnegative(shape: Sequence[MaybeDim]) -> tuple[MaybeDim, ...]:
    """``shape`` itself; raises ShapeError when a literal size is negative."""
    if any(isinstance(d, int) and d < 0 for d in shape):
        raise ShapeError("negative dimensions are not allowed")
    return tuple(shape)


def same_size(a: MaybeDim, b: MaybeDim, message: str) -> MaybeDim:
    """The common value of two sizes that must be equal: a literal wins over a symbol.

    Raises ShapeError(message) for two different literals.
    """
    if isinstance(a, int) and isinstance(b, int) and a != b:
        raise ShapeError(message)
    if a is None or isinstance(b, int):
        return b
    return a


def promote(dtypes: Sequence[DType | None]) -> DType | None:
    """NumPy's common dtype of arrays; None if one is unknown. Raises DTypeError."""
    if any(d is None for d in dtypes):
        return None
    if len(set(dtypes)) == 1:
        return dtypes[0]
    try:
        return dtype_of(np.result_type(*(d.numpy for d in dtypes if d is not None)))
    except TypeError as error:
        names = ", ".join(str(d) for d in dtypes)
        raise DTypeError(f"no common dtype exists for {names}") from error


def prove_equal(a: MaybeDim, b: MaybeDim, why: str) -> None:
    """Refuse a lowering that is only safe when two sizes are equal, unless they provably are.

    NumPy checks at run time; a kernel does not, so it must not be built on an assumption.
    Raises LoweringError.
    """
    if a is None or b is None or a != b:
        error = LoweringError(f"{why}: sizes {a} and {b} are not known to be equal")
        error.sizes = (a, b)
        raise error


def prove_positive(size: MaybeDim, more: str = "") -> None:
    """Raise LoweringError, with ``more`` behind its words, unless a size is at least 1."""
    if not is_positive(size):
        error = LoweringError(f"size {size} may be 0{more}")
        error.sizes = (size,)
        raise error


def complete_shape(type_: TensorType) -> tuple[Dim, ...]:
    """The shape of a tensor inside a fusion function; raises LoweringError if sizes are open."""
    if type_.shape is None or None in type_.shape:
        raise LoweringError(f"the shape of {type_} is not known")
    return type_.shape  # type: ignore[return-value]


def drop(shape: Shape, axes: Iterable[int], keepdims: bool) -> Shape:
    """``shape`` without ``axes`` (as size 1 with keepdims)."""
    gone = set(axes)
    if keepdims:
        return tuple(1 if k in gone else d for k, d in enumerate(shape))
    return tuple(d for k, d in enumerate(shape) if k not in gone)


def known_scalar(value: Any) -> ScalarType:
    """The type of an i64 operand of a `lower` method, with its value if that is known."""
    return ScalarType(I64, value if isinstance(value, (int, Sym)) else None)


def as_tensor(b: Builder, value: Any) -> TensorValue:
    """An operand of a `lower` method as a tensor: a number or scalar becomes a 0-d one."""
    if hasattr(value, "at"):
        return value
    scalar = b.scalar(value)
    return b.fill(scalar, TensorType(scalar.dtype, ()))


def is_positive(size: MaybeDim) -> bool:
    """True if a size cannot be 0 or negative. A symbol stands for a size of at least 1."""
    return size is not None and bounds(size)[0] > 0


def is_nonnegative(size: MaybeDim, least: int = 1) -> bool:
    """True if a size expression cannot be negative as long as its symbols are ``least`` or more."""
    return size is not None and bounds(size, (least, math.inf))[0] >= 0


def along(b: Builder, x: TensorValue, axis: int | None) -> tuple[TensorValue, int]:
    """``x`` with ``axis`` counted from the front; without an axis, the flat tensor with axis 0."""
    if axis is None:
        return b.reshape(x, TensorType(x.dtype, (product(x.shape),))), 0
    return x, normalize_axis(axis, x.rank)


def clamped(b: Builder, index: Scalar, size: Dim) -> Scalar:
    """A run-time index in a kernel: negative counts from the end, then kept within the axis.

    The bound on both sides is what keeps a kernel from reading outside of the buffer; the index
    must have gone through `forbid_outside` as well, for the user to get an error.
    """
    return index.cast(I64).kept_below(b.size(size))


def position_within(b: Builder, index: int, size: Dim) -> Dim:
    """The place that a known index names on an axis that is not empty.

    A run of the kernel in which the axis is too short is void, and reads another place of it.
    """
    least = index + 1 if index >= 0 else -index
    if isinstance(size, int) or index in (0, -1) or bounds(size)[0] >= least:
        return index if index >= 0 else size + index
    b.forbid(lambda count: count < least, b.size(size))
    return sym_min(index, size - 1) if index >= 0 else sym_max(size + index, 0)


def forbid_outside(b: Builder, indices: TensorValue | Scalar, size: Dim) -> None:
    """Void a run of the kernel in which some index is out of range for an axis of this size."""

    def outside(index: Scalar) -> Scalar:
        count = b.size(size)
        index = index.cast(I64)
        return (index >= count) | (index < -count)

    b.forbid(outside, indices)
