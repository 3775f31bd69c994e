"""Views as copies, sums to sizes, chunks of what is broadcast, and sums with what may be missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from ...errors import ShapeError
from ...ir.attrs import BOOL, I64, I64_ARRAY
from ...ir.op import Attrs, Failure, Fusion, Op, Rounding, attr, operand, result
from ...ir.types import TENSOR, Type
from ..manipulation.shape import ExpandDims, Reshape, Squeeze
from ..manipulation.split import Chunk
from .composite import Composite, WithOptional
from .operand_checks import broadcast_to


class ViewCopy(Composite, rounding=Rounding.MOVES):
    """Family: the result of a view op, in memory of its own, in C order.

    ``implicit``: `views-to-copies` made the op of a view (R3.11), so that it may become one again.
    """

    exact = True
    fusion = Fusion.POINTWISE
    implicit = attr(BOOL, default=False)
    view: ClassVar[type[Op]]

    @classmethod
    def expand(cls, b: Any, attrs: Attrs, *xs: Any) -> Any:
        view = {key: value for key, value in attrs.items() if key != "implicit"}
        return b.op("copy", b.op(cls.view.name, *xs, **view))

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from super().verify(types, attrs)
        yield from cls.view.verify(types, attrs)


class ReshapeCopy(ViewCopy, name="reshape_copy"):
    """`reshape`, copied."""

    view = Reshape
    numbers = ("sizes",)
    x = operand()
    sizes = operand(variadic=True)
    out = result()
    shape = attr(I64_ARRAY)


class SqueezeCopy(ViewCopy, name="squeeze_copy"):
    """`squeeze`, copied."""

    view = Squeeze
    x = operand()
    out = result()
    axes = attr(I64_ARRAY, default=None)

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        return Squeeze.infer(types, attrs)


class UnsqueezeCopy(ViewCopy, name="unsqueeze_copy"):
    """`expand_dims`, copied."""

    view = ExpandDims
    failure = Failure.NEVER
    x = operand()
    out = result()
    axes = attr(I64_ARRAY)


class SumToSize(Composite, name="sum_to_size", rounding=Rounding.SUMS):
    """``x`` summed to the sizes that it was broadcast from; without sizes ``x`` itself.

    Raises ShapeError for sizes that do not broadcast to those of ``x``.
    """

    aliases = {0: 0}
    fusion = Fusion.REDUCTION
    x = operand()
    out = result()
    sizes = attr(I64_ARRAY, default=None)

    @classmethod
    def expand(cls, b: Any, attrs: Attrs, *xs: Any) -> Any:
        (x,) = xs
        if not attrs["sizes"]:
            return x
        # Only the shape of the second operand counts.
        return b.op("sum_to", x, b.op("full", False, shape=attrs["sizes"]))

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from super().verify(types, attrs)
        if any(size < 0 for size in attrs["sizes"] or ()):
            yield f"sizes {list(attrs['sizes'])} have a negative size"


class BroadcastingChunk(Composite, name="broadcasting_chunk", rounding=Rounding.MOVES):
    """The operands broadcast together, each cut into ``chunks`` along ``axis``: all pieces of the first one first."""

    exact = True
    fusion = Fusion.VIEW
    xs = operand(variadic=True)
    pieces = result(variadic=True)
    axis = attr(I64, default=0)
    chunks = attr(I64)

    @classmethod
    def shared_operands(cls, result: int, count: int) -> tuple[int, ...]:
        return tuple(range(count))

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        count = len(types) * attrs["chunks"]
        pieces = super().infer(types, attrs)
        return pieces if len(pieces) == count else (TENSOR,) * count

    @classmethod
    def expand(cls, b: Any, attrs: Attrs, *xs: Any) -> Any:
        if not xs:
            raise ShapeError("broadcasting_chunk needs an operand")
        rank = max(x.ndim for x in xs)
        sizes: list[Any] = [1] * rank
        for x in xs:
            for axis, size in enumerate(x.shape, start=rank - x.ndim):
                if type(sizes[axis]) is int and sizes[axis] == 1:
                    sizes[axis] = size
        pieces: list[Any] = []
        for x in xs:
            cut = b.op("chunk", broadcast_to(b, x, sizes), axis=attrs["axis"], chunks=attrs["chunks"])
            pieces += cut if isinstance(cut, tuple) else [cut]
        return tuple(pieces)

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from super().verify(types, attrs)
        if not types:
            yield "broadcasting_chunk needs an operand"
        if Chunk.count(attrs) < 1:
            yield "number of chunks must be larger than 0."


class AddOptional(WithOptional, name="add_optional"):
    """``a + b``; ``a`` where ``b`` is not given, or undefined."""

    aliases = {0: 0}
    fusion = Fusion.POINTWISE
    optional = ("b",)
    a = operand()
    added = operand(variadic=True)
    out = result()

    @classmethod
    def expand(cls, b: Any, attrs: Attrs, *xs: Any) -> Any:
        return xs[0] if xs[1] is None else xs[0] + xs[1]
