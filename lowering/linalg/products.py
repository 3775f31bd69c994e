"""Matrix products: named linalg operations for floats, a generic contraction for the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlir import ir

from ...dialect.ir.dtypes import BF16, F16, F32, F64
from ...dialect.ir.symbolic import Dim
from ...dialect.ir.types import TensorType
from .generic import TensorValue, dims, fill_region, known
from .scalar import Scalar

if TYPE_CHECKING:
    from .tensor_builder import Builder

# Loops of each product: dimensions of the left operand, the right one and the result.
LOOPS = {
    "linalg.dot": ("k", "k", ""),
    "linalg.matvec": ("mk", "k", "m"),
    "linalg.vecmat": ("k", "kn", "n"),
    "linalg.matmul": ("mk", "kn", "mn"),
    "linalg.batch_matmul": ("bmk", "bkn", "bmn"),
}
_BY_RANKS = {(1, 1): "linalg.dot", (2, 1): "linalg.matvec", (1, 2): "linalg.vecmat", (2, 2): "linalg.matmul"}


def matmul(b: Builder, x: TensorValue, y: TensorValue, type_: TensorType) -> TensorValue:
    """``x @ y``: f16 and bf16 accumulate in f32, integers wrap, bool is an or of ands."""
    _, shape = known(type_)
    name = _BY_RANKS.get((x.rank, y.rank))
    if name is not None:
        return _product(b, name, x, y, shape)
    if y.rank <= 2:
        # One matrix serves the whole batch: its rows are rows of one larger product.
        rows = _count(x.shape[:-1])
        flat = b.reshape(x, TensorType(x.dtype, (rows, x.shape[-1])))
        out = matmul(b, flat, y, TensorType(x.dtype, (rows, *y.shape[1:])))
        return b.reshape(out, type_.without_layout())
    # A vector operand is a matrix with one row or column, dropped again from the result.
    vector_x, vector_y = x.rank == 1, y.rank == 1
    x = b.expand_dims(x, [0]) if vector_x else x
    y = b.expand_dims(y, [1]) if vector_y else y
    batch = shape[: len(shape) - (not vector_x) - (not vector_y)]
    m, n = x.shape[-2], y.shape[-1]
    out = _product(b, "linalg.batch_matmul", _batched(b, x, batch), _batched(b, y, batch), (_count(batch), m, n))
    return b.reshape(out, type_.without_layout())


def _batched(b: Builder, x: TensorValue, batch: tuple[Dim, ...]) -> TensorValue:
    """``x`` broadcast over the batch, its batch dimensions as one."""
    matrix = x.shape[-2:]
    if all(size == 1 for size in x.shape[:-2]) and _count(batch) != 1:
        # One matrix for all: a view of it, where a reshape behind the broadcast would be a copy.
        x = b.reshape(x, TensorType(x.dtype, (1, *matrix)))
        return b.broadcast(x, TensorType(x.dtype, (_count(batch), *matrix)))
    x = b.broadcast(x, TensorType(x.dtype, (*batch, *matrix)))
    return b.reshape(x, TensorType(x.dtype, (_count(batch), *matrix)))


def _count(sizes: tuple[Dim, ...]) -> Dim:
    total: Dim = 1
    for size in sizes:
        total = total * size
    return total


def _product(b: Builder, name: str, x: TensorValue, y: TensorValue, shape: tuple[Dim, ...]) -> TensorValue:
    if x.dtype in (F16, BF16):
        # The casts stand next to the product, so that a library that takes halves can take them in.
        return b.cast(_product(b, name, b.cast(x, F32), b.cast(y, F32), shape), x.dtype)
    type_ = TensorType(x.dtype, shape)
    into = b.fill(0, type_).value
    if x.shape[-1] == 0:  # libraries do not write such a result
        return TensorValue(into, type_)
    if x.dtype in (F32, F64):
        attributes = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([2, 1])}
        op = ir.Operation.create(
            name, results=[into.type], operands=[x.value, y.value, into], attributes=attributes, regions=1
        )
        fill_region(op)
        return TensorValue(op.result, type_)
    left, right, out = LOOPS[name]
    order = [*out, "k"]
    exprs = dict(zip(order, dims(len(order)), strict=True))

    def body(a: Scalar, c: Scalar, acc: Scalar) -> Scalar:
        return acc + a * c

    results = b.generic(
        [(x, [exprs[d] for d in left]), (y, [exprs[d] for d in right])],
        [(into, x.dtype, [exprs[d] for d in out])],
        [d == "k" for d in order],
        body,
    )
    return TensorValue(results[0], type_)
