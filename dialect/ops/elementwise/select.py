"""Choosing, limiting and converting elements: select, clip, cast."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import DTypeError
from ...ir.attrs import BOOL as FLAG
from ...ir.attrs import DTYPE
from ...ir.dtypes import BOOL, I64, DType, dtype_of
from ...ir.op import Attrs, Rounding, Values, attr, operand, result
from ...ir.types import ListType, TensorType, Type
from ...reasons import Kind, Reason
from ..broadcast import shape_of
from ..sizes import as_tensor
from .families import SAMPLE, Elementwise, Key, Unary, result_dtype

if TYPE_CHECKING:
    from ....lowering.linalg.scalar import Scalar
    from ....lowering.linalg.tensor_builder import Builder, TensorValue
    from ...ir.gradients import GradientBuilder, Partial


class Select(Elementwise, name="select", rounding=Rounding.MOVES):
    """`numpy.where` of three operands: ``a`` where ``cond`` is true, else ``b``."""

    exact = True
    lowers_complex = True

    cond = operand()
    a = operand()
    b = operand()
    out = result()

    numpy = np.where

    linear = ((1, 2),)

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        chosen = np.where(xs[0], g, 0) if k == 1 else np.where(xs[0], 0, g)
        return b.like(chosen, xs[k])

    @staticmethod
    def python(cond: Any, a: Any, b: Any) -> Any:
        value = a if cond else b
        return value if type(a) is type(b) else type(a + b)(value)

    @classmethod
    def loop(cls, *keys: Key) -> tuple[DType, ...]:
        dtype = result_dtype(keys[1:])
        return BOOL, dtype, dtype, dtype

    @classmethod
    def scalar(cls, *xs: Scalar) -> Scalar:
        cond, a, b = xs
        return (cond if cond.dtype is BOOL else cond.ne(0)).select(a, b)

    @classmethod
    def python_operands(cls, target: DType, *xs: Scalar) -> tuple[Scalar, ...]:
        cond, a, b = xs
        return cond, a.cast(target), b.cast(target)


class Clip(Elementwise, name="clip", rounding=Rounding.NONE):
    """`numpy.clip`: ``minimum(maximum(x, lo), hi)``; nan in any operand wins."""

    x = operand()
    lo = operand()
    hi = operand()
    out = result()

    numpy = np.clip

    @staticmethod
    def partials(x: Any, lo: Any, hi: Any, y: Any) -> Sequence[Partial]:
        inside = ((x >= lo) & (x <= hi)) | np.isnan(x)
        below, above = (x < lo) & (lo <= hi), np.maximum(x, lo) > hi
        return tuple(lambda g, c=c: np.where(c, g, 0) for c in (inside, below, above))

    @staticmethod
    def python(x: Any, lo: Any, hi: Any) -> Any:
        value = lo if lo != lo or x < lo else x
        value = hi if hi != hi or value > hi else value
        return value if type(x) is type(lo) is type(hi) else type(x + lo + hi)(value)

    @classmethod
    def loop(cls, *keys: Key) -> tuple[DType, ...]:
        return (_clip_dtype(keys),) * 4

    @classmethod
    def casts(cls, keys: Sequence[Key]) -> tuple[DType | None, ...]:
        x, *edges = super().casts(keys)
        if cls.loop(*keys)[-1].is_int:
            # A Python int beyond the array's range is no bound at all: it stays i64 for the body.
            edges = [None if key == (I64, True) else want for want, key in zip(edges, keys[1:], strict=True)]
        return (x, *edges)

    @classmethod
    def lower(
        cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any
    ) -> TensorValue | tuple[TensorValue, ...]:
        out = types[0].dtype if isinstance(types[0], TensorType) else None
        if out is not None and out.is_int:
            # NumPy raises for a Python int that lies beyond the range on the wrong side.
            limits = np.iinfo(out.numpy)
            lo, hi = (as_tensor(b, edge) for edge in args[1:])
            if lo.dtype is not out and limits.max < 2**63:
                b.forbid(lambda n: n > int(limits.max), lo)
            if hi.dtype is not out:
                b.forbid(lambda n: n < int(limits.min), hi)
        return super().lower(b, attrs, types, *args)

    @classmethod
    def scalar(cls, *xs: Scalar) -> Scalar:
        x, lo, hi = xs
        if x.dtype.is_int:
            lo, hi = (_within(edge, x.dtype) for edge in (lo, hi))
        return x.maximum(lo).minimum(hi)


@lru_cache(maxsize=1024)
def _clip_dtype(keys: tuple[Key, ...]) -> DType:
    """The dtype `numpy.clip` computes in; asked of it, as its ufunc has no public name."""
    operands = [SAMPLE[dtype] if weak else np.ones(0, dtype.numpy) for dtype, weak in keys]
    try:
        return dtype_of(np.clip(*operands).dtype)
    except TypeError as error:
        raise DTypeError(str(error)) from None


def _within(edge: Scalar, dtype: DType) -> Scalar:
    """An i64 bound as the nearest one in integer ``dtype``."""
    if edge.dtype is dtype:
        return edge
    limits = np.iinfo(dtype.numpy)
    edge = edge.maximum(edge.const(int(limits.min)))
    if limits.max < 2**63:
        edge = edge.minimum(edge.const(int(limits.max)))
    return edge.cast(dtype)


def loses_imaginary(given: Type, wanted: DType | None) -> Reason | None:
    """The reason why no kernel stores complex numbers as real ones: NumPy warns of it. None = it does not."""
    if given.dtype is None or wanted is None or not given.dtype.is_complex:  # type: ignore[union-attr]
        return None
    return None if wanted.kind in "bc" else Reason(Kind.COMPLEX)


class Cast(Unary, name="cast", rounding=Rounding.NONE):
    """`ndarray.astype`.

    With ``fits`` a Python integer that the dtype does not have raises OverflowError, as NumPy's
    operators do.
    """

    exact = True
    lowers_complex = True
    dtype = attr(DTYPE)
    fits = attr(FLAG, default=False)

    linear = ((0,),)

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        return b.like(g, xs[0])

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        if isinstance(types[0], ListType):
            raise DTypeError("a list of tensors cannot be cast")
        return (TensorType(attrs["dtype"], shape_of(types[0])),)

    @classmethod
    def operand_dtypes(cls, types: Sequence[Type], attrs: Attrs) -> tuple | None:
        return None

    @classmethod
    def can_lower_types(cls, types: Sequence[Type], attrs: Attrs) -> Reason | None:
        return super().can_lower_types(types, attrs) or loses_imaginary(types[0], attrs["dtype"])

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        if attrs.get("fits"):
            return np.array(args[0], attrs["dtype"].numpy)
        return np.asarray(args[0]).astype(attrs["dtype"].numpy)

    @classmethod
    def lower(
        cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any
    ) -> TensorValue | tuple[TensorValue, ...]:
        dtype = attrs["dtype"]
        return b.pointwise(lambda x: x.cast(dtype), args, types[0])


class Bitcast(Unary, name="bitcast", rounding=Rounding.NONE):
    """`ndarray.view` with another dtype of the same width, as a copy: the bits of each element, read as that."""

    exact = True
    no_gradient = True
    dtype = attr(DTYPE)

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        dtype, wanted = types[0].dtype, attrs["dtype"]  # type: ignore[union-attr]
        for each in (dtype, wanted):
            if each is not None and (each is BOOL or each.is_complex):
                raise DTypeError(f"the bits of {each} are not read as another dtype, nor the other way round")
        if dtype is not None and dtype.bits != wanted.bits:
            raise DTypeError(f"{dtype} has {dtype.bits} bits and {wanted} has {wanted.bits}")
        return (TensorType(wanted, shape_of(types[0])),)

    @classmethod
    def operand_dtypes(cls, types: Sequence[Type], attrs: Attrs) -> tuple | None:
        return None

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return np.asarray(args[0]).view(attrs["dtype"].numpy).copy()

    @classmethod
    def lower(
        cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any
    ) -> TensorValue | tuple[TensorValue, ...]:
        dtype = attrs["dtype"]
        return b.pointwise(lambda x: x.bitcast(dtype), args, types[0])
