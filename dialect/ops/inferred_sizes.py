"""Ops on sizes that are the inference of another op: the sizes of its result from those of its operands."""

from __future__ import annotations

from typing import Any, ClassVar

from ..errors import ShapeError
from ..ir.dtypes import F32
from ..ir.op import Attrs, Op, operand, result
from ..ir.types import Shape, TensorType
from .gradient_ops import SumTo
from .indexing.scatter import Conform
from .linalg.contract import Matmul
from .manipulation.join import Concatenate, Stack
from .manipulation.permute import MoveAxis, SwapAxes, Transpose
from .manipulation.shape import BroadcastTo, Flip, Reshape, Squeeze
from .reductions.scan import CumProd, CumSum
from .size_lists import SizeFormula
from .sizes import tensor_type
from .structural import Proven


class InferredSizes(SizeFormula):
    """Family: the sizes of what the op ``of`` gives, which has the same attributes. Raises what that raises."""

    of: ClassVar[type[Op]]

    @classmethod
    def formula(cls, attrs: Attrs, *sizes: Shape) -> tuple[Shape | None, ...]:
        return tuple(tensor_type(t).shape for t in cls.of.infer([TensorType(F32, shape) for shape in sizes], attrs))

    @classmethod
    def prove(cls, attrs: Attrs, *sizes: Shape) -> None:
        """Raise LoweringError unless it is known that sizes, some of which are symbols, fit each other."""
        if issubclass(cls.of, Proven):
            cls.of.prove([TensorType(F32, shape) for shape in sizes], attrs)


def _make(of: type[Op]) -> type[InferredSizes]:
    """Declare the op for an op whose operands are all tensors."""
    scope: dict[str, Any] = {field.name: operand(variadic=field.variadic) for field in of.operands}
    scope |= {"of": of, "__module__": __name__, "__doc__": f"The sizes of what `{of.name}` gives."}
    scope |= {**of.attrs, "out": result()}
    return type(f"{of.__name__}Sizes", (InferredSizes,), scope, name=f"{of.name}_sizes")


class ReshapeSizes(InferredSizes, name="reshape_sizes"):
    """The sizes of what `reshape` gives, which ``shape`` states; one may be -1."""

    of = Reshape
    sizes = operand()
    out = result()
    shape = Reshape.attrs["shape"]


class BroadcastToSizes(InferredSizes, name="broadcast_to_sizes"):
    """The sizes of what `broadcast_to` gives, which ``shape`` states."""

    of = BroadcastTo
    sizes = operand()
    out = result()
    shape = BroadcastTo.attrs["shape"]


class StrictSqueezeSizes(InferredSizes, name="strict_squeeze_sizes"):
    """The sizes of what `squeeze` gives, which drops axes of size 1 alone; `squeeze_sizes` passes over others."""

    of = Squeeze
    sizes = operand()
    out = result()
    axes = Squeeze.attrs["axes"]


class LinearSizes(SizeFormula, name="linear_sizes"):
    """The sizes of what `linear` gives, without a bias, for those of ``x`` and of the weight."""

    x = operand()
    weight = operand()
    out = result()

    @classmethod
    def formula(cls, attrs: Attrs, *sizes: Shape) -> tuple[Shape | None, ...]:
        x, weight = sizes
        if not x or len(weight) not in (1, 2):
            raise ShapeError(f"linear takes no arrays of {len(x)} and {len(weight)} axes")
        if x[-1] != weight[-1]:
            error = ShapeError(f"linear: the last axis of x has size {x[-1]}, that of the weight {weight[-1]}")
            error.sizes = (x[-1], weight[-1])
            raise error
        return ((*x[:-1], *weight[:-1]),)


INFERRED: dict[type[Op], type[InferredSizes]] = {
    op: _make(op)
    for op in (Matmul, Transpose, SwapAxes, MoveAxis, Flip, Concatenate, Stack, CumSum, CumProd, SumTo, Conform)
}
"""The op on sizes for each of these ops."""
