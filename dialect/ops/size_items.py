"""What queries ask of a tensor, asked of its sizes: `dim`, `rank` and `size` where there is no tensor any more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..errors import ShapeError
from ..ir.attrs import I64
from ..ir.dtypes import I64 as INT64
from ..ir.op import Attrs, Failure, attr, operand, result
from ..ir.types import INTS, ListedType, ScalarType, Shape, Type
from .size_lists import OfValues
from .sizes import normalize_axis, product


class SizeItem(OfValues):
    """Family of ops that give an i64 which follows from sizes."""

    failure = Failure.SIZES
    sizes = operand()
    out = result()

    @classmethod
    def item(cls, attrs: Attrs, sizes: Shape) -> Any:
        """The number: an int, a `Sym`, or None where it is not known. Raises AxisError."""
        raise NotImplementedError

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        shape = types[0].value if isinstance(types[0], ListedType) else None
        return (ScalarType(INT64, None if shape is None else cls.item(attrs, shape)),)  # type: ignore[arg-type]

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        if args[0] is None:
            raise ShapeError(f"{cls.name} takes sizes, not None")
        return cls.item(attrs, args[0])

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from cls.wrong_operands(types, INTS)


class DimOf(SizeItem, name="dim_of"):
    """The size of an axis, as `dim` gives it. Raises AxisError."""

    axis = attr(I64)

    @classmethod
    def item(cls, attrs: Attrs, sizes: Shape) -> Any:
        return sizes[normalize_axis(attrs["axis"], len(sizes))]


class RankOf(SizeItem, name="rank_of"):
    """How many sizes there are, as `rank` gives it."""

    failure = Failure.NEVER

    @classmethod
    def item(cls, attrs: Attrs, sizes: Shape) -> Any:
        return len(sizes)


class SizeOf(SizeItem, name="size_of"):
    """The number of elements, as `size` gives it."""

    failure = Failure.NEVER

    @classmethod
    def item(cls, attrs: Attrs, sizes: Shape) -> Any:
        return product(sizes)
