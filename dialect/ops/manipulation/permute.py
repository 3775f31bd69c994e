"""Ops that reorder axes: transpose, swapaxes, moveaxis. Tier 0 returns NumPy's views."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ShapeError
from ...ir.attrs import I64, I64_ARRAY
from ...ir.op import Attrs, Emit, Failure, Values, View, attr, operand, result
from ...ir.types import Shape, Type
from ..sizes import normalize_axes, normalize_axis, tensor_type
from ..structural import Structural

if TYPE_CHECKING:
    from ....lowering.linalg.tensor_builder import Builder, TensorValue
    from ...ir.gradients import GradientBuilder


class Permutation(Structural):
    """Family: reorder axes by a permutation that depends on the rank."""

    aliases = {0: 0}
    x = operand()
    out = result()
    linear = ((0,),)

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        order = cls.permutation(np.ndim(xs[0]), attrs)
        return np.transpose(g, tuple(map(order.index, range(len(order)))))

    @classmethod
    def permutation(cls, rank: int, attrs: Attrs) -> tuple[int, ...]:
        """For each axis of the result, the operand's axis; raises ShapeError."""
        raise NotImplementedError

    @classmethod
    def result_shape(cls, types: Sequence[Type], attrs: Attrs) -> Shape | None:
        shape = tensor_type(types[0]).shape
        if shape is None:
            return None
        return tuple(shape[a] for a in cls.permutation(len(shape), attrs))

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return np.transpose(args[0], cls.permutation(np.ndim(args[0]), attrs))

    @classmethod
    def view_of(cls, rank: int, attrs: Attrs) -> Callable[[np.ndarray], np.ndarray] | None:
        return operator.methodcaller("transpose", cls.permutation(rank, attrs))

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        rank = tensor_type(types[0]).rank
        if rank is not None:
            try:
                cls.permutation(rank, attrs)
            except ShapeError as error:
                yield error.what

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        return b.transpose(args[0], cls.permutation(args[0].type.rank, attrs))


class Transpose(Permutation, name="transpose"):
    """`numpy.transpose`; without ``perm`` the axes are reversed."""

    failure = Failure.NEVER
    perm = attr(I64_ARRAY, default=None)

    @classmethod
    def put_back(cls, emit: Emit, attrs: Attrs, view: View) -> Any:
        perm = attrs.get("perm")
        if perm is not None:
            order = [axis % len(perm) for axis in perm]
            perm = tuple(map(order.index, range(len(order))))
        return emit("transpose", [view.new], {"perm": perm})[0]

    @classmethod
    def permutation(cls, rank: int, attrs: Attrs) -> tuple[int, ...]:
        perm = attrs.get("perm")
        if perm is None:
            return tuple(reversed(range(rank)))
        if len(perm) != rank:
            raise ShapeError("axes don't match array")
        return normalize_axes(perm, rank, "repeated axis in transpose")


class SwapAxes(Permutation, name="swapaxes"):
    """`numpy.swapaxes`."""

    axis1 = attr(I64)
    axis2 = attr(I64)

    @classmethod
    def put_back(cls, emit: Emit, attrs: Attrs, view: View) -> Any:
        return emit("swapaxes", [view.new], attrs)[0]

    @classmethod
    def permutation(cls, rank: int, attrs: Attrs) -> tuple[int, ...]:
        one, two = (normalize_axis(attrs[k], rank) for k in ("axis1", "axis2"))
        perm = list(range(rank))
        perm[one], perm[two] = two, one
        return tuple(perm)


class MoveAxis(Permutation, name="moveaxis"):
    """`numpy.moveaxis`."""

    source = attr(I64_ARRAY)
    destination = attr(I64_ARRAY)

    @classmethod
    def put_back(cls, emit: Emit, attrs: Attrs, view: View) -> Any:
        back = {"source": attrs["destination"], "destination": attrs["source"]}
        return emit("moveaxis", [view.new], back)[0]

    @classmethod
    def permutation(cls, rank: int, attrs: Attrs) -> tuple[int, ...]:
        source, destination = (
            normalize_axes(attrs[k], rank, f"repeated axis in `{k}` argument") for k in ("source", "destination")
        )
        if len(source) != len(destination):
            raise ShapeError("`source` and `destination` arguments must have the same number of elements")
        perm = [a for a in range(rank) if a not in source]
        for target, axis in sorted(zip(destination, source, strict=True)):
            perm.insert(target, axis)
        return tuple(perm)
