"""Matrix products. `numpy.einsum` and `tensordot` are taken apart into them by `einsum`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import DTypeError, ShapeError
from ...ir.attrs import VALUE
from ...ir.dtypes import DType, dtype_of
from ...ir.op import Attrs, Fusion, Op, Rounding, Values, attr, operand, result
from ...ir.types import MaybeDim, Shape, TensorType, Type, type_of
from ..broadcast import broadcast_shapes
from ..elementwise.binary import Add, Mul
from ..sizes import complete_shape, prove_equal, tensor_type
from ..structural import Proven

if TYPE_CHECKING:
    from ....lowering.linalg.tensor_builder import Builder, TensorValue
    from ...ir.gradients import GradientBuilder

_SIGNATURE = "(n?,k),(k,m?)->(n?,m?)"


@lru_cache(maxsize=256)
def _dtype(a: DType, b: DType) -> DType:
    """The dtype in which NumPy multiplies matrices; raises DTypeError."""
    try:
        return dtype_of(np.matmul.resolve_dtypes((a.numpy, b.numpy, None))[-1])
    except TypeError as error:
        raise DTypeError(str(error)) from None


def _rows(x: Any) -> Any:
    """An array as a matrix of its rows."""
    shape = np.shape(x)
    return np.reshape(x, (prod(shape[:-1]), shape[-1]))


class Matmul(Proven, name="matmul", rounding=Rounding.SUMS):
    """`numpy.matmul`: 1-d operands are vectors, leading axes of the others broadcast.

    Both operands are cast to the result's dtype, which is NumPy's (bf16 gives f32).
    Raises ShapeError for 0-d operands and sizes that do not fit.
    """

    a = operand()
    b = operand()
    out = result()
    fusion = Fusion.CONTRACTION
    linear = ((0,), (1,))

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        x, z = xs
        if np.ndim(x) == 1:
            g = np.expand_dims(g, -2 if np.ndim(z) > 1 else -1)
        if np.ndim(z) == 1:
            g = np.expand_dims(g, -1)
        left = np.expand_dims(x, 0) if np.ndim(x) == 1 else x
        right = np.expand_dims(z, 1) if np.ndim(z) == 1 else z
        if k == 0:
            full = np.matmul(g, b.conjugate(np.swapaxes(right, -1, -2)))
            gradient = b.like(full, left)
            return np.reshape(gradient, np.shape(x)) if np.ndim(x) == 1 else gradient
        if np.ndim(left) > 2 and np.ndim(right) == 2:
            # One product over the rows of all matrices takes no memory for one of each.
            left, g = _rows(left), _rows(g)
        full = np.matmul(b.conjugate(np.swapaxes(left, -1, -2)), g)
        gradient = b.like(full, right)
        return np.reshape(gradient, np.shape(z)) if np.ndim(z) == 1 else gradient

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        a, b = map(tensor_type, types)
        dtype = None if a.dtype is None or b.dtype is None else _dtype(a.dtype, b.dtype)
        for k, type_ in enumerate((a, b)):
            if type_.rank == 0:
                raise ShapeError(
                    f"matmul: Input operand {k} does not have enough dimensions (has 0, gufunc "
                    f"core with signature {_SIGNATURE} requires 1)"
                )
        if a.shape is None or b.shape is None:
            return (TensorType(dtype),)
        inner, outer = a.shape[-1], b.shape[-2:][0]
        if isinstance(inner, int) and isinstance(outer, int) and inner != outer:
            raise ShapeError(
                "matmul: Input operand 1 has a mismatch in its core dimension 0, with gufunc "
                f"signature {_SIGNATURE} (size {outer} is different from {inner})"
            )
        return (TensorType(dtype, product_shape(a.shape, b.shape)),)

    @classmethod
    def operand_dtypes(cls, types: Sequence[Type], attrs: Attrs) -> tuple | None:
        a, b = (tensor_type(t).dtype for t in types)
        return None if a is None or b is None else (_dtype(a, b),) * 2

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return np.matmul(args[0], args[1])

    @classmethod
    def prove(cls, types: Sequence[Type], attrs: Attrs) -> None:
        a, b = (complete_shape(tensor_type(t)) for t in types)
        prove_equal(a[-1], b[-2:][0], "matmul sums over one axis of both")

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        assert isinstance(types[0], TensorType)
        return b.matmul(args[0], args[1], types[0])


class Addmm(Op, name="addmm"):
    """``beta * c + alpha * (a @ b)``; a factor of 1 is no multiplication.

    It has no lowering: `decompose` makes a product and a sum of it where both factors are 1.
    """

    c = operand()
    a = operand()
    b = operand()
    out = result()
    alpha = attr(VALUE, default=1)
    beta = attr(VALUE, default=1)
    undifferentiable = "`decompose` makes a product and a sum of it"

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        c, a, b = map(tensor_type, types)
        (product,) = Matmul.infer((a, b), {})
        return Add.infer((_scaled(c, attrs.get("beta", 1)), _scaled(product, attrs.get("alpha", 1))), {})

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        c, a, b = args
        alpha, beta = attrs.get("alpha", 1), attrs.get("beta", 1)
        product = np.matmul(a, b)
        return np.add(c if beta == 1 else beta * c, product if alpha == 1 else alpha * product)

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        for name in ("alpha", "beta"):
            if type(attrs.get(name, 1)) not in (int, float):
                yield f"{name} must be a Python number, not {attrs[name]!r}"


def _scaled(type_: Type, factor: Any) -> Type:
    if factor == 1:
        return type_
    return Mul.infer((type_of(factor), type_), {})[0]


def product_shape(a: Shape, b: Shape) -> Shape:
    """Shape of a matrix product of operands that have at least one axis; raises ShapeError."""
    rows: tuple[MaybeDim, ...] = a[-2:-1]
    columns: tuple[MaybeDim, ...] = b[-1:] if len(b) > 1 else ()
    batch = broadcast_shapes(a[:-2], b[:-2])
    assert batch is not None
    return (*batch, *rows, *columns)
